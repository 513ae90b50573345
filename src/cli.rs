//! The command line. Every flag also reads `TASK_OPERATOR_` and its name.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::telemetry::logging::LogFormat;
use crate::web::BindAddress;

/// A Kubernetes operator that turns a Task into a running application.
#[derive(Debug, Parser)]
#[command(name = "task-operator", version, about, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// What to do; `run` if nothing is said.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The flags of `run`.
    #[command(flatten)]
    pub run: RunArgs,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the operator.
    Run(RunArgs),
    /// Print the CustomResourceDefinition as YAML.
    Crd,
}

impl Cli {
    /// The subcommand, `run` if none was given.
    pub fn command(self) -> Command {
        self.command.unwrap_or(Command::Run(self.run))
    }
}

/// The flags of `run`.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// The kubeconfig of the cluster. Without it KUBECONFIG is read, then the Pod's service account.
    #[arg(long, env = "TASK_OPERATOR_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Watch this namespace only; may be repeated or hold a list with commas.
    /// WATCH_NAMESPACE is read too. Without it all namespaces are watched.
    #[arg(long, env = "TASK_OPERATOR_WATCH_NAMESPACE", value_name = "NAMESPACE", value_delimiter = ',')]
    pub watch_namespace: Vec<String>,

    /// How many Tasks are reconciled at once, at most.
    #[arg(long, env = "TASK_OPERATOR_MAX_CONCURRENT_RECONCILES", value_name = "N", default_value_t = 10,
          value_parser = at_once)]
    pub max_concurrent_reconciles: usize,

    /// Where metrics are served, as HOST:PORT or :PORT; 0 turns it off.
    #[arg(long, env = "TASK_OPERATOR_METRICS_BIND_ADDRESS", value_name = "ADDRESS", default_value = ":8080")]
    pub metrics_bind_address: BindAddress,

    /// Whether there are metrics for each Task by name.
    #[arg(long, env = "TASK_OPERATOR_METRICS_PER_TASK", value_name = "BOOL", default_value_t = true,
          action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub metrics_per_task: bool,

    /// Where the probes /healthz and /readyz are served, as HOST:PORT or :PORT; 0 turns it off.
    #[arg(
        long,
        env = "TASK_OPERATOR_HEALTH_PROBE_BIND_ADDRESS",
        value_name = "ADDRESS",
        default_value = ":8081"
    )]
    pub health_probe_bind_address: BindAddress,

    /// The least severe level that is logged: trace, debug, info, warn, error
    /// or off, or directives as RUST_LOG has them; RUST_LOG wins.
    #[arg(
        long,
        env = "TASK_OPERATOR_LOG_LEVEL",
        value_name = "LEVEL",
        default_value = "info",
        alias = "zap-log-level"
    )]
    pub log_level: String,

    /// How log lines are written.
    #[arg(long, env = "TASK_OPERATOR_LOG_FORMAT", value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,

    /// How long a stop may take, such as 30s or 500ms.
    #[arg(long, env = "TASK_OPERATOR_SHUTDOWN_TIMEOUT", value_name = "TIME", default_value = "30s",
          value_parser = duration, alias = "graceful-shutdown-timeout")]
    pub shutdown_timeout: Duration,
}

impl RunArgs {
    /// The namespaces to watch, none for all: the flag, else WATCH_NAMESPACE.
    pub fn namespaces(&self) -> Vec<String> {
        let given = if self.watch_namespace.is_empty() {
            let variable = std::env::var("WATCH_NAMESPACE").unwrap_or_default();
            variable.split(',').map(str::to_owned).collect()
        } else {
            self.watch_namespace.clone()
        };
        let mut namespaces: Vec<String> =
            given.iter().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
        namespaces.sort();
        namespaces.dedup();
        namespaces
    }
}

fn at_once(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=1000) => Ok(number),
        _ => Err("must be a number from 1 to 1000".to_owned()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("must be a time such as 30s or 500ms: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(flags: &[&str]) -> Result<RunArgs, String> {
        let cli =
            Cli::try_parse_from(std::iter::once(&"task-operator").chain(flags)).map_err(|e| e.to_string())?;
        match cli.command() {
            Command::Run(args) => Ok(args),
            Command::Crd => Err("crd".to_owned()),
        }
    }

    #[test]
    fn without_a_subcommand_it_runs_with_defaults() {
        let args = run(&[]).unwrap();
        assert_eq!(args.max_concurrent_reconciles, 10);
        assert_eq!(args.shutdown_timeout, Duration::from_secs(30));
        assert!(args.metrics_per_task);
    }

    #[test]
    fn flags_are_read_with_and_without_run() {
        for flags in [
            &["--shutdown-timeout", "5s", "--metrics-per-task=false"][..],
            &["run", "--shutdown-timeout", "5s", "--metrics-per-task=false"][..],
        ] {
            let args = run(flags).unwrap();
            assert_eq!(args.shutdown_timeout, Duration::from_secs(5));
            assert!(!args.metrics_per_task);
        }
    }

    #[test]
    fn namespaces_may_be_repeated_and_listed() {
        let args =
            run(&["--watch-namespace", "b,a", "--watch-namespace", "c", "--watch-namespace", "a"]).unwrap();
        assert_eq!(args.namespaces(), ["a", "b", "c"]);
    }

    #[test]
    fn a_wrong_value_is_refused_with_the_name_of_its_flag() {
        for (flag, value) in [
            ("--max-concurrent-reconciles", "0"),
            ("--max-concurrent-reconciles", "many"),
            ("--metrics-bind-address", "nowhere"),
            ("--health-probe-bind-address", ":99999"),
            ("--log-format", "xml"),
            ("--shutdown-timeout", "soon"),
        ] {
            let error = run(&["run", flag, value]).unwrap_err();
            assert!(error.contains(flag), "{flag} {value}: {error}");
        }
    }
}
