//! What to change of a live object that does not carry what is wanted.
//!
//! The change is a merge patch (RFC 7386) of just the fields that differ, made
//! for the version that was read. Lists are maps by one of their fields, as
//! server-side apply sees them; a patch replaces them whole, so they are built
//! from the live list: what others added stays. A variable goes if no Task asks
//! for it any more and managedFields say that the operator alone set it.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::cluster::FIELD_MANAGER;

use super::kind::ChildKind;
use super::render::CONTAINER;

/// What repairs an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Correction {
    /// Nothing: it is right.
    None,
    /// This merge patch.
    Patch(Value),
    /// Only deleting it and creating it anew: a field that cannot be changed is wrong.
    Recreate,
}

/// What turns `live` into an object that carries all of `wanted`.
pub fn correction(live: &Value, wanted: &Value, kind: ChildKind) -> Correction {
    if kind == ChildKind::Deployment && live["spec"]["selector"] != wanted["spec"]["selector"] {
        return Correction::Recreate;
    }
    let merged =
        merge(live, wanted, &mut Path { steps: Vec::new(), gone: variables_to_remove(live, wanted) });
    match difference(live, &merged) {
        None => Correction::None,
        Some(mut patch) => {
            for precondition in ["uid", "resourceVersion"] {
                patch["metadata"][precondition] = live["metadata"][precondition].clone();
            }
            Correction::Patch(patch)
        }
    }
}

/// The field manager, other than the operator and the controllers that write
/// status, that changed the object last.
pub fn contender(live: &Value) -> Option<String> {
    managers(live)
        .filter(|entry| entry["subresource"].as_str().unwrap_or_default().is_empty())
        .filter(|entry| entry["manager"] != FIELD_MANAGER)
        .max_by(|a, b| a["time"].as_str().cmp(&b["time"].as_str()))
        .and_then(|entry| Some(entry["manager"].as_str()?.to_owned()))
}

/// Where in the object a value stands, and which variables go.
struct Path {
    steps: Vec<String>,
    gone: HashSet<String>,
}

impl Path {
    fn ends_with(&self, end: &[&str]) -> bool {
        self.steps.len() >= end.len() && self.steps[self.steps.len() - end.len()..].iter().eq(end)
    }

    /// The field that the entries of a list are told apart by, if it is such a list.
    fn key(&self) -> Option<&'static str> {
        match self.steps.last()?.as_str() {
            "containers" | "env" | "ports" | "volumes" => Some("name"),
            "volumeMounts" => Some("mountPath"),
            "ownerReferences" => Some("uid"),
            _ => None,
        }
    }
}

fn merge(live: &Value, wanted: &Value, path: &mut Path) -> Value {
    match (live, wanted) {
        // A selector is one value: another key in it would keep Pods out. So is a
        // profile: what belongs to another type of it is refused.
        _ if path.ends_with(&["spec", "selector"]) || path.ends_with(&["seccompProfile"]) => wanted.clone(),
        (Value::Object(live), Value::Object(wanted)) => {
            let mut merged = live.clone();
            if path.ends_with(&["volumes"]) {
                // A volume shows one thing: what it showed instead goes.
                merged.retain(|name, _| wanted.contains_key(name));
            }
            if path.ends_with(&["containers"])
                && !wanted.contains_key("env")
                && let Some(Value::Array(variables)) = live.get("env")
            {
                // No variable is wanted, and a list that is empty is not written.
                merged.insert("env".to_owned(), Value::Array(merge_variables(variables, &[], &path.gone)));
            }
            for (name, wanted) in wanted {
                path.steps.push(name.clone());
                let value = live.get(name).map_or_else(|| wanted.clone(), |live| merge(live, wanted, path));
                merged.insert(name.clone(), value);
                path.steps.pop();
            }
            Value::Object(merged)
        }
        (Value::Array(live), Value::Array(wanted)) => match path.key() {
            Some(_) if path.ends_with(&["env"]) => Value::Array(merge_variables(live, wanted, &path.gone)),
            Some(key) => Value::Array(merge_entries(live, wanted, key, path)),
            None => Value::Array(wanted.clone()),
        },
        _ => wanted.clone(),
    }
}

fn merge_entries(live: &[Value], wanted: &[Value], key: &str, path: &mut Path) -> Vec<Value> {
    let find = |entry: &Value| wanted.iter().find(|wanted| wanted[key] == entry[key]);
    let mut merged: Vec<Value> = live
        .iter()
        .filter(|entry| {
            find(entry).is_some() || !wanted.iter().any(|wanted| takes_the_place_of(wanted, entry))
        })
        .map(|entry| find(entry).map_or_else(|| entry.clone(), |wanted| merge(entry, wanted, path)))
        .collect();
    let missing = wanted.iter().filter(|wanted| !live.iter().any(|entry| entry[key] == wanted[key]));
    merged.extend(missing.cloned());
    merged
}

/// Whether a port of ours has the number of a foreign one: a Service takes each number once only.
fn takes_the_place_of(wanted: &Value, foreign: &Value) -> bool {
    let number = |port: &Value| port.get("port").cloned();
    let protocol = |port: &Value| port["protocol"].as_str().unwrap_or("TCP").to_owned();
    number(wanted).is_some() && number(wanted) == number(foreign) && protocol(wanted) == protocol(foreign)
}

