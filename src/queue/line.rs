//! Which notices wait, which are sent, and who is held back. Pure.
//!
//! At most one notice of a Task is in the queue at any time; its next one is
//! offered once that one is settled. So the order of a Task's notices needs no
//! care here, and a Task whose notices fail takes no place from the others while
//! it waits for its next try: a notice that failed goes back to its supervisor.
//!
//! The queue takes as many as its capacity. Whoever comes then is held back: its
//! supervisor keeps the notice, which costs nothing since it stands in the Task's
//! status, and is invited in its turn. An invitation keeps a place free.

use std::collections::{HashMap, VecDeque};

use crate::api::{TaskKey, Uid};
use crate::supervisor::time::Instant;

use super::breaker::Breaker;
use super::notice::Notice;
use super::{Outcome, Verdict};

/// What became of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It is in the queue; what becomes of it will be reported.
    Taken,
    /// There is no room. An invitation will be reported.
    HeldBack,
}

/// A Task that is told of something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addressee {
    /// Its name.
    pub key: TaskKey,
    /// Which Task of that name.
    pub uid: Uid,
}

/// The queue.
#[derive(Debug)]
pub struct Line {
    capacity: usize,
    workers: usize,
    breaker: Breaker,
    tasks: HashMap<Uid, Entry>,
    ready: VecDeque<Notice>,
    held_back: VecDeque<Addressee>,
    sending: usize,
    invited: usize,
    closed: bool,
}

/// A Task that has something to tell.
#[derive(Debug)]
struct Entry {
    place: Place,
    /// Since when it is neither delivered nor given up; none if it was given up
    /// while it was being sent.
    since: Option<Instant>,
}

#[derive(Debug, PartialEq, Eq)]
enum Place {
    Ready,
    /// Under this id.
    Sending(String),
    HeldBack,
    /// A place is kept for it.
    Invited,
    /// Its supervisor waits for the next try.
    Away,
}

impl Line {
    /// An empty queue.
    pub fn new(workers: usize, capacity: usize) -> Self {
        // More than the workers can have under way when a sink goes down.
        let threshold = u32::try_from(workers).unwrap_or(u32::MAX).saturating_add(1).max(5);
        Self {
            capacity,
            workers,
            breaker: Breaker::new(threshold),
            tasks: HashMap::new(),
            ready: VecDeque::new(),
            held_back: VecDeque::new(),
            sending: 0,
            invited: 0,
            closed: false,
        }
    }

    /// A supervisor has something to tell.
    pub fn offer(&mut self, notice: Notice, now: Instant) -> Offered {
        let has_room = self.has_room();
        let entry = self.tasks.entry(notice.uid.clone());
        let entry = entry.or_insert(Entry { place: Place::Away, since: None });
        entry.since.get_or_insert(now);
        match &entry.place {
            // A supervisor that was started again offers what its predecessor had
            // offered. The end of what is being sent is reported in any case.
            Place::Sending(id) if *id == notice.id() => return Offered::Taken,
            Place::Sending(_) | Place::HeldBack => return Offered::HeldBack,
            Place::Ready => {
                if let Some(known) = self.ready.iter_mut().find(|known| known.uid == notice.uid) {
                    *known = notice;
                }
                return Offered::Taken;
            }
            Place::Invited => self.invited -= 1,
            Place::Away if has_room && self.held_back.is_empty() => {}
            Place::Away => {
                entry.place = Place::HeldBack;
                self.held_back.push_back(Addressee { key: notice.key, uid: notice.uid });
                return Offered::HeldBack;
            }
        }
        entry.place = Place::Ready;
        self.ready.push_back(notice);
        Offered::Taken
    }

    fn has_room(&self) -> bool {
        !self.closed && self.depth() + self.invited < self.capacity
    }

    /// The next notice to send, if a worker is free and the sink is worth a try.
    pub fn next(&mut self, now: Instant) -> Option<Notice> {
        if self.sending >= self.breaker.allows(self.workers, now) {
            return None;
        }
        let notice = self.ready.pop_front()?;
        if let Some(entry) = self.tasks.get_mut(&notice.uid) {
            entry.place = Place::Sending(notice.id());
        }
        self.sending += 1;
        Some(notice)
    }

