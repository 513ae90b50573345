//! The task queue, and what becomes of notifications.

use std::time::Duration;

use prometheus::{Gauge, Histogram, IntCounter, IntCounterVec, IntGauge};

use super::Metrics;
use super::make::{Make, number};

/// What may become of a notification.
const RESULTS: [&str; 4] = ["delivered", "refused", "expired", "abandoned"];
/// In seconds; a try takes 10 s at most.
const BUCKETS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

pub(super) struct Deliveries {
    depth: IntGauge,
    capacity: IntGauge,
    held_back: IntGauge,
    unsettled: IntGauge,
    oldest: Gauge,
    sink_up: IntGauge,
    deliveries: IntCounterVec,
    retries: IntCounter,
    took: Histogram,
}

/// How full the queue is.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueGauges {
    /// Notifications in it.
    pub depth: usize,
    /// Tasks that wait for room.
    pub held_back: usize,
    /// Tasks with a notification that is neither delivered nor given up.
    pub unsettled: usize,
    /// The age of the oldest of those.
    pub oldest: Duration,
    /// The sink failed for one notification after the other.
    pub sink_is_down: bool,
}

impl Deliveries {
    pub(super) fn new(make: &Make) -> Self {
        let deliveries = make.counters(
            "task_operator_deliveries_total",
            "Notifications by what became of them.",
            &["result"],
        );
        for result in RESULTS {
            deliveries.with_label_values(&[result]);
        }
        Self {
            depth: make.gauge("task_operator_queue_depth", "Notifications in the task queue.", &[]),
            capacity: make.gauge(
                "task_operator_queue_capacity",
                "Notifications that the task queue takes; 0 without a sink.",
                &[],
            ),
            held_back: make.gauge(
                "task_operator_queue_held_back",
                "Tasks whose notification waits for room in the task queue.",
                &[],
            ),
            unsettled: make.gauge(
                "task_operator_queue_unsettled",
                "Tasks with a notification that is neither delivered nor given up.",
                &[],
            ),
            oldest: make.float(
                "task_operator_queue_oldest_age_seconds",
                "The age of the oldest notification that is neither delivered nor given up.",
                &[],
            ),
            sink_up: make.gauge(
                "task_operator_sink_up",
                "Whether the sink answers: 0 once it failed for one notification after the other, else 1.",
                &[],
            ),
            deliveries,
            retries: make.counter(
                "task_operator_delivery_retries_total",
                "Tries that failed and are made again.",
                &[],
            ),
            took: make.histogram(
                "task_operator_delivery_duration_seconds",
                "How long a try to deliver a notification takes.",
                &[],
                BUCKETS,
            ),
        }
    }
}

impl Metrics {
    /// How many notifications the queue takes.
    pub fn queue_capacity(&self, capacity: usize) {
        self.0.deliveries.capacity.set(number(capacity));
        self.0.deliveries.sink_up.set(1);
    }

    /// How full the queue is.
    pub fn queue(&self, gauges: QueueGauges) {
        let deliveries = &self.0.deliveries;
        deliveries.depth.set(number(gauges.depth));
        deliveries.held_back.set(number(gauges.held_back));
        deliveries.unsettled.set(number(gauges.unsettled));
        deliveries.oldest.set(gauges.oldest.as_secs_f64());
        deliveries.sink_up.set(i64::from(!gauges.sink_is_down));
    }

    /// A notification was `delivered`, `refused` by the sink, `expired` because
    /// nobody took it for too long, or `abandoned` because its Task had to go.
    pub fn notification_settled(&self, result: &str) {
        self.0.deliveries.deliveries.with_label_values(&[result]).inc();
    }

    /// A try took so long.
    pub fn delivery_tried(&self, took: Duration) {
        self.0.deliveries.took.observe(took.as_secs_f64());
    }

    /// A try failed and is made again.
    pub fn delivery_retried(&self) {
        self.0.deliveries.retries.inc();
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_lines;
    use super::*;

    #[test]
    fn the_task_queue_shows_what_waits_and_what_became_of_the_rest() {
        let metrics = Metrics::new(false);
        assert_lines(&metrics, &["task_operator_queue_capacity 0"]);
        metrics.queue_capacity(1024);
        metrics.queue(QueueGauges {
            depth: 3,
            held_back: 2,
            unsettled: 6,
            oldest: Duration::from_millis(1500),
            sink_is_down: true,
        });
        metrics.notification_settled("delivered");
        metrics.delivery_tried(Duration::from_millis(20));
        metrics.delivery_retried();
        assert_lines(
            &metrics,
            &[
                "task_operator_queue_capacity 1024",
                "task_operator_queue_depth 3",
                "task_operator_queue_held_back 2",
                "task_operator_queue_unsettled 6",
                "task_operator_queue_oldest_age_seconds 1.5",
                "task_operator_sink_up 0",
                r#"task_operator_deliveries_total{result="delivered"} 1"#,
                r#"task_operator_deliveries_total{result="abandoned"} 0"#,
                "task_operator_delivery_retries_total 1",
                r#"task_operator_delivery_duration_seconds_bucket{le="0.025"} 1"#,
            ],
        );
    }
}
