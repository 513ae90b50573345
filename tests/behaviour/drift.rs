//! What the Task declares comes back.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Bed;
use crate::support::{SOON, Space, condition, container};

/// What a correction may take.
const CORRECTED: Duration = Duration::from_secs(2);

pub(super) async fn every_owned_field_comes_back_within_two_seconds(_: &Bed, space: &Space<'_>) {
    let pod = |fields: Value| json!({"spec": {"template": {"spec": fields}}});
    let with_container = |fields: Value| {
        let mut container = json!({"name": "task"});
        container.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        pod(json!({"containers": [container]}))
    };
    let cases: Vec<(&str, &str, &str, Value)> = vec![
        ("replicas", "Deployment", "web", json!({"spec": {"replicas": 5}})),
        ("image", "Deployment", "web", with_container(json!({"image": "nginx:evil"}))),
        ("env value", "Deployment", "web", with_container(json!({"env": [{"name": "ENV", "value": "evil"}]}))),
        ("env removed", "Deployment", "web", with_container(json!({"env": [{"$patch": "delete", "name": "ENV"}]}))),
        ("container port", "Deployment", "web", with_container(json!({"ports": [{"$patch": "replace"}, {"containerPort": 81, "name": "http"}]}))),
        ("mount", "Deployment", "web", with_container(json!({"volumeMounts": [{"$patch": "delete", "mountPath": "/etc/task"}]}))),
        ("mount read-only", "Deployment", "web", with_container(json!({"volumeMounts": [{"mountPath": "/etc/task", "readOnly": false}]}))),
        ("volume", "Deployment", "web", pod(json!({"volumes": [{"name": "task-config", "configMap": {"name": "other"}}]}))),
        ("volume kind", "Deployment", "web", pod(json!({"volumes": [{"name": "task-config", "configMap": null, "emptyDir": {}}]}))),
        ("seccomp file", "Deployment", "web", pod(json!({"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "x.json"}}}))),
        ("token", "Deployment", "web", pod(json!({"automountServiceAccountToken": true}))),
        ("seccomp", "Deployment", "web", pod(json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}))),
        ("deployment label", "Deployment", "web", json!({"metadata": {"labels": {"app.kubernetes.io/part-of": "evil"}}})),
        ("template label", "Deployment", "web", json!({"spec": {"template": {"metadata": {"labels": {"app.kubernetes.io/component": "evil"}}}}})),
        ("owner", "Deployment", "web", json!({"metadata": {"ownerReferences": [{"$patch": "replace"}, {"apiVersion": "task.example.io/v1", "kind": "Task", "name": "web", "uid": "UID", "controller": true, "blockOwnerDeletion": false}]}})),
        ("env names", "Deployment", "web", json!({"metadata": {"annotations": {"task.example.io/env-names": null}}})),
        ("service port", "Service", "web", json!({"spec": {"ports": [{"$patch": "replace"}, {"name": "http", "port": 81, "targetPort": "http"}]}})),
        ("service target", "Service", "web", json!({"spec": {"ports": [{"port": 80, "targetPort": 9}]}})),
        ("service selector", "Service", "web", json!({"spec": {"selector": {"app.kubernetes.io/instance": "evil"}}})),
        ("service selector more", "Service", "web", json!({"spec": {"selector": {"more": "evil"}}})),
        ("service label", "Service", "web", json!({"metadata": {"labels": {"app.kubernetes.io/name": null}}})),
        ("config", "ConfigMap", "web-config", json!({"data": {"app.conf": "port: 1"}})),
        ("config removed", "ConfigMap", "web-config", json!({"data": {"app.conf": null}})),
        ("config label", "ConfigMap", "web-config", json!({"metadata": {"labels": {"app.kubernetes.io/instance": "evil"}}})),
    ];
    let mut slow = Vec::new();
    for (number, (what, kind, name, patch)) in cases.into_iter().enumerate() {
        // Each on a Task of its own: many changes to one object in a row would count as a fight.
        let task = format!("web-{number}");
        let made = space.task(&task, json!({"replicas": 1, "port": 80, "env": {"ENV": "prod"}})).await;
        space.until_phase(&task, "Succeeded").await;
        let name = name.replace("web", &task);
        let uid = made["metadata"]["uid"].as_str().unwrap();
        let patch = patch.to_string().replace("UID", uid).replace("\"name\":\"web\"", &format!("\"name\":\"{task}\""));
        let before = declared(&space.get(kind, &name).await.unwrap());
        let changed = space.strategic(kind, &name, serde_json::from_str(&patch).unwrap()).await;
        assert_ne!(declared(&changed), before, "{what}: the change changed nothing");
        let began = Instant::now();
        space.until(SOON, kind, &name, &format!("{what} is back: {before:#}"), |object| declared(object) == before).await;
        let took = began.elapsed();
        if took > CORRECTED {
            slow.push(format!("{what}: {took:?}"));
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
}

/// What of an object the operator owns or a change above touches.
fn declared(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object["metadata"].as_object_mut().unwrap();
    for field in ["resourceVersion", "generation", "managedFields", "creationTimestamp", "uid"] {
        metadata.remove(field);
    }
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove("deployment.kubernetes.io/revision");
    }
    object.as_object_mut().unwrap().remove("status");
    object
}

pub(super) async fn a_status_that_others_write_comes_back_within_two_seconds(_: &Bed, space: &Space<'_>) {
    let statuses = [
        json!({"phase": "Failed"}),
        json!({"availableReplicas": 9}),
        json!({"replicas": 9}),
        json!({"selector": "app=evil"}),
        json!({"selector": null}),
        json!({"observedGeneration": 99}),
        json!({"conditions": []}),
        json!({"conditions": [{"type": "Ready", "status": "False", "reason": "Evil", "message": "",
                               "lastTransitionTime": "2020-01-01T00:00:00Z"}]}),
        json!({"conditions": [{"type": "Stalled", "status": "True", "reason": "Evil", "message": "",
                               "lastTransitionTime": "2020-01-01T00:00:00Z"}]}),
    ];
    let said = |task: &Value| {
        let mut status = task["status"].clone();
        status.as_object_mut().unwrap().remove("lastUpdateTime");
        for condition in status["conditions"].as_array_mut().into_iter().flatten() {
            condition.as_object_mut().unwrap().remove("lastTransitionTime");
        }
        status
    };
    for (number, status) in statuses.into_iter().enumerate() {
        let task = format!("web-{number}");
        space.task(&task, json!({})).await;
        let before = said(&space.until_phase(&task, "Succeeded").await);
        let edited = space.patch_status("Task", &task, json!({"status": status})).await;
        assert_ne!(said(&edited), before, "{status}: the change changed nothing");
        space.until(CORRECTED, "Task", &task, &format!("{before:#}"), |task| said(task) == before).await;
    }
}

pub(super) async fn every_deleted_child_comes_back_within_two_seconds(_: &Bed, space: &Space<'_>) {
    space.task("web", json!({})).await;
    space.until_phase("web", "Succeeded").await;
    for (kind, name) in [("Deployment", "web"), ("Service", "web"), ("ConfigMap", "web-config")] {
        let before = space.get(kind, name).await.unwrap();
        space.delete(kind, name).await;
        space.until(CORRECTED, kind, name, "a new one", |new| new["metadata"]["uid"] != before["metadata"]["uid"]).await;
    }
    space.until_phase("web", "Succeeded").await;
}

pub(super) async fn a_child_that_lost_its_label_is_repaired(_: &Bed, space: &Space<'_>) {
    space.task("web", json!({})).await;
    space.until_phase("web", "Succeeded").await;
    for (kind, name) in [("Deployment", "web"), ("Service", "web"), ("ConfigMap", "web-config")] {
        let before = space.get(kind, name).await.unwrap();
        space.patch(kind, name, json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}})).await;
        let after = space
            .until(CORRECTED, kind, name, "labelled again", |object| {
                object["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "task-operator"
            })
            .await;
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    }
    let events = space.events("web").await;
    assert!(!events.iter().any(|event| event["note"].to_string().contains("NameConflict")), "{events:#?}");
    assert_eq!(space.get("Task", "web").await.unwrap()["status"]["phase"], "Succeeded");
}

pub(super) async fn a_fight_over_a_field_is_bounded_and_told(_: &Bed, space: &Space<'_>) {
    space.task("web", json!({"replicas": 1})).await;
    space.until_phase("web", "Succeeded").await;
    let began = Instant::now();
    let generation = |deployment: &Value| deployment["metadata"]["generation"].as_i64().unwrap();
    let first = generation(&space.get("Deployment", "web").await.unwrap());
    let mut ours = 0;
    while began.elapsed() < Duration::from_secs(6) {
        let deployment = space.get("Deployment", "web").await.unwrap();
        if deployment["spec"]["replicas"] == 1 {
            ours += 1;
            space.patch("Deployment", "web", json!({"spec": {"replicas": 2}})).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let last = generation(&space.get("Deployment", "web").await.unwrap());
    assert!((2..=7).contains(&ours), "the operator set it {ours} times in six seconds, generations {first} to {last}");
    let told = space
        .until(SOON, "Task", "web", "the fight is told", |task| condition(task, "Ready")["reason"] == "DriftContested")
        .await;
    assert!(condition(&told, "Ready")["message"].as_str().unwrap().contains("somebody"), "{told:#}");
    // The last word is the operator's, once nobody changes it any more.
    space.until(SOON, "Deployment", "web", "right", |deployment| deployment["spec"]["replicas"] == 1).await;
    space.until_phase("web", "Succeeded").await;
    assert_eq!(container(&space.get("Deployment", "web").await.unwrap())["image"], "nginx:alpine");
}
