//! What only this operator has: supervisors, mailboxes, watches, events, its build.

use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec};

use super::Metrics;
use super::make::{Make, number};

/// What may become of a Kubernetes event.
const EVENT_RESULTS: [&str; 3] = ["written", "failed", "dropped"];

pub(super) struct Operator {
    supervisors: IntGauge,
    /// Counted together with the panics of passes.
    pub(super) supervisor_restarts: IntCounter,
    mailbox: IntGauge,
    watch_synced: IntGaugeVec,
    watch_restarts: IntCounterVec,
    events: IntCounterVec,
}

impl Operator {
    pub(super) fn new(make: &Make) -> Self {
        make.gauge(
            "task_operator_build_info",
            "Which build this is; always 1.",
            &[
                ("version", env!("CARGO_PKG_VERSION")),
                // Set where images are built.
                ("revision", option_env!("TASK_OPERATOR_REVISION").unwrap_or("unknown")),
                ("os", std::env::consts::OS),
                ("arch", std::env::consts::ARCH),
            ],
        )
        .set(1);
        let events = make.counters(
            "task_operator_events_total",
            "Kubernetes events by what became of them.",
            &["result"],
        );
        for result in EVENT_RESULTS {
            events.with_label_values(&[result]);
        }
        Self {
            supervisors: make.gauge("task_operator_supervisors", "Tasks that have a supervisor.", &[]),
            supervisor_restarts: make.counter(
                "task_operator_supervisor_restarts_total",
                "Supervisors started again after a panic.",
                &[],
            ),
            mailbox: make.gauge(
                "task_operator_mailbox_messages",
                "Messages sent to the dispatcher that it has not taken yet.",
                &[],
            ),
            watch_synced: make.gauges(
                "task_operator_watch_synced",
                "Whether all that there is of a kind has been listed: 1 if so, else 0.",
                &["kind"],
            ),
            watch_restarts: make.counters(
                "task_operator_watch_restarts_total",
                "Watches that broke and were started again.",
                &["kind"],
            ),
            events,
        }
    }
}

impl Metrics {
    /// How many Tasks have a supervisor.
    pub fn supervisors(&self, count: usize) {
        self.0.operator.supervisors.set(number(count));
    }

    /// A message was put into the dispatcher's mailbox.
    pub fn message_sent(&self) {
        self.0.operator.mailbox.inc();
    }

    /// A message was taken from the dispatcher's mailbox, or went with it.
    pub fn message_taken(&self) {
        self.0.operator.mailbox.dec();
    }

    /// Whether all of a kind has been listed. Said once at the start, it makes
    /// the series of the kind.
    pub fn watch_synced(&self, kind: &str, synced: bool) {
        self.0.operator.watch_synced.with_label_values(&[kind]).set(i64::from(synced));
        self.0.operator.watch_restarts.with_label_values(&[kind]);
    }

    /// A watch broke and is started again.
    pub fn watch_restarted(&self, kind: &str) {
        self.0.operator.watch_restarts.with_label_values(&[kind]).inc();
    }

    /// A Kubernetes event was `written`, `failed` for good, or was `dropped`.
    pub fn event_recorded(&self, result: &str) {
        self.0.operator.events.with_label_values(&[result]).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_lines;
    use super::*;

    #[test]
    fn the_operator_shows_its_parts() {
        let metrics = Metrics::new(false);
        metrics.supervisors(3);
        metrics.supervisor_restarted();
        metrics.message_sent();
        metrics.message_sent();
        metrics.message_taken();
        metrics.watch_synced("Task", false);
        metrics.watch_synced("Service", true);
        metrics.watch_restarted("Service");
        metrics.event_recorded("written");
        assert_lines(
            &metrics,
            &[
                "task_operator_supervisors 3",
                "task_operator_supervisor_restarts_total 1",
                r#"controller_runtime_reconcile_panics_total{controller="task"} 1"#,
                "task_operator_mailbox_messages 1",
                r#"task_operator_watch_synced{kind="Task"} 0"#,
                r#"task_operator_watch_synced{kind="Service"} 1"#,
                r#"task_operator_watch_restarts_total{kind="Task"} 0"#,
                r#"task_operator_watch_restarts_total{kind="Service"} 1"#,
                r#"task_operator_events_total{result="written"} 1"#,
            ],
        );
    }
}
