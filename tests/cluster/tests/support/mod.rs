//! What the tests of the control plane share: kubectl, and a look at the machine's processes.

#![allow(dead_code, reason = "each test binary uses its own part of it")]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use test_cluster::{Cluster, eventually};

/// For what a control plane does by itself.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// Runs kubectl as `user`; whether it succeeded and what it said.
pub(crate) async fn kubectl_as(cluster: &Cluster, user: &str, arguments: &[&str]) -> (bool, String) {
    let output = cluster.kubectl_as(user).unwrap().args(arguments).output().await.unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// Runs kubectl as admin, which has to succeed.
pub(crate) async fn kubectl(cluster: &Cluster, arguments: &[&str]) -> String {
    let (ok, said) = kubectl_as(cluster, "admin", arguments).await;
    assert!(ok, "kubectl {}: {said}", arguments.join(" "));
    said
}

/// The processes that run in `directory` or were started with its path, as `pid command line`.
pub(crate) fn processes_of(directory: &Path) -> Vec<String> {
    let path = directory.to_str().unwrap();
    let own = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let id = entry.file_name().into_string().unwrap();
        if id == own || !id.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        // A process that ends meanwhile is none.
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        let cwd = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        if command.contains(path) || cwd.to_string_lossy().starts_with(path) {
            found.push(format!("{id} {command}"));
        }
    }
    found
}

/// Waits until nothing of a control plane is left: no process and no directory.
pub(crate) async fn until_nothing_is_left(directory: &Path) {
    let what = format!("nothing is left of {}", directory.display());
    eventually(SOON, &what, async || {
        let processes = processes_of(directory);
        if processes.is_empty() && !directory.exists() {
            return Ok(());
        }
        Err(format!("directory there: {}, processes: {processes:#?}", directory.exists()))
    })
    .await;
}
