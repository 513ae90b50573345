//! Who set what, as the API server keeps it in `metadata.managedFields`.
//!
//! A field is named there as `f:NAME`, an entry of a list as `k:{KEY}` with the
//! fields of its key, and `.` is the entry itself. A field that was removed
//! leaves no trace, so nobody can be held to have removed it.

use std::cmp::Reverse;
use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::api::TaskKey;
use crate::api::v1::TaskSpec;
use crate::cluster::FIELD_MANAGER;

use super::kind::{ChildKind, task_name_of};
use super::merge::{is_another, key_of};
use super::render::{self, CONTAINER};

/// Variables and ports of our container that the operator alone holds, in
/// whichever way it wrote them: nobody misses one of them that no Task asks for
/// any more.
pub(super) struct Released {
    variables: HashSet<String>,
    ports: Vec<Value>,
}

impl Released {
    /// Those of this live object.
    pub(super) fn of(live: &Value) -> Self {
        let only_ours = |list: &str| {
            let (ours, others): (Vec<_>, Vec<_>) = entries(live).partition(is_ours);
            let mut held: HashSet<&str> = ours.into_iter().flat_map(|entry| keys(entry, list)).collect();
            for key in others.into_iter().flat_map(|entry| keys(entry, list)) {
                held.remove(key);
            }
            held.into_iter().filter_map(parse).collect::<Vec<Value>>()
        };
        let name = |key: Value| Some(key["name"].as_str()?.to_owned());
        Self {
            variables: only_ours("f:env").into_iter().filter_map(name).collect(),
            ports: only_ours("f:ports"),
        }
    }

    /// Whether this variable is one of them.
    pub(super) fn variable(&self, entry: &Value) -> bool {
        entry["name"].as_str().is_some_and(|name| self.variables.contains(name))
    }

    /// Whether this port of the container is one of them.
    pub(super) fn port(&self, entry: &Value) -> bool {
        self.ports.iter().any(|key| has_key(entry, key))
    }
}

/// The field manager, other than the operator, that was the last to set a field
/// of those the operator sets too: the one to name where a field does not stay as
/// the Task declares it. Managers of other fields, such as a status, do not count.
pub fn contender(live: &Value) -> Option<String> {
    let declared = declared(live)?;
    let (ours, mut others): (Vec<_>, Vec<_>) = entries(live).partition(is_ours);
    others.sort_by_key(|entry| Reverse(entry["time"].as_str()));
    let held: Vec<&Value> = ours.into_iter().map(|entry| &entry["fieldsV1"]).collect();
    let at = Place { list: "", live, declared: &declared };
    let contender = others.into_iter().find(|entry| at.is_touched(&entry["fieldsV1"], &held))?;
    contender["manager"].as_str().map(str::to_owned)
}

/// An object with the fields that the operator declares of one of this kind and
/// name; their values are not those of the Task.
fn declared(live: &Value) -> Option<Value> {
    let kind = ChildKind::ALL.into_iter().find(|kind| live["kind"] == kind.as_str())?;
    let name = task_name_of(kind, live["metadata"]["name"].as_str()?)?;
    let key = TaskKey::new(live["metadata"]["namespace"].as_str().unwrap_or_default(), name);
    let owners = live["metadata"]["ownerReferences"].as_array();
    let uid = owners
        .and_then(|owners| owners.iter().find(|owner| owner["controller"] == true))
        .and_then(|owner| owner["uid"].as_str())
        .unwrap_or_default();
    Some(render::body(kind, &key, &uid.into(), &TaskSpec::default()))
}

/// A place in a live object.
struct Place<'a> {
    /// The field whose value stands here, for the entries of a list.
    list: &'a str,
    /// What is there.
    live: &'a Value,
    /// What the operator declares there.
    declared: &'a Value,
}

impl Place<'_> {
    /// Whether one of the fields that somebody set here is one that the operator
    /// declares, or an entry that it set as well: `held` is what it set here.
    fn is_touched(&self, set: &Value, held: &[&Value]) -> bool {
        set.as_object().into_iter().flatten().any(|(field, below)| {
            let held: Vec<&Value> = held.iter().filter_map(|held| held.get(field)).collect();
            let is_whole = below.as_object().is_some_and(Map::is_empty);
            if let Some(list) = field.strip_prefix("f:") {
                // A list that is not declared now may still have entries that were.
                let declared = &self.declared[list];
                (is_whole && !declared.is_null())
                    || Place { list, live: &self.live[list], declared }.is_touched(below, &held)
            } else if let Some((live, declared)) = self.entry(field) {
                is_whole
                    || is_another(self.list, live, declared)
                    || Place { list: "", live, declared }.is_touched(below, &held)
            } else {
                // The entry itself is in everybody's set.
                field != "." && !held.is_empty()
            }
        })
    }

    /// The entry of this key, there and as declared.
    fn entry(&self, key: &str) -> Option<(&Value, &Value)> {
        let (key, name) = (parse(key)?, key_of(self.list)?);
        let live = self.live.as_array()?.iter().find(|entry| has_key(entry, &key))?;
        Some((live, self.declared.as_array()?.iter().find(|declared| declared[name] == live[name])?))
    }
}

