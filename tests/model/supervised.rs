//! The thin shell around the shipped core: what the actor and the dispatcher do
//! with events and commands, without them.

use std::time::Duration;

use task_operator::api::ResourceVersion;
use task_operator::queue::Outcome;
use task_operator::queue::notice::Notice;
use task_operator::supervisor::event::{Command, Event, FailureClass, Request, Source};
use task_operator::supervisor::state::{Pass, Presence, State};
use task_operator::supervisor::time::Instant;

use crate::mutants::Mutant;
use crate::rules::{self, Rule};
use crate::shared::server::{Reply, Task, Told, Wire, child_view, task_view};
use crate::shared::{answer, failure};
use crate::slots::key_of;
use crate::system::System;

/// For how long a deletion waits for its farewell.
const FAREWELL: Duration = Duration::from_secs(30);

/// A supervisor and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Supervised {
    pub(crate) state: State,
    /// The request under way.
    pub(crate) wire: Option<Wire>,
    /// Its answer, which is still to arrive.
    pub(crate) reply: Option<Reply>,
    pub(crate) timer: Option<Instant>,
    /// What was told of this Task and may be told once.
    pub(crate) said: Vec<&'static str>,
    /// The notice that the queue has.
    pub(crate) offered: Option<u64>,
    /// The sink was told of the deletion of this Task, or will not be any more.
    pub(crate) farewell: bool,
}

impl Supervised {
    /// The answer arrives.
    pub(crate) fn answered(&mut self) -> Option<Event> {
        let (wire, reply) = (self.wire.take()?, self.reply.take()?);
        Some(match answer(reply, &self.state) {
            Some(answer) => Event::Answered(answer),
            None => Event::Failed(failure(FailureClass::Stale, &wire.request)),
        })
    }

    /// What was offered comes to this.
    pub(crate) fn told(&mut self, outcome: Outcome) -> Option<Event> {
        let number = self.offered.take()?;
        self.farewell |= number == Notice::DELETION && outcome == Outcome::Delivered;
        Some(Event::Told(number, outcome))
    }

    /// Nobody waits for the answer any more.
    pub(crate) fn give_up(&mut self) -> Option<Request> {
        self.reply = None;
        self.wire.take().map(|wire| wire.request)
    }
}

impl System {
    /// A watch tells of something to whom it is for.
    pub(crate) fn tell(&mut self, site: usize, watch: usize, at: usize, source: Source, mutant: Mutant) {
        let Some(told) = self.sites[site].watches[watch].history[at].clone() else { return };
        let supervisor = self.sites[site].supervisor.as_ref();
        match told {
            Told::Task(task) => match supervisor {
                None => self.supervise(site, &task, source, mutant),
                Some(_) => self.happen(site, Event::TaskSeen(Box::new(task_view(&task)), source), mutant),
            },
            Told::TaskGone(uid, _) => {
                if supervisor.is_some_and(|supervisor| supervisor.state.task.uid == uid) {
                    self.retire(site, mutant);
                }
            }
            Told::Child(kind, child) => {
                if let Some(supervisor) = supervisor {
                    let mut view = child_view(&child, kind, &supervisor.state);
                    mutant.view(&mut view, &supervisor.state, kind);
                    self.happen(site, Event::ChildSeen(kind, view, source), mutant);
                }
            }
            Told::ChildGone(kind, uid, version) => {
                self.happen(site, Event::ChildGone(kind, uid, ResourceVersion(version)), mutant);
            }
        }
    }

    fn supervise(&mut self, site: usize, task: &Task, source: Source, mutant: Mutant) {
        let now = self.now();
        let mut state = State::new(key_of(site), task_view(task), Presence::Absent, now.monotonic);
        if self.sink {
            state = state.notifying(FAREWELL, now.monotonic);
        }
        let commands = state.start(source, now);
        self.sites[site].supervisor = Some(Supervised {
            state,
            wire: None,
            reply: None,
            timer: None,
            said: Vec::new(),
            offered: None,
            farewell: false,
        });
        self.carry_out(site, commands, mutant);
    }

