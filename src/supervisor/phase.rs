//! The phase and the conditions: what a Task is told to be, from what is known of it.
//!
//! [`assess`] is a list of named checks, worst first; the first one that
//! applies gives the verdict, and the verdict gives phase and conditions, so
//! that they never contradict each other.

use std::borrow::Cow;
use std::fmt::Write;

use crate::api::v1::Phase;
use crate::desired::{ChildKind, name_of};

use super::state::{Presence, State, Whose};
use super::status::{Condition, Reason, Status, Truth};

/// From this many failures in a row on a Task tells of them, though they may pass.
pub(super) const TELL_AFTER_FAILURES: u32 = 3;
/// From this many corrections on a child counts as contested.
pub(super) const CONTESTED_AFTER: u8 = 3;

type Text = Cow<'static, str>;

/// What all the conditions follow from.
enum Verdict {
    Ready(Reason, Text),
    Working(Reason, Text),
    Failed(Reason, Text),
}

/// The status that the Task should have now, without its times.
pub(super) fn assess(state: &State) -> Status {
    let verdict = unreadable(state)
        .or_else(|| lasting_trouble(state))
        .or_else(|| name_conflict(state))
        .or_else(|| passing_trouble(state))
        .or_else(|| waiting_for_a_child(state))
        .or_else(|| contested(state))
        .or_else(|| failed_rollout(state))
        .unwrap_or_else(|| progress(state));
    let rollout = &state.rollout;
    let generation = state.task.generation;
    let condition = |truth, reason: &Reason, message: &Text| {
        Some(Condition { truth, reason: reason.clone(), message: message.clone(), generation, since: 0 })
    };
    let by_availability = if rollout.available > 0 { Phase::Running } else { Phase::Pending };
    let (phase, ready, reconciling, stalled) = match &verdict {
        Verdict::Ready(reason, text) => {
            let phase = if state.task.spec.replicas > 0 { Phase::Succeeded } else { Phase::Pending };
            (phase, condition(Truth::True, reason, text), None, None)
        }
        Verdict::Working(reason, text) => (
            by_availability,
            condition(Truth::False, reason, text),
            condition(Truth::True, reason, text),
            None,
        ),
        Verdict::Failed(reason, text) => {
            (Phase::Failed, condition(Truth::False, reason, text), None, condition(Truth::True, reason, text))
        }
    };
    Status {
        phase,
        available: rollout.available,
        replicas: rollout.replicas,
        observed_generation: generation,
        selects: true,
        ready,
        reconciling,
        stalled,
        notified: None,
        notifications: None,
        foreign: Vec::new(),
        updated: 0,
    }
}

/// Whether nothing but Pods becoming ready is waited for.
pub(super) fn is_rolling_out(state: &State) -> bool {
    state.trouble.is_none()
        && ChildKind::ALL.iter().all(|&kind| carries_what_is_wanted(state, kind))
        && !is_complete(state)
}

/// Whether this child is there, and as it should be.
pub(super) fn carries_what_is_wanted(state: &State, kind: ChildKind) -> bool {
    matches!(&state.child(kind).presence,
        Presence::Ours { carries: Some(digest), terminating: false, .. } if *digest == state.wanted(kind))
}

fn is_complete(state: &State) -> bool {
    let (rollout, wanted) = (&state.rollout, state.task.spec.replicas);
    rollout.current && rollout.replicas == wanted && rollout.updated == wanted && rollout.ready == wanted
}

fn unreadable(state: &State) -> Option<Verdict> {
    let fault = state.task.fault.as_deref()?;
    Some(Verdict::Failed("InvalidSpec".into(), format!("the spec cannot be read: {fault}").into()))
}

fn lasting_trouble(state: &State) -> Option<Verdict> {
    let trouble = state.trouble.as_deref().filter(|trouble| trouble.terminal)?;
    Some(Verdict::Failed(trouble.reason.clone(), trouble.message.to_string().into()))
}

fn passing_trouble(state: &State) -> Option<Verdict> {
    let trouble = state.trouble.as_deref().filter(|trouble| trouble.failures >= TELL_AFTER_FAILURES)?;
    Some(Verdict::Working(trouble.reason.clone(), trouble.message.to_string().into()))
}

fn name_conflict(state: &State) -> Option<Verdict> {
    ChildKind::ALL.into_iter().find_map(|kind| {
        let owner = match &state.child(kind).presence {
            Presence::Foreign { whose: Whose::Nobody, .. } => "which has no controller".to_owned(),
            Presence::Foreign { whose: Whose::Other(owner), .. } => format!("which {owner} controls"),
            _ => return None,
        };
        let text = format!(
            "{} exists, {owner}, and is left alone: delete or rename it, or give the Task another name",
            full_name(state, kind),
        );
        Some(Verdict::Failed("NameConflict".into(), text.into()))
    })
}

fn waiting_for_a_child(state: &State) -> Option<Verdict> {
    ChildKind::ALL.into_iter().find_map(|kind| match &state.child(kind).presence {
        Presence::Foreign { whose: Whose::Predecessor, .. } => Some(Verdict::Working(
            "WaitingForGarbageCollection".into(),
            format!(
                "{} belongs to an earlier Task of this name and is being removed",
                full_name(state, kind)
            )
            .into(),
        )),
        Presence::Ours { terminating: true, .. } => Some(Verdict::Working(
            "ChildTerminating".into(),
            format!("{} is being deleted and will be made anew", full_name(state, kind)).into(),
        )),
        _ => None,
    })
}

fn contested(state: &State) -> Option<Verdict> {
    ChildKind::ALL.into_iter().find_map(|kind| {
        let child = state.child(kind);
        if child.corrections < CONTESTED_AFTER || carries_what_is_wanted(state, kind) {
            return None;
        }
        let who = child.contender.as_deref().unwrap_or("somebody");
        let text = format!(
            "{who} keeps changing fields of {} that the Task declares; they are set again at most once a minute",
            full_name(state, kind),
        );
        Some(Verdict::Working("DriftContested".into(), text.into()))
    })
}

fn failed_rollout(state: &State) -> Option<Verdict> {
    let (reason, message) = state.rollout.failure.as_ref()?;
    let mut text = message.to_string();
    if let Some(fault) = &state.diagnosis.fault {
        // Writing to a String cannot fail.
        let _ = write!(text, "; {}", fault.message);
    }
    Some(Verdict::Failed(reason.clone(), text.into()))
}

fn progress(state: &State) -> Verdict {
    let (rollout, wanted) = (&state.rollout, state.task.spec.replicas);
    if carries_what_is_wanted(state, ChildKind::Deployment) && is_complete(state) {
        return match wanted {
            0 => Verdict::Ready("ScaledToZero".into(), "no replicas are wanted".into()),
            1 => Verdict::Ready("Available".into(), "the replica is ready".into()),
            _ => Verdict::Ready("Available".into(), format!("all {wanted} replicas are ready").into()),
        };
    }
    let so_far = format!("{} of {wanted} replicas are available", rollout.available);
    match &state.diagnosis.fault {
        Some(fault) => Verdict::Working(fault.reason.clone(), format!("{so_far}; {}", fault.message).into()),
        None => Verdict::Working("RollingOut".into(), so_far.into()),
    }
}

/// As `Kind namespace/name`.
pub(super) fn full_name(state: &State, kind: ChildKind) -> String {
    format!("{} {}/{}", kind.as_str(), state.key.namespace, name_of(kind, &state.key.name))
}
