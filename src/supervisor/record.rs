//! How a view of an object changes the record: what is newer wins, and nothing
//! older than what was seen or written is let in.
//!
//! A view may be stale: watches lag behind the operator's own writes, and an
//! API server that was cut off serves the past. Letting a stale view in would
//! do no harm, since every write carries preconditions, but it would cost a
//! request. So older versions are ignored, for a while only: an etcd that was
//! restored from a copy counts on from older versions.

use std::time::Duration;

use crate::api::{ResourceVersion, Uid};
use crate::desired::ChildKind;

use super::backoff;
use super::event::{ChildView, Source, TaskView};
use super::state::{Asked, Child, Diagnosis, Pass, Presence, Rollout, State, TaskRecord};
use super::time::Instant;
use crate::api::v1::Phase;

/// For this long after a view or a write of our own, older views are ignored.
const FENCE: Duration = Duration::from_secs(60);

/// Whether a view of `version` may replace what was known at `known` since `touched`.
fn is_newer(
    version: ResourceVersion,
    source: Source,
    known: ResourceVersion,
    touched: Instant,
    now: Instant,
) -> bool {
    let listed_since = matches!(source, Source::List(began) if touched < began);
    version > known || listed_since || now.since(touched) > FENCE
}

/// Whether an answer of `version` is older than what is known at `known` since `touched`.
fn is_overtaken(version: ResourceVersion, known: ResourceVersion, touched: Instant, now: Instant) -> bool {
    version < known && now.since(touched) <= FENCE
}

impl TaskRecord {
    /// The record of a Task that was not known before.
    pub(super) fn new(view: TaskView, now: Instant) -> Self {
        let TaskView {
            uid,
            version,
            generation,
            deleting,
            deleted_at,
            finalizer,
            other_finalizers,
            spec,
            fault,
            wanted,
            status,
        } = view;
        Self {
            uid,
            version,
            touched: now,
            generation,
            deleting,
            deleted_at,
            finalizer,
            other_finalizers,
            spec,
            fault,
            wanted,
            status,
            gone: false,
        }
    }
}

impl State {
    /// Whether a change to this state of the Task is what the record holds already.
    pub(super) fn knows_task(&self, uid: &Uid, version: ResourceVersion, now: Instant) -> bool {
        let known = &self.task;
        known.uid == *uid && known.version == version && now.since(known.touched) <= FENCE
    }

    /// The same of a child.
    pub(super) fn knows_child(&self, kind: ChildKind, version: ResourceVersion, now: Instant) -> bool {
        let known = self.child(kind);
        known.version == version && now.since(known.touched) <= FENCE
    }

    /// Lets in what a watch told of the Task; false if it is old news.
    pub(super) fn see_task(&mut self, view: TaskView, source: Source, now: Instant) -> bool {
        // A uid does not come back: until a list says otherwise, what a watch still tells of it is the past.
        let gone = self.task.gone && view.uid == self.task.uid;
        let known = if gone { ResourceVersion(u64::MAX) } else { self.task.version };
        if !is_newer(view.version, source, known, self.task.touched, now) {
            if view.version == self.task.version {
                self.task.touched = now;
            }
            return false;
        }
        if view.uid == self.task.uid {
            self.take_task(view, now);
        } else {
            self.start_anew(view, now);
        }
        true
    }

    /// Lets in the Task as the API server answered it, unless a watch was quicker
    /// with something newer: it would not be told again.
    pub(super) fn answer_task(&mut self, view: TaskView, now: Instant) {
        if !is_overtaken(view.version, self.task.version, self.task.touched, now) {
            self.take_task(view, now);
        }
    }

    /// Lets in a newer state of the Task.
    fn take_task(&mut self, view: TaskView, now: Instant) {
        if view.uid != self.task.uid {
            return;
        }
        if view.generation != self.task.generation {
            // What was refused may be right now, and whoever fought over the old values may not over these.
            for kind in ChildKind::ALL {
                if view.wanted[kind.index()] != self.wanted(kind) {
                    self.children[kind.index()].corrections = 0;
                }
            }
            if let Some(trouble) = &mut self.trouble {
                trouble.retry_at = now;
                trouble.failures = 0;
            }
            self.diagnosis = Diagnosis { since: now, ..Diagnosis::default() };
            self.status_since = now;
        }
        self.task = TaskRecord::new(view, now);
    }

