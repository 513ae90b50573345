//! All metrics as text, in pieces.
//!
//! Ten thousand Tasks make a text of a dozen megabytes. It is never in memory
//! as a whole: a scrape takes a copy of the numbers, a hundredth of that, and
//! makes the text as fast as the scraper reads it.

use crate::api::TaskKey;
use crate::telemetry::exposition::{Format, write_families};

use super::Metrics;
use super::per_task::{Lines, Series};

/// A piece ends after this many bytes, at the end of a line.
const PIECE: usize = 64 * 1024;

/// The pieces of one scrape. Their sum is a whole exposition.
pub struct Scrape {
    format: Format,
    stage: Stage,
    /// Everything that is not named after a Task.
    general: String,
    /// None if there are no metrics per Task.
    tasks: Option<Vec<(TaskKey, Series)>>,
    lines: Lines,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    General,
    /// The Task that comes next; before the first there is the family's head.
    Durations(usize),
    /// Likewise.
    Passes(usize),
    End,
    Done,
}

impl Metrics {
    /// What a scraper reads now.
    pub fn scrape(&self, format: Format) -> Scrape {
        let mut general = String::with_capacity(PIECE);
        write_families(&mut general, &self.0.registry.gather(), format);
        Scrape {
            format,
            stage: Stage::General,
            general,
            tasks: self.per_task(|metrics| metrics.snapshot()),
            lines: Lines::new(format),
        }
    }
}

impl Scrape {
    /// Whether all pieces were taken.
    pub fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// Writes what comes next: a Task's lines at most.
    fn step(&mut self, out: &mut String) {
        let tasks = self.tasks.as_deref();
        self.stage = match self.stage {
            Stage::General => {
                // Moved rather than copied: it is what the first piece begins with.
                *out = std::mem::take(&mut self.general);
                if tasks.is_some() { Stage::Durations(0) } else { Stage::End }
            }
            Stage::Durations(next) => {
                if next == 0 {
                    self.lines.begin_durations(out);
                }
                match tasks.and_then(|tasks| tasks.get(next)) {
                    Some((key, series)) => {
                        self.lines.durations(out, key, series);
                        Stage::Durations(next + 1)
                    }
                    None => Stage::Passes(0),
                }
            }
            Stage::Passes(next) => {
                if next == 0 {
                    self.lines.begin_passes(out);
                }
                match tasks.and_then(|tasks| tasks.get(next)) {
                    Some((key, series)) => {
                        self.lines.passes(out, key, series);
                        Stage::Passes(next + 1)
                    }
                    None => Stage::End,
                }
            }
            Stage::End => {
                out.push_str(self.format.end());
                Stage::Done
            }
            Stage::Done => Stage::Done,
        };
    }
}

impl Iterator for Scrape {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        if self.is_done() {
            return None;
        }
        let mut piece = String::new();
        while piece.len() < PIECE && !self.is_done() {
            self.step(&mut piece);
        }
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::api::v1::Phase;
    use crate::telemetry::PassResult;

    #[test]
    fn the_pieces_of_many_tasks_make_one_whole_text() {
        let metrics = Metrics::new(true);
        for number in 0..1000 {
            let key = TaskKey::new("default", format!("web-{number}"));
            metrics.pass_started();
            metrics.pass_finished(&key, Phase::Running, PassResult::RequeueAfter, Duration::ZERO);
        }
        let pieces: Vec<String> = metrics.scrape(Format::OpenMetrics).collect();
        assert!(pieces.len() > 10, "{} pieces", pieces.len());
        for piece in &pieces {
            assert!(piece.ends_with('\n') && piece.len() < PIECE + 4096, "{} bytes", piece.len());
        }
        let text = pieces.concat();
        assert!(text.ends_with("# EOF\n"));
        let lines = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
        assert_eq!(lines("task_reconcile_total{"), 1000);
        assert_eq!(lines("task_reconcile_duration_seconds_count{"), 1000);
        assert_eq!(lines("task_reconcile_duration_seconds_bucket{"), 7000);
        assert_eq!(lines("# TYPE task_reconcile_duration_seconds "), 1);
        assert_eq!(lines("# TYPE task_reconcile "), 1);
        assert_eq!(lines("# EOF"), 1);
    }

    #[test]
    fn a_small_scrape_is_one_piece() {
        let mut scrape = Metrics::new(true).scrape(Format::Text);
        assert!(scrape.next().is_some());
        assert!(scrape.is_done());
        assert!(scrape.next().is_none());
    }
}
