//! `cluster`: starts a control plane and keeps it until Ctrl-C.
//!
//! Standard output gets the lines for a shell to take over (`export …`),
//! standard error what happens. It leaves no process and no file behind.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::{Args, Parser, Subcommand};
use test_cluster::{Builder, Cluster, existing};
use tokio::signal::unix::{SignalKind, signal};

/// A Kubernetes control plane on this machine.
#[derive(Parser)]
#[command(name = "cluster", args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    up: Up,
}

#[derive(Subcommand)]
enum Command {
    /// Start one and keep it until Ctrl-C; that is also what happens if nothing is said.
    Up(Up),
}

#[derive(Args)]
struct Up {
    /// Only etcd and the API server.
    #[arg(long)]
    api_only: bool,
    /// How many fake nodes it has.
    #[arg(long, default_value_t = 3, value_name = "N")]
    nodes: usize,
    /// Install the CustomResourceDefinitions in this file or directory; may be repeated.
    #[arg(long, value_name = "PATH")]
    crds: Vec<PathBuf>,
    /// Pods need 1 to 4 seconds to be ready.
    #[arg(long)]
    slow_pods: bool,
    /// Keep an audit log and print where.
    #[arg(long)]
    audit: bool,
    /// Also write the kubeconfig here, where no file is yet; it is removed at the end.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

impl Up {
    fn builder(&self) -> Builder {
        let builder = Cluster::builder().nodes(self.nodes);
        let builder = if self.api_only { builder.api_only() } else { builder.whole() };
        let builder = self.crds.iter().fold(builder, |builder, path| builder.crds(path));
        let builder = if self.slow_pods { builder.slow_pods() } else { builder };
        if self.audit { builder } else { builder.without_audit() }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let up = cli.command.map_or(cli.up, |Command::Up(up)| up);
    ensure!(
        !existing::is_requested(),
        "USE_EXISTING_CLUSTER asks for a cluster that runs: there is none to start"
    );
    let mut end = std::pin::pin!(told_to_end()?);
    let began = Instant::now();
    eprintln!("starting the control plane");
    let cluster = tokio::select! {
        cluster = up.builder().start() => cluster?,
        () = &mut end => return Ok(()),
    };
    let kubeconfig = cluster.kubeconfig("admin")?;
    let copy = up.kubeconfig.map(|path| Copy::new(&kubeconfig, path)).transpose()?;
    eprintln!(
        "ready at {} after {:.1} s; its logs are in {}",
        cluster.url(),
        began.elapsed().as_secs_f32(),
        cluster.directory().display()
    );
    if up.audit {
        eprintln!("the audit log is {}", cluster.audit_log()?.display());
    }
    let mut out = std::io::stdout();
    writeln!(out, "export KUBECONFIG={}", quoted(&kubeconfig))?;
    writeln!(out, "export PATH={}:\"$PATH\"", quoted(cluster.programs()?))?;
    out.flush()?;
    eprintln!("Ctrl-C stops it");
    end.await;
    drop(copy);
    cluster.stop()?;
    eprintln!("the control plane is gone");
    Ok(())
}

/// Resolves when the terminal or a supervisor asks for the end.
fn told_to_end() -> anyhow::Result<impl Future<Output = ()>> {
    let mut signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()]
        .into_iter()
        .map(signal)
        .collect::<Result<Vec<_>, _>>()?;
    Ok(std::future::poll_fn(move |context| {
        let told = signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
        if told { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    }))
}

/// The path as a word of a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    if text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c)) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A copy of the kubeconfig that goes with the control plane.
struct Copy(PathBuf);

impl Copy {
    /// Never over a file that is there: somebody's own kubeconfig would be lost.
    fn new(kubeconfig: &Path, path: PathBuf) -> anyhow::Result<Self> {
        let text = std::fs::read(kubeconfig)?;
        let file = File::options().write(true).create_new(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(&text))
            .with_context(|| format!("--kubeconfig {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            eprintln!("--kubeconfig {}: {error}", self.0.display());
        }
    }
}
