//! The TLS server of the webhooks: admission and conversion.

use std::net::SocketAddr;
use std::time::Duration;

use actix_web::dev::Server;
use actix_web::http::KeepAlive;

use crate::telemetry::Metrics;

use super::BindAddress;
use super::admission::Admission;
use super::conversion::Conversion;
use super::server::{self, Settings};
use super::tls::Certificate;

const SETTINGS: Settings = Settings {
    flag: "--webhook-bind-address",
    workers: 2,
    connections: 1024,
    // The API server keeps its connections.
    keep_alive: KeepAlive::Timeout(Duration::from_secs(75)),
};

/// Serves the webhooks on `address` with `certificate`; none if that is off.
///
/// # Errors
/// If the address cannot be had.
pub fn serve_webhooks(
    address: &BindAddress,
    certificate: &Certificate,
    metrics: &Metrics,
) -> anyhow::Result<Option<(Server, SocketAddr)>> {
    let (admission, conversion) = (Admission::new(metrics), Conversion::new(metrics));
    server::serve(SETTINGS, address, Some(certificate.server_config()?), move |config| {
        admission.routes(config);
        conversion.routes(config);
    })
}
