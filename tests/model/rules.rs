//! What may never happen, in any state.

use std::time::Duration;

use task_operator::desired::ChildKind;
use task_operator::supervisor::event::{Command, Event, FailureClass, Request, Source};
use task_operator::supervisor::state::{Pass, Presence, State};
use task_operator::supervisor::status::{Status, Truth};
use task_operator::supervisor::time::Instant;

/// No Task is left alone for longer, in milliseconds.
pub(crate) const LONGEST_WAIT: u64 = 60_000;
/// A pass that sends more requests is going round in circles. The shipped core stops itself there.
const REQUESTS_IN_A_PASS: u8 = 24;
/// For this long a view that is older than what is known is not let in.
const FENCE: Duration = Duration::from_secs(60);

/// Declares the rules with what each says.
macro_rules! rules {
    ($($name:ident: $text:literal,)*) => {
        /// What may never happen.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Rule { $(#[doc = $text] $name,)* }

        impl Rule {
            /// One property of the model for each rule.
            pub(crate) fn properties() -> Vec<stateright::Property<crate::machine::Machine>> {
                vec![$(stateright::Property::always($text, |_: &crate::machine::Machine, state: &crate::system::System| {
                    state.broken != Some(Rule::$name)
                }),)*]
            }
        }
    };
}

rules! {
    TouchesForeign: "an object that the Task does not control is never changed",
    TwoRequests: "a Task has one request under way at most",
    VainTwice: "no write that changes nothing is sent again",
    SaysNothingNew: "no status is written that says what is known to be there",
    FinalizerFirst: "no child is touched before the finalizer is there",
    ChildDuringDeletion: "no child is touched during a deletion",
    FinalizerKept: "the finalizer goes only with a deletion",
    FarewellFirst: "the finalizer goes only after the farewell, or after its deadline",
    OnlyWhatIsMissing: "only what is absent is created, only what is ours is corrected",
    NothingWakesIt: "a supervisor that waits will be woken within a minute",
    EarlierTask: "nothing of an earlier Task of the name counts for the next",
    Impatient: "after a failure nothing is sent before its wait is over",
    WaitsTooShort: "waits grow with each failure in a row",
    TooManyRequests: "a pass does not go round in circles",
    FalselyReady: "Ready is only said anew of what is right by all that is known",
    WrongGeneration: "a status tells of the spec it was made for",
    WentBack: "a view older than what is known is not let in for a minute",
    ToldTwice: "what happens once is told once",
    SlotKept: "a slot is held exactly while a request is under way",
}

/// The rule that an event and what followed from it broke, if any.
pub(crate) fn judge(
    before: &State,
    event: &Event,
    after: &State,
    commands: &[Command],
    now: Instant,
) -> Option<Rule> {
    let sent = commands.iter().filter_map(|command| match command {
        Command::Send(request) => Some(request),
        _ => None,
    });
    let requests = sent.filter_map(|request| request_rule(after, request, now));
    requests
        .chain(identity(before, after))
        .chain(order(before, event, after, now))
        .chain(waits(before, event, after, now))
        .next()
}

fn request_rule(state: &State, request: &Request, now: Instant) -> Option<Rule> {
    let task = &state.task;
    let presence = |kind: ChildKind| &state.child(kind).presence;
    let touches_child = matches!(request, Request::Create(_) | Request::Correct(_));
    let is_work = touches_child || matches!(request, Request::AddFinalizer | Request::RemoveFinalizer);
    if touches_child && task.deleting {
        return Some(Rule::ChildDuringDeletion);
    }
    if touches_child && !task.finalizer {
        return Some(Rule::FinalizerFirst);
    }
    if is_work && state.trouble.as_ref().is_some_and(|trouble| trouble.retry_at > now) {
        return Some(Rule::Impatient);
    }
    if let Pass::Running { requests, .. } = state.pass
        && requests > REQUESTS_IN_A_PASS
    {
        return Some(Rule::TooManyRequests);
    }
    match request {
        Request::Create(kind) if *presence(*kind) != Presence::Absent => Some(Rule::OnlyWhatIsMissing),
        Request::Correct(kind) if !matches!(presence(*kind), Presence::Ours { .. }) => {
            Some(Rule::OnlyWhatIsMissing)
        }
        Request::RemoveFinalizer if !task.deleting => Some(Rule::FinalizerKept),
        Request::WriteStatus(status) => status_rule(state, status, now),
        _ => None,
    }
}

