//! Calls of the webhooks, under the names of controller-runtime.
//!
//! A [`Webhook`] holds the series of one path, so that a call looks nothing up
//! for the usual answer. A [`WebhookCall`] is one call under way: it counts
//! itself as in flight until it is answered or dropped, and a drop by a panic
//! counts as such.

use std::time::Instant;

use http::StatusCode;
use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec};

use super::Metrics;
use super::make::Make;
use super::queue::BUCKETS;

pub(super) struct Webhooks {
    requests: IntCounterVec,
    latency: HistogramVec,
    in_flight: IntGaugeVec,
    panics: IntCounter,
    conversion_panics: IntCounter,
}

impl Webhooks {
    pub(super) fn new(make: &Make) -> Self {
        Self {
            requests: make.counters(
                "controller_runtime_webhook_requests_total",
                "Calls of a webhook by the code of their answer.",
                &["webhook", "code"],
            ),
            latency: make.histograms(
                "controller_runtime_webhook_latency_seconds",
                "How long a webhook takes to answer.",
                &["webhook"],
                BUCKETS,
            ),
            in_flight: make.gauges(
                "controller_runtime_webhook_requests_in_flight",
                "Calls of a webhook under way.",
                &["webhook"],
            ),
            panics: make.counter(
                "controller_runtime_webhook_panics_total",
                "Calls of admission webhooks that panicked.",
                &[],
            ),
            conversion_panics: make.counter(
                "controller_runtime_conversion_webhook_panics_total",
                "Calls of the conversion webhook that panicked.",
                &[],
            ),
        }
    }
}

/// The metrics of the webhook on one path.
#[derive(Clone)]
pub struct Webhook {
    path: &'static str,
    requests: IntCounterVec,
    ok: IntCounter,
    latency: Histogram,
    in_flight: IntGauge,
    panics: IntCounter,
}

/// One call under way.
pub struct WebhookCall<'a> {
    webhook: &'a Webhook,
    began: Instant,
}

impl Metrics {
    /// The metrics of the admission webhook on this path; its series begin at 0.
    pub fn admission_webhook(&self, path: &'static str) -> Webhook {
        self.webhook(path, &self.0.webhooks.panics)
    }

    /// The metrics of the conversion webhook on this path; its series begin at 0.
    pub fn conversion_webhook(&self, path: &'static str) -> Webhook {
        self.webhook(path, &self.0.webhooks.conversion_panics)
    }

    fn webhook(&self, path: &'static str, panics: &IntCounter) -> Webhook {
        let Webhooks { requests, latency, in_flight, .. } = &self.0.webhooks;
        requests.with_label_values(&[path, "500"]);
        Webhook {
            path,
            requests: requests.clone(),
            ok: requests.with_label_values(&[path, "200"]),
            latency: latency.with_label_values(&[path]),
            in_flight: in_flight.with_label_values(&[path]),
            panics: panics.clone(),
        }
    }
}

impl Webhook {
    /// A call begins.
    pub fn begin(&self) -> WebhookCall<'_> {
        self.in_flight.inc();
        WebhookCall { webhook: self, began: Instant::now() }
    }
}

impl WebhookCall<'_> {
    /// The call is answered with this HTTP status. A denial is a 200: its code is inside the answer.
    pub fn answered(self, status: StatusCode) {
        self.webhook.latency.observe(self.began.elapsed().as_secs_f64());
        match status {
            StatusCode::OK => self.webhook.ok.inc(),
            _ => self.webhook.requests.with_label_values(&[self.webhook.path, status.as_str()]).inc(),
        }
    }
}

impl Drop for WebhookCall<'_> {
    fn drop(&mut self) {
        self.webhook.in_flight.dec();
        if std::thread::panicking() {
            self.webhook.panics.inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_lines;
    use super::*;

    #[test]
    fn calls_count_by_path_and_code_and_in_flight_until_they_end() {
        let metrics = Metrics::new(false);
        let webhook = metrics.admission_webhook("/mutate");
        metrics.conversion_webhook("/convert");
        webhook.begin().answered(StatusCode::OK);
        webhook.begin().answered(StatusCode::BAD_REQUEST);
        drop(webhook.begin());
        let _under_way = webhook.begin();
        assert_lines(
            &metrics,
            &[
                r#"controller_runtime_webhook_requests_total{code="200",webhook="/mutate"} 1"#,
                r#"controller_runtime_webhook_requests_total{code="400",webhook="/mutate"} 1"#,
                r#"controller_runtime_webhook_requests_total{code="500",webhook="/mutate"} 0"#,
                r#"controller_runtime_webhook_requests_total{code="200",webhook="/convert"} 0"#,
                r#"controller_runtime_webhook_requests_total{code="500",webhook="/convert"} 0"#,
                r#"controller_runtime_webhook_latency_seconds_count{webhook="/mutate"} 2"#,
                r#"controller_runtime_webhook_requests_in_flight{webhook="/mutate"} 1"#,
                r#"controller_runtime_webhook_requests_in_flight{webhook="/convert"} 0"#,
                "controller_runtime_webhook_panics_total 0",
            ],
        );
    }

    #[test]
    fn a_call_that_panics_is_counted_and_no_longer_in_flight() {
        let metrics = Metrics::new(false);
        let webhook = metrics.conversion_webhook("/convert");
        let result = std::thread::spawn(move || {
            let _call = webhook.begin();
            panic!("a fault in the handler");
        })
        .join();
        assert!(result.is_err());
        assert_lines(
            &metrics,
            &[
                r#"controller_runtime_webhook_requests_in_flight{webhook="/convert"} 0"#,
                "controller_runtime_conversion_webhook_panics_total 1",
                "controller_runtime_webhook_panics_total 0",
            ],
        );
    }
}
