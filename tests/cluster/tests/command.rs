//! The program `cluster`, as a developer and the demo use it.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod support;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use support::{SOON, processes_of, until_nothing_is_left};
use tempfile::TempDir;
use test_cluster::eventually;

/// A `cluster up` that runs.
struct Up {
    child: Child,
    files: TempDir,
}

impl Up {
    fn start(flags: &[&str]) -> Self {
        let files = TempDir::new().unwrap();
        fs::create_dir(files.path().join("tmp")).unwrap();
        let file = |name: &str| File::create(files.path().join(name)).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_cluster"))
            .args(["up", "--api-only", "--kubeconfig"])
            .arg(files.path().join("kubeconfig"))
            .args(flags)
            .env_remove("USE_EXISTING_CLUSTER")
            .env("TMPDIR", files.path().join("tmp"))
            .stdin(Stdio::null())
            .stdout(file("out"))
            .stderr(file("err"))
            .spawn()
            .unwrap();
        Self { child, files }
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.files.path().join(name)).unwrap()
    }

    /// Waits until it is ready; the control plane's directory.
    async fn ready(&self) -> PathBuf {
        let out = eventually(SOON, "it prints what to export", async || {
            let out = self.read("out");
            if out.lines().count() == 2 { Ok(out) } else { Err(format!("{out}{}", self.read("err"))) }
        })
        .await;
        let kubeconfig = out.lines().next().unwrap().strip_prefix("export KUBECONFIG=").unwrap();
        Path::new(kubeconfig).parent().unwrap().to_owned()
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("sh").args(["-c", &format!("kill -{signal} {id}")]).status().unwrap().success());
    }

    async fn ended(&mut self) -> ExitStatus {
        let child = std::cell::RefCell::new(&mut self.child);
        eventually(SOON, "it ends", async || {
            child.borrow_mut().try_wait().unwrap().ok_or_else(|| "it runs".to_owned())
        })
        .await
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// kubectl as a shell has it that took over what `cluster up` printed.
fn shell(exports: &str, command: &str) -> String {
    let output = Command::new("sh").args(["-c", &format!("{exports}{command}")]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn a_shell_takes_over_what_it_prints_and_ctrl_c_ends_all() {
    for signal in ["INT", "TERM", "HUP"] {
        let mut up = Up::start(&["--audit"]);
        let directory = up.ready().await;
        assert_eq!(shell(&up.read("out"), "kubectl get --raw /readyz"), "ok");
        let copy = up.files.path().join("kubeconfig");
        assert!(copy.exists() && up.read("err").contains("audit.log"), "{}", up.read("err"));
        up.signal(signal);
        let status = up.ended().await;
        assert_eq!(status.code(), Some(0), "{signal}: {status}: {}", up.read("err"));
        assert!(!copy.exists() && !directory.exists(), "{signal}");
        assert!(processes_of(&directory).is_empty(), "{signal}: {:#?}", processes_of(&directory));
    }
}

#[tokio::test]
async fn told_to_end_while_it_starts_it_ends_with_nothing_left() {
    let mut up = Up::start(&[]);
    let directory = up.files.path().join("tmp");
    eventually(SOON, "a program of it runs", async || {
        let running = processes_of(&directory);
        if running.iter().any(|one| one.contains("kube-apiserver")) {
            Ok(())
        } else {
            Err(format!("{running:#?}"))
        }
    })
    .await;
    up.signal("TERM");
    let status = up.ended().await;
    assert_eq!(status.code(), Some(0), "{status}: {}", up.read("err"));
    assert_eq!(up.read("out"), "");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
    assert!(processes_of(&directory).is_empty(), "{:#?}", processes_of(&directory));
}

#[tokio::test]
async fn killed_it_leaves_no_process_and_no_directory() {
    let mut up = Up::start(&[]);
    let directory = up.ready().await;
    // etcd, the API server and the guard of the directory.
    assert_eq!(processes_of(&directory).len(), 3, "{:#?}", processes_of(&directory));
    up.signal("KILL");
    up.ended().await;
    until_nothing_is_left(&directory).await;
}

#[test]
fn somebody_s_kubeconfig_is_never_overwritten() {
    let files = TempDir::new().unwrap();
    let own = files.path().join("config");
    fs::write(&own, "mine").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_cluster"))
        .args(["up", "--api-only", "--kubeconfig"])
        .arg(&own)
        .env_remove("USE_EXISTING_CLUSTER")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("--kubeconfig"), "{said}");
    assert_eq!(fs::read_to_string(own).unwrap(), "mine");
}

#[test]
fn an_existing_cluster_is_not_started() {
    let output = Command::new(env!("CARGO_BIN_EXE_cluster"))
        .arg("up")
        .env("USE_EXISTING_CLUSTER", "true")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("none to start"), "{said}");
}
