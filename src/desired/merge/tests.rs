//! Corrections of objects as people and controllers leave them.

use serde_json::json;

use crate::api::v1::TaskSpec;
use crate::api::{TaskKey, Uid};
use crate::desired::shape::ServiceShape;
use crate::desired::{Covers, body};

use super::*;
use crate::desired::contender;

pub(super) fn spec(env: &[(&str, &str)]) -> TaskSpec {
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    TaskSpec { replicas: 2, image: "nginx:alpine".to_owned(), port: 80, env }
}

pub(super) fn rendered(kind: ChildKind, spec: &TaskSpec) -> Value {
    body(kind, &TaskKey::new("default", "web"), &Uid::from("u-1"), spec)
}

pub(super) fn live(kind: ChildKind, spec: &TaskSpec) -> Value {
    let mut live = rendered(kind, spec);
    live["metadata"]["uid"] = json!("c-1");
    live["metadata"]["resourceVersion"] = json!("7");
    live
}

/// RFC 7386, as the API server carries it out.
pub(super) fn apply(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in patch {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(name);
        } else {
            apply(&mut target[name.as_str()], value);
        }
    }
}

fn patched(mut live: Value, wanted: &Value, kind: ChildKind) -> (Value, Value) {
    let Correction::Patch(patch) = correction(&live, wanted, kind) else {
        panic!("no patch for {live:#}");
    };
    apply(&mut live, &patch);
    assert_eq!(correction(&live, wanted, kind), Correction::None, "not settled by {patch:#}");
    (live, patch)
}

#[test]
fn a_right_object_needs_nothing() {
    for kind in ChildKind::ALL {
        let spec = spec(&[("A", "1")]);
        assert_eq!(correction(&live(kind, &spec), &rendered(kind, &spec), kind), Correction::None);
    }
}

#[test]
fn only_what_differs_is_patched_with_preconditions() {
    let spec = spec(&[]);
    let mut live = live(ChildKind::Deployment, &spec);
    live["spec"]["replicas"] = json!(9);
    let (_, patch) = patched(live, &rendered(ChildKind::Deployment, &spec), ChildKind::Deployment);
    assert_eq!(patch, json!({"metadata": {"uid": "c-1", "resourceVersion": "7"}, "spec": {"replicas": 2}}));
}

#[test]
fn a_foreign_sidecar_variable_label_and_annotation_stay() {
    let spec = spec(&[("A", "1")]);
    let mut live = live(ChildKind::Deployment, &spec);
    live["metadata"]["annotations"]["team"] = json!("blue");
    live["spec"]["template"]["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/restartedAt": "now"});
    let pod = &mut live["spec"]["template"]["spec"];
    pod["containers"].as_array_mut().unwrap().insert(0, json!({"name": "proxy", "image": "envoy"}));
    pod["containers"][1]["env"].as_array_mut().unwrap().push(json!({"name": "FOREIGN", "value": "x"}));
    pod["containers"][1]["image"] = json!("nginx:evil");
    let (now, _) = patched(live, &rendered(ChildKind::Deployment, &spec), ChildKind::Deployment);
    assert_eq!(now["metadata"]["annotations"]["team"], json!("blue"));
    let containers = now["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    assert_eq!(containers[0], json!({"name": "proxy", "image": "envoy"}));
    assert_eq!(containers[1]["image"], json!("nginx:alpine"));
    assert_eq!(containers[1]["env"][1], json!({"name": "FOREIGN", "value": "x"}));
}

