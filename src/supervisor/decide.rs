//! The heart: one event in, the commands that follow out.
//!
//! [`State::on`] does no I/O and reads no clock. It first lets the event
//! change the record, then, unless a request is under way, asks the plan what
//! comes next. At most one request of a Task is under way at any time.

use crate::api::TaskKey;
use crate::api::v1::Phase;
use crate::desired::ChildKind;

use super::backoff;
use super::event::{
    Answer, Command, Event, Failure, FailureClass, Note, Outcome, Priority, Report, Request, Source, TaskView,
};
use super::plan::{self, Next};
use super::state::{Asked, Child, Diagnosis, Pass, Presence, Rollout, State, TaskRecord};
use super::time::{Instant, Now};

/// A pass that sends more requests than this is going round in circles.
const REQUESTS_IN_A_PASS: u8 = 24;

impl State {
    /// The record of a Task that was not known before. `children` is
    /// [`Presence::Absent`] where the watches would have told of them, and
    /// [`Presence::Unknown`] where they have to be looked at.
    pub fn new(key: TaskKey, view: TaskView, children: Presence, now: Instant) -> Self {
        let child = || Child { presence: children.clone(), touched: now, ..Child::default() };
        let mut state = Self {
            key,
            task: TaskRecord::new(view, now),
            children: [child(), child(), child()],
            rollout: Rollout::default(),
            pass: Pass::Idle,
            trouble: None,
            status_trouble: None,
            diagnosis: Diagnosis { since: now, ..Diagnosis::default() },
            outbox: None,
            requeue_at: now,
            wake_at: None,
            status_since: now,
            announced: false,
            parting: false,
            passes: 0,
        };
        state.requeue_at = now.after(backoff::requeue(state.task.status.phase, state.seed()));
        state
    }

    /// What a supervisor does first.
    pub fn start(&mut self, source: Source, now: Now) -> Vec<Command> {
        let mut out = Vec::new();
        self.consider(priority_of(source), now.monotonic, &mut out);
        out
    }

    /// Takes in one event and returns what follows from it.
    pub fn on(&mut self, event: Event, now: Now) -> Vec<Command> {
        let mut out = Vec::new();
        let at = now.monotonic;
        let news = match event {
            Event::TaskSeen(view, source) => {
                let before = self.withdrawal();
                let news = self.see_task(*view, source, at);
                out.extend(before.filter(|(uid, _)| *uid != self.task.uid).map(|(_, withdrawal)| withdrawal));
                news.then(|| priority_of(source))
            }
            Event::TaskGone => {
                self.task_is_gone(at);
                self.tell_of_deletion(&mut out);
                out.extend(self.withdrawal().map(|(_, withdrawal)| withdrawal));
                None
            }
            Event::ChildSeen(kind, view, source) => {
                self.see_child(kind, view, source, at).then(|| priority_of(source))
            }
            Event::ChildGone(kind, uid, version) => {
                self.lose_child(kind, &uid, version, at).then_some(Priority::Change)
            }
            Event::ChildrenListed(kind, began) => {
                self.children_listed(kind, began, at).then_some(Priority::Change)
            }
            Event::ConnectionRestored => self.forget_passing_trouble(at).then_some(Priority::Background),
            Event::Told(number, outcome) => {
                self.told(number, outcome, at, &mut out).then_some(Priority::Background)
            }
            Event::TimePassed => {
                self.wake_at = None;
                Some(Priority::Background)
            }
            Event::SlotGranted => {
                self.begin(at, &mut out);
                None
            }
            Event::Answered(answer) => {
                self.answered(answer, now, &mut out);
                None
            }
            Event::Failed(failure) => {
                self.failed(failure, at, &mut out);
                None
            }
        };
        if let Some(priority) = news {
            self.consider(priority, at, &mut out);
        }
        out
    }

