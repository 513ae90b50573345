//! The checks behind the probes.
//!
//! Liveness asks whether the process should be started again: it has one check
//! per event loop, a [`Heartbeat`] that has to be kept beating. Readiness asks
//! whether it should get traffic. A check may be informational: it is shown and
//! fails nothing.
//!
//! Checks are called at each probe, on the probes' thread: they look at what is
//! known and wait for nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// An event loop that has not turned for this long is stuck, if nothing else is said.
const STUCK: Duration = Duration::from_secs(10);

type Probe = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Which question a check answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Does it live, or should it be started again?
    Live,
    /// Should it get traffic?
    Ready,
}

/// A check and what its result means.
#[derive(Clone)]
struct Check {
    name: &'static str,
    question: Question,
    /// Shown only: its failure fails nothing.
    informational: bool,
    probe: Probe,
}

impl Check {
    fn find(&self) -> Finding {
        Finding { name: self.name, informational: self.informational, result: (self.probe)() }
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The check.
    pub name: &'static str,
    /// Its failure fails nothing.
    pub informational: bool,
    /// What is wrong, if anything is.
    pub result: Result<(), String>,
}

impl Finding {
    /// Whether the probe fails for it.
    pub fn fails(&self) -> bool {
        self.result.is_err() && !self.informational
    }
}

/// All checks. Cheap to clone: all clones are one.
#[derive(Clone)]
pub struct Health {
    checks: Arc<RwLock<Vec<Check>>>,
    draining: Arc<AtomicBool>,
}

impl Default for Health {
    fn default() -> Self {
        let draining = Arc::new(AtomicBool::new(false));
        let health = Self { checks: Arc::default(), draining: draining.clone() };
        health.add(Question::Ready, false, "shutdown", move || match draining.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err("the process is shutting down".to_owned()),
        });
        health
    }
}

impl Health {
    /// Adds a check that readiness depends on.
    pub fn add_readiness(
        &self,
        name: &'static str,
        probe: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.add(Question::Ready, false, name, probe);
    }

    /// Adds a check that `/readyz?verbose` shows and nothing depends on.
    pub fn add_information(
        &self,
        name: &'static str,
        probe: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.add(Question::Ready, true, name, probe);
    }

    /// Adds a liveness check that passes as long as somebody beats at least every ten seconds.
    pub fn heartbeat(&self, name: &'static str) -> Heartbeat {
        self.heartbeat_within(name, STUCK)
    }

    /// Adds a liveness check that fails when there was no beat for longer than
    /// `budget`. The first is counted from now.
    pub fn heartbeat_within(&self, name: &'static str, budget: Duration) -> Heartbeat {
        let heartbeat = Heartbeat { zero: Instant::now(), last: Arc::new(AtomicU64::new(0)), budget };
        let beats = heartbeat.clone();
        self.add(Question::Live, false, name, move || beats.check(Instant::now()));
        heartbeat
    }

    /// From now on it is not ready: it is about to stop.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// What the checks of this question find now.
    pub fn findings(&self, question: Question) -> Vec<Finding> {
        let checks = self.checks.read().unwrap_or_else(PoisonError::into_inner);
        checks.iter().filter(|check| check.question == question).map(Check::find).collect()
    }

    /// What the check of this name finds now; none if there is no such check.
    pub fn finding(&self, question: Question, name: &str) -> Option<Finding> {
        let checks = self.checks.read().unwrap_or_else(PoisonError::into_inner);
        checks.iter().find(|check| check.question == question && check.name == name).map(Check::find)
    }

    fn add(
        &self,
        question: Question,
        informational: bool,
        name: &'static str,
        probe: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        let check = Check { name, question, informational, probe: Arc::new(probe) };
        self.checks.write().unwrap_or_else(PoisonError::into_inner).push(check);
    }
}

/// Shows that an event loop turns.
#[derive(Clone)]
pub struct Heartbeat {
    zero: Instant,
    /// When it beat last, in milliseconds after `zero`.
    last: Arc<AtomicU64>,
    budget: Duration,
}

impl Heartbeat {
    /// It turns.
    pub fn beat(&self) {
        self.last.store(self.milliseconds(Instant::now()), Ordering::Relaxed);
    }

    fn milliseconds(&self, at: Instant) -> u64 {
        u64::try_from(at.duration_since(self.zero).as_millis()).unwrap_or(u64::MAX)
    }

    fn check(&self, now: Instant) -> Result<(), String> {
        let silent =
            Duration::from_millis(self.milliseconds(now).saturating_sub(self.last.load(Ordering::Relaxed)));
        if silent > self.budget { Err(format!("has not turned for {} s", silent.as_secs())) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_does_not_turn_is_noticed_after_ten_seconds() {
        let health = Health::default();
        let heartbeat = health.heartbeat("loop");
        heartbeat.beat();
        assert_eq!(heartbeat.check(Instant::now() + Duration::from_secs(9)), Ok(()));
        assert_eq!(
            heartbeat.check(Instant::now() + Duration::from_secs(12)),
            Err("has not turned for 12 s".to_owned())
        );
    }

    #[test]
    fn draining_ends_readiness_and_not_liveness() {
        let health = Health::default();
        let _heartbeat = health.heartbeat("loop");
        let fails = |question| health.findings(question).iter().any(|finding| finding.result.is_err());
        assert!(!fails(Question::Ready));
        health.drain();
        assert!(fails(Question::Ready));
        assert!(!fails(Question::Live));
    }

    #[test]
    fn an_informational_check_is_shown_and_fails_nothing() {
        let health = Health::default();
        health.add_information("watches", || Err("not listed yet".to_owned()));
        let finding = health.finding(Question::Ready, "watches").unwrap();
        assert!(finding.result.is_err() && !finding.fails());
        assert_eq!(health.finding(Question::Live, "watches"), None);
        health.add_readiness("socket", || Err("closed".to_owned()));
        assert!(health.finding(Question::Ready, "socket").unwrap().fails());
    }
}
