//! What to do next: the first difference between what is and what should be.
//!
//! A pass asks [`next`] again after each answer, so it always acts on the
//! newest that is known, and a spec that changed meanwhile costs no write for
//! the value in between.

use std::time::Duration;

use crate::desired::ChildKind;

use super::backoff;
use super::event::Request;
use super::phase::{assess, carries_what_is_wanted, is_rolling_out};
use super::state::{Child, Presence, State};
use super::status::{Status, Truth};
use super::time::Instant;

/// A status that tells of nothing but progress waits this long after the last
/// one: what follows within it makes it needless.
const PROGRESS_GRACE: Duration = Duration::from_millis(1500);
/// The same for the first one of a spec. Until then the observed generation on
/// the server is not the Task's, by which every reader knows that it is under way.
const FIRST_GRACE: Duration = Duration::from_secs(5);
/// A rollout without progress for this long has its Pods looked at.
const PATIENCE: Duration = Duration::from_secs(15);
/// The longest time between two looks at the Pods.
const LONGEST_PATIENCE: Duration = Duration::from_secs(300);
/// A child that is being deleted is looked at this long after it was last seen:
/// the watches do not tell of the end of one that has lost its label.
const LAST_LOOK: Duration = Duration::from_secs(10);
/// After this long without a correction the earlier ones are forgotten.
const CORRECTIONS_FORGOTTEN: Duration = Duration::from_secs(300);

/// What a pass does next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Something is to be done about the sink, which needs a pass and no request.
    Tell,
    /// Send this.
    Request(Request),
    /// Nothing before this moment.
    At(Instant),
    /// Nothing until something happens.
    Rest,
}

/// What to do next for this Task.
pub(super) fn next(state: &State, now: Instant) -> Next {
    let mut later = Later(None);
    if state.telling_at().is_some_and(|at| later.is_due(at, now)) {
        return Next::Tell;
    }
    let request = if state.task.gone {
        None
    } else {
        work(state, now, &mut later)
            .or_else(|| status(state, now, &mut later))
            .or_else(|| pods(state, now, &mut later))
    };
    match (request, later.0) {
        (Some(request), _) => Next::Request(request),
        (None, Some(at)) => Next::At(at),
        (None, None) => Next::Rest,
    }
}

/// Whether the finalizer and the children are as far as they can be now.
pub(super) fn work_is_done(state: &State, now: Instant) -> bool {
    work(state, now, &mut Later(None)).is_none()
}

/// The earliest moment at which a step that waits wants to be asked again.
struct Later(Option<Instant>);

impl Later {
    fn at(&mut self, at: Instant) {
        self.0 = Some(self.0.map_or(at, |other| other.min(at)));
    }

    /// Whether `at` has come; if not, remembers it.
    fn is_due(&mut self, at: Instant, now: Instant) -> bool {
        if now < at {
            self.at(at);
        }
        now >= at
    }
}

/// The finalizer and the children; nothing of it while trouble has to be waited out.
fn work(state: &State, now: Instant, later: &mut Later) -> Option<Request> {
    if let Some(trouble) = &state.trouble
        && !later.is_due(trouble.retry_at, now)
    {
        return None;
    }
    match (state.task.deleting, state.task.finalizer) {
        (true, true) => {
            let waits = state.farewell_at().is_some_and(|at| !later.is_due(at, now));
            (!waits).then_some(Request::RemoveFinalizer)
        }
        (true, false) => None,
        (false, false) => Some(Request::AddFinalizer),
        (false, true) if state.task.fault.is_some() => None,
        (false, true) => ChildKind::ALL.into_iter().find_map(|kind| child(state, kind, now, later)),
    }
}

fn child(state: &State, kind: ChildKind, now: Instant, later: &mut Later) -> Option<Request> {
    let child = state.child(kind);
    match &child.presence {
        Presence::Unknown => Some(Request::LookAtChild(kind)),
        Presence::Absent if something_is_in_the_way(state) => None,
        Presence::Absent => Some(Request::Create(kind)),
        Presence::Foreign { look_at, .. } => {
            later.is_due(*look_at, now).then_some(Request::LookAtChild(kind))
        }
        Presence::Ours { terminating: true, .. } => {
            later.is_due(child.touched.after(LAST_LOOK), now).then_some(Request::LookAtChild(kind))
        }
        Presence::Ours { carries: Some(digest), .. } if *digest == state.wanted(kind) => None,
        Presence::Ours { .. } => {
            let wait = backoff::between_corrections(corrections(child, now));
            later.is_due(child.corrected_at.after(wait), now).then_some(Request::Correct(kind))
        }
    }
}

/// The corrections of this child that still count.
pub(super) fn corrections(child: &Child, now: Instant) -> u8 {
    if now.since(child.corrected_at) > CORRECTIONS_FORGOTTEN { 0 } else { child.corrections }
}

fn something_is_in_the_way(state: &State) -> bool {
    state.children.iter().any(|child| matches!(child.presence, Presence::Foreign { .. }))
}

fn status(state: &State, now: Instant, later: &mut Later) -> Option<Request> {
    if state.task.deleting {
        return None;
    }
    let (old, mut new) = (&state.task.status, assess(state));
    if is_ready(&new) && !says_ready_already(old, &new) && !carry_what_is_wanted(state) {
        // A child is missing or waits to be corrected: what comes of that is told then.
        return None;
    }
    let word = state.complete(&mut new, now);
    let is_first = old.observed_generation != new.observed_generation;
    let grace = if is_first { FIRST_GRACE } else { PROGRESS_GRACE };
    let own = match tells_of_progress_only(old, &new) {
        _ if new.says_the_same(old) => None,
        true => Some(state.status_since.after(grace)),
        false => Some(now),
    };
    let due = [own, word].into_iter().flatten().min()?;
    if let Some(trouble) = &state.status_trouble
        && !later.is_due(trouble.retry_at, now)
    {
        return None;
    }
    later.is_due(due, now).then(|| Request::WriteStatus(Box::new(new)))
}

/// Whether a reader who sees the old status instead is not misled: the same
/// phase, no failure in either, and neither says Ready of the present spec.
fn tells_of_progress_only(old: &Status, new: &Status) -> bool {
    old.phase == new.phase
        && !is_ready(new)
        && !says_ready_already(old, new)
        && old.stalled.is_none()
        && new.stalled.is_none()
}

fn is_ready(status: &Status) -> bool {
    status.ready.as_ref().is_some_and(|ready| ready.truth == Truth::True)
}

/// Whether `old` says Ready of the spec that `new` is about.
fn says_ready_already(old: &Status, new: &Status) -> bool {
    is_ready(old) && old.observed_generation == new.observed_generation
}

fn carry_what_is_wanted(state: &State) -> bool {
    ChildKind::ALL.into_iter().all(|kind| carries_what_is_wanted(state, kind))
}

fn pods(state: &State, now: Instant, later: &mut Later) -> Option<Request> {
    // Without Pods there are none to look at: what keeps them from being made the Deployment tells.
    if state.task.deleting || !is_rolling_out(state) || state.rollout.replicas == 0 {
        return None;
    }
    let diagnosis = &state.diagnosis;
    let at = match diagnosis.looked_at {
        None => diagnosis.since.after(PATIENCE),
        Some(at) => at.after((PATIENCE * (1 << diagnosis.looks.min(5))).min(LONGEST_PATIENCE)),
    };
    later.is_due(at, now).then_some(Request::FindPodFault)
}
