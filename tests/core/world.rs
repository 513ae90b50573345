//! The watches and the dispatcher between the shipped [`State`] and a small API
//! server. What the core may never do is checked when it does it.

use std::collections::VecDeque;

use task_operator::api::v1::TaskSpec;
use task_operator::api::{ResourceVersion, TaskKey};
use task_operator::desired::ChildKind;
use task_operator::queue::Outcome;
use task_operator::supervisor::event::{
    Answer, Command, Event, Failure, FailureClass, Note, Report, Request, Source,
};
use task_operator::supervisor::state::{Pass, Presence, State};
use task_operator::supervisor::time::{Instant, Now};

use crate::shared::right::wrong;
use crate::shared::server::{Effect, Reply, Server, Told, Wire, child_view, task_view};
use crate::shared::{answer, failure};
use crate::sink::Sink;

/// How a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// As it should.
    Answered,
    /// The server fails before it does anything.
    FailsBefore(FailureClass),
    /// It takes effect, and the answer is lost.
    AnswerLost,
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) clock: u64,
    pub(crate) server: Server,
    pub(crate) told: VecDeque<Told>,
    pub(crate) state: Option<State>,
    pub(crate) request: Option<Request>,
    pub(crate) wants_slot: bool,
    pub(crate) wake: Option<Instant>,
    /// Every write that was sent and was not refused.
    pub(crate) writes: Vec<String>,
    pub(crate) requests: usize,
    pub(crate) notes: Vec<Note>,
    pub(crate) reports: Vec<Report>,
    /// Who is told; nobody unless a test wants it.
    pub(crate) sink: Option<Sink>,
}

impl Default for World {
    fn default() -> Self {
        Self {
            clock: 0,
            server: Server::new(key()),
            told: VecDeque::new(),
            state: None,
            request: None,
            wants_slot: false,
            wake: None,
            writes: Vec::new(),
            requests: 0,
            notes: Vec::new(),
            reports: Vec::new(),
            sink: None,
        }
    }
}

fn key() -> TaskKey {
    TaskKey::new("default", "web")
}

pub(crate) fn spec(replicas: i32, port: i32) -> TaskSpec {
    TaskSpec { replicas, port, ..TaskSpec::default() }
}

impl World {
    fn now(&self) -> Now {
        Now {
            monotonic: Instant(self.clock),
            wall: 1_700_000_000 + i64::try_from(self.clock / 1000).unwrap(),
        }
    }

    // --- What people and controllers do ---

    pub(crate) fn create_task(&mut self, spec: TaskSpec) {
        self.server.create_task(spec);
        self.hear();
    }

    pub(crate) fn edit_task(&mut self, spec: TaskSpec) {
        self.server.edit_task(spec);
        self.hear();
    }

    pub(crate) fn delete_task(&mut self) {
        self.server.delete_task();
        self.hear();
    }

    pub(crate) fn break_child(&mut self, kind: ChildKind) {
        self.server.break_child(kind);
        self.hear();
    }

    pub(crate) fn delete_child(&mut self, kind: ChildKind) {
        self.server.delete_child(kind);
        self.hear();
    }

    pub(crate) fn create_foreign(&mut self, kind: ChildKind) {
        self.server.create_foreign(kind);
        self.hear();
    }

    /// Anything else that is done to the objects.
    pub(crate) fn others(&mut self, deed: impl FnOnce(&mut Server)) {
        deed(&mut self.server);
        self.hear();
    }

    /// One step of garbage collection or of the rollout; false if there is none left.
    pub(crate) fn controllers(&mut self) -> bool {
        let server = &mut self.server;
        let acted = ChildKind::ALL.into_iter().any(|kind| server.collect(kind))
            || server.roll_out()
            || server.let_go();
        self.hear();
        acted
    }

    /// The watches take what the server has to tell.
    fn hear(&mut self) {
        self.told.extend(self.server.told.drain(..));
    }

    // --- The shell around the core ---

    /// A watch tells the next thing; `again` keeps it to be told once more.
    pub(crate) fn deliver(&mut self, again: bool) {
        let Some(told) = self.told.pop_front() else { return };
        if again {
            self.told.push_front(told.clone());
        }
        self.tell(told, Source::Change);
    }

