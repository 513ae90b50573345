//! Log lines as JSON, with the keys that Kubernetes' contextual logging and
//! controller-runtime have, so that one query finds the lines of all operators.
//!
//! First `ts`, `level`, `logger` and `msg`; then what is known of the pass,
//! from the span `reconcile`: `controller`, `controllerGroup`, `controllerKind`
//! and `Task` with its namespace and name; then the fields of all spans from
//! the outermost in, and those of the event. Of two with one name the inner one
//! stays. An error stands under `error`, with what caused it.

use std::error::Error;
use std::fmt;

use serde::ser::{SerializeMap, Serializer};
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use crate::api::GROUP;

/// The span of a pass.
const PASS: &str = "reconcile";
/// Names of this format that no field may take.
const RESERVED: [&str; 4] = ["ts", "level", "logger", "msg"];

/// The format of events; spans have to keep their fields as JSON.
pub(super) struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        ctx: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = Line::default();
        for span in ctx.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<N>>().map(|fields| fields.fields.as_str());
            if let Some(Ok(Value::Object(fields))) = fields.map(serde_json::from_str) {
                if span.name() == PASS {
                    line.pass(&fields);
                }
                fields.into_iter().for_each(|(name, value)| line.put(&name, value));
            }
        }
        event.record(&mut line);
        let text = line.text(event).map_err(|_| fmt::Error)?;
        writeln!(out, "{text}")
    }
}

/// What a line holds beside what every line has.
#[derive(Default)]
struct Line {
    message: String,
    fields: Vec<(String, Value)>,
}

impl Line {
    fn pass(&mut self, fields: &Map<String, Value>) {
        let part = |name| fields.get(name).cloned().unwrap_or_default();
        self.put("controller", "task".into());
        self.put("controllerGroup", GROUP.into());
        self.put("controllerKind", "Task".into());
        self.put("Task", json!({ "namespace": part("namespace"), "name": part("name") }));
    }

    fn put(&mut self, name: &str, value: Value) {
        let mut name = name.to_owned();
        if RESERVED.contains(&name.as_str()) {
            name.push('_');
        }
        match self.fields.iter_mut().find(|(other, _)| *other == name) {
            Some((_, old)) => *old = value,
            None => self.fields.push((name, value)),
        }
    }

    fn text(&self, event: &Event<'_>) -> anyhow::Result<String> {
        let mut bytes = Vec::with_capacity(256);
        let mut serializer = serde_json::Serializer::new(&mut bytes);
        let mut map = serializer.serialize_map(None)?;
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
        map.serialize_entry("ts", &now)?;
        map.serialize_entry("level", &event.metadata().level().as_str().to_ascii_lowercase())?;
        map.serialize_entry("logger", event.metadata().target())?;
        map.serialize_entry("msg", &self.message)?;
        for (name, value) in &self.fields {
            map.serialize_entry(name, value)?;
        }
        map.end()?;
        Ok(String::from_utf8(bytes)?)
    }

    fn field(&mut self, field: &Field, value: Value) {
        self.put(field.name(), value);
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            _ => self.field(field, format!("{value:?}").into()),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            _ => self.field(field, value.into()),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.field(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.field(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.field(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.field(field, value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let mut text = value.to_string();
        let mut cause = value.source();
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        self.field(field, text.into());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::fmt::format::JsonFields;

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn line(log: impl FnOnce()) -> String {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .fmt_fields(JsonFields::new())
            .event_format(JsonLines)
            .finish();
        tracing::subscriber::with_default(subscriber, log);
        let bytes = buffer.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_line_of_a_pass_has_the_keys_of_controller_runtime() {
        let line = line(|| {
            let span = tracing::info_span!(
                "reconcile",
                namespace = "default",
                name = "web",
                outcome = tracing::field::Empty
            );
            span.record("outcome", "done");
            let _pass = span.entered();
            tracing::warn!(code = 409, "a \"conflict\"");
        });
        assert!(line.starts_with("{\"ts\":\""), "{line}");
        let value: Value = serde_json::from_str(&line).unwrap();
        for (key, expected) in [
            ("level", json!("warn")),
            ("msg", json!("a \"conflict\"")),
            ("controller", json!("task")),
            ("controllerKind", json!("Task")),
            ("Task", json!({ "namespace": "default", "name": "web" })),
            ("namespace", json!("default")),
            ("outcome", json!("done")),
            ("code", json!(409)),
        ] {
            assert_eq!(value[key], expected, "{key} in {line}");
        }
        let time = value["ts"].as_str().unwrap();
        assert!(time.ends_with('Z') && time.parse::<jiff::Timestamp>().is_ok(), "{time}");
    }

    #[test]
    fn an_error_is_told_with_its_causes() {
        let error = anyhow::anyhow!("connection refused").context("the API server cannot be reached");
        let error: Box<dyn Error> = error.into();
        let line = line(|| tracing::error!(error = &*error, "failed"));
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["error"], "the API server cannot be reached: connection refused");
    }

    #[test]
    fn no_field_takes_the_place_of_level_or_message_and_the_inner_one_stays() {
        let line = line(|| {
            let _outer = tracing::info_span!("outer", kind = "a", level = "high").entered();
            tracing::info!(kind = "b", msg = "field", "message");
        });
        assert_eq!(line.matches("\"kind\"").count(), 1, "{line}");
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["kind"], "b");
        assert_eq!(value["level"], "info");
        assert_eq!(value["level_"], "high");
        assert_eq!(value["msg"], "message");
        assert_eq!(value["msg_"], "field");
    }
}