#[test]
fn a_variable_that_left_the_task_goes_and_a_foreign_one_does_not() {
    let mut live = live(ChildKind::Deployment, &spec(&[("A", "1"), ("OLD", "2"), ("SHARED", "3")]));
    let env = &mut live["spec"]["template"]["spec"]["containers"][0]["env"];
    env.as_array_mut().unwrap().push(json!({"name": "FOREIGN", "value": "x"}));
    let fields = |names: &[&str]| {
        let env: Map<String, Value> =
            names.iter().map(|name| (format!("k:{{\"name\":\"{name}\"}}"), json!({}))).collect();
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"task\"}": {"f:env": env}}}}}})
    };
    live["metadata"]["managedFields"] = json!([
        {"manager": "task-operator", "operation": "Update", "fieldsV1": fields(&["A", "OLD", "SHARED"])},
        {"manager": "kubectl-set", "operation": "Update", "time": "2026-12-01T00:00:00Z", "fieldsV1": fields(&["FOREIGN", "SHARED"])},
    ]);
    assert_eq!(contender(&live).as_deref(), Some("kubectl-set"));
    let (now, _) =
        patched(live, &rendered(ChildKind::Deployment, &spec(&[("A", "1")])), ChildKind::Deployment);
    let names: Vec<_> = now["spec"]["template"]["spec"]["containers"][0]["env"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["A", "SHARED", "FOREIGN"]);
}

#[test]
fn a_value_that_came_from_elsewhere_is_set_again() {
    let spec = spec(&[("A", "1")]);
    let mut live = live(ChildKind::Deployment, &spec);
    live["spec"]["template"]["spec"]["containers"][0]["env"][0] =
        json!({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}});
    let (now, _) = patched(live, &rendered(ChildKind::Deployment, &spec), ChildKind::Deployment);
    assert_eq!(
        now["spec"]["template"]["spec"]["containers"][0]["env"][0],
        json!({"name": "A", "value": "1"})
    );
}

#[test]
fn a_service_keeps_foreign_ports_but_not_one_of_our_number_nor_more_in_its_selector() {
    let spec = spec(&[]);
    let mut live = live(ChildKind::Service, &spec);
    live["spec"]["selector"]["extra"] = json!("1");
    live["spec"]["ports"] = json!([
        {"name": "metrics", "port": 9000, "targetPort": 9000, "protocol": "TCP"},
        {"name": "taken", "port": 80, "targetPort": 1, "protocol": "TCP"},
        {"name": "http", "port": 81, "targetPort": "http", "protocol": "TCP", "nodePort": 30000},
    ]);
    let (now, _) = patched(live, &rendered(ChildKind::Service, &spec), ChildKind::Service);
    let names: Vec<_> =
        now["spec"]["ports"].as_array().unwrap().iter().map(|port| port["name"].clone()).collect();
    assert_eq!(names, [json!("metrics"), json!("http")]);
    assert_eq!(now["spec"]["ports"][1]["nodePort"], json!(30000));
    assert!(now["spec"]["selector"].get("extra").is_none());
    let shape: ServiceShape = serde_json::from_value(now).unwrap();
    let wanted: ServiceShape = serde_json::from_value(rendered(ChildKind::Service, &spec)).unwrap();
    assert!(shape.covers(&wanted));
}

#[test]
fn another_selector_means_a_new_deployment() {
    let spec = spec(&[]);
    let mut live = live(ChildKind::Deployment, &spec);
    live["spec"]["selector"]["matchLabels"] = json!({"app": "x"});
    assert_eq!(
        correction(&live, &rendered(ChildKind::Deployment, &spec), ChildKind::Deployment),
        Correction::Recreate
    );
}

fn in_container(live: &mut Value) -> &mut Value {
    &mut live["spec"]["template"]["spec"]["containers"][0]
}

fn repaired(kind: ChildKind, spec: &TaskSpec, change: impl FnOnce(&mut Value)) -> Value {
    let mut live = live(kind, spec);
    change(&mut live);
    patched(live, &rendered(kind, spec), kind).0
}

#[test]
fn the_last_variable_leaves_as_well() {
    let mut live = live(ChildKind::Deployment, &spec(&[("A", "1")]));
    live["metadata"]["managedFields"] = json!([{"manager": "task-operator", "fieldsV1":
        {"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"task\"}": {"f:env": {".": {}, "k:{\"name\":\"A\"}": {}}}}}}}}}]);
    let (mut now, _) = patched(live, &rendered(ChildKind::Deployment, &spec(&[])), ChildKind::Deployment);
    assert_eq!(in_container(&mut now)["env"], json!([]));
}

