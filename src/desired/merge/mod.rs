//! What to change of a live object that does not carry what is wanted.
//!
//! The change is a merge patch (RFC 7386) of just the fields that differ, made
//! for the uid and the version that were read. A patch replaces a list whole, so
//! the new list is built from the live one and what others added stays: see
//! `lists`. What the operator set and no Task asks for any more goes, as far
//! as [`managed_fields`](super::managed_fields) show that nobody else holds it.
//!
//! A field that nothing wanted says anything about stays, except where it belongs
//! to a value that turned into another one: the rest of a volume that shows
//! something else, or the file of another seccomp profile, would make the
//! API server refuse the patch.

mod lists;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use super::kind::ChildKind;
use super::managed_fields::Released;

pub(super) use lists::key_of;

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

/// What turns `live` into an object that carries all of `wanted`. Both are whole
/// objects of this kind in JSON, `live` with its managedFields.
pub fn correction(live: &Value, wanted: &Value, kind: ChildKind) -> Correction {
    if kind == ChildKind::Deployment && live["spec"]["selector"] != wanted["spec"]["selector"] {
        return Correction::Recreate;
    }
    let merged = Merge { path: Vec::new(), released: Released::of(live) }.value(live, wanted);
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

/// A walk through both objects.
struct Merge<'w> {
    /// The fields that lead to the value at hand; entries of lists do not count.
    path: Vec<&'w str>,
    released: Released,
}

impl<'w> Merge<'w> {
    /// `live` with all of `wanted`.
    fn value(&mut self, live: &Value, wanted: &'w Value) -> Value {
        match (live, wanted) {
            _ if self.is_one_value() || is_another(self.last(), live, wanted) => wanted.clone(),
            (Value::Object(live), Value::Object(wanted)) => {
                let mut merged = live.clone();
                for (name, wanted) in wanted {
                    self.path.push(name);
                    match live.get(name) {
                        Some(live) => merged.insert(name.clone(), self.value(live, wanted)),
                        // The API server leaves out what is empty.
                        None if wanted.as_array().is_some_and(Vec::is_empty) => None,
                        None => merged.insert(name.clone(), wanted.clone()),
                    };
                    self.path.pop();
                }
                Value::Object(merged)
            }
            (Value::Array(live), Value::Array(wanted)) => Value::Array(self.list(live, wanted)),
            _ => wanted.clone(),
        }
    }

    fn list(&mut self, live: &[Value], wanted: &'w [Value]) -> Vec<Value> {
        match self.last() {
            "env" => lists::variables(live, wanted, &self.released),
            "ports" => lists::ports(live, wanted, &self.released),
            name => match lists::key_of(name) {
                Some(key) => lists::entries(live, wanted, key, |live, wanted| self.value(live, wanted)),
                None => wanted.to_vec(),
            },
        }
    }

    fn last(&self) -> &'w str {
        self.path.last().copied().unwrap_or_default()
    }

    /// A selector is one value: another key in it would keep Pods out.
    fn is_one_value(&self) -> bool {
        self.path == ["spec", "selector"]
    }
}

/// Whether what is there, in this field or list, is not the wanted thing in another
/// state, but another thing in its place: nothing of it may stay.
pub(super) fn is_another(field: &str, live: &Value, wanted: &Value) -> bool {
    let differs = |at: fn(&Value) -> &Value| at(live) != at(wanted);
    wanted.is_object()
        && match field {
            "volumes" => differs(|volume| &volume["configMap"]["name"]),
            "volumeMounts" => differs(|mount| &mount["name"]),
            "seccompProfile" => differs(|profile| &profile["type"]),
            _ => false,
        }
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
