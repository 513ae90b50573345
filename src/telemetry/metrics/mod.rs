//! Counters and gauges, under the names that dashboards for operators query:
//! those of controller-runtime 0.25 for passes, queue, webhooks, requests,
//! leadership and certificates, and the operator's own.
//!
//! Series whose labels are known are there from the start, at 0. There is no
//! global: each [`Metrics`] has a registry of its own.
//!
//! - `passes`, `queue`, `requests`, `webhooks`, `leadership`, `certificates`, `deliveries`, `operator`:
//!   what is counted there, and the methods of [`Metrics`] that count it
//! - `per_task`: the series of each Task by its name
//! - `process`: CPU, memory and files of this process
//! - `scrape`: all of it, as text in pieces

mod certificates;
mod deliveries;
mod leadership;
mod make;
mod operator;
mod passes;
mod per_task;
mod process;
mod queue;
mod requests;
mod scrape;
mod webhooks;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use prometheus::Registry;

use crate::api::TaskKey;

pub use deliveries::QueueGauges;
use make::Make;
pub use passes::PassResult;
use per_task::PerTask;
pub use scrape::Scrape;
pub use webhooks::{Webhook, WebhookCall};

/// The value of the label `controller`, and of `name` in the work queue's metrics.
const CONTROLLER: &str = "task";

/// All metrics of one process. Cheap to clone: all clones are one.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    passes: passes::Passes,
    queue: queue::Queue,
    requests: requests::Requests,
    webhooks: webhooks::Webhooks,
    leadership: leadership::Leadership,
    certificates: certificates::Certificates,
    deliveries: deliveries::Deliveries,
    operator: operator::Operator,
    /// Behind a lock rather than in an actor: it is held for one change of a
    /// few numbers, and a message per pass would cost more.
    per_task: Option<Mutex<PerTask>>,
}

impl Metrics {
    /// Metrics in a registry of their own. With `per_task`, each Task has series by its name.
    pub fn new(per_task: bool) -> Self {
        let make = Make::new();
        make.register(Box::new(process::Process::new()));
        Self(Arc::new(Inner {
            passes: passes::Passes::new(&make),
            queue: queue::Queue::new(&make),
            requests: requests::Requests::new(&make),
            webhooks: webhooks::Webhooks::new(&make),
            leadership: leadership::Leadership::new(&make),
            certificates: certificates::Certificates::new(&make),
            deliveries: deliveries::Deliveries::new(&make),
            operator: operator::Operator::new(&make),
            per_task: per_task.then(Mutex::default),
            registry: make.registry,
        }))
    }

    /// Where they are registered, all but the series of each Task by its name.
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    /// A Task is gone. Its series go when [`Metrics::expire`] is called ten
    /// minutes later or after, unless a Task of that name has passes again by then.
    pub fn task_deleted(&self, key: &TaskKey) {
        self.per_task(|metrics| metrics.task_deleted(key, Instant::now()));
    }

    /// Removes the series of Tasks that have been gone long enough to have been
    /// scraped. Costs as much as there is to remove.
    pub fn expire(&self, now: Instant) {
        self.per_task(|metrics| metrics.expire(now));
    }

    fn per_task<T>(&self, change: impl FnOnce(&mut PerTask) -> T) -> Option<T> {
        // Counters stay true whatever panicked while it held them.
        self.0.per_task.as_ref().map(|lock| change(&mut lock.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::telemetry::Format;

    pub(super) fn text(metrics: &Metrics) -> String {
        metrics.scrape(Format::Text).collect()
    }

    /// Panics unless each line is there.
    pub(super) fn assert_lines(metrics: &Metrics, lines: &[&str]) {
        let text = text(metrics);
        for line in lines {
            assert!(text.lines().any(|found| found == *line), "no {line} in\n{text}");
        }
    }

    #[test]
    fn series_are_there_from_the_start() {
        let metrics = Metrics::new(true);
        assert_lines(
            &metrics,
            &[
                r#"controller_runtime_reconcile_total{controller="task",result="success"} 0"#,
                r#"controller_runtime_reconcile_total{controller="task",result="error"} 0"#,
                r#"controller_runtime_reconcile_total{controller="task",result="requeue"} 0"#,
                r#"controller_runtime_reconcile_total{controller="task",result="requeue_after"} 0"#,
                r#"controller_runtime_reconcile_errors_total{controller="task"} 0"#,
                r#"controller_runtime_terminal_reconcile_errors_total{controller="task"} 0"#,
                r#"controller_runtime_reconcile_panics_total{controller="task"} 0"#,
                r#"controller_runtime_reconcile_timeouts_total{controller="task"} 0"#,
                r#"controller_runtime_reconcile_time_seconds_bucket{controller="task",le="0.005"} 0"#,
                r#"controller_runtime_max_concurrent_reconciles{controller="task"} 0"#,
                r#"controller_runtime_active_workers{controller="task"} 0"#,
                r#"workqueue_depth{controller="task",name="task",priority=""} 0"#,
                r#"workqueue_adds_total{controller="task",name="task"} 0"#,
                r#"workqueue_retries_total{controller="task",name="task"} 0"#,
                r#"workqueue_queue_duration_seconds_bucket{controller="task",name="task",le="1e-08"} 0"#,
                r#"workqueue_work_duration_seconds_bucket{controller="task",name="task",le="1000"} 0"#,
                r#"workqueue_unfinished_work_seconds{controller="task",name="task"} 0"#,
                r#"workqueue_longest_running_processor_seconds{controller="task",name="task"} 0"#,
                "controller_runtime_webhook_panics_total 0",
                "controller_runtime_conversion_webhook_panics_total 0",
                "certwatcher_read_certificate_total 0",
                "certwatcher_read_certificate_errors_total 0",
                "task_operator_supervisors 0",
                "task_operator_supervisor_restarts_total 0",
                "task_operator_mailbox_messages 0",
                r#"task_operator_events_total{result="dropped"} 0"#,
                "# TYPE task_reconcile_total counter",
                "# TYPE task_reconcile_duration_seconds histogram",
            ],
        );
        assert!(text(&metrics).contains("task_operator_build_info{"));
    }

    #[test]
    fn without_metrics_per_task_no_series_names_a_task() {
        let metrics = Metrics::new(false);
        let key = TaskKey::new("default", "web");
        metrics.pass_started();
        metrics.pass_finished(&key, crate::api::v1::Phase::Running, PassResult::RequeueAfter, Duration::ZERO);
        metrics.task_deleted(&key);
        metrics.expire(Instant::now());
        assert!(!text(&metrics).contains("task_reconcile"), "{}", text(&metrics));
    }
}
