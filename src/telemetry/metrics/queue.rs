//! The queue of Tasks that wait for a pass, under the names of controller-runtime's work queue.

use std::time::Duration;

use prometheus::{Gauge, Histogram, IntCounter, IntGauge};

use super::make::{Make, number};
use super::{CONTROLLER, Metrics};

/// From 10 ns to 1000 s, in seconds.
pub(super) const BUCKETS: &[f64] = &[1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0];

pub(super) struct Queue {
    depth: IntGauge,
    adds: IntCounter,
    retries: IntCounter,
    wait: Histogram,
    work: Histogram,
    unfinished: Gauge,
    longest: Gauge,
}

impl Queue {
    pub(super) fn new(make: &Make) -> Self {
        let labels = &[("name", CONTROLLER), ("controller", CONTROLLER)][..];
        Self {
            depth: make.gauge(
                "workqueue_depth",
                "Tasks that wait for a pass.",
                &[("name", CONTROLLER), ("controller", CONTROLLER), ("priority", "")],
            ),
            adds: make.counter("workqueue_adds_total", "Tasks put into the queue.", labels),
            retries: make.counter(
                "workqueue_retries_total",
                "Tasks put into the queue after a delay.",
                labels,
            ),
            wait: make.histogram(
                "workqueue_queue_duration_seconds",
                "How long Tasks wait for a pass.",
                labels,
                BUCKETS,
            ),
            work: make.histogram(
                "workqueue_work_duration_seconds",
                "How long a pass holds its slot.",
                labels,
                BUCKETS,
            ),
            unfinished: make.float(
                "workqueue_unfinished_work_seconds",
                "The ages of the passes under way, added up.",
                labels,
            ),
            longest: make.float(
                "workqueue_longest_running_processor_seconds",
                "The age of the oldest pass under way.",
                labels,
            ),
        }
    }
}

impl Metrics {
    /// A Task was put into the queue; `retry` if after a delay.
    pub fn queued(&self, retry: bool) {
        self.0.queue.adds.inc();
        if retry {
            self.0.queue.retries.inc();
        }
    }

    /// A Task left the queue for a slot.
    pub fn dequeued(&self, waited: Duration) {
        self.0.queue.wait.observe(waited.as_secs_f64());
    }

    /// A slot was given back.
    pub fn worked(&self, took: Duration) {
        self.0.queue.work.observe(took.as_secs_f64());
    }

    /// How many Tasks wait.
    pub fn queue_depth(&self, waiting: usize) {
        self.0.queue.depth.set(number(waiting));
    }

    /// The ages of the passes under way: their sum and the greatest.
    pub fn unfinished(&self, sum: Duration, longest: Duration) {
        self.0.queue.unfinished.set(sum.as_secs_f64());
        self.0.queue.longest.set(longest.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_lines;
    use super::*;

    #[test]
    fn the_queue_shows_what_waits_and_what_hangs() {
        let metrics = Metrics::new(false);
        metrics.queued(false);
        metrics.queued(true);
        metrics.queue_depth(2);
        metrics.dequeued(Duration::from_millis(5));
        metrics.worked(Duration::from_secs(2));
        metrics.unfinished(Duration::from_millis(90_500), Duration::from_secs(60));
        assert_lines(
            &metrics,
            &[
                r#"workqueue_adds_total{controller="task",name="task"} 2"#,
                r#"workqueue_retries_total{controller="task",name="task"} 1"#,
                r#"workqueue_depth{controller="task",name="task",priority=""} 2"#,
                r#"workqueue_queue_duration_seconds_sum{controller="task",name="task"} 0.005"#,
                r#"workqueue_work_duration_seconds_bucket{controller="task",name="task",le="10"} 1"#,
                r#"workqueue_unfinished_work_seconds{controller="task",name="task"} 90.5"#,
                r#"workqueue_longest_running_processor_seconds{controller="task",name="task"} 60"#,
            ],
        );
    }
}