    /// What was sent has come to an end.
    pub fn finished(&mut self, uid: &Uid, verdict: &Verdict, now: Instant) -> Outcome {
        self.sending -= 1;
        let outcome = match verdict {
            Verdict::Delivered => Outcome::Delivered,
            Verdict::Refused(why) => Outcome::Refused(why.as_str().into()),
            Verdict::Failed(why, asked) => Outcome::Failed(why.as_str().into(), *asked),
            Verdict::NotSent => Outcome::Returned,
        };
        match verdict {
            Verdict::Delivered | Verdict::Refused(_) => self.breaker.answered(),
            Verdict::Failed(_, asked) => self.breaker.failed(*asked, now),
            Verdict::NotSent => {}
        }
        let is_settled = matches!(verdict, Verdict::Delivered | Verdict::Refused(_));
        match self.tasks.get_mut(uid) {
            Some(entry) if entry.since.is_some() && !is_settled => entry.place = Place::Away,
            _ => drop(self.tasks.remove(uid)),
        }
        outcome
    }

    /// Who may come now that there is room: as many as there are places.
    pub fn invite(&mut self) -> Vec<Addressee> {
        let mut guests = Vec::new();
        while self.has_room() {
            let Some(guest) = self.held_back.pop_front() else { break };
            if let Some(entry) = self.tasks.get_mut(&guest.uid) {
                entry.place = Place::Invited;
            }
            self.invited += 1;
            guests.push(guest);
        }
        guests
    }

    /// A Task is gone, or has given up what it had offered.
    pub fn forget(&mut self, uid: &Uid) {
        let Some(entry) = self.tasks.get_mut(uid) else { return };
        match &entry.place {
            Place::Sending(_) => {
                entry.since = None;
                return;
            }
            Place::Ready => self.ready.retain(|notice| notice.uid != *uid),
            Place::HeldBack => self.held_back.retain(|waiting| waiting.uid != *uid),
            Place::Invited => self.invited -= 1,
            Place::Away => {}
        }
        self.tasks.remove(uid);
    }

    /// Gives back all that is not being sent: this replica does not lead any more.
    pub fn give_back(&mut self) -> Vec<Addressee> {
        let ready = std::mem::take(&mut self.ready).into_iter();
        let ready = ready.map(|notice| Addressee { key: notice.key, uid: notice.uid });
        let all = ready.chain(std::mem::take(&mut self.held_back)).collect();
        self.invited = 0;
        self.tasks.retain(|_, entry| matches!(entry.place, Place::Sending(_)));
        all
    }

    /// Takes nothing in any more.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Whether waiting for what is in the queue makes no sense: there is
    /// nothing, or the sink is down.
    pub fn is_at_rest(&self) -> bool {
        self.sending == 0 && (self.ready.is_empty() || self.sink_is_down())
    }

    /// While the sink counts as down and something waits for it, when it is tried again.
    pub fn wake_at(&self) -> Option<Instant> {
        self.breaker.open_until().filter(|_| !self.ready.is_empty())
    }

    /// Whether the sink counts as down.
    pub fn sink_is_down(&self) -> bool {
        self.breaker.open_until().is_some()
    }

    /// How many are in the queue, those that are being sent among them.
    pub fn depth(&self) -> usize {
        self.ready.len() + self.sending
    }

    /// How many Tasks are held back, or invited and not there yet.
    pub fn held_back(&self) -> usize {
        self.held_back.len() + self.invited
    }

    /// How many Tasks have a notice that is neither delivered nor given up, also
    /// while their supervisors wait for the next try.
    pub fn unsettled(&self) -> usize {
        self.tasks.len()
    }

    /// Since when the oldest of them is.
    pub fn oldest(&self) -> Option<Instant> {
        self.tasks.values().filter_map(|entry| entry.since).min()
    }
}

#[cfg(test)]
mod tests;
