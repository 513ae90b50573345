//! What the model-based tests share: a small API server, the shell between it
//! and the shipped core, and what is right in the end.

pub(crate) mod right;
pub(crate) mod server;

use std::hash::{DefaultHasher, Hash, Hasher};

use task_operator::supervisor::State;
use task_operator::supervisor::event::{Answer, Failure, FailureClass, Request};

use self::server::{Reply, child_view, task_view};

/// As the shell reads an answer; none for a conflict. A Task of another uid is not the one asked for.
pub(crate) fn answer(reply: Reply, state: &State) -> Option<Answer> {
    Some(match reply {
        Reply::Task(Some(task)) if task.uid == state.task.uid => Answer::Task(Box::new(task_view(&task))),
        Reply::Task(_) => Answer::TaskAbsent,
        Reply::Child(kind, Some(child)) => Answer::Child(kind, child_view(&child, kind, state)),
        Reply::Child(kind, None) => Answer::ChildAbsent(kind),
        Reply::Pods => Answer::Pods(None),
        Reply::Conflict => return None,
    })
}

/// A failure of this class; the same for the same request.
pub(crate) fn failure(class: FailureClass, request: &Request) -> Failure {
    let mut hasher = DefaultHasher::new();
    (class as u8, request).hash(&mut hasher);
    let identity = hasher.finish();
    Failure { class, reason: "Test".into(), message: "it failed".into(), identity, retry_after: None }
}
