//! A program that runs, with its log, and ends with the value that owns it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::owned;

/// What a program gets to end by itself.
const GRACE: Duration = Duration::from_secs(5);
/// How many lines of a log an error shows.
const TAIL: usize = 30;

/// A program that runs, with its log. Dropped, it is killed; it also ends if
/// this process is killed (see the limits in `owned.rs`).
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    status: Option<ExitStatus>,
    log: PathBuf,
}

impl Process {
    /// Starts `program` with `arguments` and, beside what it inherits, this
    /// `environment`. It runs in `directory`, where its output is appended to `NAME.log`.
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
        let mut command = owned::command(program, "KILL");
        command
            .args(arguments)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file);
        let child = owned::spawn(command).with_context(|| format!("{name} cannot be started"))?;
        Ok(Self { name: name.to_owned(), child, status: None, log })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            // It can fail only for a child that was waited for, which `status` remembers.
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Sends it a signal, such as `STOP`.
    ///
    /// # Errors
    /// If it has ended, or there is no such signal.
    pub fn signal(&self, signal: &str) -> anyhow::Result<()> {
        // Its id may belong to somebody else by now.
        ensure!(self.status.is_none(), "{} has ended: it cannot get {signal}", self.name);
        owned::signal(&self.child, signal).with_context(|| format!("{} did not get {signal}", self.name))
    }

    /// Ends it at once, as a crash would.
    pub fn kill(&mut self) {
        if self.ended().is_none() {
            // Both fail only for a process that is gone, which is what is wanted.
            let _ = self.child.kill();
            self.status = self.child.wait().ok();
        }
    }

    /// Asks it to end, waits for at most 5 s, then kills it; says how it ended.
    pub fn stop(&mut self) -> Option<ExitStatus> {
        if self.ended().is_none() && self.signal("TERM").is_ok() {
            let began = Instant::now();
            while self.ended().is_none() && began.elapsed() < GRACE {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        self.kill();
        self.ended()
    }

    /// The end of its log, for an error to show.
    pub fn log_tail(&self) -> String {
        let text = self.log();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL)..].join("\n")
    }

    /// All of its log, or why it cannot be read.
    pub fn log(&self) -> String {
        match std::fs::read(&self.log) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => format!("{}: {error}", self.log.display()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn shell(script: &str, directory: &Path) -> Process {
        Process::start("script", Path::new("/bin/sh"), &["-c".to_owned(), script.to_owned()], &[], directory)
            .unwrap()
    }

    fn exit_of(process: &mut Process) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = process.ended() {
                return status;
            }
            assert!(began.elapsed() < Duration::from_secs(10), "{}", process.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn it_outlives_the_thread_that_started_it() {
        let directory = TempDir::new().unwrap();
        std::thread::scope(|scope| {
            let start = || shell("echo begins; read line </dev/null; sleep 0.3; echo ends", directory.path());
            let mut process = scope.spawn(start).join().unwrap();
            let status = exit_of(&mut process);
            assert!(status.success(), "{status}: {}", process.log());
            assert_eq!(process.log(), "begins\nends\n");
        });
    }

    #[test]
    fn what_ended_gets_no_signal() {
        let directory = TempDir::new().unwrap();
        let mut process = shell("exit 3", directory.path());
        assert_eq!(exit_of(&mut process).code(), Some(3));
        assert!(process.signal("KILL").unwrap_err().to_string().contains("has ended"));
        assert_eq!(process.stop().and_then(|status| status.code()), Some(3));
    }

    #[test]
    fn an_unknown_signal_is_an_error() {
        let directory = TempDir::new().unwrap();
        let process = shell("sleep 60", directory.path());
        assert!(process.signal("NOSUCH").is_err());
    }

    #[test]
    fn stop_lets_it_end_by_itself() {
        let directory = TempDir::new().unwrap();
        let mut process =
            shell("trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done", directory.path());
        let began = Instant::now();
        while process.log() != "ready\n" {
            assert!(began.elapsed() < Duration::from_secs(10), "{}", process.log());
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(process.stop().and_then(|status| status.code()), Some(7));
    }
}
