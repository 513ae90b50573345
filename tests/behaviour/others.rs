//! What other people and controllers do with the children stays.

use std::time::Duration;

use serde_json::{Value, json};

use crate::Bed;
use crate::support::{SOON, Space, condition, container};

/// Has the operator look at the child anew, and waits until it has repaired it:
/// whatever it would undo it has undone by then.
async fn provoke(space: &Space<'_>) {
    space.patch("Deployment", "web", json!({"metadata": {"labels": {"app.kubernetes.io/part-of": "evil"}}})).await;
    space.until(SOON, "Deployment", "web", "repaired", |deployment| {
        deployment["metadata"]["labels"]["app.kubernetes.io/part-of"] == "web"
    })
    .await;
    space.patch("Task", "web", json!({"spec": {"env": {"PROVOKED": "1"}}})).await;
    space.until(SOON, "Deployment", "web", "rolled out", |deployment| {
        container(deployment)["env"].to_string().contains("PROVOKED")
    })
    .await;
}

async fn running(space: &Space<'_>) {
    space.task("web", json!({"replicas": 1, "port": 80, "env": {"ENV": "prod"}})).await;
    space.until_phase("web", "Succeeded").await;
}

pub(super) async fn a_rollout_restart_stays(_: &Bed, space: &Space<'_>) {
    running(space).await;
    let (ok, said) = space.kubectl(&["rollout", "restart", "deployment/web"]).await;
    assert!(ok, "{said}");
    let (ok, said) = space.kubectl(&["rollout", "status", "deployment/web", "--timeout=30s"]).await;
    assert!(ok, "{said}");
    provoke(space).await;
    let deployment = space.get("Deployment", "web").await.unwrap();
    let annotations = &deployment["spec"]["template"]["metadata"]["annotations"];
    assert!(annotations["kubectl.kubernetes.io/restartedAt"].is_string(), "{annotations}");
    space.until_phase("web", "Succeeded").await;
}

pub(super) async fn an_injected_sidecar_stays(_: &Bed, space: &Space<'_>) {
    running(space).await;
    let sidecar = json!({"name": "proxy", "image": "envoy:1", "env": [{"name": "ENV", "value": "theirs"}]});
    let pod = json!({"containers": [sidecar], "volumes": [{"name": "certs", "emptyDir": {}}], "initContainers": [{"name": "init", "image": "busybox"}]});
    space.strategic("Deployment", "web", json!({"spec": {"template": {"spec": pod}}})).await;
    provoke(space).await;
    let deployment = space.get("Deployment", "web").await.unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    let names: Vec<&Value> = pod["containers"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert!(names.contains(&&json!("proxy")) && names.contains(&&json!("task")), "{pod:#}");
    assert_eq!(pod["initContainers"][0]["name"], "init");
    assert!(pod["volumes"].to_string().contains("certs"), "{pod:#}");
    space.until_phase("web", "Succeeded").await;
}

pub(super) async fn labels_and_annotations_of_others_stay(_: &Bed, space: &Space<'_>) {
    running(space).await;
    for (kind, name) in [("deployment", "web"), ("service", "web"), ("configmap", "web-config")] {
        let (ok, said) = space.kubectl(&["label", kind, name, "team=blue"]).await;
        assert!(ok, "{said}");
        let (ok, said) = space.kubectl(&["annotate", kind, name, "note=hello"]).await;
        assert!(ok, "{said}");
    }
    provoke(space).await;
    for (kind, name) in [("Deployment", "web"), ("Service", "web"), ("ConfigMap", "web-config")] {
        let child = space.get(kind, name).await.unwrap();
        assert_eq!(child["metadata"]["labels"]["team"], "blue", "{kind}");
        assert_eq!(child["metadata"]["annotations"]["note"], "hello", "{kind}");
    }
}

pub(super) async fn a_foreign_variable_and_port_stay(_: &Bed, space: &Space<'_>) {
    running(space).await;
    let (ok, said) = space.kubectl(&["set", "env", "deployment/web", "FOREIGN=1"]).await;
    assert!(ok, "{said}");
    space.strategic("Service", "web", json!({"spec": {"ports": [{"name": "metrics", "port": 9000}]}})).await;
    provoke(space).await;
    let deployment = space.get("Deployment", "web").await.unwrap();
    assert!(container(&deployment)["env"].to_string().contains("FOREIGN"), "{:#}", container(&deployment));
    space.patch("Task", "web", json!({"spec": {"port": 8081}})).await;
    let service = space
        .until(SOON, "Service", "web", "the new port", |service| service["spec"]["ports"].to_string().contains("8081"))
        .await;
    assert!(service["spec"]["ports"].to_string().contains("metrics"), "{service:#}");
    assert!(!service["spec"]["ports"].to_string().contains("\"port\":80,"), "{service:#}");
}

pub(super) async fn an_autoscaler_of_the_task_works(_: &Bed, space: &Space<'_>) {
    running(space).await;
    // Without a metrics server the autoscaler still keeps its lower bound, through the scale subresource.
    space
        .create(json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
            "spec": {
                "scaleTargetRef": {"apiVersion": "task.example.io/v1", "kind": "Task", "name": "web"},
                "minReplicas": 3, "maxReplicas": 5,
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}],
            },
        }))
        .await;
    space.until(Duration::from_secs(60), "Task", "web", "scaled by the autoscaler", |task| task["spec"]["replicas"] == 3).await;
    let task = space.until_phase("web", "Succeeded").await;
    assert_eq!(task["status"]["availableReplicas"], 3);
}

pub(super) async fn a_foreign_object_of_each_kind_is_never_touched(_: &Bed, space: &Space<'_>) {
    let owner = json!([{"apiVersion": "example.io/v1", "kind": "Other", "name": "boss", "uid": "1-2", "controller": true}]);
    let cases = [
        ("ConfigMap", "a-config", json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a-config"}, "data": {"x": "y"}})),
        ("Service", "b", json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "b", "ownerReferences": owner}, "spec": {"ports": [{"port": 1}]}})),
        ("Deployment", "c", json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "c"},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "x", "image": "y"}]}}},
        })),
    ];
    for (kind, name, object) in cases {
        let before = space.create(object).await;
        let task = name.trim_end_matches("-config");
        space.task(task, json!({})).await;
        let failed = space.until_phase(task, "Failed").await;
        let ready = condition(&failed, "Ready");
        assert_eq!(ready["reason"], "NameConflict");
        let message = ready["message"].as_str().unwrap();
        assert!(message.contains(kind) && message.contains(&format!("/{name}")), "{message}");
        assert_eq!(condition(&failed, "Stalled")["status"], "True");
        space.until_event(task, "ReconcileFailed", kind).await;
        let after = space.get(kind, name).await.unwrap();
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
        assert_eq!(after["spec"]["selector"], before["spec"]["selector"]);
        assert_eq!(after["metadata"]["labels"], before["metadata"]["labels"]);
        assert_eq!(after["metadata"]["ownerReferences"], before["metadata"]["ownerReferences"]);
        space.delete(kind, name).await;
        let recovered = space.until_phase(task, "Succeeded").await;
        assert!(condition(&recovered, "Stalled").is_null());
    }
}