    /// The Task is gone: its supervisor is told, and ends.
    pub(crate) fn retire(&mut self, site: usize, mutant: Mutant) {
        self.happen(site, Event::TaskGone, mutant);
        self.forget(site);
        self.queue.forget(site);
    }

    /// A supervisor ends. A write that it sent is still on the wire.
    pub(crate) fn forget(&mut self, site: usize) {
        let site = &mut self.sites[site];
        if let Some(supervisor) = site.supervisor.take()
            && supervisor.reply.is_none()
            && let Some(wire) = supervisor.wire.filter(|wire| is_write(&wire.request))
        {
            site.stray.get_or_insert(wire);
        }
    }

    /// The shipped core takes in an event, if there is a supervisor.
    pub(crate) fn happen(&mut self, site: usize, event: Event, mutant: Mutant) {
        let now = self.now();
        let Some(supervisor) = &mut self.sites[site].supervisor else { return };
        let before = supervisor.state.clone();
        let mut commands = match mutant.event(&mut supervisor.state, event.clone(), now.monotonic) {
            Some(event) => supervisor.state.on(event, now),
            None => Vec::new(),
        };
        mutant.outcome(&before, &event, &mut supervisor.state, &mut commands, now.monotonic);
        if before.task.uid != supervisor.state.task.uid {
            supervisor.said.clear();
            supervisor.farewell = false;
        }
        let rule = rules::judge(&before, &event, &supervisor.state, &commands, now.monotonic);
        self.condemn(rule);
        self.carry_out(site, commands, mutant);
    }

    fn carry_out(&mut self, number: usize, commands: Vec<Command>, mutant: Mutant) {
        let Some(supervisor) = &mut self.sites[number].supervisor else { return };
        let mut rule = None;
        for command in commands {
            match command {
                Command::AskSlot(priority) => self.queue.ask(number, priority),
                Command::WakeAt(at) => supervisor.timer = Some(at),
                Command::PassFinished(_) => self.queue.release(number),
                Command::Offer(notice) => supervisor.offered = Some(notice.number()),
                Command::Withdraw { uid, counted } => {
                    supervisor.offered = None;
                    // The shipped deadline is what the state says; that it came is judged here.
                    let since = supervisor.state.outbox.as_ref().and_then(|outbox| outbox.deleting_since);
                    let is_over = since.is_some_and(|since| self.clock >= since.after(FAREWELL).0);
                    supervisor.farewell |=
                        counted == Some("abandoned") && is_over && uid == supervisor.state.task.uid;
                }
                Command::Record(note) => {
                    let once = matches!(note.reason, "Deleted" | "FinalizerAdded");
                    if once && supervisor.said.contains(&note.reason) {
                        rule = Some(Rule::ToldTwice);
                    } else if once {
                        supervisor.said.push(note.reason);
                    }
                }
                Command::Send(request) => {
                    if supervisor.wire.is_some() {
                        rule = Some(Rule::TwoRequests);
                    }
                    if self.sink && request == Request::RemoveFinalizer && !supervisor.farewell {
                        rule = Some(Rule::FarewellFirst);
                    }
                    let mut wire = Wire::new(request, &supervisor.state);
                    mutant.wire(&mut wire);
                    supervisor.wire = Some(wire);
                }
            }
        }
        let is_running = matches!(supervisor.state.pass, Pass::Running { .. });
        let has_slot = self.queue.running.contains(&number);
        let is_queued = matches!(supervisor.state.pass, Pass::Queued { .. });
        let latest = Instant(self.clock + rules::LONGEST_WAIT);
        let will_wake = supervisor.timer.is_some_and(|at| at <= latest);
        let sleeps_for_ever = !is_running && !is_queued && !will_wake && !supervisor.state.task.gone;
        if is_running != supervisor.wire.is_some() || is_running != has_slot {
            rule = rule.or(Some(Rule::SlotKept));
        }
        if sleeps_for_ever {
            rule = rule.or(Some(Rule::NothingWakesIt));
        }
        self.condemn(rule);
    }
}

/// Whether this request changes something.
pub(crate) fn is_write(request: &Request) -> bool {
    !matches!(request, Request::LookAtTask | Request::LookAtChild(_) | Request::FindPodFault)
}
