//! Log lines on stderr, as text for people or as JSON for machines.

use std::env;
use std::io::{IsTerminal, Write};
use std::panic::PanicHookInfo;

use anyhow::{Context, bail};
use clap::ValueEnum;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::util::SubscriberInitExt;

use super::json::JsonLines;

/// What is left out at level info, since the operator says the same in its own words.
const QUIET: &str = "actix_server=warn,kube_runtime=error,kube_client::client::builder=off";

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Begins to log. `RUST_LOG` wins over `level`; `NO_COLOR` is obeyed. Panics
/// are log lines too from now on.
///
/// # Errors
/// If the level is no level and no directive, or logging has begun already.
pub fn init(level: &str, format: LogFormat) -> anyhow::Result<()> {
    let directives = match env::var("RUST_LOG") {
        Ok(directives) => Some(directives),
        Err(env::VarError::NotPresent) => None,
        Err(error) => return Err(error).context("RUST_LOG"),
    };
    let filter = filter(level, directives.as_deref())?;
    let colors = std::io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none_or(|it| it.is_empty());
    subscriber(filter, format, colors, std::io::stderr).try_init().context("logging cannot begin")?;
    std::panic::set_hook(Box::new(log_panic));
    Ok(())
}

/// What is logged: by `RUST_LOG` as tracing-subscriber has it, else by the flag.
fn filter(level: &str, rust_log: Option<&str>) -> anyhow::Result<EnvFilter> {
    if let Some(directives) = rust_log.map(str::trim).filter(|directives| !directives.is_empty()) {
        return EnvFilter::builder().parse(directives).with_context(|| format!("RUST_LOG={directives}"));
    }
    let refusal = || {
        format!(
            "--log-level {level}: must be one of trace, debug, info, warn, error and off, \
             or a list of such and of TARGET=LEVEL with commas"
        )
    };
    let parts: Vec<&str> = level.split(',').map(str::trim).collect();
    // A bare word that is no level would be taken for a target, and log nothing at all.
    if let Some(wrong) = parts.iter().find(|part| !part.contains('=') && !is_level(part)) {
        bail!("{}, and not '{wrong}'", refusal());
    }
    let directives = match &parts[..] {
        [level] if level.eq_ignore_ascii_case("info") => format!("info,{QUIET}"),
        _ => parts.join(","),
    };
    EnvFilter::builder().parse(directives).with_context(refusal)
}

/// tracing also takes numbers, of which 1 is error; people who know zap mean debug by it.
fn is_level(word: &str) -> bool {
    word.parse::<LevelFilter>().is_ok() && word.starts_with(|c: char| c.is_ascii_alphabetic())
}

fn subscriber<W>(
    filter: EnvFilter,
    format: LogFormat,
    colors: bool,
    to: W,
) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let logger = tracing_subscriber::fmt().with_env_filter(filter).with_writer(to);
    match format {
        LogFormat::Text => Box::new(logger.with_ansi(colors).with_target(false).finish()),
        LogFormat::Json => Box::new(logger.fmt_fields(JsonFields::new()).event_format(JsonLines).finish()),
    }
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let location = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current();
    // What panic! makes of its arguments: a literal, or a formatted text.
    let payload = panic.payload();
    let reason = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no reason given");
    tracing::error!(error = reason, location, thread = thread.name(), "panic");
    let backtrace = std::backtrace::Backtrace::capture();
    if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
        // Lines of its own: it is asked for by RUST_BACKTRACE. If stderr is gone there is nobody to tell.
        let _ = writeln!(std::io::stderr(), "{backtrace}");
    }
}

#[cfg(test)]
mod tests {
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

    /// What is written of the lines that `log` logs.
    fn written(filter: EnvFilter, format: LogFormat, colors: bool, log: impl FnOnce()) -> String {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let subscriber = subscriber(filter, format, colors, move || writer.clone());
        tracing::subscriber::with_default(subscriber, log);
        let bytes = buffer.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_level_that_is_none_is_refused_with_what_is_allowed() {
        for wrong in ["verbose", "", "1", "info,verbose", "task_operator=loud", "info,,debug"] {
            let error = format!("{:#}", filter(wrong, None).unwrap_err());
            assert!(
                error.contains("--log-level") && error.contains("must be one of trace"),
                "{wrong}: {error}"
            );
        }
        for level in ["trace", "DEBUG", "info", "warn", "error", "off", "warn,task_operator=debug"] {
            assert!(filter(level, None).is_ok(), "{level}");
        }
    }

    #[test]
    fn rust_log_wins_and_an_empty_one_is_none() {
        let errors_only = filter("trace", Some("error")).unwrap();
        assert_eq!(errors_only.to_string(), "error");
        assert_eq!(filter("warn", Some(" ")).unwrap().to_string(), "warn");
        let error = format!("{:#}", filter("info", Some("a=b=c")).unwrap_err());
        assert!(error.contains("RUST_LOG=a=b=c"), "{error}");
    }

    #[test]
    fn text_has_the_fields_of_the_pass_and_no_colours_unless_asked() {
        let log = || {
            let _pass = tracing::info_span!("reconcile", namespace = "default", name = "web").entered();
            tracing::info!(phase = "Running", "pass ended");
            tracing::debug!("not shown");
        };
        let info = || filter("info", None).unwrap();
        let line = written(info(), LogFormat::Text, false, log);
        assert!(line.contains("INFO") && line.ends_with("pass ended phase=\"Running\"\n"), "{line}");
        assert!(line.contains("reconcile{namespace=\"default\" name=\"web\"}"), "{line}");
        assert!(!line.contains('\u{1b}'), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");
        assert!(written(info(), LogFormat::Text, true, log).contains('\u{1b}'));
    }

    #[test]
    fn json_has_one_object_a_line() {
        let text = written(filter("info", None).unwrap(), LogFormat::Json, true, || {
            tracing::info!("one");
            tracing::warn!("two\nlines");
        });
        let messages: Vec<String> = text
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["msg"].to_string())
            .collect();
        assert_eq!(messages, [r#""one""#, r#""two\nlines""#]);
    }
}
