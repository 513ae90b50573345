//! A temporary directory that goes with its owner, also if the owner is killed.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use tempfile::TempDir;

/// Waits for the end of its input, which comes when the owner has ended in
/// whatever way, then removes the directory. The programs that wrote into it get
/// their death signal at the same time and may be a little slower.
const REMOVE_AT_END: &str = r#"
trap '' INT TERM HUP
cat >/dev/null
left=100
while [ -e "$0" ] && [ "$left" -gt 0 ]; do
  rm -rf -- "$0" 2>/dev/null || sleep 0.1
  left=$((left - 1))
done"#;

/// A temporary directory.
#[derive(Debug)]
pub(crate) struct Scratch {
    // In the order of their end.
    directory: TempDir,
    _guard: Guard,
}

#[derive(Debug)]
struct Guard(Child);

impl Scratch {
    /// Makes one.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let directory = TempDir::with_prefix("task-operator-cluster-")?;
        let guard = Command::new("sh")
            .args(["-c", REMOVE_AT_END])
            .arg(directory.path())
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("sh cannot be run")?;
        Ok(Self { directory, _guard: Guard(guard) })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Removes it, and tells where that fails.
    pub(crate) fn remove(&self) -> anyhow::Result<()> {
        std::fs::remove_dir_all(self.path())
            .with_context(|| format!("{} cannot be removed", self.path().display()))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // With its input closed it removes what is left and ends; there is nobody to tell of a failure.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_with_its_owner() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().to_owned();
        std::fs::write(path.join("file"), "text").unwrap();
        drop(scratch);
        assert!(!path.exists());
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().to_owned();
        scratch.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn it_goes_when_the_owner_could_not_remove_it() {
        let mut scratch = Scratch::new().unwrap();
        let path = scratch.path().to_owned();
        std::fs::write(path.join("file"), "text").unwrap();
        // As after SIGKILL: no destructor runs, only the pipe closes.
        scratch.directory.disable_cleanup(true);
        drop(scratch);
        assert!(!path.exists());
    }
}
