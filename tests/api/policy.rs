//! What a real API server makes of the admission policies, on a CRD that has no rules of its own.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use kube::api::{DynamicObject, PatchParams, PostParams};
use serde_json::{Value, json};
use task_operator::api::policy;
use test_cluster::eventually;

use crate::corpus::cases;
use crate::served::{Served, definition_without_rules, object};

fn task(name: &str, spec: Value) -> DynamicObject {
    object(&json!({
        "apiVersion": "task.example.io/v1", "kind": "Task", "metadata": {"name": name}, "spec": spec,
    }))
}

/// Installs the policies as a person would, and waits until each is in force.
async fn install(served: &Served) {
    served.apply(&policy::yaml().unwrap()).await;
    let only_judge = PostParams { dry_run: true, ..PostParams::default() };
    eventually(Duration::from_secs(60), "the policies are in force", || async {
        match served.tasks.create(&only_judge, &task("probe", json!({"replicas": 101}))).await {
            Err(kube::Error::Api(status)) if status.message.contains("spec.replicas must be") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

#[tokio::test]
async fn the_corpus_is_judged_by_the_policies_as_by_the_schema() {
    let served = Served::with(&definition_without_rules()).await;
    install(&served).await;
    let only_judge = PostParams { dry_run: true, ..PostParams::default() };
    let (mut wrong, mut refused) = (String::new(), 0);
    for case in cases().unwrap() {
        let expected: &[String] = if case.schema_refuses { &case.refused } else { &[] };
        let (right, seen) = match served.tasks.create(&only_judge, &object(&case.manifest())).await {
            Ok(_) => (expected.is_empty(), "accepted".to_owned()),
            // A policy tells the first fault only.
            Err(kube::Error::Api(status)) => {
                refused += 1;
                let is_named = |field: &String| {
                    status.message.contains(field.split_once('[').map_or(field.as_str(), |(map, _)| map))
                };
                (status.code == 422 && expected.iter().any(is_named), status.message)
            }
            Err(error) => (false, error.to_string()),
        };
        if !right {
            writeln!(wrong, "- {}: expected {expected:?}, seen: {seen}", case.title).unwrap();
        }
    }
    assert!(wrong.is_empty(), "judged wrongly:\n{wrong}");
    assert!(refused > 20, "the corpus has bad Tasks: {refused}");
}

#[tokio::test]
async fn an_old_fault_keeps_nobody_from_anything_else() {
    let served = Served::with(&definition_without_rules()).await;
    let old = task("0.old", json!({"replicas": 101, "image": "Nginx", "env": {"A=B": "x"}}));
    served.tasks.create(&PostParams::default(), &old).await.unwrap();
    install(&served).await;

    served.merge("0.old", json!({"metadata": {"labels": {"a": "b"}}})).await.unwrap();
    served.merge("0.old", json!({"metadata": {"finalizers": ["task.example.io/finalizer"]}})).await.unwrap();
    let status = kube::api::Patch::Merge(json!({"status": {"phase": "Failed", "observedGeneration": 1}}));
    served.tasks.patch_status("0.old", &PatchParams::default(), &status).await.unwrap();
    served.merge("0.old", json!({"spec": {"image": "Apache"}})).await.unwrap_err();
    served.tasks.delete("0.old", &Default::default()).await.unwrap();
    served.merge("0.old", json!({"spec": {"image": "Deleted"}})).await.unwrap();
    served.merge("0.old", json!({"metadata": {"finalizers": null}})).await.unwrap();
}

#[tokio::test]
async fn kubectl_shows_the_refusal_the_protection_and_the_advice() {
    let served = Served::with(&definition_without_rules()).await;
    install(&served).await;
    let apply = |spec: Value, annotations: BTreeMap<&str, &str>| {
        let task = json!({
            "apiVersion": "task.example.io/v1", "kind": "Task",
            "metadata": {"name": "web", "annotations": annotations}, "spec": spec,
        });
        let served = &served;
        async move { served.kubectl_with("apply -f -", &task.to_string()).await }
    };
    let none = BTreeMap::new();
    let refused = apply(json!({"env": {"A=B": "x"}}), none.clone()).await;
    assert!(refused.contains("spec.env: key \"A=B\" must be 1 to 64 printable ASCII"), "{refused}");

    // The three policies come into force one by one.
    let protected = BTreeMap::from([("task.example.io/protected", "true")]);
    eventually(Duration::from_secs(60), "the advice is in force", || async {
        let said = apply(json!({"image": "nginx"}), protected.clone()).await;
        let is_right = said.contains("Warning: ") && said.contains("spec.image: without a tag");
        if is_right { Ok(()) } else { Err(said) }
    })
    .await;
    eventually(Duration::from_secs(60), "the protection is in force", || async {
        let said = served.kubectl("delete tsk/web --dry-run=server").await;
        let is_right = said.contains("the Task 'web' is protected: remove its annotation");
        if is_right { Ok(()) } else { Err(said) }
    })
    .await;
    let pinned = apply(json!({"image": "nginx:1.27"}), none).await;
    assert!(!pinned.contains("Warning: ") && pinned.contains("configured"), "{pinned}");
    let deleted = served.kubectl("delete tsk/web").await;
    assert!(deleted.contains("deleted"), "{deleted}");
}
