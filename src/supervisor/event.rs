//! What a supervisor can be told, and what it can ask for.

use std::borrow::Cow;
use std::time::Duration;

use crate::api::v1::{Phase, TaskSpec};
use crate::api::{ResourceVersion, Uid};
use crate::desired::{ChildKind, Digest};
use crate::queue::{self, notice::Notice};

use super::state::{PodFault, Rollout, Whose};
use super::status::{Reason, Status};
use super::time::Instant;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A watch told of the Task.
    TaskSeen(Box<TaskView>, Source),
    /// A watch told that the Task is gone: the last event.
    TaskGone,
    /// A watch told of a child.
    ChildSeen(ChildKind, ChildView, Source),
    /// A watch told that a child is gone.
    ChildGone(ChildKind, Uid, ResourceVersion),
    /// A list of all children of this kind that began at this moment is complete.
    ChildrenListed(ChildKind, Instant),
    /// The pass may begin.
    SlotGranted,
    /// The request under way was answered.
    Answered(Answer),
    /// The request under way failed.
    Failed(Failure),
    /// What became of the notice of this number that was offered; number 0 stands for whichever it was.
    Told(u64, queue::Outcome),
    /// The wake-up that was asked for.
    TimePassed,
    /// The API server answers again after it did not.
    ConnectionRestored,
}

/// How a watch came to tell of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// It changed.
    Change,
    /// It stands in a list that began at this moment: the first one, or one after a broken watch.
    List(Instant),
}

/// A Task as the API server showed it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TaskView {
    /// Which object it is.
    pub uid: Uid,
    /// Which state of it.
    pub version: ResourceVersion,
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
    /// Its status.
    pub status: Status,
}

/// A child as the API server showed it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChildView {
    /// Which object it is.
    pub uid: Uid,
    /// Which state of it.
    pub version: ResourceVersion,
    /// None if the Task controls it.
    pub foreign: Option<Whose>,
    /// It has a deletionTimestamp.
    pub terminating: bool,
    /// The digest of the wanted child if it carries all of it.
    pub carries: Option<Digest>,
    /// Of a Deployment, its status.
    pub rollout: Option<Rollout>,
    /// Who last changed a field of ours, where a correction found somebody.
    pub contender: Option<Box<str>>,
}

/// The answer to a [`Request`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The Task, as it is now.
    Task(Box<TaskView>),
    /// There is no Task of this uid.
    TaskAbsent,
    /// The child, as it is now.
    Child(ChildKind, ChildView),
    /// There is no such child.
    ChildAbsent(ChildKind),
    /// What the Pods say.
    Pods(Option<Box<PodFault>>),
}

/// Why a request failed, as far as the next step depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Failure {
    /// What to do about it.
    pub class: FailureClass,
    /// For the condition.
    pub reason: Reason,
    /// For people: names the object, the verb and, where it is one, the permission.
    pub message: Box<str>,
    /// The same for failures that differ in their text only.
    pub identity: u64,
    /// What the API server asked to wait.
    pub retry_after: Option<Duration>,
}

/// What to do about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureClass {
    /// Our view was old (409, or an object that was not there any more): look again at once.
    Stale,
    /// It may go by itself: unreachable, overloaded, an error of the server.
    Transient,
    /// Only a change from outside helps: forbidden, over quota, invalid, refused by admission.
    Terminal,
    /// The namespace is on its way out, and the Task with it: say nothing.
    Ending,
    /// Not sent: this replica may not write any more.
    Fenced,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Ask the dispatcher for a slot, or move an earlier ask to this priority.
    AskSlot(Priority),
    /// Send this request; its answer comes back as an event. Never a second one before that.
    Send(Request),
    /// Send [`Event::TimePassed`] then; replaces an earlier wake-up.
    WakeAt(Instant),
    /// Record a Kubernetes event.
    Record(Note),
    /// Offer this to the task queue; what becomes of it comes back as an event.
    Offer(Box<Notice>),
    /// The queue is to forget what the Task of this uid had offered.
    Withdraw {
        /// Which Task of the name.
        uid: Uid,
        /// What that is counted as, if anything was given up.
        counted: Option<&'static str>,
    },
    /// The pass is over: give the slot back.
    PassFinished(Report),
}

/// Who goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Priority {
    /// The initial list, requeues and retries.
    Background,
    /// Somebody changed something.
    Change,
}

/// One request to the API server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Read the Task.
    LookAtTask,
    /// Read a child.
    LookAtChild(ChildKind),
    /// Add our finalizer.
    AddFinalizer,
    /// Remove our finalizer.
    RemoveFinalizer,
    /// Create a child.
    Create(ChildKind),
    /// Bring back what is wanted of a child, leaving what others added.
    Correct(ChildKind),
    /// Write this status.
    WriteStatus(Box<Status>),
    /// Find the worst fault among the Pods.
    FindPodFault,
}

/// A Kubernetes event to record about the Task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Note {
    /// Warning rather than Normal.
    pub warning: bool,
    /// For machines.
    pub reason: &'static str,
    /// What the operator did or tried to do.
    pub action: &'static str,
    /// For people.
    pub text: Cow<'static, str>,
    /// The child it is about.
    pub related: Option<ChildKind>,
}

/// How a pass ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Report {
    /// The phase at its end.
    pub phase: Phase,
    /// What it did.
    pub outcome: Outcome,
    /// From the slot to the end.
    pub took: Duration,
    /// Requests it sent.
    pub requests: u8,
}

/// What a pass came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// All is as it should be, or waits for others.
    Done,
    /// It failed and is tried again.
    Failed,
    /// It failed, and only a change from outside will help.
    FailedForGood,
}
