//! What a real API server makes of the CRD, where nothing else runs.

use std::fmt::Write;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::json;
use task_operator::api::crd::crd;
use task_operator::api::v1::{Task, TaskSpec, TaskStatus};
use test_cluster::eventually;

use crate::corpus::cases;
use crate::served::{Served, definition, definition_without_rules, object};

const CRDS: &str = "customresourcedefinitions.apiextensions.k8s.io";

#[tokio::test]
async fn the_corpus_is_refused_by_the_schema_alone_and_the_field_is_named() {
    let served = Served::with(&definition()).await;
    let only_judge = PostParams { dry_run: true, ..PostParams::default() };
    let mut wrong = String::new();
    for case in cases().unwrap() {
        let expected: &[String] = if case.schema_refuses { &case.refused } else { &[] };
        let (right, seen) = match served.tasks.create(&only_judge, &object(&case.manifest())).await {
            Ok(_) => (expected.is_empty(), "accepted".to_owned()),
            Err(kube::Error::Api(status)) => {
                let is_named = |field: &String| {
                    status.message.contains(field.split_once('[').map_or(field.as_str(), |(map, _)| map))
                };
                let is_invalid = status.code == 422 && status.reason == "Invalid";
                (!expected.is_empty() && is_invalid && expected.iter().all(is_named), status.message)
            }
            Err(error) => (false, error.to_string()),
        };
        if !right {
            writeln!(wrong, "- {}: expected {expected:?}, seen: {seen}", case.title).unwrap();
        }
    }
    assert!(wrong.is_empty(), "judged wrongly:\n{wrong}");
}

#[tokio::test]
async fn an_empty_task_has_every_default_and_a_status_at_once() {
    let served = Served::with(&definition()).await;
    let empty = DynamicObject::new("empty", &served.resource);
    let created = served.tasks.create(&PostParams::default(), &empty).await.unwrap();
    for task in [created, served.tasks.get("empty").await.unwrap()] {
        assert_eq!(task.data["spec"], json!({"replicas": 1, "image": "nginx:alpine", "port": 8080}));
        assert_eq!(task.data["status"]["phase"], "Pending");
        assert_eq!(task.data["status"]["observedGeneration"], -1);
    }
    let typed: Api<Task> = Api::default_namespaced(served.client.clone());
    let read = typed.get("empty").await.unwrap();
    assert_eq!((read.spec, read.status), (TaskSpec::default(), Some(TaskStatus::default())));

    let nulls = json!({
        "apiVersion": "task.example.io/v1", "kind": "Task", "metadata": {"name": "nulls"},
        "spec": {"replicas": null, "image": null, "port": null, "env": null}, "status": null,
    });
    served.tasks.create(&PostParams::default(), &object(&nulls)).await.unwrap();
    let read = typed.get("nulls").await.unwrap();
    assert_eq!((read.spec, read.status), (TaskSpec::default(), Some(TaskStatus::default())));
}

#[tokio::test]
async fn a_task_from_before_the_rules_stays_writable_until_its_spec_changes() {
    let served = Served::with(&definition_without_rules()).await;
    let old = json!({
        "apiVersion": "task.example.io/v1", "kind": "Task", "metadata": {"name": "0.old"},
        "spec": {"replicas": 101, "image": "Nginx", "port": 70_000, "env": {"A=B": "x".repeat(5000)}},
    });
    served.tasks.create(&PostParams::default(), &object(&old)).await.unwrap();
    let rules = json!({"spec": {"versions": definition()["spec"]["versions"]}});
    served
        .definitions()
        .patch(crd().metadata.name.as_deref().unwrap(), &PatchParams::default(), &Patch::Merge(rules))
        .await
        .unwrap();
    // Another value at each look: one that was accepted before the rules were in force would change
    // nothing when it is written again, and what does not change is not judged.
    let port = AtomicI32::new(70_000);
    eventually(Duration::from_secs(20), "the rules hold", || async {
        let port = port.fetch_add(1, Ordering::Relaxed) + 1;
        match served.merge("0.old", json!({"spec": {"port": port}})).await {
            Err(kube::Error::Api(status)) if status.message.contains("spec.port") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;

    served.merge("0.old", json!({"metadata": {"labels": {"a": "b"}}})).await.unwrap();
    served.merge("0.old", json!({"metadata": {"finalizers": ["task.example.io/finalizer"]}})).await.unwrap();
    let status = Patch::Merge(json!({"status": {"phase": "Failed", "observedGeneration": 1}}));
    served.tasks.patch_status("0.old", &PatchParams::default(), &status).await.unwrap();
    served.merge("0.old", json!({"spec": {"image": "Apache"}})).await.unwrap_err();
    served.merge("0.old", json!({"spec": {"port": 80}})).await.unwrap();
    served.merge("0.old", json!({"metadata": {"finalizers": null}})).await.unwrap();
    served.tasks.delete("0.old", &Default::default()).await.unwrap();
}

#[tokio::test]
async fn kubectl_shows_explains_scales_and_selects() {
    let served = Served::with(&definition()).await;
    let web = json!({
        "apiVersion": "task.example.io/v1", "kind": "Task", "metadata": {"name": "web"},
        "spec": {"replicas": 3, "image": "nginx:1.27", "port": 80},
    });
    served.tasks.create(&PostParams::default(), &object(&web)).await.unwrap();
    let condition = json!({
        "type": "Ready", "status": "False", "reason": "RollingOut", "message": "1 of 3 Pods are ready",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
    });
    let status = json!({"status": {
        "phase": "Running", "availableReplicas": 1, "replicas": 3, "selector": "a=b", "observedGeneration": 1,
        "lastUpdateTime": "2026-01-01T00:00:00.123456789Z", "conditions": [condition],
    }});
    served.tasks.patch_status("web", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();

    for (arguments, expected) in [
        (
            "get tsk web",
            &["NAME", "PHASE", "DESIRED", "AVAILABLE", "IMAGE", "AGE", "Running", "nginx:1.27"][..],
        ),
        (
            "get tasks.task.example.io -o wide",
            &["PORT", "REASON", "MESSAGE", "80", "RollingOut", "1 of 3 Pods are ready"],
        ),
        ("get all", &["task.task.example.io/web"]),
        ("get tsk --field-selector status.phase=Running,spec.image=nginx:1.27", &["web"]),
        ("get tsk --field-selector status.phase=Failed", &["No resources found"]),
        ("scale tsk/web --replicas 5", &["scaled"]),
        ("scale tsk/web --replicas 101", &["spec.replicas", "100"]),
        (
            "get --raw /apis/task.example.io/v1/namespaces/default/tasks/web/scale",
            &[r#""spec":{"replicas":5},"status":{"replicas":3,"selector":"a=b"}"#],
        ),
        (
            "explain task.spec",
            &["replicas\t<integer>", "image\t<string>", "port\t<integer>", "env\t<map[string]string>"],
        ),
        ("explain task.status.conditions", &["observedGeneration"]),
        ("wait --for=jsonpath={.status.phase}=Running tsk/web --timeout=5s", &["condition met"]),
        (&format!("get {CRDS} -o name"), &["tasks.task.example.io"]),
    ] {
        let said = served.kubectl(arguments).await;
        for words in expected {
            assert!(said.contains(words), "kubectl {arguments} does not say {words:?}:\n{said}");
        }
    }
    assert!(!served.kubectl("get tsk").await.contains("PORT"), "the port is for -o wide");
}
