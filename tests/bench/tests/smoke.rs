//! The bench program works: five Tasks, one life, no figure is looked at.

#![allow(clippy::unwrap_used, reason = "what fails here is a test that fails")]

use std::path::Path;
use std::process::Command;

#[test]
fn five_tasks_live_and_a_table_is_printed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let built = Command::new(env!("CARGO"))
        .current_dir(&root)
        .args(["build", "--quiet", "--locked", "-p", "task-operator", "--bin", "task-operator"])
        .status()
        .unwrap();
    assert!(built.success());
    let operator = Path::new(env!("CARGO_BIN_EXE_bench")).with_file_name("task-operator");
    let mut bench = Command::new(env!("CARGO_BIN_EXE_bench"));
    bench.arg("--operator").arg(operator).args(["--tasks=5", "--namespaces=2", "--quiet=1"]);
    let output = bench.arg("--scenarios=create,scrape,quiet,change,delete").output().unwrap();
    let (table, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{table}{errors}");
    for figure in ["create.wall_s", "scrape.p50_ms", "quiet.writes", "change.p99_s", "delete.p50_s"] {
        assert!(table.contains(&format!("| {figure} |")), "{table}");
    }
}
