//! Posts messages to the sink, and says what became of them.
//!
//! | answer | what it means |
//! |---|---|
//! | 2xx | taken |
//! | 307, 308 to the same scheme, host and port | followed, up to three times |
//! | any other 3xx | tried again: somebody may put it right |
//! | 408, 429, 5xx, no answer | tried again, later if `Retry-After` says so |
//! | any other 4xx | refused for good |
//!
//! A redirect to elsewhere is not followed: what is told, and the signature,
//! are meant for the host that was named.

use std::future::Future;
use std::time::Duration;

use anyhow::Context;
use http::header::{HeaderMap, LOCATION, RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

use super::Verdict;
use super::cloud_event::{self, Mode};
use super::notice::Notice;
use super::secret_file::SecretFile;
use crate::cluster::failure::chain;

/// For one try, from looking up the name to the end of the answer's head.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// For the connection, TLS not included.
const CONNECT: Duration = Duration::from_secs(5);
/// For the body of an answer, which nothing depends on.
const BODY_PATIENCE: Duration = Duration::from_secs(1);
/// The most of an answer's body that is read, in bytes. Beyond it the connection is closed.
const BODY_LIMIT: usize = 64 * 1024;
/// The most of an answer's head, in bytes.
const HEAD_LIMIT: usize = 64 * 1024;
/// The part of the body of a refusal that people are shown, in bytes.
const EXCERPT: usize = 200;
/// How many redirects are followed.
const REDIRECTS: usize = 3;
/// Connections without work are closed after this.
const IDLE: Duration = Duration::from_secs(60);

type Http = Client<HttpsConnector<HttpConnector>, String>;

/// Where messages go.
pub struct Sink {
    http: Http,
    url: Uri,
    mode: Mode,
    secrets: Option<SecretFile>,
}

impl Sink {
    /// A sink at `url`, which is http or https. `connections` may be open at once without work.
    ///
    /// # Errors
    /// If the certificates that this machine trusts cannot be read, which only https needs.
    pub fn new(
        url: Uri,
        mode: Mode,
        secrets: Option<SecretFile>,
        connections: usize,
    ) -> anyhow::Result<Self> {
        let mut tcp = HttpConnector::new();
        tcp.set_connect_timeout(Some(CONNECT));
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let provider = ring::default_provider();
        let builder = HttpsConnectorBuilder::new();
        let tls = if url.scheme_str() == Some("https") {
            let roots = builder.with_provider_and_native_roots(provider);
            roots.context("the certificates that this machine trusts cannot be read")?
        } else {
            let config = ClientConfig::builder_with_provider(provider.into())
                .with_safe_default_protocol_versions()
                .context("TLS cannot be used")?;
            let nobody = RootCertStore::empty();
            builder.with_tls_config(config.with_root_certificates(nobody).with_no_client_auth())
        };
        let http = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(connections)
            .http1_max_buf_size(HEAD_LIMIT)
            .build(tls.https_or_http().enable_http1().wrap_connector(tcp));
        Ok(Self { http, url, mode, secrets })
    }

    /// Posts `notice`, signed as of `now` (seconds since 1970), and waits at most
    /// `patience` for the answer.
    pub fn post(
        &self,
        notice: &Notice,
        now: i64,
        patience: Duration,
    ) -> impl Future<Output = Verdict> + use<> {
        let message = cloud_event::message(notice, self.mode);
        let mut headers = message.headers.clone();
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("task-operator/", env!("CARGO_PKG_VERSION"))),
        );
        if let Some(secrets) = &self.secrets {
            headers.extend(secrets.secrets().sign(&message, now));
        }
        let exchange = exchange(self.http.clone(), self.url.clone(), headers, message.body);
        async move {
            match tokio::time::timeout(patience, exchange).await {
                Ok(verdict) => verdict,
                Err(_) => Verdict::Failed(format!("no answer within {} s", patience.as_secs_f32()), None),
            }
        }
    }
}

async fn exchange(http: Http, mut url: Uri, headers: HeaderMap, body: String) -> Verdict {
    for _ in 0..=REDIRECTS {
        let mut request = Request::new(body.clone());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = url.clone();
        *request.headers_mut() = headers.clone();
        let answer = match http.request(request).await {
            Ok(answer) => answer,
            Err(error) => return Verdict::Failed(chain(&error), None),
        };
        let status = answer.status();
        if status != StatusCode::TEMPORARY_REDIRECT && status != StatusCode::PERMANENT_REDIRECT {
            return judge(answer).await;
        }
        match answer.headers().get(LOCATION).map(|location| follow(&url, location)) {
            Some(Ok(next)) => url = next,
            Some(Err(fault)) => return Verdict::Failed(format!("it answered {status} {fault}"), None),
            None => return Verdict::Failed(format!("it answered {status} without a Location"), None),
        }
    }
    Verdict::Failed(format!("it redirected more than {REDIRECTS} times"), None)
}

