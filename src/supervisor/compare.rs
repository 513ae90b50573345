//! An observed child against what the Task wants: what the core is told of it.

use crate::cluster::observe::ObservedChild;
use crate::desired::shape::{DeploymentShape, DeploymentStatus};
use crate::desired::{self, ChildKind, Covers, Ownership};

use super::event::ChildView;
use super::state::{Rollout, State, Whose};
use super::status::Reason;

/// The child as the core sees it: whose it is, and whether it carries all that is wanted.
pub(super) fn view(child: &ObservedChild, state: &State, contender: Option<String>) -> ChildView {
    let metadata = child.metadata();
    let foreign = match desired::ownership(metadata, &state.key.name, &state.task.uid) {
        Ownership::Ours => None,
        Ownership::Predecessor => Some(Whose::Predecessor),
        Ownership::Unowned => Some(Whose::Nobody),
        Ownership::OtherController { kind, name } => Some(Whose::Other(format!("{kind}/{name}").into())),
    };
    let rollout = match child {
        ObservedChild::Deployment(shape) => Some(rollout(shape)),
        ObservedChild::ConfigMap(_) | ObservedChild::Service(_) => None,
    };
    ChildView {
        uid: child.uid(),
        version: child.version(),
        carries: (foreign.is_none() && carries_all(child, state)).then(|| state.wanted(child.kind())),
        foreign,
        terminating: metadata.deletion_timestamp.is_some(),
        rollout,
        contender: contender.map(Into::into),
    }
}

fn carries_all(child: &ObservedChild, state: &State) -> bool {
    let (key, uid, spec) = (&state.key, &state.task.uid, &state.task.spec);
    match child {
        ObservedChild::ConfigMap(shape) => shape.covers(&desired::config_map(key, uid, spec)),
        ObservedChild::Service(shape) => shape.covers(&desired::service(key, uid, spec)),
        ObservedChild::Deployment(shape) => shape.covers(&desired::deployment(key, uid, spec)),
    }
}

fn rollout(shape: &DeploymentShape) -> Rollout {
    let default = DeploymentStatus::default();
    let status = shape.status.as_ref().unwrap_or(&default);
    let condition = |kind: &str, truth: &str| {
        status.conditions.iter().find(|condition| condition.r#type == kind && condition.status == truth)
    };
    let failure = condition("Progressing", "False")
        .filter(|condition| condition.reason.as_deref() == Some("ProgressDeadlineExceeded"))
        .or_else(|| condition("ReplicaFailure", "True"))
        .map(|condition| {
            let reason: Reason =
                condition.reason.clone().unwrap_or_else(|| "ReplicaFailure".to_owned()).into();
            let name =
                desired::name_of(ChildKind::Deployment, shape.metadata.name.as_deref().unwrap_or_default());
            let text = condition.message.as_deref().unwrap_or_default();
            (reason, format!("Deployment {name}: {text}").into())
        });
    Rollout {
        current: status.observed_generation >= shape.metadata.generation,
        replicas: status.replicas,
        updated: status.updated_replicas,
        ready: status.ready_replicas,
        available: status.available_replicas,
        failure,
    }
}
