//! Passes: how many, how they ended, how long they took.

use std::time::Duration;

use prometheus::{Histogram, IntCounter, IntGauge};

use crate::api::TaskKey;
use crate::api::v1::Phase;

use super::make::{Make, number};
use super::{CONTROLLER, Metrics};

/// Of the duration of a pass in seconds, as controller-runtime has them.
const BUCKETS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];

/// What a pass came to, as controller-runtime names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassResult {
    /// It ended well and is not due again.
    Success,
    /// It failed.
    Error,
    /// It is due again at once.
    Requeue,
    /// It ended well and is due again later.
    RequeueAfter,
}

impl PassResult {
    const ALL: [Self; 4] = [Self::Success, Self::Error, Self::Requeue, Self::RequeueAfter];

    fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Requeue => "requeue",
            Self::RequeueAfter => "requeue_after",
        }
    }
}

pub(super) struct Passes {
    /// By result, in the order of [`PassResult::ALL`].
    passes: [IntCounter; 4],
    errors: IntCounter,
    terminal_errors: IntCounter,
    panics: IntCounter,
    duration: Histogram,
    max_concurrent: IntGauge,
    active: IntGauge,
}

impl Passes {
    pub(super) fn new(make: &Make) -> Self {
        let labels = &[("controller", CONTROLLER)][..];
        // No pass has a deadline of its own: its requests have. The series is there since dashboards query it.
        make.counter(
            "controller_runtime_reconcile_timeouts_total",
            "Passes that ran into a deadline.",
            labels,
        );
        Self {
            passes: PassResult::ALL.map(|result| {
                make.counter(
                    "controller_runtime_reconcile_total",
                    "Passes by result.",
                    &[("controller", CONTROLLER), ("result", result.as_str())],
                )
            }),
            errors: make.counter("controller_runtime_reconcile_errors_total", "Passes that failed.", labels),
            terminal_errors: make.counter(
                "controller_runtime_terminal_reconcile_errors_total",
                "Passes that failed and will until something changes from outside.",
                labels,
            ),
            panics: make.counter(
                "controller_runtime_reconcile_panics_total",
                "Supervisors that panicked.",
                labels,
            ),
            duration: make.histogram(
                "controller_runtime_reconcile_time_seconds",
                "How long passes take.",
                labels,
                BUCKETS,
            ),
            max_concurrent: make.gauge(
                "controller_runtime_max_concurrent_reconciles",
                "Passes at once, at most.",
                labels,
            ),
            active: make.gauge("controller_runtime_active_workers", "Passes under way.", labels),
        }
    }
}

impl Metrics {
    /// A pass began.
    pub fn pass_started(&self) {
        self.0.passes.active.inc();
    }

    /// A pass ended, and left the Task in this phase.
    pub fn pass_finished(&self, key: &TaskKey, phase: Phase, result: PassResult, took: Duration) {
        let passes = &self.0.passes;
        passes.active.dec();
        passes.passes[result as usize].inc();
        passes.duration.observe(took.as_secs_f64());
        if result == PassResult::Error {
            passes.errors.inc();
        }
        self.per_task(|metrics| metrics.pass_finished(key, phase, took));
    }

    /// A pass that began will not end any more: its supervisor is gone.
    pub fn pass_abandoned(&self) {
        self.0.passes.active.dec();
    }

    /// A pass failed, and will until something changes from outside.
    pub fn terminal_error(&self) {
        self.0.passes.terminal_errors.inc();
    }

    /// How many passes there are at once, at most.
    pub fn max_concurrent(&self, limit: usize) {
        self.0.passes.max_concurrent.set(number(limit));
    }

    /// A supervisor panicked and is started again.
    pub fn supervisor_restarted(&self) {
        self.0.operator.supervisor_restarts.inc();
        self.0.passes.panics.inc();
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_lines;
    use super::*;

    #[test]
    fn a_pass_counts_by_its_result_and_by_its_task() {
        let metrics = Metrics::new(true);
        let key = TaskKey::new("default", "web");
        for _ in 0..3 {
            metrics.pass_started();
        }
        metrics.pass_finished(&key, Phase::Pending, PassResult::RequeueAfter, Duration::from_millis(300));
        metrics.pass_finished(&key, Phase::Failed, PassResult::Error, Duration::from_secs(20));
        metrics.terminal_error();
        assert_lines(
            &metrics,
            &[
                r#"controller_runtime_reconcile_total{controller="task",result="requeue_after"} 1"#,
                r#"controller_runtime_reconcile_total{controller="task",result="error"} 1"#,
                r#"controller_runtime_reconcile_errors_total{controller="task"} 1"#,
                r#"controller_runtime_terminal_reconcile_errors_total{controller="task"} 1"#,
                r#"controller_runtime_active_workers{controller="task"} 1"#,
                r#"controller_runtime_reconcile_time_seconds_bucket{controller="task",le="0.3"} 1"#,
                r#"controller_runtime_reconcile_time_seconds_count{controller="task"} 2"#,
                r#"task_reconcile_total{namespace="default",name="web",phase="Pending"} 1"#,
                r#"task_reconcile_total{namespace="default",name="web",phase="Failed"} 1"#,
            ],
        );
    }
}
