//! From `kubectl apply` to `kubectl delete`.

use std::time::Duration;

use kube::api::{DeleteParams, PropagationPolicy};
use serde_json::json;

use crate::Bed;
use crate::support::{SOON, Space, condition, container};

const SAMPLE: &str = include_str!("../../manifests/samples/task.yaml");

pub(super) async fn the_sample_becomes_ready_as_kubectl_shows_it(_: &Bed, space: &Space<'_>) {
    let sample = SAMPLE.replace("namespace: default", &format!("namespace: {}", space.namespace));
    let (ok, said) = space.apply(&sample).await;
    assert!(ok && said.contains("task.task.example.io/test-task created"), "{said}");

    let (ok, said) = space.kubectl(&["wait", "--for=condition=Ready", "--timeout=30s", "task.task.example.io/test-task"]).await;
    assert!(ok, "{said}");
    let (ok, said) = space
        .kubectl(&["wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=5s", "task.task.example.io/test-task"])
        .await;
    assert!(ok, "{said}");
    let (_, said) = space.kubectl(&["get", "tasks.task.example.io"]).await;
    let words: Vec<&str> = said.split_whitespace().collect();
    assert_eq!(words[..6], ["NAME", "PHASE", "DESIRED", "AVAILABLE", "IMAGE", "AGE"], "{said}");
    assert_eq!(words[6..11], ["test-task", "Succeeded", "3", "3", "nginx:alpine"], "{said}");
    let (_, said) = space.kubectl(&["get", "tsk", "-o", "wide"]).await;
    assert!(said.contains("PORT") && said.contains("all 3 replicas are ready"), "{said}");
    let (_, said) = space.kubectl(&["get", "all"]).await;
    assert!(said.contains("task.task.example.io/test-task"), "{said}");
    let (_, said) = space.kubectl(&["get", "tsk", "--field-selector", "status.phase=Succeeded,spec.image=nginx:alpine"]).await;
    assert!(said.contains("test-task"), "{said}");

    space.until_event("test-task", "FinalizerAdded", "finalizer").await;
    space.until_event("test-task", "ReconcileSucceeded", "phase: Succeeded").await;
    let (_, said) = space.kubectl(&["describe", "task.task.example.io", "test-task"]).await;
    for text in ["FinalizerAdded", "ReconcileSucceeded", "Observed Generation:", "task.example.io/finalizer"] {
        assert!(said.contains(text), "no {text} in {said}");
    }
    let (_, said) = space.kubectl(&["explain", "task.spec"]).await;
    for text in ["env", "image", "port", "replicas", "How many Pods are wanted"] {
        assert!(said.contains(text), "no {text} in {said}");
    }

    let config = space.get("ConfigMap", "test-task-config").await.unwrap();
    assert_eq!(config["data"]["app.conf"], "port: 80\nenv: {\"ENV\":\"prod\"}\n");
    let service = space.get("Service", "test-task").await.unwrap();
    assert_eq!(service["spec"]["ports"][0]["port"], 80);
    assert_eq!(service["spec"]["ports"][0]["targetPort"], "http");
    let deployment = space.get("Deployment", "test-task").await.unwrap();
    assert_eq!(deployment["spec"]["template"]["spec"]["automountServiceAccountToken"], false);
    assert_eq!(container(&deployment)["env"], json!([{"name": "ENV", "value": "prod"}]));
}

pub(super) async fn an_empty_task_gets_all_defaults(_: &Bed, space: &Space<'_>) {
    let name = space.namespace.as_str();
    let (ok, said) =
        space.apply(&format!("{{apiVersion: task.example.io/v1, kind: Task, metadata: {{name: empty, namespace: {name}}}}}")).await;
    assert!(ok, "{said}");
    let task = space.until_phase("empty", "Succeeded").await;
    assert_eq!(task["spec"]["replicas"], 1);
    assert_eq!(task["spec"]["image"], "nginx:alpine");
    assert_eq!(task["spec"]["port"], 8080);
    // Port 0 and image "" stand for the defaults.
    space.task("zero", json!({"port": 0, "image": ""})).await;
    space.until_phase("zero", "Succeeded").await;
    let deployment = space.get("Deployment", "zero").await.unwrap();
    assert_eq!(container(&deployment)["image"], "nginx:alpine");
    assert_eq!(container(&deployment)["ports"][0]["containerPort"], 8080);
}

