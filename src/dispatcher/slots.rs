//! Who may reconcile now: a bounded number of Tasks at once, first come first
//! served, those that somebody changed ahead of the rest. Pure.

use std::collections::{HashMap, VecDeque};

use crate::api::TaskKey;
use crate::supervisor::event::Priority;
use crate::supervisor::time::Instant;

/// The slots and the queue before them.
#[derive(Debug)]
pub struct Slots {
    limit: usize,
    open: bool,
    changes: VecDeque<TaskKey>,
    background: VecDeque<TaskKey>,
    waiting: HashMap<TaskKey, Waiting>,
    running: HashMap<TaskKey, Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    priority: Priority,
    since: Instant,
}

/// A slot that was given.
#[derive(Debug, PartialEq, Eq)]
pub struct Granted {
    /// To whom.
    pub key: TaskKey,
    /// Since when it had waited.
    pub since: Instant,
}

impl Slots {
    /// At most `limit` at once; none until they are opened.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            open: false,
            changes: VecDeque::new(),
            background: VecDeque::new(),
            waiting: HashMap::new(),
            running: HashMap::new(),
        }
    }

    /// Lets passes begin, or no new ones.
    pub fn set_open(&mut self, open: bool) {
        self.open = open;
    }

    /// Puts `key` into the queue, or moves it ahead if it is there with a lower
    /// priority. True if it was not there.
    pub fn ask(&mut self, key: TaskKey, priority: Priority, now: Instant) -> bool {
        let known = self.waiting.get(&key).copied();
        if known.is_some_and(|waiting| waiting.priority >= priority) {
            return false;
        }
        // A lower place that it leaves stays in its queue, and is passed over when its turn comes.
        let since = known.map_or(now, |waiting| waiting.since);
        self.waiting.insert(key.clone(), Waiting { priority, since });
        self.queue(priority).push_back(key);
        known.is_none()
    }

    /// The next one that may begin, if a slot is free.
    pub fn grant(&mut self, now: Instant) -> Option<Granted> {
        if !self.open || self.running.len() >= self.limit {
            return None;
        }
        for priority in [Priority::Change, Priority::Background] {
            while let Some(key) = self.queue(priority).pop_front() {
                if self.waiting.get(&key).is_none_or(|waiting| waiting.priority != priority) {
                    continue;
                }
                let since = self.waiting.remove(&key).map_or(now, |waiting| waiting.since);
                self.running.insert(key.clone(), now);
                return Some(Granted { key, since });
            }
        }
        None
    }

    /// Takes the slot of `key` back; says since when it had it.
    pub fn release(&mut self, key: &TaskKey) -> Option<Instant> {
        self.running.remove(key)
    }

    /// Forgets `key`, waiting or running; true if it was running.
    pub fn forget(&mut self, key: &TaskKey) -> bool {
        self.waiting.remove(key);
        self.running.remove(key).is_some()
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Since when each running pass runs.
    pub fn running(&self) -> impl Iterator<Item = Instant> {
        self.running.values().copied()
    }

    fn queue(&mut self, priority: Priority) -> &mut VecDeque<TaskKey> {
        match priority {
            Priority::Change => &mut self.changes,
            Priority::Background => &mut self.background,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Instant = Instant(0);

    fn key(name: &str) -> TaskKey {
        TaskKey::new("default", name)
    }

    fn open(limit: usize) -> Slots {
        let mut slots = Slots::new(limit);
        slots.set_open(true);
        slots
    }

    fn next(slots: &mut Slots) -> Option<String> {
        slots.grant(T).map(|granted| granted.key.name.to_string())
    }

    #[test]
    fn nothing_begins_before_the_slots_are_open() {
        let mut slots = Slots::new(1);
        slots.ask(key("a"), Priority::Change, T);
        assert_eq!(next(&mut slots), None);
        slots.set_open(true);
        assert_eq!(next(&mut slots).as_deref(), Some("a"));
    }

    #[test]
    fn no_more_than_the_limit_run_at_once() {
        let mut slots = open(2);
        for name in ["a", "b", "c"] {
            slots.ask(key(name), Priority::Change, T);
        }
        assert!(next(&mut slots).is_some() && next(&mut slots).is_some());
        assert_eq!(next(&mut slots), None);
        assert!(slots.release(&key("a")).is_some());
        assert_eq!(next(&mut slots).as_deref(), Some("c"));
    }

    #[test]
    fn changes_go_ahead_of_the_rest_and_each_in_its_order() {
        let mut slots = open(9);
        slots.ask(key("list-1"), Priority::Background, T);
        slots.ask(key("list-2"), Priority::Background, T);
        slots.ask(key("user-1"), Priority::Change, T);
        slots.ask(key("user-2"), Priority::Change, T);
        let order: Vec<_> = std::iter::from_fn(|| next(&mut slots)).collect();
        assert_eq!(order, ["user-1", "user-2", "list-1", "list-2"]);
    }

    #[test]
    fn a_change_moves_a_waiting_task_ahead_and_it_runs_once() {
        let mut slots = open(9);
        slots.ask(key("a"), Priority::Background, T);
        slots.ask(key("b"), Priority::Background, T);
        assert!(!slots.ask(key("b"), Priority::Change, T));
        let order: Vec<_> = std::iter::from_fn(|| next(&mut slots)).collect();
        assert_eq!(order, ["b", "a"]);
    }

    #[test]
    fn a_forgotten_task_neither_runs_nor_holds_a_slot() {
        let mut slots = open(1);
        slots.ask(key("a"), Priority::Change, T);
        slots.ask(key("b"), Priority::Change, T);
        assert_eq!(next(&mut slots).as_deref(), Some("a"));
        assert!(slots.forget(&key("a")));
        assert!(!slots.forget(&key("b")));
        assert_eq!(next(&mut slots), None);
        slots.ask(key("c"), Priority::Change, T);
        assert_eq!(next(&mut slots).as_deref(), Some("c"));
    }
}