    fn tell(&mut self, told: Told, source: Source) {
        match told {
            Told::Task(task) => match &self.state {
                None => self.supervise(&task, source),
                Some(_) => self.happen(Event::TaskSeen(Box::new(task_view(&task)), source)),
            },
            Told::TaskGone(uid, _) => {
                if self.state.as_ref().is_some_and(|state| state.task.uid == uid) {
                    self.happen(Event::TaskGone);
                    self.forget();
                }
            }
            Told::Child(kind, child) => {
                if let Some(state) = &self.state {
                    let view = child_view(&child, kind, state);
                    self.happen(Event::ChildSeen(kind, view, source));
                }
            }
            Told::ChildGone(kind, uid, version) => {
                if self.state.is_some() {
                    self.happen(Event::ChildGone(kind, uid, ResourceVersion(version)));
                }
            }
        }
    }

    fn supervise(&mut self, task: &crate::shared::server::Task, source: Source) {
        let now = self.now();
        let mut state = State::new(key(), task_view(task), Presence::Absent, now.monotonic);
        if self.sink.is_some() {
            state = state.notifying(crate::sink::FAREWELL, now.monotonic);
        }
        let commands = state.start(source, now);
        self.state = Some(state);
        self.carry_out(commands);
    }

    pub(crate) fn forget(&mut self) {
        self.state = None;
        self.request = None;
        self.wants_slot = false;
        self.wake = None;
    }

    pub(crate) fn happen(&mut self, event: Event) {
        let now = self.now();
        if let Some(state) = &mut self.state {
            let commands = state.on(event, now);
            self.carry_out(commands);
        }
    }

    fn carry_out(&mut self, commands: Vec<Command>) {
        for command in commands {
            match command {
                Command::AskSlot(_) => self.wants_slot = true,
                Command::WakeAt(at) => self.wake = Some(at),
                Command::Record(note) => self.notes.push(note),
                Command::PassFinished(report) => self.reports.push(report),
                Command::Offer(notice) => self.sink.as_mut().expect("there is a sink").offer(*notice),
                Command::Withdraw { uid, counted } => {
                    self.sink.as_mut().expect("there is a sink").withdraw(&uid, counted);
                }
                Command::Send(request) => {
                    assert!(
                        self.request.is_none(),
                        "two requests at once: {:?} and {request:?}",
                        self.request
                    );
                    self.check(&request);
                    self.requests += 1;
                    self.request = Some(request);
                }
            }
        }
        let state = self.state.as_ref().unwrap();
        let is_running = matches!(state.pass, Pass::Running { .. });
        assert_eq!(
            is_running,
            self.request.is_some(),
            "a pass without a request, or the reverse: {:?}",
            state.pass
        );
        let has_future = is_running || self.wants_slot || self.wake.is_some() || state.task.gone;
        assert!(has_future, "nothing will ever wake it: {state:#?}");
    }

    /// What the core may never ask for, by what it knows.
    fn check(&self, request: &Request) {
        let state = self.state.as_ref().unwrap();
        let presence = |kind: &ChildKind| &state.child(*kind).presence;
        match request {
            Request::Create(kind) => {
                assert!(!state.task.deleting, "a child is created during deletion");
                assert!(state.task.finalizer, "a child is created without the finalizer");
                assert_eq!(*presence(kind), Presence::Absent);
            }
            Request::Correct(kind) => {
                assert!(!state.task.deleting, "a child is corrected during deletion");
                assert!(matches!(presence(kind), Presence::Ours { .. }), "a foreign object is changed");
            }
            Request::RemoveFinalizer => assert!(state.task.deleting, "the finalizer goes without a deletion"),
            Request::WriteStatus(status) => {
                assert!(
                    !status.says_the_same(&state.task.status) || crate::sink::has_news(state, status),
                    "a status is written that says nothing new"
                );
            }
            Request::LookAtTask | Request::LookAtChild(_) | Request::AddFinalizer | Request::FindPodFault => {
            }
        }
    }

    pub(crate) fn grant(&mut self) {
        if std::mem::take(&mut self.wants_slot) {
            self.happen(Event::SlotGranted);
        }
    }

    /// The request under way ends.
    pub(crate) fn answer(&mut self, fate: Fate) {
        let Some(request) = self.request.take() else { return };
        let event = match fate {
            Fate::FailsBefore(class) => Event::Failed(failure(class, &request)),
            Fate::AnswerLost => {
                // The effect is there, and nobody was told.
                let _ = self.serve(&request);
                Event::Failed(failure(FailureClass::Transient, &request))
            }
            Fate::Answered => match self.serve(&request) {
                Ok(answer) => Event::Answered(answer),
                Err(failure) => Event::Failed(failure),
            },
        };
        self.happen(event);
    }

