//! Requests to the API server, under the names of client-go. What nobody
//! reports (such as waits for a rate limit that is not there) has no series.

use std::time::Duration;

use http::StatusCode;
use prometheus::{HistogramVec, IntCounterVec};

use super::Metrics;
use super::make::Make;

/// In seconds.
const TIMES: &[f64] = &[0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];
/// In bytes.
const SIZES: &[f64] = &[
    64.0,
    256.0,
    512.0,
    1024.0,
    4096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
];

pub(super) struct Requests {
    total: IntCounterVec,
    retries: IntCounterVec,
    duration: HistogramVec,
    throttled: HistogramVec,
    dns: HistogramVec,
    sent: HistogramVec,
    received: HistogramVec,
}

impl Requests {
    pub(super) fn new(make: &Make) -> Self {
        let labels = &["verb", "host"][..];
        Self {
            total: make.counters(
                "rest_client_requests_total",
                "Requests to the API server by code, method and host.",
                &["code", "method", "host"],
            ),
            retries: make.counters(
                "rest_client_request_retries_total",
                "Requests to the API server that were sent again, by the code of the earlier answer.",
                &["code", "verb", "host"],
            ),
            duration: make.histograms(
                "rest_client_request_duration_seconds",
                "How long requests to the API server take.",
                labels,
                TIMES,
            ),
            throttled: make.histograms(
                "rest_client_rate_limiter_duration_seconds",
                "How long requests wait until they may be sent.",
                labels,
                TIMES,
            ),
            // client-go has no verb here: a connection is for more than one.
            dns: make.histograms(
                "rest_client_dns_resolution_duration_seconds",
                "How long it takes to resolve the API server's name.",
                &["host"],
                TIMES,
            ),
            sent: make.histograms(
                "rest_client_request_size_bytes",
                "Sizes of the bodies of requests.",
                labels,
                SIZES,
            ),
            received: make.histograms(
                "rest_client_response_size_bytes",
                "Sizes of the bodies of answers.",
                labels,
                SIZES,
            ),
        }
    }
}

impl Metrics {
    /// A request to the API server was answered; `code` is 0 if it was not.
    pub fn api_request(&self, method: &str, host: &str, code: u16, verb: &str, took: Duration) {
        let status = StatusCode::from_u16(code).ok();
        self.0.requests.total.with_label_values(&[code_label(status.as_ref()), method, host]).inc();
        self.0.requests.duration.with_label_values(&[verb, host]).observe(took.as_secs_f64());
    }

    /// A request is sent again after an answer with this code, 0 for none.
    pub fn api_retried(&self, verb: &str, host: &str, code: u16) {
        let status = StatusCode::from_u16(code).ok();
        self.0.requests.retries.with_label_values(&[code_label(status.as_ref()), verb, host]).inc();
    }

    /// A request waited until it was allowed to be sent.
    pub fn api_throttled(&self, verb: &str, host: &str, waited: Duration) {
        self.0.requests.throttled.with_label_values(&[verb, host]).observe(waited.as_secs_f64());
    }

    /// The API server's name was resolved.
    pub fn api_name_resolved(&self, host: &str, took: Duration) {
        self.0.requests.dns.with_label_values(&[host]).observe(took.as_secs_f64());
    }

    /// The body of a request has this many bytes.
    pub fn api_request_size(&self, verb: &str, host: &str, bytes: u64) {
        self.0.requests.sent.with_label_values(&[verb, host]).observe(float(bytes));
    }

    /// The body of an answer has this many bytes.
    pub fn api_response_size(&self, verb: &str, host: &str, bytes: u64) {
        self.0.requests.received.with_label_values(&[verb, host]).observe(float(bytes));
    }
}

/// As client-go labels it.
fn code_label(status: Option<&StatusCode>) -> &str {
    status.map_or("<error>", StatusCode::as_str)
}

#[expect(clippy::cast_precision_loss, reason = "no body is so large that it matters")]
fn float(bytes: u64) -> f64 {
    bytes as f64
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_lines, text};
    use super::*;

    #[test]
    fn requests_count_by_code_and_an_unanswered_one_as_error() {
        let metrics = Metrics::new(false);
        assert!(!text(&metrics).contains("rest_client"), "a series without a request");
        metrics.api_request("POST", "10.0.0.1:443", 201, "POST", Duration::from_millis(20));
        metrics.api_request("GET", "10.0.0.1:443", 0, "LIST", Duration::from_secs(31));
        metrics.api_retried("PATCH", "10.0.0.1:443", 429);
        metrics.api_request_size("POST", "10.0.0.1:443", 300);
        assert_lines(
            &metrics,
            &[
                r#"rest_client_requests_total{code="201",host="10.0.0.1:443",method="POST"} 1"#,
                r#"rest_client_requests_total{code="<error>",host="10.0.0.1:443",method="GET"} 1"#,
                r#"rest_client_request_duration_seconds_bucket{host="10.0.0.1:443",verb="POST",le="0.025"} 1"#,
                r#"rest_client_request_duration_seconds_bucket{host="10.0.0.1:443",verb="LIST",le="30"} 0"#,
                r#"rest_client_request_retries_total{code="429",host="10.0.0.1:443",verb="PATCH"} 1"#,
                r#"rest_client_request_size_bytes_bucket{host="10.0.0.1:443",verb="POST",le="512"} 1"#,
            ],
        );
    }
}
