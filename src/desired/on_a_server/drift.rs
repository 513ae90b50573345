//! What people do to the fields that the operator owns.

use kube::Client;
use kube::api::{DynamicObject, Patch, PostParams};
use serde_json::{Value, json};

use crate::desired::ChildKind::{ConfigMap, Deployment, Service};
use crate::desired::contender;

use super::{Children, UID, container, pod, usual};

pub(super) async fn what_somebody_changed_is_made_right(client: &Client) {
    let wrong_label = json!({"metadata": {"labels": {"app.kubernetes.io/part-of": "evil"}}});
    let volume = |fields: Value| pod(json!({"volumes": [fields]}));
    let port = |fields: Value| container(json!({"ports": [{"$patch": "replace"}, fields]}));
    let service = |ports: Value| {
        let mut list = vec![json!({"$patch": "replace"})];
        list.extend(ports.as_array().unwrap().iter().cloned());
        json!({"spec": {"ports": list}})
    };
    let cases = [
        ("replicas", Deployment, json!({"spec": {"replicas": 5}})),
        ("image", Deployment, container(json!({"image": "evil"}))),
        ("value", Deployment, container(json!({"env": [{"name": "ENV", "value": "evil"}]}))),
        (
            "value from elsewhere",
            Deployment,
            container(
                json!({"env": [{"name": "ENV", "value": null, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}),
            ),
        ),
        ("number of the port", Deployment, port(json!({"name": "http", "containerPort": 81}))),
        ("name of the port", Deployment, port(json!({"name": "web", "containerPort": 80}))),
        (
            "protocol of the port",
            Deployment,
            port(json!({"name": "http", "containerPort": 80, "protocol": "UDP"})),
        ),
        (
            "the other's number",
            Deployment,
            container(
                json!({"ports": [{"$patch": "replace"}, {"name": "http", "containerPort": 81}, {"name": "web", "containerPort": 80}]}),
            ),
        ),
        (
            "another mount",
            Deployment,
            pod(json!({
                "containers": [{"name": "task", "volumeMounts": [{"mountPath": "/etc/task", "name": "other", "subPath": "x"}]}],
                "volumes": [{"name": "other", "emptyDir": {}}],
            })),
        ),
        (
            "volume of another kind",
            Deployment,
            volume(json!({"name": "task-config", "$retainKeys": ["name", "emptyDir"], "emptyDir": {}})),
        ),
        (
            "volume of another map",
            Deployment,
            volume(
                json!({"name": "task-config", "configMap": {"name": "other", "items": [{"key": "x", "path": "x"}]}}),
            ),
        ),
        ("token", Deployment, pod(json!({"automountServiceAccountToken": true}))),
        (
            "seccomp by file",
            Deployment,
            pod(
                json!({"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "x.json"}}}),
            ),
        ),
        (
            "seccomp off",
            Deployment,
            pod(json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}})),
        ),
        ("label", Deployment, wrong_label.clone()),
        (
            "label of the Pods",
            Deployment,
            json!({"spec": {"template": {"metadata": {"labels": {"app.kubernetes.io/part-of": "evil"}}}}}),
        ),
        ("names", Deployment, json!({"metadata": {"annotations": {"task.example.io/env-names": "x"}}})),
        (
            "owner",
            Deployment,
            json!({"metadata": {"ownerReferences": [{"uid": UID, "blockOwnerDeletion": false}]}}),
        ),
        ("label", Service, wrong_label.clone()),
        ("selector", Service, json!({"spec": {"selector": {"app.kubernetes.io/name": "evil"}}})),
        ("more selector", Service, json!({"spec": {"selector": {"more": "evil"}}})),
        ("target", Service, json!({"spec": {"ports": [{"port": 80, "targetPort": 1}]}})),
        ("number", Service, service(json!([{"name": "http", "port": 81}]))),
        ("name", Service, service(json!([{"name": "web", "port": 80}]))),
        (
            "the other's number",
            Service,
            service(json!([{"name": "http", "port": 81}, {"name": "web", "port": 80}])),
        ),
        ("label", ConfigMap, wrong_label),
        ("text", ConfigMap, json!({"data": {"app.conf": "port: 1"}})),
    ];
    for (number, (what, kind, patch)) in cases.into_iter().enumerate() {
        let children = Children::created(client, &format!("changed-{number}"), usual()).await;
        let changed = children.changed(kind, "someone", Patch::Strategic(patch)).await;
        assert!(!children.covers(kind, &changed), "{kind:?}, {what}: not seen in {changed:#}");
        assert_eq!(contender(&changed).as_deref(), Some("someone"), "{kind:?}, {what}: {changed:#}");
        let right = children.corrected(kind, &format!("{kind:?}, {what}")).await;
        assert_eq!(contender(&right), None, "{kind:?}, {what}: {right:#}");
    }
}

pub(super) async fn what_somebody_removed_comes_back(client: &Client) {
    let none = Value::Null;
    let cases = [
        ("env", Deployment, container(json!({"env": [{"$patch": "replace"}]}))),
        ("a variable", Deployment, container(json!({"env": [{"$patch": "delete", "name": "HOST"}]}))),
        ("ports", Deployment, container(json!({"ports": [{"$patch": "replace"}]}))),
        (
            "read-only",
            Deployment,
            container(json!({"volumeMounts": [{"mountPath": "/etc/task", "readOnly": false}]})),
        ),
        ("mounts", Deployment, container(json!({"volumeMounts": [{"$patch": "replace"}]}))),
        (
            "volumes",
            Deployment,
            pod(json!({
                "containers": [{"name": "task", "volumeMounts": [{"$patch": "replace"}]}],
                "volumes": [{"$patch": "replace"}],
            })),
        ),
        ("name of the port", Deployment, container(json!({"ports": [{"containerPort": 80, "name": none}]}))),
        (
            "our container",
            Deployment,
            pod(json!({"containers": [{"$patch": "replace"}, {"name": "other", "image": "x"}]})),
        ),
        ("security", Deployment, pod(json!({"securityContext": none}))),
        ("token", Deployment, pod(json!({"automountServiceAccountToken": none}))),
        ("labels", Deployment, json!({"metadata": {"labels": none, "annotations": none}})),
        ("ports", Service, json!({"spec": {"clusterIP": "None", "clusterIPs": ["None"], "ports": none}})),
        ("name", Service, json!({"spec": {"ports": [{"$patch": "replace"}, {"port": 80}]}})),
        ("name and number", Service, json!({"spec": {"ports": [{"$patch": "replace"}, {"port": 81}]}})),
        ("selector", Service, json!({"spec": {"selector": none}})),
        ("data", ConfigMap, json!({"data": none})),
        ("labels", ConfigMap, json!({"metadata": {"labels": none}})),
    ];
    for (number, (what, kind, patch)) in cases.into_iter().enumerate() {
        let children = Children::created(client, &format!("removed-{number}"), usual()).await;
        if what == "ports" && kind == Service {
            // An IP cannot be given up; a Service without one may have no ports.
            children.api(kind).delete(&children.name(kind), &Default::default()).await.unwrap();
            let mut headless = children.wanted(kind);
            headless["spec"]["clusterIP"] = json!("None");
            let headless: DynamicObject = serde_json::from_value(headless).unwrap();
            children.api(kind).create(&PostParams::default(), &headless).await.unwrap();
        }
        let changed = children.changed(kind, "someone", Patch::Strategic(patch)).await;
        assert!(!children.covers(kind, &changed), "{kind:?}, {what}: not seen in {changed:#}");
        children.corrected(kind, &format!("{kind:?}, {what}")).await;
    }
}
