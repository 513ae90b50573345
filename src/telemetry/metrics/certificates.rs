//! Serving certificates: how often they were read, and until when they last.

use std::time::{SystemTime, UNIX_EPOCH};

use prometheus::{GaugeVec, IntCounter};

use super::Metrics;
use super::make::Make;

pub(super) struct Certificates {
    reads: IntCounter,
    errors: IntCounter,
    expiry: GaugeVec,
}

impl Certificates {
    pub(super) fn new(make: &Make) -> Self {
        Self {
            reads: make.counter(
                "certwatcher_read_certificate_total",
                "How often a certificate was read.",
                &[],
            ),
            errors: make.counter(
                "certwatcher_read_certificate_errors_total",
                "How often a certificate was read and could not be used.",
                &[],
            ),
            expiry: make.floats(
                "task_operator_certificate_expiry_timestamp_seconds",
                "When a certificate expires, in seconds since 1970.",
                &["usage"],
            ),
        }
    }
}

impl Metrics {
    /// A certificate was read, and can be used or not.
    pub fn certificate_read(&self, usable: bool) {
        self.0.certificates.reads.inc();
        if !usable {
            self.0.certificates.errors.inc();
        }
    }

    /// The certificate for this usage, such as `webhook`, expires then.
    pub fn certificate_expires(&self, usage: &str, at: SystemTime) {
        let seconds = at.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        self.0.certificates.expiry.with_label_values(&[usage]).set(seconds);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tests::assert_lines;
    use super::*;

    #[test]
    fn a_certificate_shows_its_expiry_and_its_faults() {
        let metrics = Metrics::new(false);
        metrics.certificate_read(true);
        metrics.certificate_read(false);
        metrics.certificate_expires("webhook", UNIX_EPOCH + Duration::from_secs(1_800_000_000));
        assert_lines(
            &metrics,
            &[
                "certwatcher_read_certificate_total 2",
                "certwatcher_read_certificate_errors_total 1",
                r#"task_operator_certificate_expiry_timestamp_seconds{usage="webhook"} 1800000000"#,
            ],
        );
    }
}
