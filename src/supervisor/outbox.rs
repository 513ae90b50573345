//! What a sink still has to be told of the Task.
//!
//! A change of the phase is written into the status together with the phase, so
//! none can get lost with the process. It is offered to the task queue from
//! there, one at a time and oldest first. That it was delivered is remembered
//! here and stands in the next status that is written; if none is due within
//! some seconds, it costs a write of its own, one for all that was delivered
//! meanwhile. A process that dies before tells the same again under the same id.
//!
//! All of it happens within passes: a replica that does not lead has none.

use std::time::Duration;

use crate::api::Uid;
use crate::api::rules::status::{MAX_PENDING, PENDING_MESSAGE_MAX_BYTES, PENDING_REASON_MAX_BYTES};
use crate::queue::notice::{Deletion, Notice, Transition, What};
use crate::queue::{Outcome, retry};

use super::event::{Command, Note};
use super::state::State;
use super::status::{Condition, Notifications, Reason, Status, Truth, shortened};
use super::time::Instant;

/// For this long the word of a delivery waits for a status that is written anyway.
const GRACE: Duration = Duration::from_secs(5);
/// The longest wait between two tries while a deletion waits for them.
const LONGEST_WHILE_DELETING: Duration = Duration::from_secs(5);
/// After a notice that could not be sent because this replica might not write.
const AFTER_FENCING: Duration = Duration::from_secs(1);
/// What is under way with the sink.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Outbox {
    /// For how long a deletion waits for what is still to be told.
    pub farewell_timeout: Duration,
    /// The number of the notice that the queue has or holds back.
    pub offered: Option<u64>,
    /// When the first try of the one that is next was.
    pub tried_since: Option<Instant>,
    /// Failures in a row of the one that is next.
    pub failures: u32,
    /// Before this it is not offered again.
    pub retry_at: Instant,
    /// The last one that needs no telling any more.
    pub settled: Option<Settled>,
    /// Since when a pass knows of the deletion.
    pub deleting_since: Option<Instant>,
    /// The deletion waits no more.
    pub farewell_over: bool,
    /// It was told that the status does not keep what is to be told.
    pub complained: bool,
}

/// A notice that needs no telling any more.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settled {
    /// Which.
    pub number: u64,
    /// When what it told of happened, in seconds since 1970: numbers come back
    /// where etcd is restored from a copy.
    pub at: i64,
    /// When that became known.
    pub when: Instant,
    /// Why it was given up, for machines and for people, unless it was delivered.
    pub given_up: Option<(Reason, Box<str>)>,
}

impl Outbox {
    fn new(farewell_timeout: Duration, now: Instant) -> Self {
        Self {
            farewell_timeout,
            offered: None,
            tried_since: None,
            failures: 0,
            retry_at: now,
            settled: None,
            deleting_since: None,
            farewell_over: false,
            complained: false,
        }
    }

    /// The same sink, and nothing else that is known.
    pub(super) fn anew(&self, now: Instant) -> Self {
        Self::new(self.farewell_timeout, now)
    }
}

impl State {
    /// The same with a sink: changes of the phase and the deletion are told. A
    /// deletion waits for that at most `farewell_timeout`.
    #[must_use]
    pub fn notifying(mut self, farewell_timeout: Duration, now: Instant) -> Self {
        self.outbox = Some(Box::new(Outbox::new(farewell_timeout, now)));
        self
    }

    /// What is to be told next, if there is a sink and anything to tell.
    fn next_notice(&self) -> Option<Notice> {
        let outbox = self.outbox.as_deref()?;
        let notice = |what| Notice { key: self.key.clone(), uid: self.task.uid.clone(), what };
        if self.task.gone || outbox.farewell_over {
            return None;
        }
        let pending = self.task.status.notifications.as_deref().map_or(&[][..], |known| &known.pending);
        let done = outbox.settled.as_ref().map_or(0, |settled| settled.covers(pending));
        if let Some((number, transition)) = pending.get(done) {
            return Some(notice(What::Phase(*number, transition.clone())));
        }
        (self.task.deleting && self.task.finalizer).then(|| {
            // As the status has them, which is not written any more: a spec may still be changed.
            let status = &self.task.status;
            let (phase, generation) = (status.phase, status.observed_generation.max(0));
            notice(What::Deleted(Deletion { phase, at: self.task.deleted_at, generation }))
        })
    }

