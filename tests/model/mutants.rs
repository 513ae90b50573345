//! Operators that are broken on purpose, one for each kind of mistake. Each
//! changes what goes into the shipped core, what it remembers, or what it asks
//! for; the core itself stays as it is.

use std::time::Duration;

use task_operator::desired::ChildKind;
use task_operator::supervisor::event::{Answer, ChildView, Command, Event, FailureClass, Request, Source};
use task_operator::supervisor::state::{Asked, Pass, Presence, State, Whose};
use task_operator::supervisor::status::Truth;
use task_operator::supervisor::time::Instant;

use crate::shared::server::Wire;

/// Declares the mutants with what each does wrong.
macro_rules! mutants {
    ($($name:ident in $hint:literal: $text:literal,)*) => {
        /// What an operator does wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Mutant {
            /// Nothing: the shipped operator.
            None,
            $(#[doc = $text] $name,)*
        }

        impl Mutant {
            /// Each with the run that shows it, and what it does wrong.
            pub(crate) const ALL: &[(Self, &'static str, &'static str)] = &[$((Self::$name, $hint, $text),)*];
        }
    };
}

mutants! {
    NameForUid in "made again": "takes what an earlier Task of the name left for its own",
    AdoptsOnConflict in "a taken name": "takes over an object whose name is taken",
    OverwritesUnread in "two deeds": "corrects without a look at what is there",
    NoPreconditions in "another Task of the name before an abandoned write lands": "patches the Task whatever its uid and version are",
    WritesEveryPass in "up": "writes the status at the end of every pass",
    CreatesOnStaleMiss in "a taken name": "creates again what it was told is there",
    CreatesWhatTerminates in "a deed": "takes an object that is being deleted for gone",
    ChildrenDuringDeletion in "two deeds": "goes on creating children during a deletion",
    ChildrenBeforeFinalizer in "up": "creates children before the finalizer is there",
    FinalizerGoesAnyTime in "up": "removes the finalizer instead of adding it",
    FinalizerStays in "a deed": "never removes the finalizer",
    NoFarewell in "a farewell": "does not wait for the farewell",
    BackoffAcrossUids in "another Task of the name after a failure": "keeps the backoff of an earlier Task of the name",
    ChildrenAcrossUids in "another Task of the name after a failure": "keeps what it knew of an earlier Task's children",
    AnswersAcrossUids in "another Task of the name during a write": "takes the answer about an earlier Task for one about this",
    RequeueLostOnError in "two faults on the way up": "asks for no wake-up after a failure",
    RequeueLost in "up": "asks for no wake-up at all after a pass",
    NoBackoff in "two faults on the way up": "tries again at once after a failure",
    BackoffNeverGrows in "two faults on the way up": "forgets earlier failures",
    ForgetsTrouble in "two faults on the way up": "forgets that it has to wait",
    SlotLost in "up": "keeps the slot after a pass",
    TwoAtOnce in "up": "sends the next request before the answer",
    OlderViews in "a deed and a lagging child": "lets in views that are older than what it knows",
    OlderAnswers in "up": "lets in answers that are older than what it knows",
    DeletedChildUnseen in "a deed": "does not hear that a child is gone",
    MissingInListUnseen in "a deed and a lagging child": "does not notice what a list does not show",
    SpecUnseen in "a deed": "does not hear of a changed spec",
    DeletionUnseen in "a deed": "does not hear of a deletion",
    DriftUnseen in "a deed": "takes every child for right",
    ForeignForEver in "a taken name": "never looks again at what is in the way",
    UnwatchedForEver in "two deeds": "never looks again at a child that the watches do not tell of",
    StatusOfEarlierSpec in "up": "writes the generation of the spec before",
    ReadyTooEarly in "up": "says Ready whatever there is",
    ForgetsOwnWrites in "up": "does not take in what a write was answered",
    DeletedToldTwice in "a deed": "tells of a deletion twice",
    GoneIsNotGone in "made again": "comes back to a Task whose end it knows because of an older view",
}

