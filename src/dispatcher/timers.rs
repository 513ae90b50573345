//! All wake-ups of all supervisors in one place: an actor's context polls each
//! of its futures on every wake, so thousands of timers there would be slow. Pure.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::api::TaskKey;
use crate::supervisor::time::Instant;

/// At most one wake-up per Task.
#[derive(Debug, Default)]
pub struct Timers {
    due: HashMap<TaskKey, Instant>,
    /// Earliest first. May hold wake-ups that were replaced: `due` has the word.
    heap: BinaryHeap<Reverse<(Instant, TaskKey)>>,
}

impl Timers {
    /// Sets the wake-up of `key`, in place of an earlier one.
    pub fn set(&mut self, key: TaskKey, at: Instant) {
        self.heap.push(Reverse((at, key.clone())));
        self.due.insert(key, at);
        // Replaced wake-ups must not outnumber the real ones for long.
        if self.heap.len() > 2 * self.due.len() + 64 {
            self.heap = self.due.iter().map(|(key, &at)| Reverse((at, key.clone()))).collect();
        }
    }

    /// Forgets the wake-up of `key`.
    pub fn forget(&mut self, key: &TaskKey) {
        self.due.remove(key);
    }

    /// The earliest wake-up.
    pub fn earliest(&mut self) -> Option<Instant> {
        while let Some(Reverse((at, key))) = self.heap.peek() {
            if self.due.get(key) == Some(at) {
                return Some(*at);
            }
            self.heap.pop();
        }
        None
    }

    /// Takes one wake-up that is due.
    pub fn pop(&mut self, now: Instant) -> Option<TaskKey> {
        if self.earliest()? > now {
            return None;
        }
        let Reverse((_, key)) = self.heap.pop()?;
        self.due.remove(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> TaskKey {
        TaskKey::new("default", name)
    }

    fn due(timers: &mut Timers, now: u64) -> Vec<String> {
        std::iter::from_fn(|| timers.pop(Instant(now))).map(|key| key.name.to_string()).collect()
    }

    #[test]
    fn wake_ups_come_in_their_order_and_not_before_their_time() {
        let mut timers = Timers::default();
        timers.set(key("late"), Instant(30));
        timers.set(key("soon"), Instant(10));
        timers.set(key("later"), Instant(40));
        assert_eq!(timers.earliest(), Some(Instant(10)));
        assert_eq!(due(&mut timers, 9), Vec::<String>::new());
        assert_eq!(due(&mut timers, 30), ["soon", "late"]);
        assert_eq!(timers.earliest(), Some(Instant(40)));
    }

    #[test]
    fn a_new_wake_up_replaces_the_earlier_one() {
        let mut timers = Timers::default();
        timers.set(key("a"), Instant(10));
        timers.set(key("a"), Instant(20));
        assert_eq!(due(&mut timers, 15), Vec::<String>::new());
        timers.set(key("b"), Instant(20));
        timers.set(key("b"), Instant(5));
        assert_eq!(due(&mut timers, 25), ["b", "a"]);
        assert_eq!(timers.earliest(), None);
    }

    #[test]
    fn replaced_and_forgotten_wake_ups_take_no_memory_for_long() {
        let mut timers = Timers::default();
        for at in 0..10_000 {
            timers.set(key("a"), Instant(at));
        }
        assert!(timers.heap.len() < 100, "{} entries", timers.heap.len());
        timers.forget(&key("a"));
        assert_eq!(timers.earliest(), None);
    }
}
