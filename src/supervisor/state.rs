//! What a supervisor knows of its Task: small, comparable, free of I/O.

use crate::api::v1::{Phase, TaskSpec};
use crate::api::{ResourceVersion, TaskKey, Uid};
use crate::desired::{ChildKind, Digest};

use super::outbox::Outbox;
use super::status::{Reason, Status};
use super::time::Instant;

/// The record of one Task and of the pass that may be under way for it.
///
/// Only [`State::on`] changes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// Which Task.
    pub key: TaskKey,
    /// What is known of the Task itself.
    pub task: TaskRecord,
    /// What is known of its children, by [`ChildKind::index`].
    pub children: [Child; 3],
    /// How far the Deployment has come.
    pub rollout: Rollout,
    /// The pass.
    pub pass: Pass,
    /// What stands in the way of the children or the finalizer.
    pub trouble: Option<Box<Trouble>>,
    /// What stands in the way of writing the status.
    pub status_trouble: Option<StatusTrouble>,
    /// What the Pods say while the rollout makes no progress.
    pub diagnosis: Diagnosis,
    /// What is under way with the sink; none without one.
    pub outbox: Option<Box<Outbox>>,
    /// When the next pass is due even if nothing happens.
    pub requeue_at: Instant,
    /// The wake-up that was asked for, if it is still to come.
    pub wake_at: Option<Instant>,
    /// When the status was last written, or became old by a new generation.
    pub status_since: Instant,
    /// FinalizerAdded was recorded.
    pub announced: bool,
    /// The removal of the finalizer was sent, and the deletion was not told of
    /// yet: a watch may tell of the end before the answer comes, or without one.
    pub parting: bool,
    /// Passes so far: the seed of their jitter.
    pub passes: u32,
}

/// The Task as it was last seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TaskRecord {
    /// Which object it is.
    pub uid: Uid,
    /// The newest version that was seen or written.
    pub version: ResourceVersion,
    /// When that was.
    pub touched: Instant,
    /// `metadata.generation`.
    pub generation: i64,
    /// `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// That time, in seconds since 1970, 0 for none.
    pub deleted_at: i64,
    /// Our finalizer is there.
    pub finalizer: bool,
    /// The finalizers of others.
    pub other_finalizers: Vec<Box<str>>,
    /// What is asked for, with defaults.
    pub spec: TaskSpec,
    /// Why the spec cannot be read, if so; the children are left alone then.
    pub fault: Option<Box<str>>,
    /// The digests of the children that this spec asks for.
    pub wanted: [Digest; 3],
    /// The status on the server.
    pub status: Status,
    /// The API server said that the object is gone.
    pub gone: bool,
}

/// A child as it was last seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Child {
    /// What is under its name.
    pub presence: Presence,
    /// The newest version that was seen or written: older views are ignored.
    pub version: ResourceVersion,
    /// When that was.
    pub touched: Instant,
    /// Corrections since it last stayed right for a while.
    pub corrections: u8,
    /// When the last correction was sent.
    pub corrected_at: Instant,
    /// Who changed what we had set, if anybody was named.
    pub contender: Option<Box<str>>,
}

/// What is under the name of a child.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Presence {
    /// Nobody has looked.
    Unknown,
    /// Nothing.
    #[default]
    Absent,
    /// Our object.
    Ours {
        /// Which.
        uid: Uid,
        /// The digest of what it carries; none if it carries nothing that was ever wanted.
        carries: Option<Digest>,
        /// It has a deletionTimestamp.
        terminating: bool,
    },
    /// An object that the Task does not control.
    Foreign {
        /// Which.
        uid: Uid,
        /// Whose.
        whose: Whose,
        /// When it is looked at again: the watches do not tell of it.
        look_at: Instant,
    },
}

/// Who controls an object that is in the way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Whose {
    /// An earlier Task of this name: garbage collection will remove it.
    Predecessor,
    /// No controller.
    Nobody,
    /// Another controller, as `Kind/name`.
    Other(Box<str>),
}

/// How far the Deployment has come, from its status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rollout {
    /// The Deployment's controller has seen its newest generation.
    pub current: bool,
    /// Pods that exist.
    pub replicas: i32,
    /// Pods of the newest template.
    pub updated: i32,
    /// Pods that are ready.
    pub ready: i32,
    /// Pods that are available.
    pub available: i32,
    /// ProgressDeadlineExceeded or the reason of ReplicaFailure, with its message.
    pub failure: Option<(Reason, Box<str>)>,
}

/// Where the pass is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pass {
    /// None is under way or asked for.
    #[default]
    Idle,
    /// A slot was asked for.
    Queued {
        /// Ahead of background work.
        priority: super::event::Priority,
    },
    /// It holds a slot and waits for an answer.
    Running {
        /// When it began.
        started: Instant,
        /// What it waits for.
        asked: Asked,
        /// Requests sent.
        requests: u8,
        /// Conflicts that were looked at again at once.
        conflicts: u8,
        /// Something failed.
        failed: bool,
    },
}

/// What the request under way is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Asked {
    /// The Task or its finalizer.
    Task,
    /// The removal of the finalizer.
    Farewell,
    /// A child.
    Child(ChildKind),
    /// The status, which said this phase when the write was sent: a watch may
    /// tell of the new one before the answer comes.
    Status(Phase),
    /// The Pods.
    Pods,
    /// Something of an earlier Task of the name: whatever comes of it, this one's
    /// pass goes on as if nothing had been asked.
    OfEarlierTask,
}

/// What stands in the way, and until when nothing is tried.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Trouble {
    /// Nothing but a change from outside helps.
    pub terminal: bool,
    /// For the condition.
    pub reason: Reason,
    /// For people: names the object, the verb and, where it is one, the permission.
    pub message: Box<str>,
    /// What makes two failures the same one, whatever their texts say.
    pub identity: u64,
    /// Failures in a row.
    pub failures: u32,
    /// The next try.
    pub retry_at: Instant,
}

/// As [`Trouble`], for the write that would have told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StatusTrouble {
    /// Failures in a row.
    pub failures: u32,
    /// The next try.
    pub retry_at: Instant,
}

/// What the Pods of a rollout say that makes no progress.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Diagnosis {
    /// Since when there was no progress.
    pub since: Instant,
    /// When the Pods were last looked at.
    pub looked_at: Option<Instant>,
    /// How often.
    pub looks: u8,
    /// The worst that was found.
    pub fault: Option<Box<PodFault>>,
}

/// The worst fault among a Task's Pods.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PodFault {
    /// For machines, as the kubelet or the scheduler names it.
    pub reason: Reason,
    /// For people.
    pub message: Box<str>,
}

impl State {
    /// The child of this kind.
    pub fn child(&self, kind: ChildKind) -> &Child {
        &self.children[kind.index()]
    }

    /// The digest that the child of this kind should have.
    pub fn wanted(&self, kind: ChildKind) -> Digest {
        self.task.wanted[kind.index()]
    }

    /// A number that is this Task's own, for jitter.
    pub(super) fn seed(&self) -> u64 {
        let text = self.task.uid.as_str().bytes();
        let own = text.fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
        own.wrapping_add(u64::from(self.passes))
    }
}