pub(super) async fn scale_goes_up_down_and_to_zero(_: &Bed, space: &Space<'_>) {
    space.task("web", json!({"replicas": 1})).await;
    space.until_phase("web", "Succeeded").await;
    for replicas in [4, 2] {
        let (ok, said) = space.kubectl(&["scale", "task.task.example.io/web", &format!("--replicas={replicas}")]).await;
        assert!(ok, "{said}");
        let task = space.until_phase("web", "Succeeded").await;
        assert_eq!(task["status"]["availableReplicas"], replicas);
        assert_eq!(task["status"]["replicas"], replicas);
    }
    space.patch("Task", "web", json!({"spec": {"replicas": 0}})).await;
    let task = space
        .until(SOON, "Task", "web", "scaled to zero", |task| condition(task, "Ready")["reason"] == "ScaledToZero")
        .await;
    assert_eq!(task["status"]["phase"], "Pending");
    assert_eq!(condition(&task, "Ready")["status"], "True");
    assert_eq!(task["spec"]["replicas"], 0);
    let deployment = space.get("Deployment", "web").await.unwrap();
    assert_eq!(deployment["spec"]["replicas"], 0);
}

pub(super) async fn an_edit_rolls_out_and_what_left_the_task_leaves_the_children(_: &Bed, space: &Space<'_>) {
    space.task("web", json!({"port": 80, "env": {"A": "1", "B": "$(Z)", "Z": "2"}})).await;
    space.until_phase("web", "Succeeded").await;
    let deployment = space.get("Deployment", "web").await.unwrap();
    let names: Vec<_> = container(&deployment)["env"].as_array().unwrap().iter().map(|e| e["name"].clone()).collect();
    assert_eq!(names, ["A", "Z", "B"]);

    space.patch("Task", "web", json!({"spec": {"port": 81, "image": "nginx:1.27", "env": {"A": null, "C": "3"}}})).await;
    space.until_phase("web", "Succeeded").await;
    let deployment = space.get("Deployment", "web").await.unwrap();
    let names: Vec<_> = container(&deployment)["env"].as_array().unwrap().iter().map(|e| e["name"].clone()).collect();
    assert_eq!(names, ["C", "Z", "B"]);
    assert_eq!(container(&deployment)["image"], "nginx:1.27");
    assert_eq!(container(&deployment)["ports"].as_array().unwrap().len(), 1);
    assert_eq!(container(&deployment)["ports"][0]["containerPort"], 81);
    let service = space.get("Service", "web").await.unwrap();
    assert_eq!(service["spec"]["ports"].as_array().unwrap().len(), 1);
    assert_eq!(service["spec"]["ports"][0]["port"], 81);
    let config = space.get("ConfigMap", "web-config").await.unwrap();
    assert_eq!(config["data"]["app.conf"], "port: 81\nenv: {\"B\":\"$(Z)\",\"C\":\"3\",\"Z\":\"2\"}\n");

    // Also the last of them.
    space.patch("Task", "web", json!({"spec": {"env": {"B": null, "C": null, "Z": null}}})).await;
    space
        .until(SOON, "Deployment", "web", "without variables", |deployment| {
            container(deployment)["env"].as_array().is_none_or(Vec::is_empty)
        })
        .await;
    space.until_phase("web", "Succeeded").await;
}

pub(super) async fn a_background_deletion_takes_the_children_along(_: &Bed, space: &Space<'_>) {
    space.task("web", json!({})).await;
    space.until_phase("web", "Succeeded").await;
    space.delete("Task", "web").await;
    children_are_gone(space).await;
    space.until_event("web", "Deleted", "deleted").await;
}

pub(super) async fn a_foreground_deletion_takes_the_children_first(_: &Bed, space: &Space<'_>) {
    space.task("web", json!({})).await;
    space.until_phase("web", "Succeeded").await;
    space.api("Task").delete("web", &DeleteParams::foreground()).await.unwrap();
    children_are_gone(space).await;
}

