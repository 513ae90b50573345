//! The queue before the slots, as the shipped [`Slots`] orders it.

use task_operator::api::TaskKey;
use task_operator::dispatcher::slots::Slots;
use task_operator::supervisor::event::Priority;
use task_operator::supervisor::time::Instant;

/// Who runs and who waits, in the order in which they asked. The shipped queue
/// is made anew from it for each question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Queue {
    pub(crate) running: Vec<usize>,
    asked: Vec<(usize, Priority)>,
}

/// Passes at once: fewer than Tasks, so that they stand in each other's way.
const SLOTS: usize = 1;

impl Queue {
    pub(crate) fn ask(&mut self, site: usize, priority: Priority) {
        let known = self.asked.iter().any(|&(other, asked)| other == site && asked >= priority);
        if !known {
            self.asked.push((site, priority));
        }
    }

    /// Who may begin.
    pub(crate) fn next(&self) -> Option<usize> {
        if self.asked.is_empty() {
            return None;
        }
        let now = Instant(0);
        let mut slots = Slots::new(SLOTS);
        slots.set_open(true);
        for &site in &self.running {
            slots.ask(key_of(site), Priority::Change, now);
            slots.grant(now);
        }
        for &(site, priority) in &self.asked {
            slots.ask(key_of(site), priority, now);
        }
        let key = slots.grant(now)?.key;
        self.asked.iter().map(|&(site, _)| site).find(|&site| key_of(site) == key)
    }

    pub(crate) fn grant(&mut self, site: usize) {
        self.asked.retain(|&(other, _)| other != site);
        self.running.push(site);
    }

    pub(crate) fn release(&mut self, site: usize) {
        self.running.retain(|&other| other != site);
    }

    pub(crate) fn forget(&mut self, site: usize) {
        self.asked.retain(|&(other, _)| other != site);
        self.release(site);
    }
}

/// The name of the Task at this site.
pub(crate) fn key_of(site: usize) -> TaskKey {
    TaskKey::new("default", ["web", "db"][site])
}