    /// The API server has no Task of this uid.
    pub(super) fn task_is_gone(&mut self, now: Instant) {
        self.task.gone = true;
        self.task.touched = now;
    }

    /// Another Task has the name now: nothing of the earlier one counts.
    fn start_anew(&mut self, view: TaskView, now: Instant) {
        let mut fresh = Self::new(self.key.clone(), view, Presence::Unknown, now);
        // The request under way is still answered, and the slot still held.
        fresh.pass = std::mem::take(&mut self.pass);
        if let Pass::Running { asked, .. } = &mut fresh.pass {
            *asked = Asked::OfEarlierTask;
        }
        fresh.wake_at = self.wake_at;
        fresh.outbox = self.outbox.as_deref().map(|outbox| Box::new(outbox.anew(now)));
        *self = fresh;
    }

    /// Lets in what a watch told of a child; false if it is old news.
    pub(super) fn see_child(
        &mut self,
        kind: ChildKind,
        view: ChildView,
        source: Source,
        now: Instant,
    ) -> bool {
        let child = &mut self.children[kind.index()];
        if !is_newer(view.version, source, child.version, child.touched, now) {
            if view.version == child.version {
                child.touched = now;
            }
            return false;
        }
        self.take_child(kind, view, now);
        true
    }

    /// Lets in a child as the API server answered it, unless a watch was quicker
    /// with something newer.
    pub(super) fn answer_child(&mut self, kind: ChildKind, view: ChildView, now: Instant) {
        let child = &mut self.children[kind.index()];
        if !is_overtaken(view.version, child.version, child.touched, now) {
            self.take_child(kind, view, now);
        } else if view.contender.is_some() {
            child.contender = view.contender;
        }
    }

    /// Lets in a newer state of a child.
    fn take_child(&mut self, kind: ChildKind, view: ChildView, now: Instant) {
        let look_at = now.after(backoff::requeue(Phase::Failed, self.seed()));
        if let Some(rollout) = view.rollout {
            self.take_rollout(if view.foreign.is_none() { rollout } else { Rollout::default() }, now);
        }
        let child = &mut self.children[kind.index()];
        child.version = view.version;
        child.touched = now;
        if view.contender.is_some() {
            child.contender = view.contender;
        }
        child.presence = match view.foreign {
            None => Presence::Ours { uid: view.uid, carries: view.carries, terminating: view.terminating },
            Some(whose) => Presence::Foreign { uid: view.uid, whose, look_at },
        };
    }

    fn take_rollout(&mut self, rollout: Rollout, now: Instant) {
        if rollout != self.rollout {
            self.diagnosis = Diagnosis { since: now, ..Diagnosis::default() };
            self.rollout = rollout;
        }
    }

    /// A watch told that the object `uid` is gone; false if that is old news or another object.
    pub(super) fn lose_child(
        &mut self,
        kind: ChildKind,
        uid: &Uid,
        version: ResourceVersion,
        now: Instant,
    ) -> bool {
        let child = self.child(kind);
        let is_it = match &child.presence {
            Presence::Ours { uid: known, .. } | Presence::Foreign { uid: known, .. } => known == uid,
            Presence::Absent | Presence::Unknown => false,
        };
        let counts = is_it && is_newer(version, Source::Change, child.version, child.touched, now);
        if counts {
            self.child_is_absent(kind, version, now);
        }
        counts
    }

    /// A list of all children of a kind is complete: one that was not in it is gone.
    pub(super) fn children_listed(&mut self, kind: ChildKind, began: Instant, now: Instant) -> bool {
        let child = self.child(kind);
        let missing = child.touched < began && matches!(child.presence, Presence::Ours { .. });
        if missing {
            self.child_is_absent(kind, ResourceVersion::default(), now);
        }
        missing
    }

    /// There is nothing under the name of this child.
    pub(super) fn child_is_absent(&mut self, kind: ChildKind, version: ResourceVersion, now: Instant) {
        let child = &mut self.children[kind.index()];
        *child = Child { presence: Presence::Absent, version, touched: now, ..std::mem::take(child) };
        if kind == ChildKind::Deployment {
            self.take_rollout(Rollout::default(), now);
        }
    }
}