async fn judge<B>(answer: Response<B>) -> Verdict
where
    B: http_body::Body<Data: AsRef<[u8]>> + Unpin,
{
    let (status, asked) = (answer.status(), retry_after(answer.headers()));
    let excerpt = tokio::time::timeout(BODY_PATIENCE, excerpt(answer.into_body())).await.unwrap_or_default();
    let why = match excerpt.is_empty() {
        true => format!("it answered {status}"),
        false => format!("it answered {status}: {excerpt}"),
    };
    match status.as_u16() {
        200..=299 => Verdict::Delivered,
        408 | 429 => Verdict::Failed(why, asked),
        400..=499 => Verdict::Refused(why),
        300..=399 => Verdict::Failed(format!("it answered {status}, which is not followed"), None),
        _ => Verdict::Failed(why, asked),
    }
}

/// Reads the body up to the limit, so that the connection can be used again; the
/// beginning of it, in one line.
async fn excerpt<B>(mut body: B) -> String
where
    B: http_body::Body<Data: AsRef<[u8]>> + Unpin,
{
    let (mut read, mut kept) = (0, Vec::new());
    while let Some(Ok(frame)) = body.frame().await {
        let Some(data) = frame.data_ref().map(AsRef::as_ref) else { continue };
        read += data.len();
        kept.extend(data.iter().take(EXCERPT - kept.len()));
        if read > BODY_LIMIT {
            break;
        }
    }
    let text = String::from_utf8_lossy(&kept);
    let words: Vec<_> = text.split(|c: char| c.is_whitespace() || c.is_control()).collect();
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// `Retry-After` in seconds. That as a date is left to the sinks that know the operator's clock.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

/// Where a redirect leads, if it stays at the same scheme, host and port.
fn follow(from: &Uri, location: &HeaderValue) -> Result<Uri, String> {
    let unreadable = || "with a Location that cannot be read".to_owned();
    let text = location.to_str().map_err(|_| unreadable())?;
    let is_path = text.starts_with('/') && !text.starts_with("//");
    if is_path {
        let mut parts = from.clone().into_parts();
        parts.path_and_query = Some(text.parse().map_err(|_| unreadable())?);
        return Uri::from_parts(parts).map_err(|_| unreadable());
    }
    let to: Uri = text.parse().map_err(|_| unreadable())?;
    match origin(from) == origin(&to) {
        true => Ok(to),
        false => Err("to another host, which is not followed".to_owned()),
    }
}

/// Scheme, host and port; the port that the scheme stands for where none is named.
fn origin(uri: &Uri) -> (Option<String>, Option<String>, Option<u16>) {
    let scheme = uri.scheme_str().map(str::to_ascii_lowercase);
    let port = uri.port_u16().or(match scheme.as_deref() {
        Some("https") => Some(443),
        Some("http") => Some(80),
        _ => None,
    });
    (scheme, uri.host().map(str::to_ascii_lowercase), port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn followed(location: &str) -> Option<String> {
        let from = "https://sink.example/hooks/a?b=c".parse().unwrap();
        follow(&from, &HeaderValue::from_str(location).unwrap()).ok().map(|uri| uri.to_string())
    }

    #[test]
    fn a_redirect_is_followed_on_the_same_host_only() {
        assert_eq!(followed("/hooks/b").as_deref(), Some("https://sink.example/hooks/b"));
        assert_eq!(followed("https://SINK.example:443/c?d").as_deref(), Some("https://SINK.example:443/c?d"));
        for elsewhere in [
            "//evil.example/hooks",
            "https://evil.example/hooks",
            "http://sink.example/hooks",
            "https://sink.example:8443/hooks",
            "https://sink.example.evil.example/",
            "hooks/b",
            "",
        ] {
            assert_eq!(followed(elsewhere), None, "{elsewhere:?}");
        }
    }

    #[test]
    fn only_a_number_of_seconds_is_waited_for() {
        let of = |text: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_str(text).unwrap())]);
            retry_after(&headers)
        };
        assert_eq!(of("120"), Some(Duration::from_secs(120)));
        assert_eq!(of("-1"), None);
        assert_eq!(of("Fri, 31 Dec 2027 23:59:59 GMT"), None);
    }
}
