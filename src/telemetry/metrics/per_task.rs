//! The series of each Task by its name: `task_reconcile_total` and
//! `task_reconcile_duration_seconds`.
//!
//! They are kept in one table rather than in metrics of the `prometheus` crate,
//! for two reasons. There, a histogram weighs more than a kilobyte, here a Task
//! weighs about a hundred bytes. And there, series are told apart by a hash of
//! all label values without anything between them, so that `a/bc` and `ab/c`
//! would be one.
//!
//! The series go some time after the Task, so that the last of them can still
//! be scraped.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use prometheus::proto::MetricType;

use crate::api::TaskKey;
use crate::api::v1::Phase;
use crate::telemetry::exposition::{Format, Number, Writer, bound, escaped};

/// How long the series of a Task outlive it: several scrapes, at any usual interval.
const LINGER: Duration = Duration::from_secs(600);
/// Upper bounds of the duration of a pass, in seconds.
const BOUNDS: [f64; 6] = [0.1, 0.5, 1.0, 2.0, 5.0, 10.0];
/// The label `phase`; the last stands for the deletion.
const PHASES: [&str; 5] = ["Pending", "Running", "Succeeded", "Failed", "deleted"];
const DELETED: usize = 4;

const PASSES: &str = "task_reconcile_total";
const DURATION: &str = "task_reconcile_duration_seconds";

/// The numbers of one Task. They stop at their greatest value, 4 billion.
#[derive(Clone, Copy, Default)]
pub(super) struct Series {
    /// By phase, in the order of [`PHASES`].
    passes: [u32; PHASES.len()],
    /// Passes in each bucket alone; the last holds those above all bounds.
    buckets: [u32; BOUNDS.len() + 1],
    seconds: f64,
    deleted: Option<Instant>,
}

/// The numbers of all Tasks, and which of them have to go.
#[derive(Default)]
pub(super) struct PerTask {
    series: HashMap<TaskKey, Series>,
    /// In the order in which they were deleted.
    deleted: VecDeque<(Instant, TaskKey)>,
}

impl PerTask {
    pub(super) fn pass_finished(&mut self, key: &TaskKey, phase: Phase, took: Duration) {
        let series = self.series(key);
        series.deleted = None;
        count(&mut series.passes[index(phase)]);
        let seconds = took.as_secs_f64();
        series.seconds += seconds;
        count(&mut series.buckets[BOUNDS.partition_point(|bound| *bound < seconds)]);
    }

    pub(super) fn task_deleted(&mut self, key: &TaskKey, now: Instant) {
        let series = self.series(key);
        series.deleted = Some(now);
        count(&mut series.passes[DELETED]);
        self.deleted.push_back((now, key.clone()));
    }

    /// Removes the series of Tasks whose time is over. One that was made again under the same name keeps them.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some((at, _)) = self.deleted.front()
            && now.duration_since(*at) >= LINGER
            && let Some((at, key)) = self.deleted.pop_front()
        {
            if self.series.get(&key).is_some_and(|series| series.deleted == Some(at)) {
                self.series.remove(&key);
            }
        }
    }

    /// All of it as it is now.
    pub(super) fn snapshot(&self) -> Vec<(TaskKey, Series)> {
        self.series.iter().map(|(key, series)| (key.clone(), *series)).collect()
    }

    fn series(&mut self, key: &TaskKey) -> &mut Series {
        self.series.entry(key.clone()).or_default()
    }
}

fn count(number: &mut u32) {
    *number = number.saturating_add(1);
}

fn index(phase: Phase) -> usize {
    match phase {
        Phase::Pending => 0,
        Phase::Running => 1,
        Phase::Succeeded => 2,
        Phase::Failed => 3,
    }
}

/// Writes the two families, Task by Task.
pub(super) struct Lines {
    format: Format,
    bounds: [String; BOUNDS.len()],
}

impl Lines {
    pub(super) fn new(format: Format) -> Self {
        Self { format, bounds: BOUNDS.map(|value| bound(value, format)) }
    }

    pub(super) fn begin_durations(&self, out: &mut String) {
        let help = "How long the passes of each Task take.";
        Writer::new(out, self.format).header(DURATION, MetricType::HISTOGRAM, help);
    }

    pub(super) fn durations(&self, out: &mut String, key: &TaskKey, series: &Series) {
        let labels = labels(key);
        let mut writer = Writer::new(out, self.format);
        let mut passes = 0_u64;
        let bounds = self.bounds.iter().map(String::as_str).chain(["+Inf"]);
        for (bound, in_bucket) in bounds.zip(series.buckets) {
            passes += u64::from(in_bucket);
            writer.sample(DURATION, "_bucket", &format_args!("{{{labels},le=\"{bound}\"}}"), passes);
        }
        writer.sample(DURATION, "_sum", &format_args!("{{{labels}}}"), Number(series.seconds));
        writer.sample(DURATION, "_count", &format_args!("{{{labels}}}"), passes);
    }

    pub(super) fn begin_passes(&self, out: &mut String) {
        let help = "Passes of each Task by the phase at their end.";
        Writer::new(out, self.format).header(PASSES, MetricType::COUNTER, help);
    }

