//! The command line.
//!
//! Every flag also reads an environment variable, `TASK_OPERATOR_` and its name.
//! Flags of one topic are one struct, flattened into [`RunArgs`]: a feature
//! brings its own. What kubebuilder calls differently is a hidden alias.

pub mod finalize;
mod notify;
pub mod rbac;
mod values;
mod webhooks;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, Parser, Subcommand};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::api::webhooks::Webhook;
use crate::telemetry::logging::LogFormat;
use crate::web::BindAddress;

pub use notify::NotifyArgs;
pub use webhooks::WebhookArgs;

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
    /// Run the operator. This is what is done if no command is given.
    Run(Box<RunArgs>),
    /// Print the CustomResourceDefinition as YAML, for `kubectl apply -f -`.
    Crd(CrdArgs),
    /// Print the configurations of the admission webhooks as YAML. Without --url or --service
    /// they name the Service task-system/task-operator-webhook.
    Webhooks(CrdArgs),
    /// Print the rules as ValidatingAdmissionPolicies in YAML, for clusters that want no webhook.
    Policies,
    /// Print the ServiceAccount of the operator and the roles that it and its users need, as YAML.
    Rbac(rbac::RbacArgs),
    /// Take the operator's finalizer from Tasks, so that none of them waits for an operator that is gone.
    /// Nothing is deleted.
    Finalize(finalize::FinalizeArgs),
}

impl Cli {
    /// The subcommand, `run` if none was given.
    pub fn into_command(self) -> Command {
        self.command.unwrap_or(Command::Run(Box::new(self.run)))
    }
}

/// The flags of `crd` and `webhooks`. With none of them the definition has v1 alone, and needs no webhook.
#[derive(Clone, Debug, Default, Args)]
pub struct CrdArgs {
    /// The operator's webhooks are at https://HOST:PORT. The definition then has v1alpha1 too.
    #[arg(long, value_name = "URL", value_parser = values::https, conflicts_with = "service")]
    url: Option<String>,

    /// The operator's webhooks are behind this Service: NAMESPACE/NAME, or NAMESPACE/NAME:PORT if
    /// the port is not 443. The definition then has v1alpha1 too.
    #[arg(long, value_name = "SERVICE", value_parser = values::service)]
    service: Option<Webhook>,

    /// The file with the certificates that the operator is trusted by, in PEM. Without it
    /// they are to be filled in by cert-manager or by an operator with --webhook-self-signed.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

impl CrdArgs {
    /// Where v1alpha1 is converted; nowhere if it is not served.
    pub fn webhook(&self) -> Option<Webhook> {
        self.url.clone().map(Webhook::Url).or_else(|| self.service.clone())
    }

    /// The certificates.
    ///
    /// # Errors
    /// If the file cannot be read, or holds no certificate; or if there is no webhook to trust.
    pub fn ca(&self) -> anyhow::Result<Option<Vec<u8>>> {
        let Some(file) = &self.ca else { return Ok(None) };
        anyhow::ensure!(self.webhook().is_some(), "--ca needs --url or --service");
        let name = || format!("--ca {}", file.display());
        let pem = std::fs::read(file).with_context(name)?;
        let certificates = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
        let is_there = certificates.is_ok_and(|certificates| !certificates.is_empty());
        anyhow::ensure!(is_there, "{}: must hold certificates in PEM", name());
        Ok(Some(pem))
    }
}

/// The flags of `run`.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// Which cluster, and what of it.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// How Tasks are reconciled.
    #[command(flatten)]
    pub reconcile: ReconcileArgs,
    /// Which of several replicas writes.
    #[command(flatten)]
    pub election: ElectionArgs,
    /// What is served.
    #[command(flatten)]
    pub serve: ServeArgs,
    /// The webhooks.
    #[command(flatten)]
    pub webhooks: WebhookArgs,
    /// Who is told of what happens to Tasks.
    #[command(flatten)]
    pub notify: NotifyArgs,
    /// What is logged.
    #[command(flatten)]
    pub log: LogArgs,
}

/// Which cluster, and what of it.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterArgs {
    /// The kubeconfig file of the cluster. Without it KUBECONFIG is read, then the Pod's service account.
    #[arg(long, env = "TASK_OPERATOR_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Watch this namespace only. May be repeated, or be a list with commas.
    /// Without it WATCH_NAMESPACE is read, and without that all namespaces are watched.
    #[arg(long, env = "TASK_OPERATOR_WATCH_NAMESPACE", value_name = "NAMESPACE", value_delimiter = ',',
          value_parser = values::namespace, default_values = values::watch_namespace(), hide_default_value = true)]
    watch_namespace: Vec<String>,
}

impl ClusterArgs {
    /// The namespaces to watch, each once; none stands for all.
    pub fn namespaces(&self) -> Vec<String> {
        values::distinct(&self.watch_namespace)
    }
}

