//! The checks behind the probes. Cheap to clone; all clones are one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// An event loop that has not turned for this long is stuck.
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

/// All checks.
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
        let heartbeat = Heartbeat { zero: Instant::now(), last: Arc::new(AtomicU64::new(0)) };
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
        checks
            .iter()
            .filter(|check| check.question == question)
            .map(|check| Finding {
                name: check.name,
                informational: check.informational,
                result: (check.probe)(),
            })
            .collect()
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
    last: Arc<AtomicU64>,
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
        if silent > STUCK { Err(format!("has not turned for {} s", silent.as_secs())) } else { Ok(()) }
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
}
