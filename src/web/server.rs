//! What all servers have in common: limits, timeouts, logs, and the way they
//! answer what is not there.
//!
//! Nobody holds a connection for long who does not keep to the protocol: a slow
//! head and an answer that is not read have deadlines, a body that nobody wants
//! is not waited for.
//!
//! Requests are logged at debug, one line each with what was answered and how
//! long it took: a probe each few seconds is no news.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use actix_web::body::MessageBody;
use actix_web::dev::{Server, ServiceRequest, ServiceResponse};
use actix_web::http::{KeepAlive, StatusCode, header};
use actix_web::web::{self, ServiceConfig};
use actix_web::{
    App, FromRequest, Handler, HttpMessage, HttpResponse, HttpServer, Resource, Responder, guard,
};
use anyhow::Context;
use tracing::{Level, Span};
use tracing_actix_web::{DefaultRootSpanBuilder, RootSpanBuilder, TracingLogger};

use super::BindAddress;

/// For the head of a request, and for a client to close its side at the end.
const SLOW: Duration = Duration::from_secs(5);
/// What a stop waits for requests under way, in seconds.
const STOP_SECONDS: u64 = 5;

/// What one server is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// The flag that its address comes from, for messages.
    pub flag: &'static str,
    /// Threads.
    pub workers: usize,
    /// Connections at once for each of them; others wait to be accepted.
    pub connections: usize,
    /// Whether a connection may bring more than one request, and the time between them.
    ///
    /// Only the first request of a connection has a deadline for its head: in
    /// actix-http 3.20 the first byte of another one ends the wait for it, and
    /// nothing else begins. So where anyone may connect, this is disabled.
    pub keep_alive: KeepAlive,
}

/// Begins to serve `routes` on `address`; none if that is off. What is
/// returned is a future that has to be awaited, with a handle that stops it.
///
/// # Errors
/// If the address cannot be had; the message names its flag.
pub(super) fn serve<R>(
    settings: Settings,
    address: &BindAddress,
    tls: Option<rustls::ServerConfig>,
    routes: R,
) -> anyhow::Result<Option<(Server, SocketAddr)>>
where
    R: Fn(&mut ServiceConfig) + Clone + Send + 'static,
{
    let cannot = || format!("{} {address}: cannot listen there", settings.flag);
    let Some(listener) = address.listen().with_context(cannot)? else {
        return Ok(None);
    };
    let bound = listener.local_addr().with_context(cannot)?;
    let app = move || {
        App::new()
            .wrap(TracingLogger::<RequestSpan>::new())
            .configure(routes.clone())
            .default_service(web::to(not_found))
    };
    let server = HttpServer::new(app)
        .workers(settings.workers)
        .worker_max_blocking_threads(1)
        .max_connections(settings.connections)
        .keep_alive(settings.keep_alive)
        .client_request_timeout(SLOW)
        .client_disconnect_timeout(SLOW)
        .shutdown_timeout(STOP_SECONDS)
        .tcp_nodelay(true)
        .disable_signals();
    let server = match tls {
        None => server.listen(listener),
        Some(tls) => server.listen_rustls_0_23(listener, tls),
    };
    Ok(Some((server.with_context(cannot)?.run(), bound)))
}

/// A page that can be read: GET and HEAD, everything else is a 405.
pub(super) fn page<F, Args>(path: &str, handler: F) -> Resource
where
    F: Handler<Args>,
    Args: FromRequest + 'static,
    F::Output: Responder + 'static,
{
    web::resource(path)
        .route(web::route().guard(guard::Any(guard::Get()).or(guard::Head())).to(handler))
        .default_service(web::to(not_allowed))
}

/// The page `/`, which lists the others.
pub(super) fn index(paths: &'static str) -> Resource {
    page("/", move || async move { plain(HttpResponse::Ok().body(paths)) })
}

/// The answer, marked as plain text that is nothing else and is kept by nobody.
pub(super) fn plain(mut answer: HttpResponse) -> HttpResponse {
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, header::HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-cache, no-store"));
    answer
}

/// A request of a webhook that got no review for an answer, with its line in the log.
pub(super) fn rejected(path: &str, status: StatusCode, reason: &str) -> HttpResponse {
    tracing::warn!(path, status = status.as_u16(), reason, "a call of a webhook was rejected");
    plain(HttpResponse::build(status).body(format!("{} {reason}\n", status.as_u16())))
}

/// The answer to any other method where only POST is allowed.
pub(super) async fn only_post() -> HttpResponse {
    let mut answer = HttpResponse::MethodNotAllowed();
    plain(answer.insert_header((header::ALLOW, "POST")).body("405 method not allowed\n"))
}

async fn not_found() -> HttpResponse {
    plain(HttpResponse::NotFound().body("404 page not found\n"))
}

async fn not_allowed() -> HttpResponse {
    let mut answer = HttpResponse::MethodNotAllowed();
    plain(answer.insert_header((header::ALLOW, "GET, HEAD")).body("405 method not allowed\n"))
}

/// The span of a request, and its line in the log.
struct RequestSpan;

/// When a request came.
struct Began(Instant);

impl RootSpanBuilder for RequestSpan {
    fn on_request_start(request: &ServiceRequest) -> Span {
        if !tracing::enabled!(Level::DEBUG) {
            // Not even its fields are made.
            return Span::none();
        }
        request.extensions_mut().insert(Began(Instant::now()));
        tracing_actix_web::root_span!(level = Level::DEBUG, request)
    }

    fn on_request_end<B: MessageBody>(span: Span, outcome: &Result<ServiceResponse<B>, actix_web::Error>) {
        DefaultRootSpanBuilder::on_request_end(span, outcome);
        match outcome {
            Ok(answer) => {
                let took = answer.request().extensions().get::<Began>().map(|Began(at)| at.elapsed());
                let took_ms = took.map(|took| took.as_secs_f64() * 1000.0);
                tracing::debug!(status = answer.status().as_u16(), took_ms, "request answered");
            }
            Err(error) => tracing::debug!(%error, "request failed"),
        }
    }
}