/// How Tasks are reconciled.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Reconciling")]
pub struct ReconcileArgs {
    /// How many Tasks are reconciled at once, from 1 to 1000.
    #[arg(long, env = "TASK_OPERATOR_MAX_CONCURRENT_RECONCILES", value_name = "N", default_value_t = 10,
          value_parser = values::at_once)]
    pub max_concurrent_reconciles: usize,

    /// How long a stop may take before what is still under way is left to the
    /// next start, such as 30s or 1m30s; at most 1h.
    #[arg(long, env = "TASK_OPERATOR_SHUTDOWN_TIMEOUT", value_name = "DURATION", default_value = "30s",
          value_parser = values::duration, alias = "graceful-shutdown-timeout")]
    pub shutdown_timeout: Duration,
}

/// Which of several replicas writes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Leader election")]
pub struct ElectionArgs {
    /// Whether the replica that holds a Lease writes, and the others wait. Needed with more than one replica.
    #[arg(long, env = "TASK_OPERATOR_LEADER_ELECT", value_name = "BOOL", default_value_t = false,
          action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub leader_elect: bool,

    /// The namespace of the Lease. Without it POD_NAMESPACE is read, and without that the kubeconfig's is taken.
    #[arg(long, env = "TASK_OPERATOR_LEADER_ELECTION_NAMESPACE", value_name = "NAMESPACE",
          value_parser = values::namespace)]
    pub leader_election_namespace: Option<String>,

    /// After how long without a renewal another replica takes the Lease; whole seconds.
    #[arg(long, env = "TASK_OPERATOR_LEASE_DURATION", value_name = "DURATION", default_value = "15s",
          value_parser = values::duration, alias = "leader-election-lease-duration")]
    pub lease_duration: Duration,

    /// After how long without a renewal the holder stops to write; less than the lease duration.
    #[arg(long, env = "TASK_OPERATOR_RENEW_DEADLINE", value_name = "DURATION", default_value = "10s",
          value_parser = values::duration, alias = "leader-election-renew-deadline")]
    pub renew_deadline: Duration,

    /// How long between two renewals; less than half the renew deadline.
    #[arg(long, env = "TASK_OPERATOR_RETRY_PERIOD", value_name = "DURATION", default_value = "2s",
          value_parser = values::duration, alias = "leader-election-retry-period")]
    pub retry_period: Duration,
}

impl ElectionArgs {
    /// What the three times must be to each other.
    ///
    /// # Errors
    /// With the flag that is wrong.
    pub fn check(&self) -> Result<(), String> {
        if self.lease_duration.subsec_nanos() != 0 || self.lease_duration.is_zero() {
            return Err("--lease-duration: must be whole seconds, at least 1s".to_owned());
        }
        if self.renew_deadline >= self.lease_duration {
            return Err("--renew-deadline: must be less than --lease-duration".to_owned());
        }
        if self.retry_period.is_zero() || self.retry_period * 2 >= self.renew_deadline {
            return Err("--retry-period: must be less than half of --renew-deadline, and not 0".to_owned());
        }
        Ok(())
    }
}

/// What is served. An address is `HOST:PORT`, or `:PORT` for all addresses; `0` turns the server off.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Serving")]
pub struct ServeArgs {
    /// Where /metrics is served: HOST:PORT, :PORT, or 0 to turn it off.
    #[arg(
        long,
        env = "TASK_OPERATOR_METRICS_BIND_ADDRESS",
        value_name = "ADDRESS",
        default_value = ":8080",
        alias = "metrics-addr"
    )]
    pub metrics_bind_address: BindAddress,

    /// Whether there are series for each Task by name. A cluster with many
    /// Tasks may want --metrics-per-task=false.
    #[arg(long, env = "TASK_OPERATOR_METRICS_PER_TASK", value_name = "BOOL", default_value_t = true,
          action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub metrics_per_task: bool,

    /// Where /healthz and /readyz are served: HOST:PORT, :PORT, or 0 to turn it off.
    #[arg(
        long,
        env = "TASK_OPERATOR_HEALTH_PROBE_BIND_ADDRESS",
        value_name = "ADDRESS",
        default_value = ":8081",
        alias = "health-addr"
    )]
    pub health_probe_bind_address: BindAddress,
}

/// What is logged.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Logging")]
pub struct LogArgs {
    /// The least severe level that is logged: error, warn, info, debug, trace or
    /// off, also for one part of the program, as in info,task_operator::web=debug.
    /// RUST_LOG wins.
    #[arg(long = "log-level", env = "TASK_OPERATOR_LOG_LEVEL", value_name = "LEVEL", default_value = "info",
          value_parser = values::log_level, alias = "zap-log-level")]
    pub level: String,

    /// How lines are written: for people, or as one JSON object each.
    #[arg(long = "log-format", env = "TASK_OPERATOR_LOG_FORMAT", value_name = "FORMAT", default_value = "text",
          value_parser = log_format(), alias = "zap-encoder")]
    pub format: LogFormat,
}

/// `console` is what zap calls text.
fn log_format() -> impl TypedValueParser<Value = LogFormat> {
    let values = [PossibleValue::new("text").alias("console"), PossibleValue::new("json")];
    PossibleValuesParser::new(values).map(|value| match value.as_str() {
        "json" => LogFormat::Json,
        _ => LogFormat::Text,
    })
}

#[cfg(test)]
mod tests;
