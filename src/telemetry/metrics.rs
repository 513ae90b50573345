//! Counters and gauges, under the names that dashboards for operators query:
//! those of controller-runtime for passes, queue and requests, and the
//! operator's own. Series are there from the start, at 0.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use prometheus::core::Collector;
use prometheus::process_collector::ProcessCollector;
use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry,
};

use crate::api::TaskKey;

use super::per_task::PerTask;

/// The value of the label `controller`, and of `name` in the work queue's metrics.
const CONTROLLER: &str = "task";
/// Of the duration of a pass, as controller-runtime has them.
const PASS_BUCKETS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];
/// Of the work queue, from 10 ns to 1000 s.
const QUEUE_BUCKETS: &[f64] = &[1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0];
/// Of requests to the API server.
const REQUEST_BUCKETS: &[f64] = &[0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

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

/// All metrics of one process. Cheap to clone.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    per_task: Option<Mutex<PerTask>>,
    passes: [IntCounter; 4],
    pass_errors: IntCounter,
    terminal_errors: IntCounter,
    panics: IntCounter,
    pass_time: Histogram,
    max_concurrent: IntGauge,
    active: IntGauge,
    queue_depth: IntGauge,
    queue_adds: IntCounter,
    queue_retries: IntCounter,
    queue_wait: Histogram,
    queue_work: Histogram,
    queue_unfinished: Gauge,
    queue_longest: Gauge,
    requests: IntCounterVec,
    request_time: HistogramVec,
    supervisors: IntGauge,
    supervisor_restarts: IntCounter,
    watch_synced: IntGaugeVec,
    watch_restarts: IntCounterVec,
    events: IntCounterVec,
}

impl Metrics {
    /// Metrics in a registry of their own. With `per_task`, each Task has series by its name.
    pub fn new(per_task: bool) -> Self {
        let make = Make(Registry::new());
        let per_task = per_task.then(|| {
            let metrics = PerTask::default();
            metrics.collectors().into_iter().for_each(|collector| make.register(collector));
            Mutex::new(metrics)
        });
        let passes = make.counters(
            "controller_runtime_reconcile_total",
            "Passes by result.",
            &["controller", "result"],
        );
        let passes = PassResult::ALL.map(|result| passes.with_label_values(&[CONTROLLER, result.as_str()]));
        // No pass has a deadline of its own: its requests have. The series is there since dashboards query it.
        make.by_controller("controller_runtime_reconcile_timeouts_total", "Passes that ran into a deadline.");
        let build = make.gauges("task_operator_build_info", "Which build this is; always 1.", &["version"]);
        build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        make.register(Box::new(ProcessCollector::for_self()));
        let watch_restarts = make.counters(
            "task_operator_watch_restarts_total",
            "Watches that broke and were started again.",
            &["kind"],
        );
        for kind in ["Task", "ConfigMap", "Service", "Deployment"] {
            watch_restarts.with_label_values(&[kind]);
        }
        let events = make.counters(
            "task_operator_events_total",
            "Kubernetes events by what became of them.",
            &["result"],
        );
        for result in ["written", "failed", "dropped"] {
            events.with_label_values(&[result]);
        }
        let queue = &["name", "controller"][..];
        let in_queue = &[CONTROLLER, CONTROLLER][..];
        Self(Arc::new(Inner {
            per_task,
            passes,
            watch_restarts,
            events,
            pass_errors: make
                .by_controller("controller_runtime_reconcile_errors_total", "Passes that failed."),
            terminal_errors: make.by_controller(
                "controller_runtime_terminal_reconcile_errors_total",
                "Passes that failed and will until something changes from outside.",
            ),
            panics: make
                .by_controller("controller_runtime_reconcile_panics_total", "Supervisors that panicked."),
            pass_time: make
                .histograms(
                    "controller_runtime_reconcile_time_seconds",
                    "How long passes take.",
                    &["controller"],
                    PASS_BUCKETS,
                )
                .with_label_values(&[CONTROLLER]),
            max_concurrent: make
                .gauges(
                    "controller_runtime_max_concurrent_reconciles",
                    "Passes at once, at most.",
                    &["controller"],
                )
                .with_label_values(&[CONTROLLER]),
            active: make
                .gauges("controller_runtime_active_workers", "Passes under way.", &["controller"])
                .with_label_values(&[CONTROLLER]),
            queue_depth: make
                .gauges("workqueue_depth", "Tasks that wait for a pass.", &["name", "controller", "priority"])
                .with_label_values(&[CONTROLLER, CONTROLLER, ""]),
            queue_adds: make
                .counters("workqueue_adds_total", "Tasks put into the queue.", queue)
                .with_label_values(in_queue),
            queue_retries: make
                .counters("workqueue_retries_total", "Tasks put into the queue after a delay.", queue)
                .with_label_values(in_queue),
            queue_wait: make
                .histograms(
                    "workqueue_queue_duration_seconds",
                    "How long Tasks wait for a pass.",
                    queue,
                    QUEUE_BUCKETS,
                )
                .with_label_values(in_queue),
            queue_work: make
                .histograms(
                    "workqueue_work_duration_seconds",
                    "How long a slot is held.",
                    queue,
                    QUEUE_BUCKETS,
                )
                .with_label_values(in_queue),
            queue_unfinished: make
                .floats(
                    "workqueue_unfinished_work_seconds",
                    "The ages of the passes under way, added up.",
                    queue,
                )
                .with_label_values(in_queue),
            queue_longest: make
                .floats(
                    "workqueue_longest_running_processor_seconds",
                    "The age of the oldest pass under way.",
                    queue,
                )
                .with_label_values(in_queue),
            requests: make.counters(
                "rest_client_requests_total",
                "Requests to the API server by code, method and host.",
                &["code", "method", "host"],
            ),
            request_time: make.histograms(
                "rest_client_request_duration_seconds",
                "How long requests to the API server take.",
                &["verb", "host"],
                REQUEST_BUCKETS,
            ),
            supervisors: make.gauge("task_operator_supervisors", "Tasks that have a supervisor."),
            supervisor_restarts: make.counter(
                "task_operator_supervisor_restarts_total",
                "Supervisors started again after a panic.",
            ),
            watch_synced: make.gauges(
                "task_operator_watch_synced",
                "Whether all that there is of a kind has been listed.",
                &["kind"],
            ),
            registry: make.0,
        }))
    }

