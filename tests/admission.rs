//! The webhooks of a running operator, asked by a real API server: admission,
//! conversion, and a certificate that changes under load.

#![allow(clippy::unwrap_used, reason = "what fails here is a test that fails")]

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::webhooks::{Bed, Certificates};
use support::{Operator, SOON, Space, kubectl};
use test_cluster::Cluster;

/// An API server that asks a running operator, and nothing else.
async fn bed() -> Bed {
    Bed::start(Cluster::builder()).await
}

#[tokio::test]
async fn a_new_task_has_its_defaults_and_its_finalizer_at_once() {
    let bed = bed().await;
    let space = bed.space("defaults").await;
    let made = space.task("web", json!({"port": 0, "image": ""})).await;
    assert_eq!(made["metadata"]["finalizers"], json!(["task.example.io/finalizer"]));
    assert_eq!((&made["spec"]["port"], &made["spec"]["image"]), (&json!(8080), &json!("nginx:alpine")));
    space.until_event("web", "FinalizerAdded", "finalizer").await;
    // The operator's own writes pass, and the deletion does.
    space.until(SOON, "Deployment", "web", "made", |_| true).await;
    space.delete("Task", "web").await;
    space.until_gone("Task", "web").await;
    bed.operator.assert_healthy();
}

#[tokio::test]
async fn refusals_warnings_and_protection_read_as_for_built_in_kinds() {
    let bed = bed().await;
    let space = bed.space("refusals").await;
    // Escapes count, which no schema can say: this passes the schema, and its ConfigMap would be too large.
    let env: serde_json::Map<String, Value> =
        (0..60).map(|n| (format!("V{n}"), json!("\u{1}".repeat(4096)))).collect();
    let text = support::task("web", json!({"env": env})).to_string();
    let (ok, said) = kubectl(&bed.cluster, &["-n", "refusals", "create", "-f", "-"], Some(&text)).await;
    assert!(!ok && said.contains("The Task \"web\" is invalid") && said.contains("spec.env"), "{said}");

    let (ok, said) = space.apply(&support::task("web", json!({"image": "nginx:latest"})).to_string()).await;
    assert!(ok && said.contains("Warning: spec.image"), "{said}");

    let (ok, said) = space.kubectl(&["annotate", "tsk", "web", "task.example.io/protected=true"]).await;
    assert!(ok, "{said}");
    let (ok, said) = space.kubectl(&["delete", "tsk", "web"]).await;
    assert!(!ok && said.contains("is protected"), "{said}");
    let (ok, said) = space.kubectl(&["annotate", "tsk", "web", "task.example.io/protected-"]).await;
    assert!(ok, "{said}");
    let (ok, said) = space.kubectl(&["delete", "tsk", "web", "--timeout=30s"]).await;
    assert!(ok, "{said}");
}

#[tokio::test]
async fn the_old_version_is_served_by_the_same_operator() {
    let bed = bed().await;
    let space = bed.space("versions").await;
    let old = json!({
        "apiVersion": "task.example.io/v1alpha1", "kind": "Task", "metadata": {"name": "old"},
        "spec": {"containerPort": 81, "env": [{"name": "B", "value": "1"}, {"name": "A", "value": "2"}]},
    });
    let (ok, said) = space.apply(&old.to_string()).await;
    assert!(ok && said.contains("deprecated"), "{said}");
    let new = space.get("Task", "old").await.unwrap();
    assert_eq!(new["spec"]["port"], 81);
    assert_eq!(new["spec"]["env"], json!({"A": "2", "B": "1"}));
    let (ok, said) = space.kubectl(&["get", "tasks.v1alpha1.task.example.io", "old", "-o", "json"]).await;
    let read: Value = serde_json::from_str(said.split("\nWarning").next().unwrap()).unwrap_or_default();
    assert!(ok && read["spec"]["env"] == old["spec"]["env"], "{said}");
    space.until(SOON, "Deployment", "old", "made", |_| true).await;
}

#[tokio::test]
async fn with_the_operator_away_creation_says_so_and_deletion_works() {
    let mut bed = bed().await;
    bed.space("away").await.task("there", json!({})).await;
    bed.operator.signal("TERM");
    assert!(bed.operator.ended(SOON).await.success());
    let client = bed.cluster.client("admin").await.unwrap();
    let space = Space { cluster: &bed.cluster, client, namespace: "away".to_owned() };
    let (ok, said) = space.apply(&support::task("web", json!({})).to_string()).await;
    assert!(!ok && said.contains("mtask.kb.io") && said.contains("connection refused"), "{said}");
    let (ok, said) = space.kubectl(&["label", "tsk", "there", "a=b"]).await;
    assert!(ok, "{said}");
    let (ok, said) = space.kubectl(&["delete", "tsk", "there", "--wait=false"]).await;
    assert!(ok, "{said}");
    // Its finalizer goes with the next operator, which nobody asks about that.
    let again = Operator::started(&bed.cluster.kubeconfig("operator").unwrap(), &[]).await;
    space.until_gone("Task", "there").await;
    again.assert_healthy();
}

#[tokio::test]
async fn a_new_certificate_is_taken_over_without_a_failed_call() {
    let bed = bed().await;
    let space = bed.space("rotation").await;
    let text = support::task("web", json!({})).to_string();
    let create = ["-n", "rotation", "create", "--dry-run=server", "-f", "-"];
    // The API server trusts both while the certificate changes.
    let other = Certificates::new();
    let both = ["tls.crt"].map(|name| {
        let read = |directory: &Certificates| std::fs::read_to_string(directory.path().join(name)).unwrap();
        format!("{}{}", read(&bed.certificates), read(&other))
    });
    let old = std::fs::read_to_string(bed.certificates.path().join("tls.crt")).unwrap();
    std::fs::write(bed.certificates.path().join("tls.crt"), &both[0]).unwrap();
    let manifests = bed.printed("webhooks");
    std::fs::write(bed.certificates.path().join("tls.crt"), old).unwrap();
    let (ok, said) = kubectl(&bed.cluster, &["apply", "-f", "-"], Some(&manifests)).await;
    assert!(ok, "{said}");

    for name in ["tls.crt", "tls.key"] {
        std::fs::copy(other.path().join(name), bed.certificates.path().join(name)).unwrap();
    }
    let (mut calls, began) = (0, std::time::Instant::now());
    let taken_over = || bed.operator.log().matches("serving with the certificate").count() >= 2;
    while !taken_over() || calls < 20 {
        let (ok, said) = kubectl(&bed.cluster, &create, Some(&text)).await;
        assert!(ok, "after {calls} calls: {said}");
        calls += 1;
        assert!(began.elapsed() < Duration::from_secs(60), "the certificate is not taken over");
    }
    let (_, page) = bed.operator.get("metrics", "/metrics").await;
    assert!(page.contains("task_operator_certificate_expiry_timestamp_seconds{usage=\"webhook\"}"), "{page}");
    let (code, page) = bed.operator.get("probes", "/readyz?verbose").await;
    assert!(code == 200 && page.contains("[+]webhook-certificate ok"), "{page}");
    drop(space);
}
