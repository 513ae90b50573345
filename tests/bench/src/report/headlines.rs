//! The figures that the operator is held to, as parts of another operator's.

/// A figure of which less is better, or which is turned round so that it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headline {
    /// In the results.
    pub(super) figure: &'static str,
    /// For people.
    pub(super) text: &'static str,
    /// The part of the other operator's that is aimed at.
    pub(super) goal: f64,
    /// More is better: the other operator's value is told as a part of ours.
    pub(super) turned: bool,
}

const fn less(figure: &'static str, text: &'static str, goal: f64) -> Headline {
    Headline { figure, text, goal, turned: false }
}

const fn more(figure: &'static str, text: &'static str, goal: f64) -> Headline {
    Headline { figure, text, goal, turned: true }
}

/// All of them, in the order in which they are shown.
pub(super) const HEADLINES: [Headline; 14] = [
    less("create.wall_s", "create: time until all is as it should be", 0.7),
    less("create.requests_per_task", "create: requests", 0.75),
    less("create.cpu_ms_per_task", "create: CPU of the operator", 0.25),
    less("create.servers_cpu_ms_per_task", "create: CPU of API server and etcd", 1.0),
    less("change.wall_s", "change: time until all is as it should be", 0.7),
    less("change.cpu_ms_per_task", "change: CPU of the operator", 0.25),
    less("restart.resident_mib", "memory after a restart", 0.3),
    less("restart.peak_mib", "memory at its peak, in a restart", 0.3),
    less("scrape.p50_ms", "a look at the metrics", 1.0),
    less("start.ready_ms", "exec to ready", 0.3),
    more("webhook.mutate_per_s", "webhook: time per call", 0.5),
    less("webhook.mutate_p99_ms", "webhook: 99th percentile", 0.5),
    less("webhook.mutate_cpu_us", "webhook: CPU per call", 0.4),
    less("failover.graceful_s", "failover: the leader ends", 1.0),
];

/// What grows with the number of Tasks, per Task: flat lines scale.
pub(super) const CURVES: [(&str, &str); 3] = [
    ("create.wall_ms_per_task", "time per Task, ms"),
    ("create.cpu_ms_per_task", "CPU of the operator per Task, ms"),
    ("restart.kib_per_task", "memory per Task, KiB"),
];