    /// The phases that were seen.
    pub(super) fn passes(&self, out: &mut String, key: &TaskKey, series: &Series) {
        let labels = labels(key);
        let mut writer = Writer::new(out, self.format);
        for (phase, passes) in PHASES.iter().zip(series.passes).filter(|(_, passes)| *passes > 0) {
            writer.sample(PASSES, "", &format_args!("{{{labels},phase=\"{phase}\"}}"), passes);
        }
    }
}

fn labels(key: &TaskKey) -> String {
    format!("namespace=\"{}\",name=\"{}\"", escaped(&key.namespace, true), escaped(&key.name, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(metrics: &PerTask, format: Format) -> String {
        let (lines, mut out, tasks) = (Lines::new(format), String::new(), metrics.snapshot());
        lines.begin_durations(&mut out);
        tasks.iter().for_each(|(key, series)| lines.durations(&mut out, key, series));
        lines.begin_passes(&mut out);
        tasks.iter().for_each(|(key, series)| lines.passes(&mut out, key, series));
        out
    }

    #[test]
    fn the_phases_of_the_api_are_the_labels() {
        for phase in [Phase::Pending, Phase::Running, Phase::Succeeded, Phase::Failed] {
            assert_eq!(PHASES[index(phase)], phase.as_str());
        }
    }

    #[test]
    fn a_task_has_a_counter_per_phase_and_a_histogram() {
        let mut metrics = PerTask::default();
        let key = TaskKey::new("default", "web");
        metrics.pass_finished(&key, Phase::Pending, Duration::from_millis(100));
        metrics.pass_finished(&key, Phase::Succeeded, Duration::from_millis(1500));
        metrics.pass_finished(&key, Phase::Succeeded, Duration::from_secs(11));
        metrics.task_deleted(&key, Instant::now());
        let expected = r#"# HELP task_reconcile_duration_seconds How long the passes of each Task take.
# TYPE task_reconcile_duration_seconds histogram
task_reconcile_duration_seconds_bucket{namespace="default",name="web",le="0.1"} 1
task_reconcile_duration_seconds_bucket{namespace="default",name="web",le="0.5"} 1
task_reconcile_duration_seconds_bucket{namespace="default",name="web",le="1"} 1
task_reconcile_duration_seconds_bucket{namespace="default",name="web",le="2"} 2
task_reconcile_duration_seconds_bucket{namespace="default",name="web",le="5"} 2
task_reconcile_duration_seconds_bucket{namespace="default",name="web",le="10"} 2
task_reconcile_duration_seconds_bucket{namespace="default",name="web",le="+Inf"} 3
task_reconcile_duration_seconds_sum{namespace="default",name="web"} 12.6
task_reconcile_duration_seconds_count{namespace="default",name="web"} 3
# HELP task_reconcile_total Passes of each Task by the phase at their end.
# TYPE task_reconcile_total counter
task_reconcile_total{namespace="default",name="web",phase="Pending"} 1
task_reconcile_total{namespace="default",name="web",phase="Succeeded"} 2
task_reconcile_total{namespace="default",name="web",phase="deleted"} 1
"#;
        assert_eq!(text(&metrics, Format::Text), expected);
        let open = text(&metrics, Format::OpenMetrics);
        assert!(open.contains("# TYPE task_reconcile counter\ntask_reconcile_total{"), "{open}");
        assert!(open.contains("le=\"1.0\""), "{open}");
    }

    #[test]
    fn namespace_and_name_are_not_run_together() {
        let mut metrics = PerTask::default();
        for (namespace, name) in [("a", "bc"), ("ab", "c")] {
            metrics.pass_finished(&TaskKey::new(namespace, name), Phase::Pending, Duration::ZERO);
        }
        assert_eq!(metrics.snapshot().len(), 2);
    }

    #[test]
    fn the_series_of_a_deleted_task_stay_ten_minutes_and_then_go() {
        let mut metrics = PerTask::default();
        let (key, now) = (TaskKey::new("default", "web"), Instant::now());
        metrics.pass_finished(&key, Phase::Pending, Duration::ZERO);
        metrics.task_deleted(&key, now);
        metrics.expire(now + Duration::from_secs(599));
        assert_eq!(metrics.series.len(), 1);
        metrics.expire(now + Duration::from_secs(600));
        assert!(metrics.series.is_empty() && metrics.deleted.is_empty());
    }

    #[test]
    fn a_task_made_again_under_the_same_name_keeps_its_series() {
        let mut metrics = PerTask::default();
        let (key, now) = (TaskKey::new("default", "web"), Instant::now());
        metrics.task_deleted(&key, now);
        metrics.pass_finished(&key, Phase::Pending, Duration::ZERO);
        metrics.expire(now + LINGER);
        assert_eq!(metrics.series.len(), 1);
        // Deleted again, its ten minutes begin anew.
        metrics.task_deleted(&key, now + LINGER);
        metrics.expire(now + LINGER + Duration::from_secs(599));
        assert_eq!(metrics.series.len(), 1);
        metrics.expire(now + LINGER * 2);
        assert!(metrics.series.is_empty());
    }
}