fn status_rule(state: &State, status: &Status, now: Instant) -> Option<Rule> {
    let rollout = &state.rollout;
    let says_ready = |status: &Status| status.ready.as_ref().is_some_and(|ready| ready.truth == Truth::True);
    let old = &state.task.status;
    let ready = says_ready(status);
    // What is being repaired is not told of at once.
    let was_ready = says_ready(old) && old.observed_generation == status.observed_generation;
    let carries = |kind: ChildKind| {
        matches!(&state.child(kind).presence,
            Presence::Ours { carries, terminating: false, .. } if *carries == Some(state.wanted(kind)))
    };
    let wanted = state.task.spec.replicas;
    let is_right = ChildKind::ALL.into_iter().all(carries)
        && rollout.current
        && [rollout.replicas, rollout.updated, rollout.ready, rollout.available] == [wanted; 4];
    if status.says_the_same(old)
        && status.notifications == old.notifications
        && status.notified == old.notified
    {
        Some(Rule::SaysNothingNew)
    } else if status.observed_generation != state.task.generation {
        Some(Rule::WrongGeneration)
    } else if ready && !is_right && !was_ready {
        Some(Rule::FalselyReady)
    } else if state.status_trouble.is_some_and(|trouble| trouble.retry_at > now) {
        Some(Rule::Impatient)
    } else {
        None
    }
}

/// Another uid is another Task, whatever its name.
fn identity(before: &State, after: &State) -> Option<Rule> {
    let is_new = before.task.uid != after.task.uid;
    let is_fresh = after.trouble.is_none()
        && after.status_trouble.is_none()
        && !after.parting
        && after.children.iter().all(|child| {
            child.presence == Presence::Unknown && child.corrections == 0 && child.contender.is_none()
        });
    (is_new && !is_fresh).then_some(Rule::EarlierTask)
}

fn order(before: &State, event: &Event, after: &State, now: Instant) -> Option<Rule> {
    let (seen, known, since, then) = match event {
        Event::TaskSeen(view, Source::Change) => {
            (view.version, before.task.version, before.task.touched, after.task.version)
        }
        Event::ChildSeen(kind, view, Source::Change) => {
            let child = before.child(*kind);
            (view.version, child.version, child.touched, after.child(*kind).version)
        }
        _ => return None,
    };
    let same_task = before.task.uid == after.task.uid;
    (same_task && seen < known && now.since(since) <= FENCE && then < known).then_some(Rule::WentBack)
}

fn waits(before: &State, event: &Event, after: &State, now: Instant) -> Option<Rule> {
    let Event::Failed(failure) = event else { return None };
    let lasts =
        matches!(failure.class, FailureClass::Transient | FailureClass::Terminal | FailureClass::Ending);
    let Pass::Running { asked, .. } = before.pass else { return None };
    use task_operator::supervisor::state::Asked;
    let (earlier, failures, retry_at) = match asked {
        Asked::Task | Asked::Farewell | Asked::Child(_) => {
            let earlier = before.trouble.as_ref().filter(|trouble| trouble.identity == failure.identity);
            let trouble = after.trouble.as_ref();
            (earlier.map(|it| it.failures), trouble.map(|it| it.failures), trouble.map(|it| it.retry_at))
        }
        Asked::Status(_) => {
            let trouble = after.status_trouble.as_ref();
            let earlier = before.status_trouble.as_ref();
            (earlier.map(|it| it.failures), trouble.map(|it| it.failures), trouble.map(|it| it.retry_at))
        }
        _ => return None,
    };
    if !lasts {
        return None;
    }
    let expected = earlier.unwrap_or(0) + 1;
    // Up to a fifth less than the doubled second.
    let least = Duration::from_millis(800 * (1 << (expected - 1).min(5)));
    let waits = failures == Some(expected) && retry_at.is_some_and(|at| at >= now.after(least));
    (!waits).then_some(Rule::WaitsTooShort)
}
