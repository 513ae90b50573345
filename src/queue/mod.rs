//! The task queue: work outside of the cluster. Its work are notifications: one
//! CloudEvent per change of a Task's phase and per deletion, posted to an HTTP sink.
//!
//! Pure:
//!
//! - [`notice`]: what happened to a Task; what it is called is the same however often it is told
//! - [`cloud_event`]: a notice as an HTTP message, in the binary or the structured mode
//! - [`signature`]: what proves to the sink who sent it
//! - [`retry`]: when a notice that was not taken is tried again, and when it is given up
//! - [`line`](mod@line): which notices wait, which are sent, and who is held back
//! - [`breaker`]: whether the sink is worth a try
//!
//! Around them:
//!
//! - [`sink`]: posts messages, and says what became of them; [`secret_file`]: what they are signed with
//! - [`actor`]: the queue, with its workers
//!
//! What a Task still has to tell stands in its status, so nothing is lost with
//! the process, and the queue may hold back whoever it has no room for.

use std::time::Duration;

use crate::api::{TaskKey, Uid};

pub mod actor;
pub mod breaker;
pub mod cloud_event;
pub mod line;
pub mod notice;
pub mod retry;
pub mod secret_file;
pub mod signature;
pub mod sink;

/// What became of one try to deliver a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The sink has taken it.
    Delivered,
    /// The sink will never take it; why, for people.
    Refused(String),
    /// It was not taken and may be later; why, for people, and how long the sink asked to wait.
    Failed(String, Option<Duration>),
    /// It was not sent: this replica may not write now.
    NotSent,
}

/// What a supervisor learns of what it offered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The sink has taken it.
    Delivered,
    /// The sink will never take it; why, for people.
    Refused(Box<str>),
    /// It was not taken and may be later; why, for people, and how long the sink asked to wait.
    Failed(Box<str>, Option<Duration>),
    /// There was no room, and there is now; or it was not sent. It is to be offered again.
    Returned,
}

/// Tells of what became of an offer.
#[derive(Clone, Debug, PartialEq, Eq, actix::Message)]
#[rtype(result = "()")]
pub struct Told {
    /// The name of the Task.
    pub key: TaskKey,
    /// Which Task of that name.
    pub uid: Uid,
    /// Which of its notices was sent; 0 if none was.
    pub number: u64,
    /// What became of its offer.
    pub outcome: Outcome,
}