    /// When something is to be done about the sink within a pass; none if nothing is.
    pub(super) fn telling_at(&self) -> Option<Instant> {
        let outbox = self.outbox.as_deref()?;
        let number = self.next_notice()?.number();
        // A pass has to begin the wait for the farewell.
        let begins_wait = self.task.deleting && self.task.finalizer && outbox.deleting_since.is_none();
        if begins_wait {
            return Some(Instant::default());
        }
        (outbox.offered != Some(number)).then_some(outbox.retry_at)
    }

    /// Until when the finalizer stays for the sake of what is still to be told.
    pub(super) fn farewell_at(&self) -> Option<Instant> {
        let outbox = self.outbox.as_deref()?;
        self.next_notice()?;
        Some(outbox.deleting_since.unwrap_or(Instant(u64::MAX)).after(outbox.farewell_timeout))
    }

    /// Within a pass: offers what is next, or stops to wait for a farewell that takes too long.
    pub(super) fn tell(&mut self, now: Instant, out: &mut Vec<Command>) {
        let ends = self.task.deleting && self.task.finalizer;
        let Some(outbox) = self.outbox.as_deref_mut() else { return };
        if ends && outbox.deleting_since.is_none() {
            outbox.deleting_since = Some(now);
            outbox.retry_at = now;
            outbox.failures = 0;
        }
        if ends && self.farewell_at().is_some_and(|at| now >= at) {
            return self.go_without_farewell(out);
        }
        if self.telling_at().is_none_or(|at| now < at) {
            return;
        }
        if let (Some(notice), Some(outbox)) = (self.next_notice(), self.outbox.as_deref_mut()) {
            outbox.offered = Some(notice.number());
            outbox.tried_since.get_or_insert(now);
            out.push(Command::Offer(Box::new(notice)));
        }
    }

    fn go_without_farewell(&mut self, out: &mut Vec<Command>) {
        let Some(outbox) = self.outbox.as_deref_mut() else { return };
        outbox.farewell_over = true;
        outbox.offered = None;
        outbox.tried_since = None;
        let waited = outbox.farewell_timeout.as_secs_f32();
        out.push(Command::Withdraw { uid: self.task.uid.clone(), counted: Some("abandoned") });
        out.push(Command::Record(warning(
            "FarewellAbandoned",
            format!("the sink did not take the notification of the deletion within {waited} s; the deletion goes on without it"),
        )));
    }

    /// What became of an offer; true if something has to be done about it.
    pub(super) fn told(
        &mut self,
        number: u64,
        outcome: Outcome,
        now: Instant,
        out: &mut Vec<Command>,
    ) -> bool {
        let seed = self.seed();
        let next = self.next_notice();
        let (deleting, uid) = (self.task.deleting, self.task.uid.clone());
        let Some(outbox) = self.outbox.as_deref_mut() else { return false };
        let Some(offered) = outbox.offered.take() else { return false };
        let Some(notice) = next else {
            // Nothing is left to tell, and the queue may keep a place for it.
            outbox.tried_since = None;
            out.push(Command::Withdraw { uid, counted: None });
            return true;
        };
        if notice.number() != offered || number != offered {
            // An invitation, or the end of what an earlier supervisor of this Task had offered.
            return true;
        }
        let given_up: Option<(Reason, Box<str>)> = match outcome {
            Outcome::Delivered => None,
            Outcome::Refused(why) => Some(("Refused".into(), why)),
            Outcome::Returned => {
                outbox.retry_at = now.after(AFTER_FENCING);
                return true;
            }
            Outcome::Failed(why, asked) => {
                outbox.failures = outbox.failures.saturating_add(1);
                let since = outbox.tried_since.unwrap_or(now);
                match retry::again(outbox.failures, since, now, asked, seed) {
                    Some(at) => {
                        let longest = now.after(LONGEST_WHILE_DELETING);
                        outbox.retry_at = if deleting { at.min(longest) } else { at };
                        return true;
                    }
                    None => {
                        out.push(Command::Withdraw { uid, counted: Some("expired") });
                        Some(("Expired".into(), why))
                    }
                }
            }
        };
        if let Some((reason, why)) = &given_up {
            let text = format!("{notice} was not delivered ({reason}): {why}");
            out.push(Command::Record(warning("NotificationFailed", text)));
        }
        outbox.settle(&notice, given_up, now);
        true
    }