    /// Between passes: asks for a slot if there is something to do, else for a wake-up.
    fn consider(&mut self, priority: Priority, now: Instant, out: &mut Vec<Command>) {
        self.settle(now);
        match self.pass {
            Pass::Running { .. } => {}
            Pass::Queued { priority: asked } if asked >= priority => {}
            Pass::Queued { .. } => self.ask_slot(priority, out),
            Pass::Idle => match plan::next(self, now) {
                Next::Request(_) | Next::Tell => self.ask_slot(priority, out),
                _ if now >= self.requeue_at => self.ask_slot(Priority::Background, out),
                Next::At(at) => self.wake(at, out),
                Next::Rest => self.wake(self.requeue_at, out),
            },
        }
    }

    fn ask_slot(&mut self, priority: Priority, out: &mut Vec<Command>) {
        self.pass = Pass::Queued { priority };
        out.push(Command::AskSlot(priority));
    }

    /// Asks to be woken then or when the next pass is due, whichever is first.
    /// A wake-up that was asked for earlier stays: too early a one costs nothing.
    pub(super) fn wake(&mut self, at: Instant, out: &mut Vec<Command>) {
        let at = at.min(self.requeue_at);
        if self.wake_at.is_none_or(|asked| at < asked) {
            self.wake_at = Some(at);
            out.push(Command::WakeAt(at));
        }
    }

    fn begin(&mut self, now: Instant, out: &mut Vec<Command>) {
        self.pass =
            Pass::Running { started: now, asked: Asked::Task, requests: 0, conflicts: 0, failed: false };
        self.advance(now, out);
    }

    /// Within a pass: the next request, or its end.
    pub(super) fn advance(&mut self, now: Instant, out: &mut Vec<Command>) {
        self.tell(now, out);
        self.settle(now);
        self.announce(out);
        match plan::next(self, now) {
            Next::Request(request) => self.send(request, now, out),
            Next::At(at) => self.finish(Some(at), now, out),
            Next::Tell | Next::Rest => self.finish(None, now, out),
        }
    }

    /// Trouble is over once its time has come and nothing of the work is left.
    fn settle(&mut self, now: Instant) {
        if self.trouble.as_ref().is_some_and(|trouble| now >= trouble.retry_at)
            && plan::work_is_done(self, now)
        {
            self.trouble = None;
        }
    }

    fn announce(&mut self, out: &mut Vec<Command>) {
        let task = &self.task;
        if !self.announced && task.finalizer && !task.deleting && task.status.observed_generation < 0 {
            self.announced = true;
            out.push(Command::Record(Note {
                warning: false,
                reason: "FinalizerAdded",
                action: "AddFinalizer",
                text: "added the finalizer, so that a deletion waits for the operator".into(),
                related: None,
            }));
        }
    }

    pub(super) fn send(&mut self, request: Request, now: Instant, out: &mut Vec<Command>) {
        let Pass::Running { asked, requests, .. } = &mut self.pass else {
            return;
        };
        *requests += 1;
        let too_many = *requests > REQUESTS_IN_A_PASS;
        self.parting |= request == Request::RemoveFinalizer;
        *asked = match &request {
            Request::LookAtTask | Request::AddFinalizer => Asked::Task,
            Request::RemoveFinalizer => Asked::Farewell,
            Request::LookAtChild(kind) | Request::Create(kind) | Request::Correct(kind) => {
                Asked::Child(*kind)
            }
            Request::WriteStatus(_) => Asked::Status(self.task.status.phase),
            Request::FindPodFault => Asked::Pods,
        };
        if too_many {
            let failure = Failure {
                class: FailureClass::Transient,
                reason: "NotSettling".into(),
                message: "what the operator writes does not stay: something changes it at once".into(),
                identity: 0,
                retry_after: None,
            };
            return self.failed(failure, now, out);
        }
        if let Request::Correct(kind) = request {
            let child = &mut self.children[kind.index()];
            child.corrections = plan::corrections(child, now).saturating_add(1);
            child.corrected_at = now;
        }
        if request == Request::Create(ChildKind::Deployment) {
            // The Task may have waited long for its turn; the status waits for what the Deployment makes of it.
            self.status_since = now;
        }
        out.push(Command::Send(request));
    }

