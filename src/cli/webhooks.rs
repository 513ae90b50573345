//! The flags of the webhooks and of their certificate.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};

use super::values;
use crate::api::webhooks::SECRET;
use crate::web::BindAddress;

/// The webhooks.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Webhooks")]
pub struct WebhookArgs {
    /// Where the webhooks for admission and conversion are served over TLS: HOST:PORT, :PORT, or 0 to
    /// turn them off. They are served only with --webhook-cert-dir or --webhook-self-signed.
    #[arg(
        long,
        env = "TASK_OPERATOR_WEBHOOK_BIND_ADDRESS",
        value_name = "ADDRESS",
        default_value = ":9443",
        alias = "webhook-port"
    )]
    pub webhook_bind_address: BindAddress,

    /// The directory of tls.crt and tls.key, such as a mounted Secret. Changes are taken over within
    /// seconds, without dropping a connection.
    #[arg(long, env = "TASK_OPERATOR_WEBHOOK_CERT_DIR", value_name = "DIR")]
    pub webhook_cert_dir: Option<PathBuf>,

    /// Whether the operator makes its certificate itself, keeps it in a Secret that all replicas share,
    /// renews it, and has the API server trust it. Not with --webhook-cert-dir.
    #[arg(long, env = "TASK_OPERATOR_WEBHOOK_SELF_SIGNED", value_name = "BOOL", default_value_t = false,
          action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub webhook_self_signed: bool,

    /// The Secret of a self-signed certificate, in the namespace of the Pod, else the kubeconfig's.
    #[arg(long, env = "TASK_OPERATOR_WEBHOOK_SECRET_NAME", value_name = "NAME",
          default_value = SECRET, value_parser = values::object_name)]
    pub webhook_secret_name: String,

    /// The Service that the API server calls the webhooks by, in the same namespace: a self-signed
    /// certificate is for its names.
    #[arg(long, env = "TASK_OPERATOR_WEBHOOK_SERVICE_NAME", value_name = "NAME",
          default_value = "task-operator-webhook", value_parser = values::object_name)]
    pub webhook_service_name: String,

    /// A further DNS name or IP address that a self-signed certificate is for. May be repeated, or be a
    /// list with commas.
    #[arg(long, env = "TASK_OPERATOR_WEBHOOK_DNS_NAME", value_name = "NAME", value_delimiter = ',')]
    pub webhook_dns_name: Vec<String>,

    /// How long a self-signed certificate is valid, from 10s to 87600h. It is renewed after two thirds
    /// of that.
    #[arg(long, env = "TASK_OPERATOR_WEBHOOK_CERT_VALIDITY", value_name = "DURATION",
          default_value = "2160h", value_parser = values::validity)]
    pub webhook_cert_validity: Duration,
}

impl WebhookArgs {
    /// That the certificate has one source.
    ///
    /// # Errors
    /// With the flag that is wrong.
    pub fn check(&self) -> Result<(), String> {
        match self.webhook_self_signed && self.webhook_cert_dir.is_some() {
            true => Err("--webhook-self-signed: cannot be used with --webhook-cert-dir".to_owned()),
            false => Ok(()),
        }
    }
}
