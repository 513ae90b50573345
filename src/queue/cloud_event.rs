//! A notice as an HTTP message: CloudEvents 1.0 with the HTTP binding.
//!
//! The same notice gives the same bytes each time, so that a receiver that kept
//! the first copy sees no difference in a repeat.

use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use ring::digest::{SHA256, digest};
use serde_json::Value;

use super::notice::Notice;

/// What the payload's schema is called.
pub const DATA_SCHEMA: &str = "https://task.example.io/schemas/notification-v1.json";

/// How a CloudEvent is put into an HTTP message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The body is the whole event as JSON.
    Structured,
    /// The body is the payload, and the attributes are headers.
    Binary,
}

/// Headers and body of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The event's id.
    pub id: String,
    /// The headers, without those of the signature.
    pub headers: HeaderMap,
    /// The body.
    pub body: String,
}

/// The notice as an HTTP message.
pub fn message(notice: &Notice, mode: Mode) -> Message {
    let id = notice.id();
    let trace = trace_parent(&id);
    let mut headers = HeaderMap::new();
    // The context of the event itself, and that of this hop: nobody in between has one of its own.
    set(&mut headers, "traceparent", &trace);
    let attributes = attributes(notice, &id, &trace);
    let body = match mode {
        Mode::Structured => {
            set(&mut headers, CONTENT_TYPE.as_str(), "application/cloudevents+json; charset=UTF-8");
            let mut event: serde_json::Map<String, Value> =
                attributes.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
            event.insert("datacontenttype".to_owned(), "application/json".into());
            event.insert("data".to_owned(), notice.data());
            Value::Object(event)
        }
        Mode::Binary => {
            set(&mut headers, CONTENT_TYPE.as_str(), "application/json");
            for (name, value) in attributes {
                set(&mut headers, &format!("ce-{name}"), &value);
            }
            notice.data()
        }
    };
    Message { id, headers, body: body.to_string() }
}

/// The attributes, those of the extensions among them, but for the type of the data.
fn attributes(notice: &Notice, id: &str, trace: &str) -> [(&'static str, String); 10] {
    let namespace = &notice.key.namespace;
    [
        ("specversion", "1.0".to_owned()),
        ("id", id.to_owned()),
        ("source", format!("/apis/task.example.io/v1/namespaces/{namespace}/tasks")),
        ("type", notice.kind().as_str().to_owned()),
        ("subject", notice.key.to_string()),
        ("time", notice.time().to_string()),
        ("dataschema", DATA_SCHEMA.to_owned()),
        ("sequence", notice.sequence()),
        // Brokers keep the order of what has one key.
        ("partitionkey", notice.uid.to_string()),
        ("traceparent", trace.to_owned()),
    ]
}

/// The W3C trace context: one trace per notice, the same in each repeat.
///
/// The operator records no spans, so it says that the trace is not sampled;
/// who continues it decides anew.
fn trace_parent(id: &str) -> String {
    let hash = digest(&SHA256, id.as_bytes());
    let hex: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("00-{}-{}-00", &hex[..32], &hex[32..48])
}

/// Sets a header. All that is set is ASCII: names are DNS labels, the rest is of our making.
pub(super) fn set(headers: &mut HeaderMap, name: &str, value: &str) {
    let name = HeaderName::from_bytes(name.as_bytes());
    if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use serde_json::json;

    use super::super::notice::tests::{any_notice, changed, deleted};
    use super::*;
    use crate::api::v1::Phase;

    #[test]
    fn the_structured_mode_has_all_in_its_body() {
        let message = message(&changed(3, Phase::Running, Phase::Succeeded), Mode::Structured);
        let event: Value = serde_json::from_str(&message.body).unwrap();
        let trace = event["traceparent"].clone();
        assert_eq!(
            event,
            json!({
                "specversion": "1.0",
                "id": "8f1c.3.1700000000",
                "source": "/apis/task.example.io/v1/namespaces/default/tasks",
                "type": "io.example.task.phase.changed",
                "subject": "default/web",
                "time": "2023-11-14T22:13:20Z",
                "dataschema": DATA_SCHEMA,
                "datacontenttype": "application/json",
                "sequence": "00000000000000000003",
                "partitionkey": "8f1c",
                "traceparent": trace,
                "data": {
                    "namespace": "default", "name": "web", "uid": "8f1c",
                    "time": "2023-11-14T22:13:20Z", "number": 3, "generation": 2,
                    "phase": "Succeeded", "previousPhase": "Running",
                    "reason": "Available", "message": "all 3 replicas are ready", "skipped": 0,
                },
            })
        );
        assert_eq!(message.headers["content-type"], "application/cloudevents+json; charset=UTF-8");
        assert_eq!(message.headers["traceparent"], trace.as_str().unwrap());
    }

    #[test]
    fn the_binary_mode_has_the_attributes_in_headers() {
        let message = message(&deleted(), Mode::Binary);
        let of = |name: &str| message.headers[name].to_str().unwrap();
        assert_eq!(of("content-type"), "application/json");
        assert_eq!(of("ce-specversion"), "1.0");
        assert_eq!(of("ce-type"), "io.example.task.deleted");
        assert_eq!(of("ce-subject"), "default/web");
        assert_eq!(of("ce-id"), message.id);
        let data: Value = serde_json::from_str(&message.body).unwrap();
        assert_eq!(data["phase"], "Succeeded");
    }

    proptest! {
        #[test]
        fn both_modes_say_the_same_and_a_repeat_has_the_same_bytes(notice in any_notice()) {
            let structured = message(&notice, Mode::Structured);
            let binary = message(&notice, Mode::Binary);
            prop_assert_eq!(&structured, &message(&notice, Mode::Structured));
            let mut event: Value = serde_json::from_str(&structured.body).unwrap();
            let event = event.as_object_mut().unwrap();
            let data: Value = serde_json::from_str(&binary.body).unwrap();
            prop_assert_eq!(event.remove("data").unwrap(), data);
            prop_assert_eq!(event.remove("datacontenttype").unwrap(), "application/json");
            prop_assert_eq!(binary.headers["content-type"].to_str().unwrap(), "application/json");
            for (name, value) in event {
                let header = binary.headers.get(format!("ce-{name}")).unwrap().to_str().unwrap();
                prop_assert_eq!(value.as_str().unwrap(), header);
            }
        }

        #[test]
        fn every_notice_has_a_trace_of_its_own(one in any_notice(), two in any_notice()) {
            prop_assume!(one.id() != two.id());
            let trace = |notice: &Notice| message(notice, Mode::Binary).headers["traceparent"].clone();
            prop_assert_ne!(trace(&one), trace(&two));
            let text = trace(&one);
            let parts: Vec<_> = text.to_str().unwrap().split('-').collect();
            prop_assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [2, 32, 16, 2]);
        }
    }
}
