//! A model of the API server, the watches, the dispatcher and the controllers,
//! around the shipped [`State`].
//!
//! Objects have versions, deletions wait for finalizers, children of a Task
//! that is gone are collected, and writes carry the preconditions that the
//! requests carry. What the core may never do is checked when it does it.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use task_operator::api::v1::TaskSpec;
use task_operator::api::{ResourceVersion, TaskKey, Uid};
use task_operator::desired::{self, ChildKind, Digest};
use task_operator::supervisor::event::{
    Answer, ChildView, Command, Event, Failure, FailureClass, Note, Report, Request, Source, TaskView,
};
use task_operator::supervisor::state::{Pass, Presence, Rollout, State, Whose};
use task_operator::supervisor::status::Status;
use task_operator::supervisor::time::{Instant, Now};

/// A Task on the server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Task {
    pub(crate) uid: Uid,
    pub(crate) version: u64,
    pub(crate) generation: i64,
    pub(crate) spec: TaskSpec,
    pub(crate) finalizer: bool,
    pub(crate) deleting: bool,
    pub(crate) status: Status,
}

/// A child, or what has its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Child {
    pub(crate) uid: Uid,
    pub(crate) version: u64,
    /// The Task that controls it, none for a foreign object.
    pub(crate) owner: Option<Uid>,
    pub(crate) carries: Option<Digest>,
    pub(crate) rollout: Rollout,
    /// Pods that the Deployment asks for.
    pub(crate) replicas: i32,
}

/// What a watch will tell.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Told {
    Task(Box<Task>),
    TaskGone(Uid),
    Child(ChildKind, Child),
    ChildGone(ChildKind, Uid, u64),
}

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

