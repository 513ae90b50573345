//! The actor around a Task's record: it turns messages into events, and carries
//! out the commands that follow. It decides nothing.
//!
//! Its mailbox needs no bound of its own: the dispatcher tells it of each
//! object once per change and hands over at most 64 changes before it yields.

use std::rc::Rc;
use std::time::Duration;

use actix::{Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, Recipient, WrapFuture};
use tracing::{Instrument, Span};

use crate::api::{ResourceVersion, TaskKey, Uid};
use crate::cluster::events::Recorder;
use crate::cluster::observe::{ObservedChild, ObservedTask};
use crate::cluster::requests;
use crate::cluster::writer::{Response, Writer};
use crate::desired::ChildKind;
use crate::queue;
use crate::queue::actor::{Forget, Offer, Queue};
use crate::telemetry::{Metrics, PassResult};

use super::clock::Clock;
use super::compare;
use super::event::{
    Answer, Command, Event, Failure, FailureClass, Outcome, Priority, Report, Request, Source, TaskView,
};
use super::state::{Pass, Presence, State};
use super::time::Instant;

/// What all supervisors share.
pub struct Links {
    /// Sends requests.
    pub writer: Writer,
    /// Records Kubernetes events.
    pub recorder: Recorder,
    /// Counts.
    pub metrics: Metrics,
    /// The clock.
    pub clock: Clock,
    /// The dispatcher.
    pub dispatcher: Recipient<Upward>,
    /// Where notifications go; none without a sink.
    pub notify: Option<Notify>,
}

/// Where notifications go.
#[derive(Clone)]
pub struct Notify {
    /// The task queue.
    pub queue: Addr<Queue>,
    /// For how long a deletion waits for what is still to be told.
    pub farewell_timeout: Duration,
}

/// What a supervisor tells the dispatcher.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Upward {
    /// Which Task's.
    pub key: TaskKey,
    /// Which object's: an earlier Task of this name may have had a supervisor too.
    pub supervisor: u64,
    /// What.
    pub what: Upcall,
}

/// What a supervisor tells the dispatcher.
#[derive(Debug)]
pub enum Upcall {
    /// It wants a slot, or a better place in the queue.
    AskSlot(Priority),
    /// It gives its slot back.
    PassFinished,
    /// It wants to be woken then.
    WakeAt(Instant),
    /// It is gone; true if it panicked.
    Ended(bool),
}

/// What the dispatcher tells a supervisor.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub enum Tell {
    /// A watch told of the Task.
    Task(Box<ObservedTask>, Source),
    /// A watch told of a child.
    Child(Box<ObservedChild>, Source),
    /// A watch told that a child is gone.
    ChildGone(ChildKind, Uid, ResourceVersion),
    /// A list of children that began at this moment is complete.
    ChildrenListed(ChildKind, Instant),
    /// What became of the notice of this number that was offered.
    Told(u64, queue::Outcome),
    /// The slot that was asked for.
    Grant,
    /// The wake-up that was asked for.
    TimePassed,
    /// The API server answers again.
    ConnectionRestored,
    /// The Task is gone: end.
    Gone,
    /// The operator stops: end.
    End,
}

/// The supervisor of one Task.
pub struct Supervisor {
    state: State,
    number: u64,
    began: Source,
    span: Span,
    links: Rc<Links>,
}

impl Supervisor {
    /// The supervisor of a Task that was just seen. `number` tells it from
    /// others that had or will have the same Task.
    pub fn new(
        key: TaskKey,
        view: TaskView,
        began: Source,
        children: Presence,
        number: u64,
        links: Rc<Links>,
    ) -> Self {
        let now = links.clock.now().monotonic;
        let state = State::new(key, view, children, now);
        let state = match &links.notify {
            Some(notify) => state.notifying(notify.farewell_timeout, now),
            None => state,
        };
        Self { state, number, began, span: Span::none(), links }
    }

    fn tell_dispatcher(&self, what: Upcall) {
        self.links.metrics.message_sent();
        self.links.dispatcher.do_send(Upward { key: self.state.key.clone(), supervisor: self.number, what });
    }

    fn happened(&mut self, event: Event, ctx: &mut Context<Self>) {
        let commands = self.state.on(event, self.links.clock.now());
        self.carry_out(commands, ctx);
    }

    fn carry_out(&mut self, commands: Vec<Command>, ctx: &mut Context<Self>) {
        for command in commands {
            match command {
                Command::AskSlot(priority) => self.tell_dispatcher(Upcall::AskSlot(priority)),
                Command::WakeAt(at) => self.tell_dispatcher(Upcall::WakeAt(at)),
                Command::Send(request) => self.send(&request, ctx),
                Command::Record(note) => {
                    self.links.recorder.record(&self.state.key, &self.state.task.uid, note);
                }
                Command::Offer(notice) => {
                    if let Some(notify) = &self.links.notify {
                        notify.queue.do_send(Offer(*notice));
                    }
                }
                Command::Withdraw { uid, counted } => {
                    if let Some(result) = counted {
                        self.links.metrics.notification_settled(result);
                    }
                    if let Some(notify) = &self.links.notify {
                        notify.queue.do_send(Forget(uid));
                    }
                }
                Command::PassFinished(report) => self.finish(&report),
            }
        }
    }

    fn send(&mut self, request: &Request, ctx: &mut Context<Self>) {
        let prepared = match requests::prepare(&self.state, request, self.links.clock.now().wall) {
            Ok(prepared) => prepared,
            Err(error) => return self.happened(Event::Failed(unbuildable(&error)), ctx),
        };
        let exchange = self.links.writer.send(prepared).instrument(self.span.clone());
        ctx.spawn(exchange.into_actor(self).map(|result, supervisor, ctx| supervisor.answered(result, ctx)));
    }