    pub(super) fn finish(&mut self, next: Option<Instant>, now: Instant, out: &mut Vec<Command>) {
        let Pass::Running { started, requests, failed, .. } = self.pass else {
            return;
        };
        self.pass = Pass::Idle;
        self.passes = self.passes.wrapping_add(1);
        let phase = self.task.status.phase;
        let outcome = match &self.trouble {
            _ if !failed => Outcome::Done,
            Some(trouble) if trouble.terminal => Outcome::FailedForGood,
            _ => Outcome::Failed,
        };
        out.push(Command::PassFinished(Report { phase, outcome, took: now.since(started), requests }));
        if !self.task.gone {
            self.requeue_at = now.after(backoff::requeue(phase, self.seed()));
            let next = [next, self.telling_at()].into_iter().flatten().min();
            self.wake(next.unwrap_or(self.requeue_at), out);
        }
    }

    fn answered(&mut self, answer: Answer, now: Now, out: &mut Vec<Command>) {
        let Pass::Running { asked, .. } = self.pass else {
            return;
        };
        let at = now.monotonic;
        match answer {
            // Its uid, its version and its absence are another Task's.
            _ if asked == Asked::OfEarlierTask => {}
            Answer::Task(view) => {
                self.answer_task(*view, at);
                match asked {
                    Asked::Farewell => self.tell_of_deletion(out),
                    Asked::Status(before) => self.status_written(before, at, out),
                    Asked::Task | Asked::Child(_) | Asked::Pods | Asked::OfEarlierTask => {}
                }
            }
            Answer::TaskAbsent => {
                self.task_is_gone(at);
                self.tell_of_deletion(out);
            }
            Answer::Child(kind, view) => self.answer_child(kind, view, at),
            Answer::ChildAbsent(kind) => {
                let version = self.child(kind).version;
                self.child_is_absent(kind, version, at);
            }
            Answer::Pods(fault) => self.looked_at_pods(fault, at),
        }
        self.advance(at, out);
    }

    /// Tells of the deletion once, however its end became known.
    fn tell_of_deletion(&mut self, out: &mut Vec<Command>) {
        if std::mem::take(&mut self.parting) {
            out.push(Command::Record(deleted()));
        }
    }

    pub(super) fn looked_at_pods(&mut self, fault: Option<Box<super::state::PodFault>>, now: Instant) {
        self.diagnosis.looked_at = Some(now);
        self.diagnosis.looks = self.diagnosis.looks.saturating_add(1);
        self.diagnosis.fault = fault;
    }

    /// Tells of a phase that changed, unless the failure behind it was told of already.
    fn status_written(&mut self, before: Phase, now: Instant, out: &mut Vec<Command>) {
        self.status_trouble = None;
        self.status_since = now;
        let status = &self.task.status;
        if status.phase == before {
            return;
        }
        self.check_that_it_is_kept(out);
        let status = &self.task.status;
        if status.phase != Phase::Failed {
            out.push(Command::Record(Note {
                warning: false,
                reason: "ReconcileSucceeded",
                action: "Reconcile",
                text: format!("Task reconciled successfully, phase: {}", status.phase).into(),
                related: None,
            }));
        } else if self.trouble.is_none()
            && let Some(ready) = &status.ready
        {
            out.push(Command::Record(Note {
                warning: true,
                reason: "ReconcileFailed",
                action: "Reconcile",
                text: ready.message.clone(),
                related: None,
            }));
        }
    }
}

fn priority_of(source: Source) -> Priority {
    match source {
        Source::Change => Priority::Change,
        Source::List(_) => Priority::Background,
    }
}

fn deleted() -> Note {
    Note {
        warning: false,
        reason: "Deleted",
        action: "Delete",
        text: "Task deleted successfully".into(),
        related: None,
    }
}
