//! The flags of the notifications and of the task queue that they leave through.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use http::Uri;

use super::values;
use crate::queue::cloud_event::Mode;
use crate::queue::secret_file::SecretFile;
use crate::queue::sink::Sink;

/// Who is told of what happens to Tasks.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Notifications")]
pub struct NotifyArgs {
    /// Where a CloudEvent is posted for each change of a Task's phase and each deletion, at least once
    /// and in order per Task: http://HOST:PORT/PATH or https. Without it nobody is told.
    #[arg(long, env = "TASK_OPERATOR_NOTIFY_URL", value_name = "URL", value_parser = values::sink)]
    pub notify_url: Option<Uri>,

    /// The file with the secrets that notifications are signed with, as Standard Webhooks has it: lines of
    /// whsec_ and 24 to 64 bytes in base64. Changes are taken over within seconds.
    #[arg(long, env = "TASK_OPERATOR_NOTIFY_SECRET_FILE", value_name = "FILE")]
    pub notify_secret_file: Option<PathBuf>,

    /// Whether a CloudEvent is the whole body (structured), or its attributes are headers (binary).
    #[arg(long, env = "TASK_OPERATOR_NOTIFY_MODE", value_name = "MODE", default_value = "structured",
          value_parser = mode())]
    pub notify_mode: Mode,

    /// How many notifications are sent at once, from 1 to 1000.
    #[arg(long, env = "TASK_OPERATOR_QUEUE_WORKERS", value_name = "N", default_value_t = 4,
          value_parser = values::at_once)]
    pub queue_workers: usize,

    /// How many notifications wait or are sent, from 1 to 1000000. Beyond that they wait in the status of
    /// their Tasks.
    #[arg(long, env = "TASK_OPERATOR_QUEUE_CAPACITY", value_name = "N", default_value_t = 1024,
          value_parser = values::capacity)]
    pub queue_capacity: usize,

    /// How long a deletion waits until the sink was told of it, such as 30s; at most 1h. After that it
    /// goes on, and an event says so.
    #[arg(long, env = "TASK_OPERATOR_FAREWELL_TIMEOUT", value_name = "DURATION", default_value = "30s",
          value_parser = values::duration)]
    pub farewell_timeout: Duration,
}

impl NotifyArgs {
    /// What the flags must be to each other.
    ///
    /// # Errors
    /// With the flag that is wrong.
    pub fn check(&self) -> Result<(), String> {
        if self.notify_secret_file.is_some() && self.notify_url.is_none() {
            return Err("--notify-secret-file: needs --notify-url".to_owned());
        }
        if self.farewell_timeout.is_zero() {
            return Err("--farewell-timeout: must not be 0".to_owned());
        }
        if self.queue_workers > self.queue_capacity {
            return Err("--queue-workers: must not be more than --queue-capacity".to_owned());
        }
        Ok(())
    }

    /// The sink; none without a URL.
    ///
    /// # Errors
    /// If the secrets cannot be read, or no certificate is trusted where one has to be.
    pub fn sink(&self) -> anyhow::Result<Option<Sink>> {
        let Some(url) = self.notify_url.clone() else { return Ok(None) };
        let secrets = self.notify_secret_file.as_deref().map(SecretFile::open).transpose();
        let secrets = secrets.map_err(anyhow::Error::msg).context("--notify-secret-file")?;
        Sink::new(url, self.notify_mode, secrets, self.queue_workers).context("--notify-url").map(Some)
    }
}

fn mode() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(["structured", "binary"]).map(|value| match value.as_str() {
        "binary" => Mode::Binary,
        _ => Mode::Structured,
    })
}
