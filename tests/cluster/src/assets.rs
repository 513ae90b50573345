//! Where the programs of the control plane come from.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

/// A directory that holds all of them.
#[derive(Clone, Debug)]
pub struct Assets(PathBuf);

impl Assets {
    /// Finds them, and builds them first where that was not done yet: that
    /// takes a quarter of an hour, once, and tells on stderr how far it is.
    ///
    /// # Errors
    /// If they cannot be built.
    pub fn find() -> anyhow::Result<Self> {
        let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("build");
        let output = Command::new(&build)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("{} cannot be run", build.display()))?;
        ensure!(output.status.success(), "the control plane could not be built: {}", output.status);
        let path = String::from_utf8(output.stdout).context("the build printed no path")?;
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