async fn children_are_gone(space: &Space<'_>) {
    space.until_gone("Task", "web").await;
    for (kind, name) in [("Deployment", "web"), ("Service", "web"), ("ConfigMap", "web-config")] {
        space.until_gone(kind, name).await;
    }
}

pub(super) async fn an_orphaning_deletion_leaves_the_children(_: &Bed, space: &Space<'_>) {
    space.task("web", json!({})).await;
    space.until_phase("web", "Succeeded").await;
    let orphan = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    space.api("Task").delete("web", &orphan).await.unwrap();
    space.until_gone("Task", "web").await;
    for (kind, name) in [("Deployment", "web"), ("Service", "web"), ("ConfigMap", "web-config")] {
        let child = space.get(kind, name).await.unwrap_or_else(|| panic!("{kind} is gone"));
        assert!(child["metadata"]["ownerReferences"].is_null(), "{child:#}");
        assert!(child["metadata"]["deletionTimestamp"].is_null(), "{child:#}");
    }
}

pub(super) async fn a_task_made_again_at_once_gets_children_of_its_own(_: &Bed, space: &Space<'_>) {
    for round in 0..5 {
        let made = space.task("web", json!({"env": {"ROUND": round.to_string()}})).await;
        if round % 2 == 0 {
            space.until(SOON, "Deployment", "web", "of this Task", |deployment| {
                deployment["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
            })
            .await;
        }
        space.delete("Task", "web").await;
        space.until_gone("Task", "web").await;
    }
    let last = space.task("web", json!({"env": {"ROUND": "last"}})).await;
    space.until_phase("web", "Succeeded").await;
    for (kind, name) in [("Deployment", "web"), ("Service", "web"), ("ConfigMap", "web-config")] {
        let child = space.get(kind, name).await.unwrap();
        assert_eq!(child["metadata"]["ownerReferences"][0]["uid"], last["metadata"]["uid"], "{kind}");
    }
    let deployment = space.get("Deployment", "web").await.unwrap();
    assert_eq!(container(&deployment)["env"][0]["value"], "last");
}

pub(super) async fn the_namespace_can_go_at_any_time(bed: &Bed, space: &Space<'_>) {
    for number in 0..5 {
        space.task(&format!("web-{number}"), json!({})).await;
    }
    let (ok, said) = space.kubectl(&["delete", "namespace", &space.namespace, "--timeout=40s"]).await;
    assert!(ok, "{said}");
    let log = bed.operator.log();
    let complaints: Vec<&str> =
        log.lines().filter(|line| line.contains(&space.namespace) && line.contains(" WARN ")).collect();
    assert!(complaints.is_empty(), "complaints about a namespace that goes: {complaints:#?}");
}

pub(super) async fn probes_and_metrics_tell_of_it(bed: &Bed, space: &Space<'_>) {
    space.task("measured", json!({})).await;
    space.until_phase("measured", "Succeeded").await;
    let (code, page) = bed.operator.get("probes", "/readyz?verbose").await;
    assert!(code == 200 && page.contains("[+]watches-synced ok"), "{code} {page}");
    let (code, page) = bed.operator.get("probes", "/healthz").await;
    assert_eq!((code, page.as_str()), (200, "ok"));
    assert_eq!(bed.operator.get("probes", "/healthz/event-loop").await.0, 200);
    assert_eq!(bed.operator.get("probes", "/nowhere").await.0, 404);
    let line = format!("task_reconcile_total{{namespace=\"{}\",name=\"measured\",phase=\"Succeeded\"}}", space.namespace);
    let page = until_metric(bed, &line).await;
    for name in ["rest_client_requests_total{code=\"201\"", "controller_runtime_reconcile_total{", "task_operator_watch_synced{kind=\"Task\"} 1"] {
        assert!(page.contains(name), "no {name} in {page}");
    }
    space.delete("Task", "measured").await;
    let deleted = line.replace("Succeeded", "deleted");
    until_metric(bed, &deleted).await;
}

/// A pass is counted right after its last write can be seen.
async fn until_metric(bed: &Bed, series: &str) -> String {
    test_cluster::eventually(Duration::from_secs(10), &format!("the series {series}"), async || {
        let (_, page) = bed.operator.get("metrics", "/metrics").await;
        if page.contains(series) { Ok(page) } else { Err(page) }
    })
    .await
}
