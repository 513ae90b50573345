//! The status of a Task between the API's JSON and the core's form.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use crate::api::rules::status::MAX_CONDITIONS;
use crate::api::v1::{self, PendingNotification, Phase};
use crate::queue::notice::Transition;
use crate::supervisor::status::{Condition, Notifications, Status, Truth};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Raw {
    phase: Value,
    available_replicas: i32,
    replicas: i32,
    observed_generation: i64,
    selector: Box<str>,
    last_update_time: Option<String>,
    conditions: Vec<Value>,
    notifications: Value,
}

impl Default for Raw {
    fn default() -> Self {
        Self {
            phase: Value::Null,
            available_replicas: 0,
            replicas: 0,
            observed_generation: -1,
            selector: Box::default(),
            last_update_time: None,
            conditions: Vec::new(),
            notifications: Value::Null,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawCondition {
    r#type: String,
    status: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    last_transition_time: Option<String>,
    #[serde(default)]
    observed_generation: i64,
}

/// A status as it was read, before it is known whose it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedStatus {
    status: Status,
    selector: Box<str>,
}

impl ObservedStatus {
    /// The status, given the selector that it should name.
    pub(super) fn judged_by(self, selector: &str) -> Status {
        Status { selects: *self.selector == *selector, ..self.status }
    }
}

/// Reads `status`; one that cannot be read counts as none, and is written anew.
pub(super) fn decode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObservedStatus, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).map(from_raw).unwrap_or_default())
}

fn from_raw(raw: Raw) -> ObservedStatus {
    let mut status = Status {
        phase: serde_json::from_value::<Phase>(raw.phase).unwrap_or_default(),
        available: raw.available_replicas,
        replicas: raw.replicas,
        observed_generation: raw.observed_generation,
        updated: seconds(raw.last_update_time.as_deref()),
        notifications: notifications(raw.notifications),
        ..Status::default()
    };
    for value in raw.conditions {
        let text = value.to_string();
        let Ok(condition) = serde_json::from_value::<RawCondition>(value) else { continue };
        let ours = match condition.r#type.as_str() {
            "Ready" => &mut status.ready,
            "Reconciling" => &mut status.reconciling,
            "Stalled" => &mut status.stalled,
            "Notified" => &mut status.notified,
            _ => {
                status.foreign.push(text.into());
                continue;
            }
        };
        *ours = Some(Condition {
            truth: Truth::parse(&condition.status),
            reason: condition.reason.into(),
            message: condition.message.into(),
            generation: condition.observed_generation,
            since: seconds(condition.last_transition_time.as_deref()),
        });
    }
    ObservedStatus { status, selector: raw.selector }
}

/// What cannot be read counts as none: it is not ours.
fn notifications(raw: Value) -> Option<Box<Notifications>> {
    let v1::Notifications { settled, pending } = serde_json::from_value::<Option<_>>(raw).ok()??;
    let pending = pending.into_iter().map(|raw| {
        let PendingNotification { number, from, to, time, generation, reason, message, skipped } = raw;
        let at = seconds(Some(&time));
        (number, Transition { from, to, at, generation, reason, message, skipped })
    });
    Some(Box::new(Notifications { settled, pending: pending.collect() }))
}

fn notifications_json(notifications: &Notifications) -> Value {
    let pending = notifications.pending.iter().map(|(number, transition)| {
        let Transition { from, to, at, generation, reason, message, skipped } = transition.clone();
        let (number, time) = (*number, timestamp(at));
        PendingNotification { number, from, to, time, generation, reason, message, skipped }
    });
    let pending: Vec<_> = pending.collect();
    // A merge patch takes null for the removal of the list.
    let pending = if pending.is_empty() { Value::Null } else { json!(pending) };
    json!({"settled": notifications.settled, "pending": pending})
}

/// Writes `status` with the selector of the Task's Pods.
///
/// Conditions of others go along as far as the schema has room beside ours: a
/// list that others have filled must not keep the operator from telling.
pub(super) fn encode(status: &Status, selector: &str) -> Value {
    let ours = [
        ("Ready", &status.ready),
        ("Reconciling", &status.reconciling),
        ("Stalled", &status.stalled),
        ("Notified", &status.notified),
    ];
    let ours = ours.into_iter().filter_map(|(kind, condition)| {
        let condition = condition.as_ref()?;
        Some(json!({
            "type": kind,
            "status": condition.truth.as_str(),
            "reason": condition.reason,
            "message": condition.message,
            "observedGeneration": condition.generation,
            "lastTransitionTime": timestamp(condition.since),
        }))
    });
    let mut conditions: Vec<Value> = ours.collect();
    let room = MAX_CONDITIONS - conditions.len();
    conditions.extend(status.foreign.iter().filter_map(|text| serde_json::from_str(text).ok()).take(room));
    let mut object = Map::new();
    object.insert("phase".into(), status.phase.as_str().into());
    object.insert("availableReplicas".into(), status.available.into());
    object.insert("replicas".into(), status.replicas.into());
    object.insert("selector".into(), selector.into());
    object.insert("observedGeneration".into(), status.observed_generation.into());
    object.insert("lastUpdateTime".into(), timestamp(status.updated).into());
    object.insert("conditions".into(), conditions.into());
    if let Some(notifications) = &status.notifications {
        object.insert("notifications".into(), notifications_json(notifications));
    }
    Value::Object(object)
}

