//! Where the programs of the control plane come from.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::owned;

/// A directory that holds all programs of the control plane, and kubectl.
#[derive(Clone, Debug)]
pub struct Assets(PathBuf);

impl Assets {
    /// Finds the programs in `KUBEBUILDER_ASSETS` where that is set. What is not
    /// there is built from pinned sources: that takes a quarter of an hour, once,
    /// and tells on stderr how far it is. Dropping the future stops the build.
    ///
    /// # Errors
    /// If they cannot be built.
    pub async fn find() -> anyhow::Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("build");
        let mut command = owned::command(&script, "TERM");
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let child = owned::spawn(command).with_context(|| format!("{} cannot be run", script.display()))?;
        let mut build = Build(child);
        let status = loop {
            match build.0.try_wait()? {
                Some(status) => break status,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        ensure!(status.success(), "the control plane could not be built: {status}");
        let mut path = String::new();
        build.0.stdout.take().context("the build has no output")?.read_to_string(&mut path)?;
        Ok(Self(PathBuf::from(path.trim())))
    }

    /// The path of one program.
    pub fn program(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.0
    }
}

/// A build that runs.
struct Build(Child);

impl Drop for Build {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            // It ends its own compilers; if it cannot be told, it goes on into the cache, which is harmless.
            if owned::signal(&self.0, "TERM").is_ok() {
                let _ = self.0.wait();
            }
        }
    }
}