impl Mutant {
    /// What it sees of a child.
    pub(crate) fn view(self, view: &mut ChildView, state: &State, kind: ChildKind) {
        match self {
            Self::NameForUid if view.foreign == Some(Whose::Predecessor) => {
                view.foreign = None;
                view.carries = Some(state.wanted(kind));
            }
            Self::DriftUnseen if view.foreign.is_none() => view.carries = Some(state.wanted(kind)),
            _ => {}
        }
    }

    /// What it takes in; none if nothing.
    pub(crate) fn event(self, state: &mut State, event: Event, now: Instant) -> Option<Event> {
        match self {
            Self::NoFarewell => {
                if let Some(outbox) = &mut state.outbox {
                    outbox.farewell_over = true;
                }
            }
            Self::UnwatchedForEver => state.children.iter_mut().for_each(|child| child.touched = now),
            _ => {}
        }
        let late = Source::List(now.after(Duration::from_secs(1)));
        Some(match (self, event) {
            (Self::DeletedChildUnseen, Event::ChildGone(..))
            | (Self::MissingInListUnseen, Event::ChildrenListed(..)) => return None,
            (Self::SpecUnseen, Event::TaskSeen(view, _))
                if view.uid == state.task.uid && view.generation != state.task.generation =>
            {
                return None;
            }
            (Self::DeletionUnseen, Event::TaskSeen(mut view, source)) => {
                view.deleting = false;
                Event::TaskSeen(view, source)
            }
            (Self::DeletionUnseen, Event::Answered(Answer::Task(mut view))) => {
                view.deleting = false;
                Event::Answered(Answer::Task(view))
            }
            (Self::OlderViews, Event::ChildSeen(kind, view, _)) => Event::ChildSeen(kind, view, late),
            (Self::OlderAnswers, Event::Answered(answer)) => {
                match &answer {
                    Answer::Task(_) => state.task.version = Default::default(),
                    Answer::Child(kind, _) => state.children[kind.index()].version = Default::default(),
                    _ => {}
                }
                Event::Answered(answer)
            }
            (Self::GoneIsNotGone, Event::TaskSeen(view, source)) if view.uid == state.task.uid => {
                state.task.gone = false;
                Event::TaskSeen(view, source)
            }
            (Self::CreatesWhatTerminates, Event::ChildSeen(kind, view, _)) if view.terminating => {
                Event::ChildGone(kind, view.uid, view.version)
            }
            (Self::ForgetsOwnWrites, Event::Answered(Answer::Task(mut view))) => {
                let task = &state.task;
                view.version = task.version;
                (view.status, view.finalizer) = (task.status.clone(), task.finalizer);
                Event::Answered(Answer::Task(view))
            }
            (_, event) => event,
        })
    }

    /// What it remembers and asks for after an event.
    pub(crate) fn outcome(
        self,
        before: &State,
        event: &Event,
        after: &mut State,
        commands: &mut Vec<Command>,
        now: Instant,
    ) {
        let same_task = before.task.uid == after.task.uid;
        let failed = match event {
            Event::Failed(failure) => Some(failure.class),
            _ => None,
        };
        match self {
            Self::BackoffAcrossUids if !same_task => after.trouble.clone_from(&before.trouble),
            Self::ChildrenAcrossUids if !same_task => after.children.clone_from(&before.children),
            Self::AnswersAcrossUids if !same_task => {
                if let (Pass::Running { asked, .. }, Pass::Running { asked: earlier, .. }) =
                    (&mut after.pass, &before.pass)
                {
                    *asked = *earlier;
                }
            }
            Self::RequeueLostOnError if failed.is_some() => {
                commands.retain(|it| !matches!(it, Command::WakeAt(_)))
            }
            Self::RequeueLost if finishes(commands) => {
                commands.retain(|it| !matches!(it, Command::WakeAt(_)))
            }
            Self::NoBackoff | Self::BackoffNeverGrows => {
                if let Some(trouble) = &mut after.trouble {
                    trouble.failures = 1;
                    if self == Self::NoBackoff {
                        trouble.retry_at = now;
                    }
                }
            }
            Self::ForgetsTrouble if failed.is_some() => after.trouble = None,
            Self::SlotLost => commands.retain(|it| !matches!(it, Command::PassFinished(_))),
            Self::TwoAtOnce => {
                if let Some(Command::Send(Request::Create(_))) = commands.last() {
                    commands.push(Command::Send(Request::LookAtTask));
                }
            }
            Self::ForeignForEver => {
                for child in &mut after.children {
                    if let Presence::Foreign { look_at, .. } = &mut child.presence {
                        *look_at = Instant(u64::MAX);
                    }
                }
            }
            Self::DeletedToldTwice => after.parting |= before.parting,
            Self::WritesEveryPass => self.write_again(before, after, commands),
            _ => {
                for command in commands {
                    if let Command::Send(request) = command {
                        self.request(request, after, failed);
                    }
                }
            }
        }
    }