    /// The request under way takes effect, and its answer is still to come.
    pub(crate) fn take_effect(&mut self) -> Reply {
        let request = self.request.clone().expect("a request is under way");
        let (reply, _) = self.server.serve(&Wire::new(request, self.state.as_ref().unwrap()));
        self.hear();
        reply
    }

    /// The answer to what took effect arrives.
    pub(crate) fn arrive(&mut self, reply: Reply) {
        self.request = None;
        let answer = answer(reply, self.state.as_ref().unwrap()).expect("it was no conflict");
        self.happen(Event::Answered(answer));
    }

    /// The watches tell all that they have to tell.
    pub(crate) fn deliver_all(&mut self) {
        while !self.told.is_empty() {
            self.deliver(false);
        }
    }

    /// Time goes on to the wake-up that was asked for.
    pub(crate) fn wake(&mut self) -> bool {
        let Some(at) = self.wake.take() else { return false };
        self.clock = self.clock.max(at.0);
        self.happen(Event::TimePassed);
        true
    }

    /// The operator dies and starts again: it knows nothing and lists everything.
    pub(crate) fn restart(&mut self) {
        self.forget();
        if let Some(sink) = &mut self.sink {
            sink.offered = None;
        }
        self.told.clear();
        self.clock += 1;
        self.list();
    }

    /// All watches broke and list anew: what they had not told yet is lost.
    pub(crate) fn relist(&mut self) {
        self.told.clear();
        self.clock += 1;
        self.list();
    }

    fn list(&mut self) {
        let began = Source::List(self.now().monotonic);
        self.clock += 1;
        match self.server.task.clone() {
            Some(task) => self.tell(Told::Task(task), began),
            None => self.forget(),
        }
        for kind in ChildKind::ALL {
            let child = self.server.child(kind).cloned();
            if let Some(child) = child.filter(|child| child.labelled) {
                self.tell(Told::Child(kind, child), began);
            }
            let Source::List(at) = began else { unreachable!() };
            if self.state.is_some() {
                self.happen(Event::ChildrenListed(kind, at));
            }
        }
    }

    fn serve(&mut self, request: &Request) -> Result<Answer, Failure> {
        let state = self.state.as_ref().unwrap();
        let before = self.server.task.as_ref().map(|task| task.status.phase);
        let (reply, effect) = self.server.serve(&Wire::new(request.clone(), state));
        if let (Some(sink), Request::WriteStatus(status), Effect::Changed) = (&mut self.sink, request, effect)
            && before != Some(status.phase)
        {
            sink.changes.push((state.task.uid.clone(), status.phase));
        }
        assert_ne!(effect, Effect::Trespass, "{request:?} changed what is not ours");
        if effect == Effect::Changed {
            self.writes.push(name_of_write(request));
        }
        let answer = answer(reply, state).ok_or_else(|| failure(FailureClass::Stale, request));
        self.hear();
        answer
    }

    /// Everything that can happen without time or controllers does.
    pub(crate) fn rest(&mut self) {
        while !self.told.is_empty() || self.request.is_some() || self.wants_slot {
            self.deliver(false);
            self.answer(Fate::Answered);
            self.grant();
        }
    }

    // --- What has to hold in the end ---

    /// Everything goes on undisturbed until nothing is left to do.
    ///
    /// # Panics
    /// If it does not come to rest, or not where it should.
    pub(crate) fn settle(&mut self) {
        let (mut steps, mut idle, mut writes) = (0, 0, self.writes.len());
        while idle < 12 {
            steps += 1;
            assert!(steps < 2000, "it does not settle: {self:#?}");
            self.clock += 1;
            if !self.told.is_empty() {
                self.deliver(false);
            } else if self.request.is_some() {
                self.answer(Fate::Answered);
            } else if self.wants_slot {
                self.grant();
            } else if self.sink.as_ref().is_some_and(|sink| sink.offered.is_some()) {
                self.sink_takes(Outcome::Delivered);
            } else if self.controllers() {
                continue;
            } else if self.wake() {
                idle = if self.writes.len() == writes { idle + 1 } else { 0 };
                writes = self.writes.len();
            } else {
                break;
            }
        }
        self.assert_right();
    }

    fn assert_right(&self) {
        assert_eq!(wrong(&self.server, self.state.as_ref()), None, "{self:#?}");
    }
}

/// As the tests name it: the verb, and of a child the kind.
fn name_of_write(request: &Request) -> String {
    match request {
        Request::Create(kind) => format!("Create {}", kind.as_str()),
        Request::Correct(kind) => format!("Correct {}", kind.as_str()),
        _ => format!("{request:?}").chars().take(13).collect(),
    }
}
