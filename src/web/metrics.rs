//! `/metrics`, as text or as OpenMetrics.

use std::net::SocketAddr;

use actix_web::dev::Server;
use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};

use crate::telemetry::{Metrics, exposition};

use super::BindAddress;
use super::server;

/// Serves the metrics on `address`; none if that is off.
///
/// # Errors
/// If the address cannot be had.
pub fn serve_metrics(
    address: &BindAddress,
    metrics: Metrics,
) -> anyhow::Result<Option<(Server, SocketAddr)>> {
    server::serve("--metrics-bind-address", address, "/metrics\n", move |routes| {
        let metrics = metrics.clone();
        let page = move |request: HttpRequest| {
            let answer = page(&request, &metrics);
            async move { answer }
        };
        routes.service(web::resource("/metrics").get(page.clone()).route(web::head().to(page)));
    })
}

fn page(request: &HttpRequest, metrics: &Metrics) -> HttpResponse {
    let accept =
        request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let families = metrics.registry().gather();
    let (kind, text) = if exposition::prefers_open_metrics(accept) {
        (exposition::OPEN_METRICS, exposition::open_metrics(&families))
    } else {
        (exposition::TEXT, exposition::text(&families))
    };
    HttpResponse::Ok().insert_header((header::CONTENT_TYPE, kind)).body(text)
}
