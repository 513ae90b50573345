//! The queue with its workers: takes in what supervisors offer, sends it, and
//! reports what became of it.
//!
//! Its mailbox needs no bound of its own: a supervisor offers its next notice
//! only once it has heard of the one before.

use std::time::{Duration, Instant as StdInstant};

use actix::{
    Actor, ActorFutureExt, AsyncContext, Context, Handler, Message, Recipient, ResponseFuture, SpawnHandle,
    WrapFuture,
};
use tokio::sync::oneshot;

use crate::api::Uid;
use crate::cluster::lease::Fence;
use crate::supervisor::clock::Clock;
use crate::supervisor::time::Instant;
use crate::telemetry::{Metrics, QueueGauges};

use super::line::{Addressee, Line};
use super::notice::Notice;
use super::sink::{self, Sink};
use super::{Outcome, Told, Verdict};

/// What a queue is made of.
pub struct Parts {
    /// Where notices go.
    pub sink: Sink,
    /// How many are sent at once.
    pub workers: usize,
    /// How many it takes in, those that are being sent among them.
    pub capacity: usize,
    /// Whether this replica may send anything.
    pub fence: Fence,
    /// Counts.
    pub metrics: Metrics,
    /// The clock.
    pub clock: Clock,
}

/// The actor.
pub struct Queue {
    sink: Sink,
    line: Line,
    fence: Fence,
    metrics: Metrics,
    clock: Clock,
    reports: Option<Recipient<Told>>,
    /// The timer for the next try of a sink that is down, and what it is set to.
    alarm: Option<(Instant, SpawnHandle)>,
    draining: Vec<oneshot::Sender<()>>,
}

impl Queue {
    /// An empty queue.
    pub fn new(parts: Parts) -> Self {
        let Parts { sink, workers, capacity, fence, metrics, clock } = parts;
        metrics.queue_capacity(capacity);
        Self {
            sink,
            line: Line::new(workers, capacity),
            fence,
            metrics,
            clock,
            reports: None,
            alarm: None,
            draining: Vec::new(),
        }
    }

    fn now(&self) -> Instant {
        self.clock.now().monotonic
    }

    fn report(&self, told: Told) {
        if let Some(reports) = &self.reports {
            reports.do_send(told);
        }
    }

    fn give_back(&self, Addressee { key, uid }: Addressee) {
        self.report(Told { key, uid, number: 0, outcome: Outcome::Returned });
    }

    /// Does all that can be done now: sends, invites, answers those who wait for the end.
    fn turn(&mut self, ctx: &mut Context<Self>) {
        while let Some(notice) = self.line.next(self.now()) {
            self.send(notice, ctx);
        }
        for guest in self.line.invite() {
            self.give_back(guest);
        }
        if self.line.is_at_rest() {
            for waiting in self.draining.drain(..) {
                // Whoever asked may have given up at its deadline.
                let _ = waiting.send(());
            }
        }
        self.set_alarm(ctx);
    }

    fn send(&mut self, notice: Notice, ctx: &mut Context<Self>) {
        let patience = sink::PATIENCE.min(self.fence.remaining());
        if patience.is_zero() {
            return self.finished(&notice, &Verdict::NotSent);
        }
        let began = StdInstant::now();
        // In a task of its own: should it panic, the queue goes on.
        let post = tokio::task::spawn_local(self.sink.post(&notice, self.clock.now().wall, patience));
        ctx.spawn(post.into_actor(self).map(move |verdict, queue, ctx| {
            let verdict = verdict.unwrap_or_else(|error| Verdict::Failed(error.to_string(), None));
            queue.metrics.delivery_tried(began.elapsed());
            queue.finished(&notice, &verdict);
            queue.turn(ctx);
        }));
    }

