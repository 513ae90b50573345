//! An operator that is measured: how it is started, and when it is ready.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tempfile::TempDir;
use test_cluster::process::Process;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// For an operator to be ready.
const PATIENCE: Duration = Duration::from_secs(60);
/// The port in a flag for the webhooks.
const PORT: &str = "{port}";

/// What is measured.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// Its name in the results.
    pub(crate) name: String,
    /// None for no operator at all: the floor.
    pub(crate) program: Option<PathBuf>,
    /// What it is always started with.
    pub(crate) flags: Vec<String>,
    /// The definition of Tasks that it works on.
    pub(crate) crd: PathBuf,
    /// The flag that says where its webhooks listen, with `{port}` for the port.
    pub(crate) webhook_flag: String,
}

/// A running operator.
pub(crate) struct Running {
    process: Process,
    /// When it was started.
    pub(crate) began: Instant,
    /// The port of its probes.
    pub(crate) health: u16,
    /// The port of its metrics.
    pub(crate) metrics: u16,
    /// The port of its webhooks, where it has them.
    pub(crate) webhooks: u16,
    _directory: TempDir,
}

impl Subject {
    /// Starts it against the cluster of `kubeconfig`; with `certificates` it serves webhooks.
    ///
    /// # Errors
    /// If it cannot be started, or this is the floor.
    pub(crate) fn start(
        &self,
        kubeconfig: &Path,
        flags: &[&str],
        certificates: Option<&Path>,
    ) -> anyhow::Result<Running> {
        let program = self.program.as_ref().context("the floor has no operator to start")?;
        // It runs in a directory of its own.
        let program = program.canonicalize().with_context(|| format!("{}", program.display()))?;
        let [health, metrics, webhooks] = free_ports()?;
        let mut arguments = self.flags.clone();
        arguments.push(format!("--metrics-bind-address=127.0.0.1:{metrics}"));
        arguments.push(format!("--health-probe-bind-address=127.0.0.1:{health}"));
        arguments.extend(flags.iter().map(|&flag| flag.to_owned()));
        if let Some(directory) = certificates {
            arguments.push(self.webhook_flag.replace(PORT, &webhooks.to_string()));
            arguments.push(format!("--webhook-cert-dir={}", directory.display()));
        }
        let kubeconfig = ("KUBECONFIG".to_owned(), kubeconfig.display().to_string());
        let directory = TempDir::with_prefix("task-operator-bench-")?;
        let began = Instant::now();
        let process =
            Process::start(&self.name, &program, &arguments, &[kubeconfig, no_color()], directory.path())?;
        Ok(Running { process, began, health, metrics, webhooks, _directory: directory })
    }
}

impl Running {
    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Waits until its readiness probe succeeds; how long after its start that was.
    ///
    /// # Errors
    /// If it ends or is not ready in a minute, with the end of its log.
    pub(crate) async fn ready(&mut self) -> anyhow::Result<Duration> {
        loop {
            if get(self.health, "/readyz").await.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")) {
                return Ok(self.began.elapsed());
            }
            self.check()?;
            if self.began.elapsed() > PATIENCE {
                bail!("not ready after {PATIENCE:?}:\n{}", self.process.log_tail());
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Fails if it has ended.
    ///
    /// # Errors
    /// With the end of its log.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        match self.process.ended() {
            Some(status) => bail!("{} ended ({status}):\n{}", self.process.name(), self.process.log_tail()),
            None => Ok(()),
        }
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// If it has ended.
    pub(crate) fn signal(&self, signal: &str) -> anyhow::Result<()> {
        self.process.signal(signal)
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    /// Asks it to end and waits for that.
    pub(crate) fn stop(mut self) {
        self.process.stop();
    }
}

/// Reads a page of a server on this machine, head and body.
///
/// # Errors
/// If nobody answers.
pub(crate) async fn get(port: u16, path: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn no_color() -> (String, String) {
    ("NO_COLOR".to_owned(), "1".to_owned())
}

/// Ports that are free now; all are held until the last one is known.
fn free_ports() -> anyhow::Result<[u16; 3]> {
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(TcpListener::bind(("127.0.0.1", 0))?);
    }
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(&held) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}
