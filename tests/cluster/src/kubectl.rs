//! kubectl, as it is to be called so that two clusters do not meet in its cache.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::ensure;
use tokio::process::Command;

/// The program and what it needs.
#[derive(Clone, Debug)]
pub(crate) struct Kubectl {
    pub(crate) program: PathBuf,
    pub(crate) kubeconfig: PathBuf,
    /// What belongs to this cluster only.
    pub(crate) directory: PathBuf,
}

impl Kubectl {
    /// A call that ends when it is dropped.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env("KUBECONFIG", &self.kubeconfig)
            // It keeps what it discovered; another cluster may have had the same port.
            .env("KUBECACHEDIR", self.directory.join("kubectl-cache"))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Installs the definitions in these files or directories, and waits until they are served.
    pub(crate) async fn install_crds(&self, paths: &[PathBuf]) -> anyhow::Result<()> {
        for path in paths {
            self.run(&["apply", "-f"], path).await?;
            self.run(&["wait", "--for=condition=Established", "--timeout=30s", "-f"], path).await?;
        }
        Ok(())
    }

    async fn run(&self, arguments: &[&str], path: &Path) -> anyhow::Result<()> {
        let output = self.command().args(arguments).arg(path).output().await?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "kubectl {} {}: {}",
            arguments.join(" "),
            path.display(),
            said.trim()
        );
        Ok(())
    }
}