#[test]
fn variables_of_others_keep_their_places_around_ours() {
    let before = ["FIRST", "B", "BETWEEN", "A", "LAST"].map(|name| json!({"name": name, "value": ""}));
    let mut now = repaired(ChildKind::Deployment, &spec(&[("A", "1"), ("B", "2"), ("C", "3")]), |live| {
        in_container(live)["env"] = json!(before);
    });
    let names: Vec<_> =
        in_container(&mut now)["env"].as_array().unwrap().iter().map(|entry| entry["name"].clone()).collect();
    assert_eq!(names, ["FIRST", "A", "BETWEEN", "B", "C", "LAST"]);
}

#[test]
fn a_port_of_our_number_under_another_name_is_ours() {
    let mut now = repaired(ChildKind::Deployment, &spec(&[]), |live| {
        in_container(live)["ports"] =
            json!([{"name": "web", "containerPort": 80, "protocol": "TCP", "hostIP": "::1"}]);
    });
    let right = json!([{"name": "http", "containerPort": 80, "protocol": "TCP", "hostIP": "::1"}]);
    assert_eq!(in_container(&mut now)["ports"], right);
}

#[test]
fn a_port_that_moves_takes_the_place_of_the_one_that_has_its_number() {
    let mut now = repaired(ChildKind::Deployment, &spec(&[]), |live| {
        in_container(live)["ports"] = json!([
            {"name": "web", "containerPort": 80, "protocol": "TCP"},
            {"name": "dns", "containerPort": 80, "protocol": "UDP"},
            {"name": "http", "containerPort": 81, "protocol": "TCP"},
        ]);
    });
    let right = json!([
        {"name": "dns", "containerPort": 80, "protocol": "UDP"},
        {"name": "http", "containerPort": 80, "protocol": "TCP"},
    ]);
    assert_eq!(in_container(&mut now)["ports"], right);
}

#[test]
fn the_host_port_follows_where_it_followed_before() {
    for (host, then) in [(81, 80), (8081, 8081)] {
        let mut now = repaired(ChildKind::Deployment, &spec(&[]), |live| {
            in_container(live)["ports"] =
                json!([{"name": "http", "containerPort": 81, "hostPort": host, "protocol": "TCP"}]);
        });
        assert_eq!(in_container(&mut now)["ports"][0]["hostPort"], json!(then));
    }
}

#[test]
fn the_only_port_of_a_service_is_ours_also_without_a_name() {
    let now = repaired(ChildKind::Service, &spec(&[]), |live| {
        live["spec"]["ports"] = json!([{"port": 81, "targetPort": 81, "protocol": "TCP", "nodePort": 30000}]);
    });
    let right =
        json!([{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP", "nodePort": 30000}]);
    assert_eq!(now["spec"]["ports"], right);
}

#[test]
fn nothing_stays_of_what_became_another_thing() {
    let now = repaired(ChildKind::Deployment, &spec(&[]), |live| {
        let pod = &mut live["spec"]["template"]["spec"];
        pod["volumes"] = json!([{"name": "task-config", "emptyDir": {}}]);
        pod["containers"][0]["volumeMounts"] =
            json!([{"name": "x", "mountPath": "/etc/task", "subPath": "y"}]);
        pod["securityContext"] =
            json!({"runAsUser": 7, "seccompProfile": {"type": "Localhost", "localhostProfile": "x.json"}});
    });
    let pod = &now["spec"]["template"]["spec"];
    assert_eq!(pod["volumes"], json!([{"name": "task-config", "configMap": {"name": "web-config"}}]));
    let mounts = json!([{"name": "task-config", "mountPath": "/etc/task", "readOnly": true}]);
    assert_eq!(pod["containers"][0]["volumeMounts"], mounts);
    assert_eq!(pod["securityContext"], json!({"runAsUser": 7, "seccompProfile": {"type": "RuntimeDefault"}}));
}