fn entries(live: &Value) -> impl Iterator<Item = &Value> {
    live["metadata"]["managedFields"].as_array().into_iter().flatten()
}

fn is_ours(entry: &&Value) -> bool {
    entry["manager"] == FIELD_MANAGER
}

/// The keys, as `k:{…}`, of what this entry holds in a list of our container.
fn keys<'v>(entry: &'v Value, list: &str) -> impl Iterator<Item = &'v str> + use<'v> {
    let containers = &entry["fieldsV1"]["f:spec"]["f:template"]["f:spec"]["f:containers"];
    let list = &containers[format!("k:{{\"name\":\"{CONTAINER}\"}}")][list];
    list.as_object().into_iter().flat_map(Map::keys).map(String::as_str).filter(|key| *key != ".")
}

/// The fields of a key; none for a `.` or another notation.
fn parse(key: &str) -> Option<Value> {
    serde_json::from_str(key.strip_prefix("k:")?).ok()
}

fn has_key(entry: &Value, key: &Value) -> bool {
    key.as_object().is_some_and(|key| key.iter().all(|(name, value)| &entry[name] == value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn in_container(fields: Value) -> Value {
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"task\"}": fields}}}}})
    }

    /// A Deployment that these managers, the last one last, set these fields of.
    fn set_by(managers: &[(&str, Value)]) -> Value {
        let mut live = render::body(
            ChildKind::Deployment,
            &TaskKey::new("default", "web"),
            &"u".into(),
            &TaskSpec::default(),
        );
        live["metadata"]["managedFields"] = managers
            .iter()
            .enumerate()
            .map(|(minute, (manager, fields))| {
                json!({"manager": manager, "operation": "Update", "time": format!("2026-12-01T00:0{minute}:00Z"), "fieldsV1": fields})
            })
            .collect();
        live
    }

    #[test]
    fn the_last_who_set_a_field_of_ours_is_named() {
        let replicas = || json!({"f:spec": {"f:replicas": {}}});
        let image = || in_container(json!({".": {}, "f:image": {}}));
        let live = set_by(&[
            ("task-operator", image()),
            ("kubectl-edit", image()),
            ("kube-controller-manager", replicas()),
        ]);
        assert_eq!(contender(&live).as_deref(), Some("kube-controller-manager"), "an autoscaler");
        let live = set_by(&[
            ("kube-controller-manager", replicas()),
            ("kubectl-edit", image()),
            ("task-operator", image()),
        ]);
        assert_eq!(contender(&live).as_deref(), Some("kubectl-edit"));
    }

    #[test]
    fn who_set_other_fields_is_not_named() {
        let fields = [
            json!({"f:status": {"f:readyReplicas": {}}}),
            json!({"f:metadata": {"f:annotations": {".": {}, "f:deployment.kubernetes.io/revision": {}}}}),
            json!({"f:metadata": {"f:labels": {"f:team": {}}}}),
            json!({"f:spec": {"f:strategy": {"f:type": {}}}}),
            in_container(json!({".": {}, "f:resources": {}})),
            in_container(
                json!({"f:env": {".": {}, "k:{\"name\":\"FOREIGN\"}": {".": {}, "f:name": {}, "f:value": {}}}}),
            ),
            json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"proxy\"}": {".": {}, "f:image": {}}}}}}}),
        ];
        for field in fields {
            assert_eq!(contender(&set_by(&[("other", field.clone())])), None, "{field}");
        }
        assert_eq!(contender(&json!({})), None);
    }

    #[test]
    fn a_variable_that_both_set_is_contended_and_never_released() {
        let variable = |fields: Value| in_container(json!({"f:env": {"k:{\"name\":\"A\"}": fields}}));
        let ours = variable(json!({".": {}, "f:name": {}}));
        let live =
            set_by(&[("task-operator", ours.clone()), ("kubectl-set", variable(json!({"f:value": {}})))]);
        assert_eq!(contender(&live).as_deref(), Some("kubectl-set"));
        assert!(!Released::of(&live).variable(&json!({"name": "A"})));
        assert!(Released::of(&set_by(&[("task-operator", ours)])).variable(&json!({"name": "A"})));
    }

    #[test]
    fn a_port_is_released_by_its_number_and_protocol() {
        let ports = in_container(
            json!({"f:ports": {".": {}, "k:{\"containerPort\":81,\"protocol\":\"TCP\"}": {".": {}}}}),
        );
        let released = Released::of(&set_by(&[("task-operator", ports)]));
        assert!(released.port(&json!({"containerPort": 81, "protocol": "TCP"})));
        assert!(!released.port(&json!({"containerPort": 81, "protocol": "UDP"})));
        assert!(!released.port(&json!({"port": 81, "protocol": "TCP"})));
    }
}