    fn finished(&mut self, notice: &Notice, verdict: &Verdict) {
        match verdict {
            Verdict::Delivered => {
                self.metrics.notification_settled("delivered");
                tracing::debug!(task = %notice.key, "delivered: {notice}");
            }
            Verdict::Refused(why) => {
                self.metrics.notification_settled("refused");
                tracing::warn!(task = %notice.key, why, "the sink refused the {notice}");
            }
            Verdict::Failed(why, _) => {
                self.metrics.delivery_retried();
                tracing::debug!(task = %notice.key, why, "not delivered, and tried again: {notice}");
            }
            Verdict::NotSent => {}
        }
        let was_down = self.line.sink_is_down();
        let now = self.now();
        let outcome = self.line.finished(&notice.uid, verdict, now);
        match (was_down, self.line.sink_is_down(), verdict) {
            (false, true, Verdict::Failed(why, _)) => {
                tracing::warn!(why, "the sink is down: it is tried by one notification at a time");
            }
            (true, false, _) => tracing::info!("the sink is back"),
            _ => {}
        }
        let (key, uid) = (notice.key.clone(), notice.uid.clone());
        self.report(Told { key, uid, number: notice.number(), outcome });
    }

    fn set_alarm(&mut self, ctx: &mut Context<Self>) {
        let wake_at = self.line.wake_at();
        if self.alarm.as_ref().map(|&(at, _)| at) == wake_at {
            return;
        }
        if let Some((_, handle)) = self.alarm.take() {
            ctx.cancel_future(handle);
        }
        self.alarm = wake_at.map(|at| {
            let handle = ctx.run_later(at.since(self.now()), |queue, ctx| {
                queue.alarm = None;
                queue.turn(ctx);
            });
            (at, handle)
        });
    }

    fn show(&self) {
        let oldest = self.line.oldest().map(|since| self.now().since(since)).unwrap_or_default();
        self.metrics.queue(QueueGauges {
            depth: self.line.depth(),
            held_back: self.line.held_back(),
            unsettled: self.line.unsettled(),
            oldest,
            sink_is_down: self.line.sink_is_down(),
        });
    }
}

impl Actor for Queue {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        // Once a second rather than at each change: the age of the oldest takes a look at all of them.
        ctx.run_interval(Duration::from_secs(1), |queue, _| queue.show());
    }
}

/// Who is told of what becomes of offers.
#[derive(Message)]
#[rtype(result = "()")]
pub struct ReportTo(pub Recipient<Told>);

impl Handler<ReportTo> for Queue {
    type Result = ();

    fn handle(&mut self, ReportTo(reports): ReportTo, _: &mut Self::Context) {
        self.reports = Some(reports);
    }
}

/// Something to tell the sink. What becomes of it is reported, or that there is room for it now.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Offer(pub Notice);

impl Handler<Offer> for Queue {
    type Result = ();

    fn handle(&mut self, Offer(notice): Offer, ctx: &mut Self::Context) {
        let now = self.now();
        self.line.offer(notice, now);
        self.turn(ctx);
    }
}

/// This Task is gone, or has given up what it offered: nothing more is reported of it.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Forget(pub Uid);

impl Handler<Forget> for Queue {
    type Result = ();

    fn handle(&mut self, Forget(uid): Forget, ctx: &mut Self::Context) {
        self.line.forget(&uid);
        self.turn(ctx);
    }
}

/// This replica does not lead any more: what was not sent yet goes back.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct GiveBack;

impl Handler<GiveBack> for Queue {
    type Result = ();

    fn handle(&mut self, _: GiveBack, ctx: &mut Self::Context) {
        for addressee in self.line.give_back() {
            self.give_back(addressee);
        }
        self.turn(ctx);
    }
}

/// Take nothing in any more; resolves once all is sent, or the sink is down.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Drain;

impl Handler<Drain> for Queue {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: Drain, ctx: &mut Self::Context) -> Self::Result {
        self.line.close();
        let (done, wait) = oneshot::channel();
        self.draining.push(done);
        self.turn(ctx);
        Box::pin(async move {
            // A queue that is gone has nothing left to send either.
            let _ = wait.await;
        })
    }
}