    fn answered(&mut self, result: Result<Response, Failure>, ctx: &mut Context<Self>) {
        let event = match result {
            Ok(response) => Event::Answered(self.answer(response)),
            Err(failure) => {
                let _in_pass = self.span.enter();
                match failure.class {
                    // The order of the day: an old view, a namespace that goes, a lost leadership.
                    FailureClass::Stale | FailureClass::Ending | FailureClass::Fenced => {
                        tracing::debug!(reason = %failure.reason, "{}", failure.message);
                    }
                    FailureClass::Transient | FailureClass::Terminal => {
                        tracing::warn!(reason = %failure.reason, "{}", failure.message);
                    }
                }
                Event::Failed(failure)
            }
        };
        self.happened(event, ctx);
    }

    fn answer(&self, response: Response) -> Answer {
        match response {
            Response::Task(Some(task)) if task.metadata.uid == self.state.task.uid => {
                Answer::Task(Box::new(task.into_view(Some(&self.state.task))))
            }
            Response::Task(_) => Answer::TaskAbsent,
            Response::Child(kind, Some(child)) => {
                Answer::Child(kind, compare::view(&child, &self.state, None))
            }
            Response::Child(kind, None) => Answer::ChildAbsent(kind),
            Response::Corrected(child, contender) => {
                let _in_pass = self.span.enter();
                tracing::info!(
                    child = child.kind().as_str(),
                    contender,
                    "corrected what was not as declared"
                );
                Answer::Child(child.kind(), compare::view(&child, &self.state, contender))
            }
            Response::Pods(fault) => Answer::Pods(fault),
        }
    }

    fn begin(&mut self, ctx: &mut Context<Self>) {
        if !matches!(self.state.pass, Pass::Queued { .. }) {
            // The Task changed hands while the grant was on its way.
            return self.tell_dispatcher(Upcall::PassFinished);
        }
        let task = &self.state.task;
        self.span = tracing::info_span!(
            "reconcile",
            namespace = &*self.state.key.namespace,
            name = &*self.state.key.name,
            generation = task.generation,
            outcome = tracing::field::Empty,
        );
        self.links.metrics.pass_started();
        self.happened(Event::SlotGranted, ctx);
    }

    fn finish(&mut self, report: &Report) {
        let result = match report.outcome {
            Outcome::Done => PassResult::RequeueAfter,
            Outcome::Failed | Outcome::FailedForGood => PassResult::Error,
        };
        if report.outcome == Outcome::FailedForGood {
            self.links.metrics.terminal_error();
        }
        self.links.metrics.pass_finished(&self.state.key, report.phase, result, report.took);
        let outcome = match report.outcome {
            Outcome::Done => "done",
            Outcome::Failed => "failed",
            Outcome::FailedForGood => "failed until something changes",
        };
        self.span.record("outcome", outcome);
        let span = std::mem::replace(&mut self.span, Span::none());
        let _in_pass = span.enter();
        let took = milliseconds(report.took);
        if report.requests == 0 {
            tracing::debug!(phase = %report.phase, "nothing to do");
        } else {
            tracing::info!(phase = %report.phase, requests = report.requests, took_ms = took, "reconciled");
        }
        self.tell_dispatcher(Upcall::PassFinished);
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn unbuildable(error: &kube::core::request::Error) -> Failure {
    Failure {
        class: FailureClass::Terminal,
        reason: "InvalidRequest".into(),
        message: format!("the request cannot be built: {error}").into(),
        identity: 1,
        retry_after: None,
    }
}

impl Actor for Supervisor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let commands = self.state.start(self.began, self.links.clock.now());
        self.carry_out(commands, ctx);
    }
}

impl Handler<Tell> for Supervisor {
    type Result = ();

    fn handle(&mut self, tell: Tell, ctx: &mut Self::Context) {
        let now = self.links.clock.now().monotonic;
        let event = match tell {
            // The echo of a write of our own, whose answer said it all.
            Tell::Task(task, Source::Change)
                if self.state.knows_task(&task.metadata.uid, task.version(), now) =>
            {
                return;
            }
            Tell::Child(child, Source::Change)
                if self.state.knows_child(child.kind(), child.version(), now) =>
            {
                return;
            }
            Tell::Task(task, source) => {
                Event::TaskSeen(Box::new(task.into_view(Some(&self.state.task))), source)
            }
            Tell::Child(child, source) => {
                Event::ChildSeen(child.kind(), compare::view(&child, &self.state, None), source)
            }
            Tell::ChildGone(kind, uid, version) => Event::ChildGone(kind, uid, version),
            Tell::ChildrenListed(kind, began) => Event::ChildrenListed(kind, began),
            Tell::Told(number, outcome) => Event::Told(number, outcome),
            Tell::Grant => return self.begin(ctx),
            Tell::TimePassed => Event::TimePassed,
            Tell::ConnectionRestored => Event::ConnectionRestored,
            Tell::Gone => {
                self.happened(Event::TaskGone, ctx);
                return actix::ActorContext::stop(ctx);
            }
            Tell::End => return actix::ActorContext::stop(ctx),
        };
        self.happened(event, ctx);
    }
}

/// However it ends, also by a panic, the dispatcher learns of it and takes the slot back.
impl Drop for Supervisor {
    fn drop(&mut self) {
        self.tell_dispatcher(Upcall::Ended(std::thread::panicking()));
    }
}
