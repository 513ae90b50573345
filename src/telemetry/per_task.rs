//! The metrics of each Task by its name. They go some time after the Task, so
//! that the last of them can still be scraped.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use prometheus::core::Collector;
use prometheus::{Histogram, HistogramOpts, HistogramVec, IntCounterVec, Opts};

use crate::api::TaskKey;

/// How long the series of a Task outlive it.
const LINGER: Duration = Duration::from_secs(600);
/// The phase under which the deletion of a Task counts.
const DELETED: &str = "deleted";

/// The metrics, and which of them have to go.
pub(super) struct PerTask {
    passes: IntCounterVec,
    durations: HistogramVec,
    series: HashMap<TaskKey, Series>,
    /// In the order in which they were deleted.
    deleted: VecDeque<(Instant, TaskKey)>,
}

/// The series of one Task.
struct Series {
    duration: Histogram,
    phases: BTreeSet<&'static str>,
    deleted: Option<Instant>,
}

impl Default for PerTask {
    fn default() -> Self {
        let passes = Opts::new("task_reconcile_total", "Passes of each Task by the phase at their end.");
        let durations =
            HistogramOpts::new("task_reconcile_duration_seconds", "How long the passes of each Task take.")
                .buckets(vec![0.1, 0.5, 1.0, 2.0, 5.0, 10.0]);
        match (
            IntCounterVec::new(passes, &["namespace", "name", "phase"]),
            HistogramVec::new(durations, &["namespace", "name"]),
        ) {
            (Ok(passes), Ok(durations)) => {
                Self { passes, durations, series: HashMap::new(), deleted: VecDeque::new() }
            }
            // Names and labels are the constants above.
            (Err(error), _) | (_, Err(error)) => panic!("a metric has a wrong name or label: {error}"),
        }
    }
}

impl PerTask {
    pub(super) fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![Box::new(self.passes.clone()), Box::new(self.durations.clone())]
    }

    pub(super) fn pass_finished(&mut self, key: &TaskKey, phase: &'static str, took: Duration) {
        let series = self.series(key);
        series.deleted = None;
        series.duration.observe(took.as_secs_f64());
        self.count(key, phase);
    }

    pub(super) fn task_deleted(&mut self, key: &TaskKey, now: Instant) {
        self.series(key).deleted = Some(now);
        self.count(key, DELETED);
        self.deleted.push_back((now, key.clone()));
    }

    fn series(&mut self, key: &TaskKey) -> &mut Series {
        let durations = &self.durations;
        self.series.entry(key.clone()).or_insert_with(|| Series {
            duration: durations.with_label_values(&[&*key.namespace, &*key.name]),
            phases: BTreeSet::new(),
            deleted: None,
        })
    }

    fn count(&mut self, key: &TaskKey, phase: &'static str) {
        self.series(key).phases.insert(phase);
        self.passes.with_label_values(&[&*key.namespace, &*key.name, phase]).inc();
    }

    /// Removes the series of Tasks whose time is over. One that was made again under the same name keeps them.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some((at, _)) = self.deleted.front()
            && now.duration_since(*at) >= LINGER
            && let Some((at, key)) = self.deleted.pop_front()
        {
            if self.series.get(&key).is_none_or(|series| series.deleted != Some(at)) {
                continue;
            }
            let labels = [&*key.namespace, &*key.name];
            // A series that is not there needs no removal.
            let _ = self.durations.remove_label_values(&labels);
            for phase in self.series.remove(&key).into_iter().flat_map(|series| series.phases) {
                let _ = self.passes.remove_label_values(&[labels[0], labels[1], phase]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(metrics: &PerTask) -> usize {
        metrics.collectors().iter().flat_map(|c| c.collect()).map(|family| family.get_metric().len()).sum()
    }

    #[test]
    fn the_series_of_a_deleted_task_stay_ten_minutes_and_then_go() {
        let mut metrics = PerTask::default();
        let (key, now) = (TaskKey::new("default", "web"), Instant::now());
        metrics.pass_finished(&key, "Pending", Duration::ZERO);
        metrics.pass_finished(&key, "Succeeded", Duration::ZERO);
        metrics.task_deleted(&key, now);
        metrics.expire(now + Duration::from_secs(599));
        assert_eq!(series(&metrics), 4);
        metrics.expire(now + Duration::from_secs(600));
        assert_eq!(series(&metrics), 0);
        assert!(metrics.series.is_empty() && metrics.deleted.is_empty());
    }

    #[test]
    fn a_task_made_again_under_the_same_name_keeps_its_series() {
        let mut metrics = PerTask::default();
        let (key, now) = (TaskKey::new("default", "web"), Instant::now());
        metrics.task_deleted(&key, now);
        metrics.pass_finished(&key, "Pending", Duration::ZERO);
        metrics.expire(now + LINGER);
        assert_eq!(series(&metrics), 3);
    }
}