/// Ours in their order, then those of others. A list that is right already stays as it is.
fn merge_variables(live: &[Value], wanted: &[Value], gone: &HashSet<String>) -> Vec<Value> {
    let names: HashSet<&str> = wanted.iter().filter_map(|entry| entry["name"].as_str()).collect();
    let is_ours = |entry: &&Value| entry["name"].as_str().is_some_and(|name| names.contains(name));
    let goes = |entry: &Value| entry["name"].as_str().is_some_and(|name| gone.contains(name));
    if live.iter().filter(is_ours).eq(wanted.iter()) && !live.iter().any(goes) {
        return live.to_vec();
    }
    let others = live.iter().filter(|entry| !is_ours(entry) && !goes(entry));
    wanted.iter().chain(others).cloned().collect()
}

/// The variables of our container that the operator alone has set and nobody wants any more.
fn variables_to_remove(live: &Value, wanted: &Value) -> HashSet<String> {
    let container = |object: &Value| {
        let containers = object["spec"]["template"]["spec"]["containers"].as_array()?;
        Some(containers.iter().find(|container| container["name"] == CONTAINER)?["env"].clone())
    };
    let wanted_env = container(wanted).unwrap_or_default();
    let wanted: HashSet<&str> =
        wanted_env.as_array().into_iter().flatten().filter_map(|entry| entry["name"].as_str()).collect();
    let (mut ours, mut others) = (HashSet::new(), HashSet::new());
    for entry in managers(live) {
        let env = &entry["fieldsV1"]["f:spec"]["f:template"]["f:spec"]["f:containers"]
            [&format!("k:{{\"name\":\"{CONTAINER}\"}}")]["f:env"];
        let names = env.as_object().into_iter().flat_map(Map::keys).filter_map(|key| {
            let key: Value = serde_json::from_str(key.strip_prefix("k:")?).ok()?;
            Some(key["name"].as_str()?.to_owned())
        });
        if entry["manager"] == FIELD_MANAGER { ours.extend(names) } else { others.extend(names) }
    }
    ours.retain(|name| !wanted.contains(name.as_str()) && !others.contains(name));
    ours
}

fn managers(live: &Value) -> impl Iterator<Item = &Value> {
    live["metadata"]["managedFields"].as_array().into_iter().flatten()
}

/// The merge patch from `old` to `new`; none if they are the same.
fn difference(old: &Value, new: &Value) -> Option<Value> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let mut patch = Map::new();
            for (name, value) in new {
                let change = old.get(name).map_or_else(|| Some(value.clone()), |old| difference(old, value));
                if let Some(change) = change {
                    patch.insert(name.clone(), change);
                }
            }
            for name in old.keys().filter(|name| !new.contains_key(*name)) {
                patch.insert(name.clone(), Value::Null);
            }
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        _ => (old != new).then(|| new.clone()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use crate::api::v1::TaskSpec;
    use crate::api::{TaskKey, Uid};
    use crate::desired::shape::{DeploymentShape, ServiceShape};
    use crate::desired::{Covers, body, deployment};

    use super::*;

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
        assert_eq!(
            patch,
            json!({"metadata": {"uid": "c-1", "resourceVersion": "7"}, "spec": {"replicas": 2}})
        );
    }

    #[test]
    fn a_foreign_sidecar_variable_label_and_annotation_stay() {
        let spec = spec(&[("A", "1")]);
        let mut live = live(ChildKind::Deployment, &spec);
        live["metadata"]["annotations"]["team"] = json!("blue");
        live["spec"]["template"]["metadata"]["annotations"] =
            json!({"kubectl.kubernetes.io/restartedAt": "now"});
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

    fn owning(mut live: Value, names: &[&str]) -> Value {
        let env: Map<String, Value> =
            names.iter().map(|name| (format!("k:{{\"name\":\"{name}\"}}"), json!({}))).collect();
        live["metadata"]["managedFields"] = json!([{"manager": "task-operator", "operation": "Update", "fieldsV1":
            {"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"task\"}": {"f:env": env}}}}}}}]);
        live
    }

    #[test]
    fn the_last_variable_that_left_the_task_goes_too() {
        let kind = ChildKind::Deployment;
        let live = owning(live(kind, &spec(&[("A", "1")])), &["A"]);
        let (now, _) = patched(live, &rendered(kind, &spec(&[])), kind);
        let env = &now["spec"]["template"]["spec"]["containers"][0]["env"];
        assert!(env.as_array().is_none_or(Vec::is_empty), "{env}");
    }

    #[test]
    fn a_volume_and_a_profile_of_another_kind_leave_nothing_behind() {
        let (kind, spec) = (ChildKind::Deployment, spec(&[]));
        let mut live = live(kind, &spec);
        let pod = &mut live["spec"]["template"]["spec"];
        pod["volumes"][0] = json!({"name": "task-config", "emptyDir": {}});
        pod["securityContext"]["seccompProfile"] = json!({"type": "Localhost", "localhostProfile": "x.json"});
        let (now, _) = patched(live, &rendered(kind, &spec), kind);
        let pod = &now["spec"]["template"]["spec"];
        // The API server refuses a volume of two kinds, and a file for a profile that is not local.
        assert!(pod["volumes"][0]["emptyDir"].is_null(), "{pod:#}");
        assert!(pod["securityContext"]["seccompProfile"]["localhostProfile"].is_null(), "{pod:#}");
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
}
