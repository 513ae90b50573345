//! Whether the sink is worth a try at this moment. Pure.
//!
//! A sink that fails for one notice after the other is not asked by all workers
//! any more: after a wait, one notice at a time tries whether it is back. So a
//! sink that is down costs little, however many wait for it, and once it is
//! back they need not each wait out a wait of their own.

use std::time::Duration;

use crate::supervisor::backoff;
use crate::supervisor::time::Instant;

use super::retry;

/// The longest wait between two tries of a sink that is down.
const LONGEST: Duration = Duration::from_secs(30);

/// What is known of the sink.
#[derive(Debug)]
pub struct Breaker {
    /// From this many failures in a row on it counts as down.
    threshold: u32,
    /// Failures in a row.
    failures: u32,
    /// While it counts as down, when it is tried again.
    open: Option<Instant>,
}

impl Breaker {
    /// For a sink of which nothing is known.
    pub fn new(threshold: u32) -> Self {
        Self { threshold, failures: 0, open: None }
    }

    /// The sink answered, whatever it thought of the notice.
    pub fn answered(&mut self) {
        self.failures = 0;
        self.open = None;
    }

    /// The sink failed, and asked to be left alone for a while.
    pub fn failed(&mut self, asked: Option<Duration>, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= self.threshold {
            let wait = backoff::doubling(self.failures - self.threshold + 1, LONGEST, 0);
            self.open = Some(now.after(wait.max(asked.unwrap_or_default().min(retry::LONGEST))));
        }
    }

    /// How many may be under way now, of `workers`.
    pub fn allows(&self, workers: usize, now: Instant) -> usize {
        match self.open {
            None => workers,
            Some(at) if now >= at => 1,
            Some(_) => 0,
        }
    }

    /// While it counts as down, when it is tried again.
    pub fn open_until(&self) -> Option<Instant> {
        self.open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Instant {
        Instant(seconds * 1000)
    }

    #[test]
    fn a_sink_that_fails_is_tried_by_one_at_a_time_and_by_all_once_it_answers() {
        let mut breaker = Breaker::new(3);
        breaker.failed(None, seconds(0));
        breaker.failed(None, seconds(0));
        assert_eq!(breaker.allows(4, seconds(0)), 4);
        breaker.failed(None, seconds(0));
        assert_eq!((breaker.allows(4, seconds(0)), breaker.allows(4, seconds(1))), (0, 1));
        breaker.answered();
        assert_eq!(breaker.allows(4, seconds(1)), 4);
    }

    #[test]
    fn the_waits_grow_up_to_half_a_minute_or_to_what_it_asks_for() {
        let mut breaker = Breaker::new(1);
        let mut wait = |asked| {
            breaker.failed(asked, seconds(0));
            breaker.open_until().unwrap().since(seconds(0))
        };
        let waits: Vec<_> = (0..12).map(|_| wait(None)).collect();
        assert!(waits[0] <= Duration::from_secs(1) && waits[11] <= LONGEST && waits[11] >= LONGEST * 4 / 5);
        assert_eq!(wait(Some(Duration::from_secs(90))), Duration::from_secs(90));
        assert_eq!(wait(Some(Duration::from_secs(90_000))), retry::LONGEST);
    }

    #[test]
    fn one_notice_that_always_fails_does_not_make_the_sink_count_as_down() {
        let mut breaker = Breaker::new(3);
        for _ in 0..100 {
            breaker.failed(None, seconds(0));
            breaker.answered();
        }
        assert_eq!(breaker.allows(4, seconds(0)), 4);
    }
}
