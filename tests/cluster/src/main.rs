//! `cluster`: starts a control plane and keeps it until Ctrl-C.

use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use test_cluster::Cluster;
use tokio::signal::unix::{SignalKind, signal};

/// Starts a Kubernetes control plane on this machine and keeps it until Ctrl-C.
#[derive(Parser)]
struct Arguments {
    /// Only etcd and the API server.
    #[arg(long)]
    api_only: bool,
    /// How many fake nodes.
    #[arg(long, default_value_t = 3)]
    nodes: usize,
    /// Install the definitions in this file or directory before the controllers start.
    #[arg(long)]
    crds: Option<PathBuf>,
    /// Also write the kubeconfig here; it is removed at the end.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let builder = Cluster::builder().nodes(arguments.nodes);
    let builder = match &arguments.crds {
        Some(path) => {
            builder.crds(&path.canonicalize().with_context(|| format!("--crds {}", path.display()))?)
        }
        None => builder,
    };
    let builder = if arguments.api_only { builder } else { builder.whole() };
    let began = std::time::Instant::now();
    let cluster = tokio::select! {
        cluster = builder.start() => cluster?,
        _ = interrupt.recv() => return Ok(()),
        _ = terminate.recv() => return Ok(()),
    };
    eprintln!("the control plane is ready at {} after {:.1} s", cluster.url(), began.elapsed().as_secs_f32());
    let kubeconfig = cluster.kubeconfig("admin")?;
    if let Some(copy) = &arguments.kubeconfig {
        std::fs::copy(&kubeconfig, copy).with_context(|| format!("--kubeconfig {}", copy.display()))?;
    }
    say(&format!("export KUBECONFIG={}", kubeconfig.display()))?;
    say(&format!("export PATH={}:$PATH", cluster.assets().directory().display()))?;
    eprintln!("Ctrl-C stops it");
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    if let Some(copy) = &arguments.kubeconfig {
        std::fs::remove_file(copy).with_context(|| format!("--kubeconfig {}", copy.display()))?;
    }
    drop(cluster);
    eprintln!("the control plane is gone");
    Ok(())
}

fn say(line: &str) -> anyhow::Result<()> {
    use std::io::Write;
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