pub(super) fn seconds(text: Option<&str>) -> i64 {
    text.and_then(|text| text.parse::<Timestamp>().ok()).map_or(0, Timestamp::as_second)
}

fn timestamp(seconds: i64) -> String {
    Timestamp::from_second(seconds).unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_survives_the_way_through_json_with_the_conditions_of_others() {
        let json = json!({
            "phase": "Running", "availableReplicas": 2, "replicas": 3, "observedGeneration": 7,
            "selector": "a=b", "lastUpdateTime": "2026-12-01T10:00:00Z",
            "conditions": [
                {"type": "Ready", "status": "False", "reason": "RollingOut", "message": "2 of 3",
                 "observedGeneration": 7, "lastTransitionTime": "2026-12-01T09:00:00Z"},
                {"type": "Audited", "status": "True", "reason": "ByHand", "message": "fine",
                 "observedGeneration": 3, "lastTransitionTime": "2026-11-01T09:00:00Z"},
            ],
        });
        let status = decode(json.clone()).unwrap().judged_by("a=b");
        assert_eq!(status.phase, Phase::Running);
        assert!(status.selects);
        assert!(!decode(json.clone()).unwrap().judged_by("a=c").selects);
        assert_eq!(encode(&status, "a=b"), json);
    }

    #[test]
    fn what_is_to_be_told_survives_too_and_what_cannot_be_read_of_it_counts_as_none() {
        let pending = json!([{
            "number": 3, "from": "Running", "to": "Failed", "time": "2026-12-01T10:00:00Z",
            "generation": 2, "reason": "QuotaExceeded", "message": "no room", "skipped": 1,
        }]);
        let read = |notifications: &Value| {
            decode(json!({"notifications": notifications})).unwrap().judged_by("").notifications
        };
        let known = read(&json!({"settled": 2, "pending": pending})).unwrap();
        assert_eq!((known.settled, known.pending[0].0, known.pending[0].1.at), (2, 3, 1_796_119_200));
        let written = |known: Notifications| {
            encode(&Status { notifications: Some(Box::new(known)), ..Status::default() }, "")["notifications"]
                .clone()
        };
        assert_eq!(written(*known.clone()), json!({"settled": 2, "pending": pending}));
        // The list is removed by the merge patch.
        assert_eq!(
            written(Notifications { pending: vec![], ..*known }),
            json!({"settled": 2, "pending": null})
        );
        for unreadable in [json!(null), json!(7), json!({"settled": -1}), json!({"pending": [{}]})] {
            assert_eq!(read(&unreadable), None, "{unreadable}");
        }
        assert!(encode(&Status::default(), "").get("notifications").is_none());
    }

    #[test]
    fn conditions_of_others_leave_room_for_ours() {
        let condition = |number: usize| json!({"type": format!("T{number}"), "status": "True"});
        let full: Vec<_> = (0..MAX_CONDITIONS).map(condition).collect();
        let mut status = decode(json!({"conditions": full})).unwrap().judged_by("");
        status.ready = Some(Condition {
            truth: Truth::True,
            reason: "Ready".into(),
            message: "".into(),
            generation: 1,
            since: 0,
        });
        let written = encode(&status, "");
        let written = written["conditions"].as_array().unwrap();
        assert_eq!((written.len(), &written[0]["type"]), (MAX_CONDITIONS, &json!("Ready")));
        assert_eq!(written[1..], full[..MAX_CONDITIONS - 1]);
    }

    #[test]
    fn no_status_is_the_default_of_the_schema() {
        assert_eq!(decode(json!({})).unwrap(), ObservedStatus::default());
        assert_eq!(
            decode(json!({"phase": "Pending", "observedGeneration": -1})).unwrap(),
            ObservedStatus::default()
        );
        assert_eq!(decode(json!({"phase": 3, "conditions": [1]})).unwrap(), ObservedStatus::default());
    }
}