    /// Another request in place of this one.
    fn request(self, request: &mut Request, state: &mut State, failed: Option<FailureClass>) {
        let conflict = failed == Some(FailureClass::Stale);
        let missing = ChildKind::ALL.into_iter().find(|kind| state.child(*kind).presence == Presence::Absent);
        *request = match (self, &*request) {
            (Self::AdoptsOnConflict, Request::LookAtChild(kind)) if conflict => Request::Correct(*kind),
            (Self::CreatesOnStaleMiss, Request::LookAtChild(kind)) if conflict => Request::Create(*kind),
            (Self::ChildrenDuringDeletion, Request::RemoveFinalizer) => match missing {
                Some(kind) => Request::Create(kind),
                None => return,
            },
            (Self::ChildrenBeforeFinalizer, Request::AddFinalizer) => Request::Create(ChildKind::ConfigMap),
            (Self::FinalizerGoesAnyTime, Request::AddFinalizer) => Request::RemoveFinalizer,
            (Self::FinalizerStays, Request::RemoveFinalizer) => Request::LookAtTask,
            (Self::StatusOfEarlierSpec, Request::WriteStatus(status)) => {
                let mut status = status.clone();
                status.observed_generation -= 1;
                Request::WriteStatus(status)
            }
            (Self::ReadyTooEarly, Request::WriteStatus(status)) => {
                let mut status = status.clone();
                if let Some(ready) = &mut status.ready {
                    ready.truth = Truth::True;
                }
                Request::WriteStatus(status)
            }
            _ => return,
        };
    }

    /// A pass ends with a status whether it says something new or not.
    fn write_again(self, before: &State, after: &mut State, commands: &mut Vec<Command>) {
        let Pass::Running { started, asked, requests, .. } = before.pass else { return };
        if !finishes(commands) || matches!(asked, Asked::Status(_)) || after.task.deleting || requests > 8 {
            return;
        }
        let status = after.task.status.clone();
        after.pass = Pass::Running {
            started,
            asked: Asked::Status(status.phase),
            requests: requests + 1,
            conflicts: 0,
            failed: false,
        };
        *commands = vec![Command::Send(Request::WriteStatus(Box::new(status)))];
    }

    /// How it sends a request.
    pub(crate) fn wire(self, wire: &mut Wire) {
        let on_task = matches!(
            wire.request,
            Request::AddFinalizer | Request::RemoveFinalizer | Request::WriteStatus(_)
        );
        let corrects = matches!(wire.request, Request::Correct(_));
        wire.reckless = match self {
            Self::NoPreconditions => on_task,
            Self::AdoptsOnConflict | Self::OverwritesUnread | Self::NameForUid => corrects,
            _ => false,
        };
    }
}

fn finishes(commands: &[Command]) -> bool {
    commands.iter().any(|command| matches!(command, Command::PassFinished(_)))
}