#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    pub(crate) clock: u64,
    version: u64,
    uids: u64,
    pub(crate) task: Option<Task>,
    pub(crate) children: [Option<Child>; 3],
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

    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn next_uid(&mut self) -> Uid {
        self.uids += 1;
        format!("uid-{}", self.uids).into()
    }

    // --- What people do ---

    pub(crate) fn create_task(&mut self, spec: TaskSpec) {
        assert!(self.task.is_none());
        let (uid, version) = (self.next_uid(), self.next_version());
        let task = Task {
            uid,
            version,
            generation: 1,
            spec,
            finalizer: false,
            deleting: false,
            status: Status::default(),
        };
        self.put_task(Some(task));
    }

    pub(crate) fn edit_task(&mut self, spec: TaskSpec) {
        if let Some(mut task) = self.task.clone()
            && task.spec != spec
        {
            task.spec = spec;
            task.generation += 1;
            task.version = self.next_version();
            self.put_task(Some(task));
        }
    }

    pub(crate) fn delete_task(&mut self) {
        let Some(mut task) = self.task.clone() else { return };
        if task.finalizer {
            task.deleting = true;
            task.version = self.next_version();
            self.put_task(Some(task));
        } else {
            self.put_task(None);
        }
    }

    pub(crate) fn break_child(&mut self, kind: ChildKind) {
        if let Some(mut child) = self.children[kind.index()].clone() {
            child.carries = None;
            child.version = self.next_version();
            self.put_child(kind, Some(child));
        }
    }

    pub(crate) fn delete_child(&mut self, kind: ChildKind) {
        self.put_child(kind, None);
    }

    pub(crate) fn create_foreign(&mut self, kind: ChildKind) {
        if self.children[kind.index()].is_none() {
            let (uid, version) = (self.next_uid(), self.next_version());
            let child =
                Child { uid, version, owner: None, carries: None, rollout: Rollout::default(), replicas: 0 };
            // The watches select by label: they do not tell of it.
            self.children[kind.index()] = Some(child);
        }
    }

    fn put_task(&mut self, task: Option<Task>) {
        match (&task, &self.task) {
            (Some(task), _) => self.told.push_back(Told::Task(Box::new(task.clone()))),
            (None, Some(old)) => self.told.push_back(Told::TaskGone(old.uid.clone())),
            (None, None) => {}
        }
        self.task = task;
    }

    fn put_child(&mut self, kind: ChildKind, child: Option<Child>) {
        let old = self.children[kind.index()].take();
        let watched = |child: &Child| child.owner.is_some();
        match (&child, old) {
            (Some(child), _) if watched(child) => self.told.push_back(Told::Child(kind, child.clone())),
            (None, Some(old)) => {
                let version = self.next_version();
                if watched(&old) {
                    self.told.push_back(Told::ChildGone(kind, old.uid, version));
                }
            }
            _ => {}
        }
        self.children[kind.index()] = child;
    }

    // --- What controllers do ---

    /// One step of garbage collection or of the rollout; false if there is none left.
    pub(crate) fn controllers(&mut self) -> bool {
        let alive = self.task.as_ref().map(|task| task.uid.clone());
        for kind in ChildKind::ALL {
            let Some(mut child) = self.children[kind.index()].clone() else { continue };
            if child.owner.is_some() && child.owner != alive {
                self.put_child(kind, None);
                return true;
            }
            let complete = Rollout {
                current: true,
                replicas: child.replicas,
                updated: child.replicas,
                ready: child.replicas,
                available: child.replicas,
                failure: None,
            };
            if kind == ChildKind::Deployment && child.owner.is_some() && child.rollout != complete {
                child.rollout = complete;
                child.version = self.next_version();
                self.put_child(kind, Some(child));
                return true;
            }
        }
        false
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
            Told::TaskGone(uid) => {
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

    fn supervise(&mut self, task: &Task, source: Source) {
        let now = self.now();
        let mut state = State::new(key(), task_view(task), Presence::Absent, now.monotonic);
        let commands = state.start(source, now);
        self.state = Some(state);
        self.carry_out(commands);
    }

    fn forget(&mut self) {
        self.state = None;
        self.request = None;
        self.wants_slot = false;
        self.wake = None;
    }

    fn happen(&mut self, event: Event) {
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
                    !status.says_the_same(&state.task.status),
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
    pub(crate) fn take_effect(&mut self) {
        let request = self.request.clone().expect("a request is under way");
        self.serve(&request).expect("it is served");
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
        match self.task.clone() {
            Some(task) => self.tell(Told::Task(Box::new(task)), began),
            None => self.forget(),
        }
        for kind in ChildKind::ALL {
            let child = self.children[kind.index()].clone();
            if let Some(child) = child.filter(|child| child.owner.is_some()) {
                self.tell(Told::Child(kind, child), began);
            }
            let Source::List(at) = began else { unreachable!() };
            if self.state.is_some() {
                self.happen(Event::ChildrenListed(kind, at));
            }
        }
    }

    // --- The API server ---

    fn serve(&mut self, request: &Request) -> Result<Answer, Failure> {
        let (uid, version, spec, wanted) = {
            let task = &self.state.as_ref().unwrap().task;
            (task.uid.clone(), task.version.0, task.spec.clone(), task.wanted)
        };
        let stale = || failure(FailureClass::Stale, request);
        match request {
            Request::FindPodFault => Ok(Answer::Pods(None)),
            Request::LookAtTask => Ok(match &self.task {
                Some(task) if task.uid == uid => Answer::Task(Box::new(task_view(task))),
                _ => Answer::TaskAbsent,
            }),
            Request::LookAtChild(kind) => Ok(self.show(*kind)),
            Request::AddFinalizer | Request::RemoveFinalizer | Request::WriteStatus(_) => {
                let Some(mut task) = self.task.clone() else { return Ok(Answer::TaskAbsent) };
                if task.uid != uid || task.version != version {
                    return Err(stale());
                }
                match request {
                    Request::AddFinalizer => task.finalizer = true,
                    Request::RemoveFinalizer => task.finalizer = false,
                    Request::WriteStatus(status) => {
                        task.status = status.as_ref().clone().dated(&task.status, 1)
                    }
                    _ => unreachable!(),
                }
                self.writes.push(format!("{request:?}").chars().take(13).collect());
                task.version = self.next_version();
                let view = task_view(&task);
                let ends = task.deleting && !task.finalizer;
                self.put_task((!ends).then_some(task));
                Ok(Answer::Task(Box::new(view)))
            }
            Request::Create(kind) => {
                if self.children[kind.index()].is_some() {
                    return Err(stale());
                }
                let (child_uid, version) = (self.next_uid(), self.next_version());
                let child = Child {
                    uid: child_uid,
                    version,
                    owner: Some(uid),
                    carries: Some(wanted[kind.index()]),
                    rollout: Rollout::default(),
                    replicas: spec.replicas,
                };
                self.writes.push(format!("Create {}", kind.as_str()));
                self.put_child(*kind, Some(child));
                Ok(self.show(*kind))
            }
            Request::Correct(kind) => {
                if let Some(mut child) = self.children[kind.index()].clone()
                    && child.owner.as_ref() == Some(&uid)
                    && child.carries != Some(wanted[kind.index()])
                {
                    child.carries = Some(wanted[kind.index()]);
                    child.replicas = spec.replicas;
                    child.rollout.current = false;
                    child.version = self.next_version();
                    self.writes.push(format!("Correct {}", kind.as_str()));
                    self.put_child(*kind, Some(child));
                }
                Ok(self.show(*kind))
            }
        }
    }

    fn show(&self, kind: ChildKind) -> Answer {
        match &self.children[kind.index()] {
            None => Answer::ChildAbsent(kind),
            Some(child) => Answer::Child(kind, child_view(child, kind, self.state.as_ref().unwrap())),
        }
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
        let Some(task) = &self.task else {
            assert!(self.state.is_none(), "a Task that is gone still has a supervisor: {self:#?}");
            assert!(
                self.children.iter().flatten().all(|child| child.owner.is_none()),
                "a child stays: {self:#?}"
            );
            return;
        };
        assert!(!task.deleting && task.finalizer, "{self:#?}");
        let wanted = ChildKind::ALL.map(|kind| desired::digest(kind, &key(), &task.uid, &task.spec));
        let phase = task.status.phase.as_str();
        let foreign = self.children.iter().flatten().any(|child| child.owner.is_none());
        if foreign {
            assert_eq!(phase, "Failed", "{self:#?}");
            assert_eq!(task.status.ready.as_ref().unwrap().reason, "NameConflict");
            return;
        }
        for kind in ChildKind::ALL {
            let child =
                self.children[kind.index()].as_ref().unwrap_or_else(|| panic!("no {kind:?}: {self:#?}"));
            assert_eq!(child.owner.as_ref(), Some(&task.uid), "{self:#?}");
            assert_eq!(child.carries, Some(wanted[kind.index()]), "{kind:?} is not right: {self:#?}");
        }
        assert_eq!(phase, if task.spec.replicas > 0 { "Succeeded" } else { "Pending" }, "{self:#?}");
        assert_eq!(task.status.observed_generation, task.generation, "{self:#?}");
        assert_eq!(task.status.ready.as_ref().unwrap().truth.as_str(), "True", "{self:#?}");
        assert!(task.status.reconciling.is_none() && task.status.stalled.is_none(), "{self:#?}");
    }
}

fn task_view(task: &Task) -> TaskView {
    TaskView {
        uid: task.uid.clone(),
        version: ResourceVersion(task.version),
        generation: task.generation,
        deleting: task.deleting,
        finalizer: task.finalizer,
        other_finalizers: Vec::new(),
        spec: task.spec.clone(),
        fault: None,
        wanted: ChildKind::ALL.map(|kind| desired::digest(kind, &key(), &task.uid, &task.spec)),
        status: task.status.clone(),
    }
}

/// As the shell compares an object with what is wanted at this moment.
fn child_view(child: &Child, kind: ChildKind, state: &State) -> ChildView {
    let foreign = match &child.owner {
        Some(owner) if *owner == state.task.uid => None,
        Some(_) => Some(Whose::Predecessor),
        None => Some(Whose::Nobody),
    };
    let is_right = foreign.is_none() && child.carries == Some(state.wanted(kind));
    ChildView {
        uid: child.uid.clone(),
        version: ResourceVersion(child.version),
        foreign,
        terminating: false,
        carries: is_right.then(|| state.wanted(kind)),
        rollout: (kind == ChildKind::Deployment).then(|| child.rollout.clone()),
        contender: None,
    }
}

fn failure(class: FailureClass, request: &Request) -> Failure {
    let mut hasher = DefaultHasher::new();
    (class as u8, request).hash(&mut hasher);
    let identity = hasher.finish();
    Failure { class, reason: "Test".into(), message: "it failed".into(), identity, retry_after: None }
}
