//! The dispatcher routes what the watches see to the supervisors, grants the
//! slots, and keeps all timers.
//!
//! - `table`: the supervisors by name
//! - [`slots`]: who may reconcile now
//! - [`timers`]: who is woken when
//! - `routing`: from a sighting to the supervisor it is for
//!
//! No pass begins before every watch has listed what there is: a supervisor
//! that does not know its children would create them again.

mod routing;
pub mod slots;
mod table;
pub mod timers;

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use actix::{Actor, ActorContext, AsyncContext, Context, Handler, Message, ResponseFuture, SpawnHandle};
use tokio::sync::{oneshot, watch};

use crate::api::TaskKey;
use crate::cluster::events::Recorder;
use crate::cluster::watches::{Batch, Sink, WatchId};
use crate::cluster::writer::Writer;
use crate::queue::Told;
use crate::queue::actor::{GiveBack, ReportTo};
use crate::supervisor::actor::{Links, Notify, Tell, Upcall, Upward};
use crate::supervisor::clock::Clock;
use crate::supervisor::time::Instant;
use crate::telemetry::Metrics;

use self::slots::Slots;
use self::table::Table;
use self::timers::Timers;

/// What a dispatcher is made of.
pub struct Parts {
    /// Sends requests.
    pub writer: Writer,
    /// Records Kubernetes events.
    pub recorder: Recorder,
    /// Counts.
    pub metrics: Metrics,
    /// The clock.
    pub clock: Clock,
    /// Where notifications go; none without a sink.
    pub notify: Option<Notify>,
    /// Passes at once, at most.
    pub slots: usize,
    /// The streams that have to be listed before the first pass.
    pub watches: Vec<WatchId>,
    /// Whether this replica writes from the start: it is the only one.
    pub leading: bool,
    /// Set to true once all Tasks are known.
    pub tasks_listed: watch::Sender<bool>,
    /// Set to true while all watches have been listed.
    pub synced: watch::Sender<bool>,
}

/// The actor.
pub struct Dispatcher {
    table: Table,
    slots: Slots,
    timers: Timers,
    /// The timer of the context, and what it is set to.
    alarm: Option<(Instant, SpawnHandle)>,
    watches: HashMap<WatchId, WatchState>,
    tasks_listed: watch::Sender<bool>,
    synced: watch::Sender<bool>,
    metrics: Metrics,
    clock: Clock,
    /// Taken when the actor starts and its address is known.
    parts: Option<(Writer, Recorder)>,
    notify: Option<Notify>,
    links: Option<Rc<Links>>,
    supervisors: u64,
    draining: Vec<oneshot::Sender<()>>,
    stopping: bool,
    leading: bool,
}

/// How far a stream is.
#[derive(Clone, Copy, Debug, Default)]
struct WatchState {
    /// It has been listed at least once.
    listed: bool,
    /// When the list that is under way, or the last one, began.
    list_began: Instant,
}

impl Dispatcher {
    /// A dispatcher that waits for its watches.
    pub fn new(parts: Parts) -> Self {
        let Parts { writer, recorder, metrics, clock, notify, slots, watches, leading, tasks_listed, synced } =
            parts;
        metrics.max_concurrent(slots);
        for watch in &watches {
            metrics.watch_synced(watch.kind_name(), false);
        }
        Self {
            table: Table::default(),
            slots: Slots::new(slots),
            timers: Timers::default(),
            alarm: None,
            watches: watches.into_iter().map(|watch| (watch, WatchState::default())).collect(),
            tasks_listed,
            synced,
            metrics,
            clock,
            parts: Some((writer, recorder)),
            notify,
            links: None,
            supervisors: 0,
            draining: Vec::new(),
            stopping: false,
            leading,
        }
    }

    fn now(&self) -> Instant {
        self.clock.now().monotonic
    }

    fn tell(&self, key: &TaskKey, tell: Tell) {
        let entry = self.table.get(&key.namespace, &key.name);
        if let Some(supervisor) = entry.and_then(|entry| entry.supervisor.as_ref()) {
            supervisor.do_send(tell);
        }
    }

    fn grant_slots(&mut self) {
        let now = self.now();
        while let Some(granted) = self.slots.grant(now) {
            self.metrics.dequeued(now.since(granted.since));
            self.tell(&granted.key, Tell::Grant);
        }
        self.metrics.queue_depth(self.slots.waiting());
    }

    fn release(&mut self, key: &TaskKey) {
        if let Some(since) = self.slots.release(key) {
            self.metrics.worked(self.now().since(since));
        }
        self.grant_slots();
        self.answer_drain();
    }

    /// Opens the slots if nothing is missing for a pass.
    fn gate(&mut self) {
        let synced = self.watches.values().all(|watch| watch.listed);
        self.slots.set_open(synced && self.leading && !self.stopping);
        self.synced.send_replace(synced);
        self.grant_slots();
    }

    fn answer_drain(&mut self) {
        if self.slots.running().next().is_none() {
            for waiting in self.draining.drain(..) {
                // Whoever asked may have given up at its deadline.
                let _ = waiting.send(());
            }
        }
    }

