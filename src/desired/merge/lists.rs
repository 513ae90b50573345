//! Lists in which each entry has an owner of its own.
//!
//! They are maps by one field of their entries, as server-side apply sees them.
//! An entry of a wanted key is made right, all others stay where they are. Two
//! lists need more:
//!
//! - The **environment** is expanded in its order, so ours stands in the wanted
//!   one; entries of others keep their places around it.
//! - A **port** has two keys: its name, by which it is found, and its number with
//!   its protocol, which the API server takes once only in a Service and treats
//!   as one entry in a container. So a port of another name but our number is
//!   ours under a wrong name; and where ours has to move to a number that another
//!   one has, it takes that one's place.

use std::collections::HashSet;

use serde_json::Value;

use crate::desired::managed_fields::Released;

/// The field that the entries of the list of this name are told apart by, if
/// they are.
pub(in crate::desired) fn key_of(list: &str) -> Option<&'static str> {
    match list {
        "containers" | "env" | "ports" | "volumes" => Some("name"),
        "volumeMounts" => Some("mountPath"),
        "ownerReferences" => Some("uid"),
        _ => None,
    }
}

/// The live entries, those of wanted keys merged by `merge`, and then the wanted ones that are missing.
pub(super) fn entries<'w>(
    live: &[Value],
    wanted: &'w [Value],
    key: &str,
    mut merge: impl FnMut(&Value, &'w Value) -> Value,
) -> Vec<Value> {
    let mut merged: Vec<Value> = live
        .iter()
        .map(|entry| match wanted.iter().find(|wanted| wanted[key] == entry[key]) {
            Some(wanted) => merge(entry, wanted),
            None => entry.clone(),
        })
        .collect();
    let missing = wanted.iter().filter(|wanted| !live.iter().any(|entry| entry[key] == wanted[key]));
    merged.extend(missing.cloned());
    merged
}

/// The ports of a container or of a Service.
pub(super) fn ports(live: &[Value], wanted: &[Value], released: &Released) -> Vec<Value> {
    let is_wanted = |entry: &Value| wanted.iter().any(|wanted| wanted["name"] == entry["name"]);
    let mut ports: Vec<Value> =
        live.iter().filter(|entry| is_wanted(entry) || !released.port(entry)).cloned().collect();
    for port in wanted {
        let by_name = ports.iter().position(|entry| entry["name"] == port["name"]);
        let place = by_name
            .or_else(|| ports.iter().position(|entry| !is_wanted(entry) && same_number(entry, port)))
            // Only where it is the only port of a Service may it be without a name: it was ours.
            .or_else(|| ports.iter().position(|entry| entry.get("port").is_some() && is_unnamed(entry)));
        let Some(place) = place else {
            ports.push(port.clone());
            continue;
        };
        let moves = !same_number(&ports[place], port);
        make_right(&mut ports[place], port);
        if moves {
            ports.retain(|entry| entry["name"] == port["name"] || !same_number(entry, port));
        }
    }
    ports
}

fn same_number(one: &Value, other: &Value) -> bool {
    let protocol = |port: &Value| port["protocol"].as_str().unwrap_or("TCP").to_owned();
    ["port", "containerPort"].iter().all(|number| one.get(number) == other.get(number))
        && protocol(one) == protocol(other)
}

fn is_unnamed(port: &Value) -> bool {
    port["name"].as_str().unwrap_or_default().is_empty()
}

fn make_right(port: &mut Value, wanted: &Value) {
    // The API server sets hostPort to the number of a Pod in the host's network,
    // and refuses any other there.
    let follows = port.get("hostPort").is_some() && port["hostPort"] == port["containerPort"];
    if let (Some(port), Some(wanted)) = (port.as_object_mut(), wanted.as_object()) {
        port.extend(wanted.iter().map(|(name, value)| (name.clone(), value.clone())));
        if follows {
            port.insert("hostPort".to_owned(), port["containerPort"].clone());
        }
    }
}

/// The variables of our container: the wanted ones in their order, in the places
/// of those that were there, and those of others around them. A list that is right
/// already stays as it is.
pub(super) fn variables(live: &[Value], wanted: &[Value], released: &Released) -> Vec<Value> {
    let names: HashSet<&str> = wanted.iter().filter_map(|entry| entry["name"].as_str()).collect();
    let is_ours = |entry: &Value| entry["name"].as_str().is_some_and(|name| names.contains(name));
    let last = live.iter().rposition(is_ours);
    let mut ours = wanted.iter().cloned();
    let mut merged = Vec::with_capacity(live.len().max(wanted.len()));
    if last.is_none() {
        merged.extend(ours.by_ref());
    }
    for (place, entry) in live.iter().enumerate() {
        if Some(place) == last {
            // The rest of ours too, so that variables of others behind can refer to all of them.
            merged.extend(ours.by_ref());
        } else if is_ours(entry) {
            merged.extend(ours.next());
        } else if !released.variable(entry) {
            merged.push(entry.clone());
        }
    }
    merged
}
