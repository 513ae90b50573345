//! What holds of every correction, whatever people did to the object.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::api::v1::TaskSpec;
use crate::desired::shape::{ConfigMapShape, DeploymentShape, ServiceShape};
use crate::desired::{ChildKind, Covers};

use super::tests::{apply, live, rendered, spec};
use super::{Correction, correction};

/// A place in an object, and what somebody puts there; null removes it.
type Edit = (&'static str, Value);

/// Changes of what the operator owns.
fn drift() -> Vec<Edit> {
    vec![
        ("/metadata/labels/app.kubernetes.io~1part-of", json!("evil")),
        ("/metadata/labels/app.kubernetes.io~1name", Value::Null),
        ("/metadata/annotations", Value::Null),
        ("/metadata/ownerReferences/0/blockOwnerDeletion", json!(false)),
        ("/data/app.conf", json!("port: 1")),
        ("/data", Value::Null),
        ("/spec/replicas", json!(99)),
        ("/spec/selector/more", json!("evil")),
        ("/spec/ports", json!([])),
        ("/spec/ports", json!([{"port": 99, "targetPort": 99, "protocol": "TCP"}])),
        ("/spec/ports/0/name", json!("web")),
        ("/spec/ports/0/port", json!(99)),
        ("/spec/ports/0/targetPort", json!(99)),
        ("/spec/template/metadata/labels", json!({"app.kubernetes.io/name": "evil"})),
        ("/spec/template/spec/automountServiceAccountToken", Value::Null),
        (
            "/spec/template/spec/securityContext",
            json!({"seccompProfile": {"type": "Localhost", "localhostProfile": "x"}}),
        ),
        ("/spec/template/spec/volumes", json!([{"name": "task-config", "emptyDir": {}}])),
        ("/spec/template/spec/volumes", Value::Null),
        ("/spec/template/spec/containers/0/image", json!("evil")),
        ("/spec/template/spec/containers/0/env", Value::Null),
        (
            "/spec/template/spec/containers/0/env",
            json!([{"name": "C", "value": "evil"}, {"name": "A", "valueFrom": {}}, {"name": "C", "value": "x"}]),
        ),
        ("/spec/template/spec/containers/0/ports", json!([])),
        (
            "/spec/template/spec/containers/0/ports",
            json!([{"name": "http", "containerPort": 99, "protocol": "UDP"}]),
        ),
        ("/spec/template/spec/containers/0/ports/0/name", Value::Null),
        (
            "/spec/template/spec/containers/0/volumeMounts",
            json!([{"name": "x", "mountPath": "/etc/task", "subPath": "y"}]),
        ),
    ]
}

/// What others add; `-` as the last step adds to a list.
fn additions() -> Vec<Edit> {
    vec![
        ("/metadata/labels/team", json!("blue")),
        ("/metadata/annotations/note", json!("x")),
        ("/metadata/finalizers", json!(["example.com/hold"])),
        ("/metadata/ownerReferences/-", json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "o"})),
        ("/data/more", json!("x")),
        ("/spec/type", json!("NodePort")),
        ("/spec/ports/-", json!({"name": "metrics", "port": 9000, "targetPort": 9000, "protocol": "TCP"})),
        ("/spec/strategy", json!({"type": "Recreate"})),
        ("/spec/template/metadata/annotations", json!({"kubectl.kubernetes.io/restartedAt": "now"})),
        ("/spec/template/spec/hostNetwork", json!(true)),
        ("/spec/template/spec/initContainers", json!([{"name": "early", "image": "x"}])),
        (
            "/spec/template/spec/containers/-",
            json!({"name": "proxy", "image": "envoy", "env": [{"name": "A", "value": "theirs"}]}),
        ),
        ("/spec/template/spec/volumes/-", json!({"name": "cache", "emptyDir": {}})),
        ("/spec/template/spec/containers/0/resources", json!({"limits": {"cpu": "1"}})),
        ("/spec/template/spec/containers/0/env/-", json!({"name": "FOREIGN", "value": "$(A)"})),
        (
            "/spec/template/spec/containers/0/ports/-",
            json!({"name": "admin", "containerPort": 9001, "protocol": "TCP"}),
        ),
        ("/spec/template/spec/containers/0/volumeMounts/-", json!({"name": "cache", "mountPath": "/cache"})),
    ]
}

/// Makes the change; false if the object has no such place.
fn edit(object: &mut Value, (place, value): &Edit) -> bool {
    if place.starts_with("/spec/ports") && object["kind"] != "Service" {
        return false;
    }
    let (parent, step) = place.rsplit_once('/').unwrap();
    let step = step.replace("~1", "/");
    match object.pointer_mut(parent) {
        Some(Value::Array(list)) if step == "-" => list.push(value.clone()),
        Some(Value::Object(fields)) if value.is_null() => return fields.remove(&step).is_some(),
        Some(Value::Object(fields)) => drop(fields.insert(step, value.clone())),
        _ => return false,
    }
    true
}

