//! What all servers have in common: limits, timeouts, logs, and the way they answer what is not there.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use actix_web::body::MessageBody;
use actix_web::dev::{Server, ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::ContentType;
use actix_web::web::{self, ServiceConfig};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use anyhow::Context;
use tracing::Span;
use tracing_actix_web::{RootSpanBuilder, TracingLogger};

use super::BindAddress;

/// Between requests on one connection.
const KEEP_ALIVE: Duration = Duration::from_secs(75);
/// For the head of a request.
const SLOW_HEAD: Duration = Duration::from_secs(5);
/// Connections at once; probes and scrapers need a few.
const CONNECTIONS: usize = 256;
/// What a stop waits for requests under way, in seconds.
const STOP_SECONDS: u64 = 5;

/// Begins to serve `routes` on `address`; none if that is off. `flag` names where the address came from.
///
/// # Errors
/// If the address cannot be had.
pub(super) fn serve<R>(
    flag: &str,
    address: &BindAddress,
    paths: &'static str,
    routes: R,
) -> anyhow::Result<Option<(Server, SocketAddr)>>
where
    R: Fn(&mut ServiceConfig) + Clone + Send + 'static,
{
    let Some(listener) = listen(address).with_context(|| format!("{flag} {address}"))? else {
        return Ok(None);
    };
    let bound = listener.local_addr().with_context(|| format!("{flag} {address}"))?;
    let app = move || {
        App::new()
            .wrap(TracingLogger::<AtDebug>::new())
            .configure(routes.clone())
            .route("/", web::get().to(move || plain(paths)))
            .default_service(web::to(not_here))
    };
    let server = HttpServer::new(app)
        .workers(1)
        .max_connections(CONNECTIONS)
        .keep_alive(KEEP_ALIVE)
        .client_request_timeout(SLOW_HEAD)
        .client_disconnect_timeout(SLOW_HEAD)
        .shutdown_timeout(STOP_SECONDS)
        .tcp_nodelay(true)
        .disable_signals()
        .listen(listener)
        .with_context(|| format!("{flag} {address}"))?
        .run();
    Ok(Some((server, bound)))
}

fn listen(address: &BindAddress) -> std::io::Result<Option<TcpListener>> {
    let mut last = None;
    for candidate in address.candidates() {
        match TcpListener::bind(candidate) {
            Ok(listener) => return Ok(Some(listener)),
            Err(error) => last = Some(error),
        }
    }
    last.map_or(Ok(None), Err)
}

/// An answer in plain text.
async fn plain(text: &'static str) -> HttpResponse {
    HttpResponse::Ok().content_type(ContentType::plaintext()).body(text)
}

async fn not_here(request: HttpRequest) -> HttpResponse {
    let (mut answer, text) = if matches!(*request.method(), Method::GET | Method::HEAD) {
        (HttpResponse::NotFound(), "404 page not found\n")
    } else {
        (HttpResponse::MethodNotAllowed(), "405 method not allowed\n")
    };
    answer.content_type(ContentType::plaintext()).body(text)
}

/// Requests are logged at debug: a probe each few seconds is no news.
struct AtDebug;

impl RootSpanBuilder for AtDebug {
    fn on_request_start(request: &ServiceRequest) -> Span {
        tracing_actix_web::root_span!(level = tracing::Level::DEBUG, request)
    }

    fn on_request_end<B: MessageBody>(span: Span, outcome: &Result<ServiceResponse<B>, actix_web::Error>) {
        tracing_actix_web::DefaultRootSpanBuilder::on_request_end(span, outcome);
    }
}
