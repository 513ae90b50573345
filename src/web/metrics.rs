//! `/metrics`, as text or as OpenMetrics.

use std::convert::Infallible;
use std::net::SocketAddr;

use actix_web::dev::Server;
use actix_web::http::{KeepAlive, header};
use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use futures::stream;

use crate::telemetry::{Format, Metrics};

use super::BindAddress;
use super::server::{self, Settings};

/// Scrapers are few, and one that does not read holds a copy of all numbers.
const SETTINGS: Settings =
    Settings { flag: "--metrics-bind-address", workers: 1, connections: 64, keep_alive: KeepAlive::Disabled };

/// Serves the metrics on `address`; none if that is off.
///
/// # Errors
/// If the address cannot be had.
pub fn serve_metrics(
    address: &BindAddress,
    metrics: Metrics,
) -> anyhow::Result<Option<(Server, SocketAddr)>> {
    server::serve(SETTINGS, address, None, move |routes| {
        routes
            .app_data(Data::new(metrics.clone()))
            .service(server::index("/metrics\n"))
            .service(server::page("/metrics", page));
    })
}

async fn page(request: HttpRequest, metrics: Data<Metrics>) -> HttpResponse {
    let mut accepted = String::new();
    for value in request.headers().get_all(header::ACCEPT).filter_map(|value| value.to_str().ok()) {
        accepted.push_str(value);
        accepted.push(',');
    }
    let format = Format::negotiate(&accepted);
    let mut scrape = metrics.scrape(format);
    let first = scrape.next().unwrap_or_default();
    let mut answer = HttpResponse::Ok();
    answer
        .insert_header((header::CONTENT_TYPE, format.content_type()))
        .insert_header((header::VARY, "Accept"));
    if scrape.is_done() {
        return answer.body(first);
    }
    let pieces = std::iter::once(first).chain(scrape);
    answer.streaming(stream::iter(pieces.map(|piece| Ok::<_, Infallible>(Bytes::from(piece)))))
}