/// Whether what others added is still there.
fn has(object: &Value, (place, value): &Edit) -> bool {
    match place.strip_suffix("/-") {
        Some(list) => object.pointer(list).and_then(Value::as_array).is_some_and(|list| list.contains(value)),
        None => object.pointer(place) == Some(value),
    }
}

fn covers(kind: ChildKind, object: &Value, wanted: &Value) -> bool {
    fn one<T: Covers + DeserializeOwned>(object: &Value, wanted: &Value) -> bool {
        let read = |value: &Value| serde_json::from_value::<T>(value.clone()).unwrap();
        read(object).covers(&read(wanted))
    }
    match kind {
        ChildKind::ConfigMap => one::<ConfigMapShape>(object, wanted),
        ChildKind::Service => one::<ServiceShape>(object, wanted),
        ChildKind::Deployment => one::<DeploymentShape>(object, wanted),
    }
}

/// What the API server asks of lists: no key twice, and a name for each of several ports of a Service.
fn is_acceptable(object: &Value) -> bool {
    fn once(list: &Value, fields: &[&str]) -> bool {
        let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
        let keys: Vec<_> =
            list.iter().map(|entry| fields.iter().map(|field| &entry[field]).collect::<Vec<_>>()).collect();
        keys.iter().enumerate().all(|(place, key)| !keys[..place].contains(key))
    }
    let ports = &object["spec"]["ports"];
    let named = ports
        .as_array()
        .is_none_or(|ports| ports.len() < 2 || ports.iter().all(|port| port["name"].is_string()));
    let pod = &object["spec"]["template"]["spec"];
    let sources = |volume: &Value| volume.as_object().is_some_and(|volume| volume.len() == 2);
    named
        && once(ports, &["name"])
        && once(ports, &["port", "protocol"])
        && once(&object["metadata"]["ownerReferences"], &["uid"])
        && once(&pod["containers"], &["name"])
        && once(&pod["volumes"], &["name"])
        && pod["volumes"].as_array().is_none_or(|volumes| volumes.iter().all(sources))
        && pod["containers"].as_array().into_iter().flatten().all(|container| {
            once(&container["ports"], &["containerPort", "protocol"])
                && once(&container["volumeMounts"], &["mountPath"])
        })
}

fn tasks(ports: &'static [i32]) -> impl Strategy<Value = TaskSpec> {
    let env = prop::collection::btree_map("[A-E]", "\\$\\([A-E]\\)|x|", 0..5);
    (env, 0..5, select(ports)).prop_map(|(env, replicas, port)| TaskSpec { env, replicas, port, ..spec(&[]) })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_change_is_repaired_by_one_patch_that_leaves_the_rest(
        before in tasks(&[80, 99]),
        // 9000 and 9001 are also added by others.
        after in tasks(&[80, 99, 9000, 9001]),
        drift in subsequence(drift(), 0..5),
        additions in subsequence(additions(), 0..6),
    ) {
        for kind in ChildKind::ALL {
            let mut object = live(kind, &before);
            for change in &drift {
                edit(&mut object, change);
            }
            let mut added: Vec<&Edit> = additions.iter().filter(|addition| edit(&mut object, addition)).collect();
            if !is_acceptable(&object) {
                // The API server would have refused the changes.
                continue;
            }
            // A port of others that has the number of ours cannot stay.
            added.retain(|(_, value)| value["port"] != after.port && value["containerPort"] != after.port);
            let wanted = rendered(kind, &after);
            if kind == ChildKind::Deployment && object["spec"]["selector"] != wanted["spec"]["selector"] {
                prop_assert_eq!(correction(&object, &wanted, kind), Correction::Recreate);
                continue;
            }
            let was_right = covers(kind, &object, &wanted);
            match correction(&object, &wanted, kind) {
                Correction::None => prop_assert!(was_right, "left as it is: {:#}", object),
                Correction::Patch(patch) => {
                    prop_assert!(!was_right, "patched though it was right: {:#}", patch);
                    prop_assert_eq!(&patch["metadata"]["resourceVersion"], "7");
                    prop_assert_eq!(&patch["metadata"]["uid"], "c-1");
                    apply(&mut object, &patch);
                }
                Correction::Recreate => prop_assert!(false, "the selector is right"),
            }
            prop_assert!(covers(kind, &object, &wanted), "{:#}", object);
            prop_assert!(is_acceptable(&object), "{:#}", object);
            prop_assert_eq!(correction(&object, &wanted, kind), Correction::None);
            for addition in added {
                prop_assert!(has(&object, addition), "{:?} is gone from {:#}", addition, object);
            }
        }
    }
}