    /// What is told the queue once the Task of now is gone, if the queue knows of it; and its uid.
    pub(super) fn withdrawal(&self) -> Option<(Uid, Command)> {
        self.outbox.as_deref()?.tried_since?;
        let uid = &self.task.uid;
        Some((uid.clone(), Command::Withdraw { uid: uid.clone(), counted: None }))
    }

    /// Adds to `new`, which is about to be written in place of `old`, what is to be told. Returns
    /// when that has to be written even if all else stays the same; none if it has not.
    pub(super) fn complete(&self, new: &mut Status, now: Instant) -> Option<Instant> {
        let old = &self.task.status;
        new.notifications.clone_from(&old.notifications);
        new.notified.clone_from(&old.notified);
        let outbox = self.outbox.as_deref()?;
        let mut due = None;
        let mut kept = old.notifications.as_deref().cloned().unwrap_or_default();
        if let Some(settled) = &outbox.settled {
            let covered = settled.covers(&kept.pending);
            if covered > 0 {
                kept.pending.drain(..covered);
                kept.settled = settled.number;
                new.notified = settled.condition(self.task.generation);
                let is_news = new.notified.is_some() || old.notified.is_some();
                due = Some(if is_news { now } else { settled.when.after(GRACE) });
            }
        }
        if new.phase != old.phase {
            kept.add(transition(old, new));
        }
        if kept != Notifications::default() {
            new.notifications = Some(Box::new(kept));
        }
        due
    }

    /// After a status was written that should hold a change of the phase: says so if it does not,
    /// which is so where the definition of the Tasks is of an older version.
    pub(super) fn check_that_it_is_kept(&mut self, out: &mut Vec<Command>) {
        let Some(outbox) = self.outbox.as_deref_mut() else { return };
        if self.task.status.notifications.is_none() && !outbox.complained {
            outbox.complained = true;
            let text = "the sink is not told of this Task: its CustomResourceDefinition has no \
                        status.notifications; apply the one of this version of the operator";
            out.push(Command::Record(warning("NotificationFailed", text.to_owned())));
        }
    }
}

impl Outbox {
    fn settle(&mut self, notice: &Notice, given_up: Option<(Reason, Box<str>)>, now: Instant) {
        self.tried_since = None;
        self.failures = 0;
        self.retry_at = now;
        match &notice.what {
            What::Phase(number, transition) => {
                self.settled = Some(Settled { number: *number, at: transition.at, when: now, given_up });
            }
            What::Deleted(_) => self.farewell_over = true,
        }
    }
}

impl Settled {
    /// How many of these need no telling any more, since this one does not.
    fn covers(&self, pending: &[(u64, Transition)]) -> usize {
        let is_it =
            |(number, transition): &(u64, Transition)| *number == self.number && transition.at == self.at;
        pending.iter().position(is_it).map_or(0, |index| index + 1)
    }

    fn condition(&self, generation: i64) -> Option<Condition> {
        let (reason, why) = self.given_up.as_ref()?;
        let message = format!("notification {} was not delivered: {why}", self.number);
        Some(Condition {
            truth: Truth::False,
            reason: reason.clone(),
            message: message.into(),
            generation,
            since: 0,
        })
    }
}

impl Notifications {
    /// Adds a change of the phase with the next number. What does not fit becomes one with the
    /// newest that is there, which is never the one that is being told.
    fn add(&mut self, transition: Transition) {
        let number = self.pending.last().map_or(self.settled, |(number, _)| *number) + 1;
        let is_full = self.pending.len() >= MAX_PENDING;
        match self.pending.last_mut().filter(|_| is_full) {
            None => self.pending.push((number, transition)),
            Some(last) => {
                let (from, skipped) = (last.1.from, last.1.skipped.saturating_add(1));
                *last = (number, Transition { from, skipped, ..transition });
            }
        }
    }
}

/// The change of the phase between two statuses; its time is set when it is written.
fn transition(old: &Status, new: &Status) -> Transition {
    let ready = new.ready.as_ref();
    Transition {
        from: old.phase,
        to: new.phase,
        at: 0,
        generation: new.observed_generation,
        reason: shortened(ready.map_or("", |ready| &ready.reason), PENDING_REASON_MAX_BYTES).into(),
        message: shortened(ready.map_or("", |ready| &ready.message), PENDING_MESSAGE_MAX_BYTES).into(),
        skipped: 0,
    }
}

fn warning(reason: &'static str, text: String) -> Note {
    Note { warning: true, reason, action: "Notify", text: text.into(), related: None }
}
