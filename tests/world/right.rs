//! Where every Task has to be once nothing disturbs it any more.

use task_operator::api::v1::Phase;
use task_operator::desired::ChildKind;
use task_operator::supervisor::State;
use task_operator::supervisor::status::Truth;

use super::server::{Server, Wish};

/// What is not as it should be in the end, if anything.
pub(crate) fn wrong(server: &Server, supervisor: Option<&State>) -> Option<&'static str> {
    let Some(task) = &server.task else {
        return if supervisor.is_some() {
            Some("a Task that is gone still has a supervisor")
        } else if server.children.iter().flatten().any(|child| child.owner.is_some()) {
            Some("a child of a Task that is gone stays")
        } else {
            None
        };
    };
    if supervisor.is_none() {
        return Some("nobody looks after the Task");
    }
    if task.deleting {
        return Some("the deletion does not end");
    }
    if !task.finalizer {
        return Some("the finalizer is missing");
    }
    let Some(ready) = &task.status.ready else { return Some("the status was never written") };
    if task.status.observed_generation != task.generation {
        return Some("the status is about an earlier spec");
    }
    if server.children.iter().flatten().any(|child| child.owner.is_none()) {
        let told = task.status.phase == Phase::Failed && ready.reason == "NameConflict";
        return (!told).then_some("a name that is taken is not told of");
    }
    let spec = &task.wish.spec;
    let wanted = Wish::new(&server.key, &task.uid, spec.clone()).wanted;
    for kind in ChildKind::ALL {
        match server.child(kind) {
            None => return Some("a child is missing"),
            Some(child) if child.owner.as_ref() != Some(&task.uid) => {
                return Some("a child is another Task's");
            }
            Some(child) if child.carries != Some(wanted[kind.index()]) => {
                return Some("a child is not right");
            }
            Some(_) => {}
        }
    }
    let phase = if spec.replicas > 0 { Phase::Succeeded } else { Phase::Pending };
    let is_at_rest = task.status.reconciling.is_none() && task.status.stalled.is_none();
    let says_so = task.status.phase == phase
        && ready.truth == Truth::True
        && is_at_rest
        && task.status.available == spec.replicas;
    (!says_so).then_some("the status does not say that all is well")
}
