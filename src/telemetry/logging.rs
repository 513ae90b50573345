//! Log lines on stderr, as text or as JSON with the keys of contextual logging in Kubernetes.

use std::fmt;
use std::io::IsTerminal;

use anyhow::Context;
use clap::ValueEnum;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Begins to log. `RUST_LOG` wins over `level`; `NO_COLOR` is obeyed.
///
/// # Errors
/// If the level is no level and no directive, or logging has begun already.
pub fn init(level: &str, format: LogFormat) -> anyhow::Result<()> {
    let filter = match std::env::var("RUST_LOG") {
        Ok(directives) if !directives.is_empty() => {
            EnvFilter::builder().parse(&directives).with_context(|| format!("RUST_LOG={directives}"))?
        }
        _ => EnvFilter::builder().parse(level).with_context(|| {
            format!("--log-level {level}: must be trace, debug, info, warn, error or off, or directives as RUST_LOG has them")
        })?,
    };
    let logger = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let result = match format {
        LogFormat::Text => {
            let colors =
                std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
            logger.with_ansi(colors).with_target(false).try_init()
        }
        LogFormat::Json => logger.fmt_fields(JsonFields::new()).event_format(JsonLines).try_init(),
    };
    result.map_err(|error| anyhow::anyhow!("logging cannot begin: {error}"))?;
    std::panic::set_hook(Box::new(|panic| tracing::error!(error = %panic, "panic")));
    Ok(())
}

/// `ts`, `level`, `msg`, then the fields of the spans from the outermost in, then those of the event.
struct JsonLines;

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
        let mut line = Map::new();
        line.insert(
            "ts".into(),
            jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string().into(),
        );
        line.insert("level".into(), event.metadata().level().as_str().to_ascii_lowercase().into());
        line.insert("msg".into(), Value::String(String::new()));
        line.insert("logger".into(), event.metadata().target().into());
        for span in ctx.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            line.insert("span".into(), span.name().into());
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<N>>().map(|fields| fields.fields.as_str());
            if let Some(Ok(Value::Object(fields))) = fields.map(serde_json::from_str) {
                line.extend(fields);
            }
        }
        event.record(&mut Fields(&mut line));
        writeln!(out, "{}", Value::Object(line))
    }
}

struct Fields<'a>(&'a mut Map<String, Value>);

impl Fields<'_> {
    fn put(&mut self, field: &Field, value: Value) {
        let name = if field.name() == "message" { "msg" } else { field.name() };
        self.0.insert(name.to_owned(), value);
    }
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

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

    #[test]
    fn a_json_line_has_the_message_the_pass_and_the_fields() {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let logger = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .fmt_fields(JsonFields::new())
            .event_format(JsonLines)
            .finish();
        tracing::subscriber::with_default(logger, || {
            let _pass = tracing::info_span!("reconcile", namespace = "default", name = "web").entered();
            tracing::warn!(code = 409, "a \"conflict\"");
        });
        let line: Value = serde_json::from_slice(&buffer.0.lock().unwrap()).unwrap();
        assert_eq!(line["level"], "warn");
        assert_eq!(line["msg"], "a \"conflict\"");
        assert_eq!(line["namespace"], "default");
        assert_eq!(line["code"], 409);
        assert!(line["ts"].as_str().unwrap().ends_with('Z'));
    }
}
