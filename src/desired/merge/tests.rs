//! Corrections of objects as people and controllers leave them.

use proptest::prelude::*;
use serde_json::json;

use crate::api::v1::TaskSpec;
use crate::api::{TaskKey, Uid};
use crate::desired::shape::{DeploymentShape, ServiceShape};
use crate::desired::{Covers, body, deployment};

use super::*;
use crate::desired::contender;

fn spec(env: &[(&str, &str)]) -> TaskSpec {
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    TaskSpec { replicas: 2, image: "nginx:alpine".to_owned(), port: 80, env }
}

fn rendered(kind: ChildKind, spec: &TaskSpec) -> Value {
    body(kind, &TaskKey::new("default", "web"), &Uid::from("u-1"), spec)
}

fn live(kind: ChildKind, spec: &TaskSpec) -> Value {
    let mut live = rendered(kind, spec);
    live["metadata"]["uid"] = json!("c-1");
    live["metadata"]["resourceVersion"] = json!("7");
    live
}

/// RFC 7386, as the API server carries it out.
fn apply(target: &mut Value, patch: &Value) {
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

proptest! {
    #[test]
    fn any_change_is_repaired_and_then_nothing_is_left_to_do(
        before in prop::collection::btree_map("[A-E]", "\\$\\([A-E]\\)|x", 0..5),
        after in prop::collection::btree_map("[A-E]", "\\$\\([A-E]\\)|x", 0..5),
        replicas in 0..5, port in 1..5,
    ) {
        let old = TaskSpec { env: before, ..spec(&[]) };
        let new = TaskSpec { env: after, replicas, port, ..spec(&[]) };
        for kind in ChildKind::ALL {
            let mut object = live(kind, &old);
            let wanted = rendered(kind, &new);
            if let Correction::Patch(patch) = correction(&object, &wanted, kind) {
                apply(&mut object, &patch);
            }
            prop_assert_eq!(correction(&object, &wanted, kind), Correction::None);
            if kind == ChildKind::Deployment {
                let shape: DeploymentShape = serde_json::from_value(object).unwrap();
                prop_assert!(shape.covers(&deployment(&TaskKey::new("default", "web"), &Uid::from("u-1"), &new)));
            }
        }
    }
}