    /// Where they are registered.
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    /// A pass began.
    pub fn pass_started(&self) {
        self.0.active.inc();
    }

    /// A pass ended.
    pub fn pass_finished(&self, key: &TaskKey, phase: &'static str, result: PassResult, took: Duration) {
        let inner = &self.0;
        inner.active.dec();
        inner.passes[result as usize].inc();
        inner.pass_time.observe(took.as_secs_f64());
        if result == PassResult::Error {
            inner.pass_errors.inc();
        }
        self.per_task(|metrics| metrics.pass_finished(key, phase, took));
    }

    /// The pass of a supervisor that is gone will not end any more.
    pub fn pass_abandoned(&self) {
        self.0.active.dec();
    }

    /// A pass failed, and will until something changes from outside.
    pub fn terminal_error(&self) {
        self.0.terminal_errors.inc();
    }

    /// A Task is gone; its series go when [`Metrics::expire`] is called late enough.
    pub fn task_deleted(&self, key: &TaskKey) {
        self.per_task(|metrics| metrics.task_deleted(key, Instant::now()));
    }

    /// Removes the series of Tasks that have been gone long enough to have been scraped.
    pub fn expire(&self, now: Instant) {
        self.per_task(|metrics| metrics.expire(now));
    }

    fn per_task(&self, change: impl FnOnce(&mut PerTask)) {
        if let Some(metrics) = &self.0.per_task {
            // Counters stay true whatever panicked while it held them.
            change(&mut metrics.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// A Task was put into the queue.
    pub fn queued(&self, retry: bool) {
        self.0.queue_adds.inc();
        if retry {
            self.0.queue_retries.inc();
        }
    }

    /// A Task left the queue for a slot.
    pub fn dequeued(&self, waited: Duration) {
        self.0.queue_wait.observe(waited.as_secs_f64());
    }

    /// A slot was given back.
    pub fn worked(&self, took: Duration) {
        self.0.queue_work.observe(took.as_secs_f64());
    }

    /// How many Tasks wait.
    pub fn queue_depth(&self, waiting: usize) {
        self.0.queue_depth.set(number(waiting));
    }

    /// The ages of the passes under way: their sum and the greatest.
    pub fn unfinished(&self, sum: Duration, longest: Duration) {
        self.0.queue_unfinished.set(sum.as_secs_f64());
        self.0.queue_longest.set(longest.as_secs_f64());
    }

    /// A request to the API server was answered; `code` is 0 if it was not.
    pub fn api_request(&self, method: &str, host: &str, code: u16, verb: &str, took: Duration) {
        let mut digits = [0; 3];
        let code = if code == 0 { "<error>" } else { three_digits(code, &mut digits) };
        self.0.requests.with_label_values(&[code, method, host]).inc();
        self.0.request_time.with_label_values(&[verb, host]).observe(took.as_secs_f64());
    }

    /// Passes at once, at most.
    pub fn max_concurrent(&self, limit: usize) {
        self.0.max_concurrent.set(number(limit));
    }

    /// Whether all of a kind has been listed.
    pub fn watch_synced(&self, kind: &str, synced: bool) {
        self.0.watch_synced.with_label_values(&[kind]).set(i64::from(synced));
    }

    /// A watch broke.
    pub fn watch_restarted(&self, kind: &str) {
        self.0.watch_restarts.with_label_values(&[kind]).inc();
    }

    /// How many Tasks have a supervisor.
    pub fn supervisors(&self, count: usize) {
        self.0.supervisors.set(number(count));
    }

    /// A supervisor panicked and is started again.
    pub fn supervisor_restarted(&self) {
        self.0.supervisor_restarts.inc();
        self.0.panics.inc();
    }

    /// A Kubernetes event was written, failed for good, or was dropped.
    pub fn event_recorded(&self, result: &str) {
        self.0.events.with_label_values(&[result]).inc();
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The code as text, without an allocation.
fn three_digits(code: u16, digits: &mut [u8; 3]) -> &str {
    let code = code.min(999);
    for (place, digit) in [(100, 0), (10, 1), (1, 2)] {
        digits[digit] = b'0' + u8::try_from(code / place % 10).unwrap_or_default();
    }
    std::str::from_utf8(digits).unwrap_or("999")
}

/// Makes and registers. The names and labels are constants of this file, so a
/// failure is a mistake in it, which the first test of any kind would meet.
struct Make(Registry);

impl Make {
    fn register(&self, collector: Box<dyn Collector>) {
        if let Err(error) = self.0.register(collector) {
            panic!("two metrics have one name: {error}");
        }
    }

    fn registered<M: Collector + Clone + 'static>(&self, metric: prometheus::Result<M>) -> M {
        match metric {
            Ok(metric) => {
                self.register(Box::new(metric.clone()));
                metric
            }
            Err(error) => panic!("a metric has a wrong name or label: {error}"),
        }
    }

    fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.registered(IntCounterVec::new(Opts::new(name, help), labels))
    }

    fn counter(&self, name: &str, help: &str) -> IntCounter {
        self.registered(IntCounter::new(name, help))
    }

    fn by_controller(&self, name: &str, help: &str) -> IntCounter {
        self.counters(name, help, &["controller"]).with_label_values(&[CONTROLLER])
    }

    fn gauge(&self, name: &str, help: &str) -> IntGauge {
        self.registered(IntGauge::new(name, help))
    }

    fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
        self.registered(IntGaugeVec::new(Opts::new(name, help), labels))
    }

    fn floats(&self, name: &str, help: &str, labels: &[&str]) -> GaugeVec {
        self.registered(GaugeVec::new(Opts::new(name, help), labels))
    }

    fn histograms(&self, name: &str, help: &str, labels: &[&str], buckets: &[f64]) -> HistogramVec {
        self.registered(HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets.to_vec()), labels))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_there_from_the_start_and_codes_are_three_digits() {
        let metrics = Metrics::new(true);
        metrics.api_request("POST", "h", 201, "POST", Duration::ZERO);
        metrics.api_request("GET", "h", 0, "GET", Duration::ZERO);
        let text = super::super::exposition::text(&metrics.registry().gather());
        for line in [
            "controller_runtime_reconcile_total{controller=\"task\",result=\"requeue_after\"} 0",
            "controller_runtime_reconcile_panics_total{controller=\"task\"} 0",
            "workqueue_depth{controller=\"task\",name=\"task\",priority=\"\"} 0",
            "rest_client_requests_total{code=\"201\",host=\"h\",method=\"POST\"} 1",
            "rest_client_requests_total{code=\"<error>\",host=\"h\",method=\"GET\"} 1",
            "task_operator_events_total{result=\"dropped\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "no {line} in\n{text}");
        }
        assert!(text.contains("process_cpu_seconds_total"), "{text}");
    }
}
