//! Starts and stops the servers, and sees to the certificate of the webhooks.

use std::net::SocketAddr;
use std::time::Duration;

use actix_web::dev::{Server, ServerHandle};
use anyhow::Context;
use kube::Client;
use tokio::sync::watch;

use crate::cli::{RunArgs, WebhookArgs};
use crate::cluster::certificates::{self, Kept, Terms};
use crate::telemetry::Metrics;
use crate::web;
use crate::web::health::Health;
use crate::web::tls::{Certificate, follow_directory};

/// For this long after readiness dropped the webhooks serve: until everybody has heard of it.
const LINGER: Duration = Duration::from_secs(3);

/// The servers that run.
pub(crate) struct Servers {
    handles: Vec<ServerHandle>,
    has_webhooks: bool,
}

impl Servers {
    /// Starts those that the flags ask for. `namespace` is the operator's own.
    ///
    /// # Errors
    /// If an address cannot be had, or there is no certificate where one is named.
    pub(crate) fn start(
        args: &RunArgs,
        namespace: &str,
        client: &Client,
        health: &Health,
        metrics: &Metrics,
    ) -> anyhow::Result<Self> {
        let mut handles = Vec::new();
        let webhooks = webhooks(&args.webhooks, namespace, client, health, metrics)?;
        let has_webhooks = webhooks.is_some();
        let probes = web::serve_probes(&args.serve.health_probe_bind_address, health.clone())?;
        let metrics = web::serve_metrics(&args.serve.metrics_bind_address, metrics.clone())?;
        for (name, started) in [("webhooks", webhooks), ("probes", probes), ("metrics", metrics)] {
            let Some((server, address)) = started else { continue };
            tracing::info!(%address, "serving {name}");
            handles.push(server.handle());
            tokio::task::spawn_local(async move {
                if let Err(error) = server.await {
                    tracing::error!(%error, "the server for {name} ended");
                }
            });
        }
        Ok(Self { handles, has_webhooks })
    }

    /// Goes on serving for as long as calls may still be sent here.
    pub(crate) async fn linger(&self) {
        if self.has_webhooks {
            tokio::time::sleep(LINGER).await;
        }
    }

    /// Ends them, once the requests under way are answered.
    pub(crate) async fn stop(self) {
        for handle in self.handles {
            handle.stop(true).await;
        }
    }
}

/// The webhooks, if there is or will be a certificate to serve them with.
fn webhooks(
    args: &WebhookArgs,
    namespace: &str,
    client: &Client,
    health: &Health,
    metrics: &Metrics,
) -> anyhow::Result<Option<(Server, SocketAddr)>> {
    if args.webhook_cert_dir.is_none() && !args.webhook_self_signed {
        return Ok(None);
    }
    let certificate = Certificate::new(metrics);
    let served = web::serve_webhooks(&args.webhook_bind_address, &certificate, metrics)?;
    if served.is_none() {
        return Ok(None);
    }
    match &args.webhook_cert_dir {
        Some(directory) => follow_directory(&certificate, directory).context("--webhook-cert-dir")?,
        None => make_certificate(&certificate, args, namespace, client, health),
    }
    let renewed = certificate.clone();
    health.add_information("webhook-certificate-renewal", move || renewed.check_renewal());
    health.add_readiness("webhook-certificate", move || certificate.check());
    Ok(served)
}

/// Begins to make and keep the certificate.
fn make_certificate(
    certificate: &Certificate,
    args: &WebhookArgs,
    namespace: &str,
    client: &Client,
    health: &Health,
) {
    let service = format!("{}.{namespace}", args.webhook_service_name);
    let mut names = [format!("{service}.svc"), format!("{service}.svc.cluster.local"), service].to_vec();
    names.extend(args.webhook_dns_name.iter().map(|name| name.trim().to_owned()));
    names.retain(|name| !name.is_empty());
    let terms = Terms {
        namespace: namespace.to_owned(),
        secret: args.webhook_secret_name.clone(),
        names: names.into_iter().collect(),
        validity: args.webhook_cert_validity,
    };
    let source = format!("the Secret {namespace}/{}", terms.secret);
    let kept = certificates::start(client, terms);
    let (trust, secret) = (kept.clone(), kept.clone());
    health.add_readiness("webhook-trust", move || trust.borrow().trust.clone());
    health.add_information("webhook-secret", move || secret.borrow().secret.clone());
    tokio::task::spawn_local(take_over(certificate.clone(), kept, source));
}

/// Serves with each pair that comes, for as long as the process lives.
async fn take_over(certificate: Certificate, mut kept: watch::Receiver<Kept>, source: String) {
    while kept.changed().await.is_ok() {
        let pair = kept.borrow_and_update().pair.clone();
        if let Some(Err(error)) = pair.map(|pair| certificate.take(pair, &source)) {
            tracing::error!(error = format!("{error:#}"), "the certificate of the Secret cannot be used");
        }
    }
}
