//! Who leads, under the names of client-go.

use prometheus::{IntCounterVec, IntGaugeVec};

use super::Metrics;
use super::make::Make;

pub(super) struct Leadership {
    master: IntGaugeVec,
    slow_path: IntCounterVec,
}

impl Leadership {
    pub(super) fn new(make: &Make) -> Self {
        Self {
            master: make.gauges(
                "leader_election_master_status",
                "Whether this replica holds the lease: 1 if so, else 0.",
                &["name"],
            ),
            slow_path: make.counters(
                "leader_election_slowpath_total",
                "Renewals of the lease that had to read it first.",
                &["name"],
            ),
        }
    }
}

impl Metrics {
    /// Whether this replica holds the lease of this name. Said once at the
    /// start, it makes the series of the lease.
    pub fn leader(&self, lease: &str, leads: bool) {
        self.0.leadership.master.with_label_values(&[lease]).set(i64::from(leads));
        self.0.leadership.slow_path.with_label_values(&[lease]);
    }

    /// A renewal could not build on what was known of the lease, and read it first.
    pub fn leader_slow_path(&self, lease: &str) {
        self.0.leadership.slow_path.with_label_values(&[lease]).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_lines;
    use super::*;

    #[test]
    fn a_lease_has_its_series_from_the_first_word_on() {
        let metrics = Metrics::new(false);
        metrics.leader("task-operator", false);
        assert_lines(
            &metrics,
            &[
                r#"leader_election_master_status{name="task-operator"} 0"#,
                r#"leader_election_slowpath_total{name="task-operator"} 0"#,
            ],
        );
        metrics.leader("task-operator", true);
        assert_lines(&metrics, &[r#"leader_election_master_status{name="task-operator"} 1"#]);
    }
}
