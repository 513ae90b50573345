//! The connection to the API server.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use http::{Request, Response};
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tower::{Layer, Service};

use crate::telemetry::Metrics;

/// A connection that is not up after this long counts as failed.
const CONNECT: Duration = Duration::from_secs(5);

/// The configuration to reach the cluster: the file given, else what
/// KUBECONFIG names, else the Pod's service account.
///
/// # Errors
/// If there is none of them, or it cannot be read.
pub async fn configuration(kubeconfig: Option<&Path>) -> anyhow::Result<Config> {
    let mut config = match kubeconfig {
        Some(path) => {
            let file =
                Kubeconfig::read_from(path).with_context(|| format!("--kubeconfig {}", path.display()))?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                .await
                .with_context(|| format!("--kubeconfig {}", path.display()))?
        }
        None => Config::infer().await.context(
            "no cluster: give --kubeconfig, set KUBECONFIG, or run in a Pod with a service account",
        )?,
    };
    config.connect_timeout = Some(CONNECT);
    // Watches are idle for long; each other request has a deadline of its own.
    config.read_timeout = None;
    // Passes back off themselves, where it can be seen; a retry below them would be hidden from the metrics.
    config.default_retry = false;
    let agent = concat!("task-operator/", env!("CARGO_PKG_VERSION"));
    config.headers.push((http::header::USER_AGENT, http::HeaderValue::from_static(agent)));
    Ok(config)
}

/// A client whose requests are counted in `metrics`.
///
/// # Errors
/// If the configuration's certificates or credentials cannot be used.
pub fn connect(config: Config, metrics: Metrics) -> anyhow::Result<Client> {
    let host = config.cluster_url.authority().map_or_else(String::new, ToString::to_string);
    let builder =
        ClientBuilder::try_from(config).context("the configuration of the cluster cannot be used")?;
    Ok(builder.with_layer(&Counted { metrics, host: host.into() }).build())
}

/// Counts requests by method, code and verb.
#[derive(Clone)]
struct Counted {
    metrics: Metrics,
    host: std::sync::Arc<str>,
}

impl<S> Layer<S> for Counted {
    type Service = CountedService<S>;
    fn layer(&self, inner: S) -> Self::Service {
        CountedService { inner, counted: self.clone() }
    }
}

/// The service that [`Counted`] makes.
#[derive(Clone)]
struct CountedService<S> {
    inner: S,
    counted: Counted,
}

impl<S, B> Service<Request<Body>> for CountedService<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    B: 'static,
    S::Error: 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let method = request.method().clone();
        let verb = verb(&request);
        let counted = self.counted.clone();
        let began = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            let code = answer.as_ref().map_or(0, |response| response.status().as_u16());
            counted.metrics.api_request(method.as_str(), &counted.host, code, verb, began.elapsed());
            answer
        })
    }
}

/// The verb as client-go's metrics have it: the method, and WATCH where it is one.
fn verb(request: &Request<Body>) -> &'static str {
    match *request.method() {
        http::Method::GET if request.uri().query().is_some_and(|query| query.contains("watch=true")) => {
            "WATCH"
        }
        http::Method::GET => "GET",
        http::Method::POST => "POST",
        http::Method::PATCH => "PATCH",
        http::Method::PUT => "PUT",
        http::Method::DELETE => "DELETE",
        _ => "OTHER",
    }
}
