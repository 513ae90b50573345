//! A program that ends with its owner.
//!
//! It is started by `setpriv --pdeathsig`, so that the kernel ends it even if
//! its owner is killed, and in a process group of its own, so that a Ctrl-C at
//! the terminal reaches the owner only, who stops everything in order.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

/// What a program gets to end by itself.
const GRACE: Duration = Duration::from_secs(5);

/// A program that runs, with its log.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `program` with `arguments`; its output goes to `NAME.log` in `directory`.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(
        name: &str,
        program: &Path,
        arguments: &[String],
        environment: &[(String, String)],
        directory: &Path,
    ) -> anyhow::Result<Self> {
        let log = directory.join(format!("{name}.log"));
        let file = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| format!("{}", log.display()))?;
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program)
            .args(arguments)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .process_group(0)
            .spawn()
            .with_context(|| format!("{name} cannot be started through setpriv (util-linux)"))?;
        Ok(Self { name: name.to_owned(), child, log })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Sends it a signal, such as `STOP`.
    ///
    /// # Errors
    /// If there is no such process or signal.
    pub fn signal(&self, signal: &str) -> anyhow::Result<()> {
        let sent = Command::new("kill").arg(format!("-{signal}")).arg(self.id().to_string()).status()?;
        anyhow::ensure!(sent.success(), "{} did not get {signal}", self.name);
        Ok(())
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        // A process that is gone already is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to end, waits a little, then ends it; says how it ended.
    pub fn stop(&mut self) -> Option<ExitStatus> {
        if self.ended().is_none() && self.signal("TERM").is_ok() {
            let began = Instant::now();
            while began.elapsed() < GRACE {
                if let Some(status) = self.ended() {
                    return Some(status);
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        self.kill();
        self.ended()
    }

    /// The end of its log.
    pub fn log_tail(&self) -> String {
        let text = self.log();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    /// All of its log.
    pub fn log(&self) -> String {
        std::fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