    /// Sets the context's one timer to the earliest wake-up.
    fn set_alarm(&mut self, ctx: &mut Context<Self>) {
        let Some(next) = self.timers.earliest() else { return };
        match self.alarm {
            Some((at, _)) if at <= next => return,
            Some((_, handle)) => {
                ctx.cancel_future(handle);
            }
            None => {}
        }
        let wait = next.since(self.now());
        let handle = ctx.run_later(wait, Self::ring);
        self.alarm = Some((next, handle));
    }

    fn ring(&mut self, ctx: &mut Context<Self>) {
        self.alarm = None;
        let now = self.now();
        while let Some(key) = self.timers.pop(now) {
            if self.table.get(&key.namespace, &key.name).is_some_and(|entry| entry.supervisor.is_none()) {
                self.restart(&key, ctx);
            } else {
                self.tell(&key, Tell::TimePassed);
            }
        }
        self.set_alarm(ctx);
    }

    /// Every second: the gauges that no event moves, and series that have had their time.
    fn tick(&mut self, _: &mut Context<Self>) {
        let now = self.now();
        let (mut sum, mut longest) = (Duration::ZERO, Duration::ZERO);
        for since in self.slots.running() {
            sum += now.since(since);
            longest = longest.max(now.since(since));
        }
        self.metrics.unfinished(sum, longest);
        self.metrics.expire(std::time::Instant::now());
    }
}

impl Actor for Dispatcher {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if let Some(notify) = &self.notify {
            notify.queue.do_send(ReportTo(ctx.address().recipient()));
        }
        if let Some((writer, recorder)) = self.parts.take() {
            self.links = Some(Rc::new(Links {
                writer,
                recorder,
                metrics: self.metrics.clone(),
                clock: self.clock,
                dispatcher: ctx.address().recipient(),
                notify: self.notify.clone(),
            }));
        }
        ctx.run_interval(Duration::from_secs(1), Self::tick);
    }
}

/// A batch of a watch; answered once it is routed, so that a watch waits for the dispatcher.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Deliver(pub Batch);

impl Handler<Deliver> for Dispatcher {
    type Result = ();

    fn handle(&mut self, Deliver(batch): Deliver, ctx: &mut Self::Context) {
        self.metrics.message_taken();
        self.route(batch);
        self.set_alarm(ctx);
    }
}

/// Hands batches to a dispatcher.
#[derive(Clone)]
pub struct ToDispatcher {
    /// The dispatcher.
    pub dispatcher: actix::Addr<Dispatcher>,
    /// Counts what waits in its mailbox.
    pub metrics: Metrics,
}

impl Sink for ToDispatcher {
    async fn deliver(&self, batch: Batch) -> bool {
        self.metrics.message_sent();
        self.dispatcher.send(Deliver(batch)).await.is_ok()
    }
}

impl Handler<Upward> for Dispatcher {
    type Result = ();

    fn handle(&mut self, Upward { key, supervisor, what }: Upward, ctx: &mut Self::Context) {
        self.metrics.message_taken();
        let current =
            self.table.get(&key.namespace, &key.name).is_some_and(|entry| entry.number == supervisor);
        match what {
            Upcall::Ended(panicked) => self.ended(&key, current, panicked),
            // Of a supervisor that was replaced nothing counts any more.
            _ if !current => {}
            Upcall::AskSlot(priority) => {
                if self.slots.ask(key, priority, self.now()) {
                    self.metrics.queued(priority == crate::supervisor::event::Priority::Background);
                }
                self.grant_slots();
            }
            Upcall::PassFinished => self.release(&key),
            Upcall::WakeAt(at) => self.timers.set(key, at),
        }
        self.set_alarm(ctx);
    }
}

impl Handler<Told> for Dispatcher {
    type Result = ();

    fn handle(&mut self, Told { key, uid, number, outcome }: Told, _: &mut Self::Context) {
        let entry = self.table.get(&key.namespace, &key.name);
        if entry.is_some_and(|entry| entry.uid == uid) {
            self.tell(&key, Tell::Told(number, outcome));
        }
    }
}

/// Whether this replica leads from now on: only then do passes begin.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Lead(pub bool);

impl Handler<Lead> for Dispatcher {
    type Result = ();

    fn handle(&mut self, Lead(leading): Lead, _: &mut Self::Context) {
        self.leading = leading;
        self.gate();
        if let Some(notify) = self.notify.as_ref().filter(|_| !leading) {
            // The supervisors of the replica that leads now offer it there.
            notify.queue.do_send(GiveBack);
        }
    }
}

/// Begin no new pass; resolves once none is running.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Drain;

impl Handler<Drain> for Dispatcher {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: Drain, _: &mut Self::Context) -> Self::Result {
        self.stopping = true;
        self.gate();
        let (done, wait) = oneshot::channel();
        self.draining.push(done);
        self.answer_drain();
        Box::pin(async move {
            // A dispatcher that is gone has no passes either.
            let _ = wait.await;
        })
    }
}

/// End: all supervisors, then the dispatcher, which lets go of the event recorder.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Stop;

impl Handler<Stop> for Dispatcher {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        for entry in self.table.within(None) {
            if let Some(supervisor) = &entry.supervisor {
                supervisor.do_send(Tell::End);
            }
        }
        self.links = None;
        ctx.stop();
    }
}
