//! The API server: objects with versions, preconditions, deletions that wait for
//! finalizers, garbage collection, and a Deployment's controller.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use task_operator::api::v1::TaskSpec;
use task_operator::api::{ResourceVersion, TaskKey, Uid};
use task_operator::desired::{self, ChildKind, Digest};
use task_operator::supervisor::event::{ChildView, Request, TaskView};
use task_operator::supervisor::state::{Rollout, State, Whose};
use task_operator::supervisor::status::Status;

/// What a Task asks for, and what its children should carry then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) spec: TaskSpec,
    pub(crate) wanted: [Digest; 3],
}

/// The digests tell specs apart.
impl Hash for Wish {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.wanted.hash(state);
    }
}

impl Wish {
    pub(crate) fn new(key: &TaskKey, uid: &Uid, spec: TaskSpec) -> Arc<Self> {
        thread_local! {
            /// Rendering is slow, and the same few are asked for all the time.
            static KNOWN: RefCell<HashMap<(TaskKey, Uid, TaskSpec), Arc<Wish>>> = RefCell::default();
        }
        KNOWN.with_borrow_mut(|known| {
            let entry = known.entry((key.clone(), uid.clone(), spec.clone()));
            let make = || {
                let wanted = ChildKind::ALL.map(|kind| desired::digest(kind, key, uid, &spec));
                Arc::new(Self { spec, wanted })
            };
            entry.or_insert_with(make).clone()
        })
    }
}

/// A Task on the server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Task {
    pub(crate) uid: Uid,
    pub(crate) version: u64,
    pub(crate) generation: i64,
    pub(crate) wish: Arc<Wish>,
    pub(crate) finalizer: bool,
    /// Somebody else's finalizer is there.
    pub(crate) held: bool,
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
    /// It has the label that the watches select by.
    pub(crate) labelled: bool,
    pub(crate) carries: Option<Digest>,
    /// It is being deleted, and somebody's finalizer holds it.
    pub(crate) terminating: bool,
    pub(crate) rollout: Rollout,
    /// Pods that the Deployment asks for.
    pub(crate) replicas: i32,
}

/// What changed, as a watch tells it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Told {
    Task(Arc<Task>),
    TaskGone(Uid, u64),
    Child(ChildKind, Arc<Child>),
    ChildGone(ChildKind, Uid, u64),
}

/// A request on the wire: what it names and carries was settled when it was sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wire {
    pub(crate) request: Request,
    pub(crate) uid: Uid,
    pub(crate) version: u64,
    pub(crate) wish: Arc<Wish>,
    /// As a broken operator sends it: nothing is compared before it takes effect.
    pub(crate) reckless: bool,
}

impl Wire {
    /// The request of a supervisor in this state.
    pub(crate) fn new(request: Request, state: &State) -> Self {
        let task = &state.task;
        let wish = Arc::new(Wish { spec: task.spec.clone(), wanted: task.wanted });
        Self { request, uid: task.uid.clone(), version: task.version.0, wish, reckless: false }
    }
}

/// What the server answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reply {
    Task(Option<Arc<Task>>),
    Child(ChildKind, Option<Arc<Child>>),
    Pods,
    /// 409: the name is taken, or a precondition does not hold.
    Conflict,
}

/// What a request did to the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// A read, or a write that a comparison before it found needless.
    Nothing,
    /// A write that left all as it was, or was refused.
    Vain,
    /// A write that changed an object.
    Changed,
    /// A write to an object that its Task does not control.
    Trespass,
}

/// The objects of one Task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    pub(crate) key: TaskKey,
    pub(crate) task: Option<Arc<Task>>,
    pub(crate) children: [Option<Arc<Child>>; 3],
    /// The newest version of the Task and of each kind of child.
    pub(crate) versions: [u64; 4],
    /// Tasks made so far, and children of each kind.
    pub(crate) made: [u32; 4],
    /// What the watches have not been given yet, in order.
    pub(crate) told: Vec<Told>,
    /// The definition of the Tasks has no `status.notifications`.
    pub(crate) prunes: bool,
}

/// The index of the Task in what is kept per kind; a child's is one more than its kind's.
const TASK: usize = 0;

fn of(kind: ChildKind) -> usize {
    kind.index() + 1
}

impl Server {
    pub(crate) fn new(key: TaskKey) -> Self {
        Self {
            key,
            task: None,
            children: [None, None, None],
            versions: [0; 4],
            made: [0; 4],
            told: Vec::new(),
            prunes: false,
        }
    }

    pub(crate) fn child(&self, kind: ChildKind) -> Option<&Arc<Child>> {
        self.children[kind.index()].as_ref()
    }

    fn next_version(&mut self, index: usize) -> u64 {
        self.versions[index] += 1;
        self.versions[index]
    }

    fn next_uid(&mut self, index: usize) -> Uid {
        self.made[index] += 1;
        uid(index, self.made[index])
    }

    // --- What people do ---

    pub(crate) fn create_task(&mut self, spec: TaskSpec) {
        assert!(self.task.is_none(), "there is a Task of this name");
        let uid = self.next_uid(TASK);
        let task = Task {
            wish: Wish::new(&self.key, &uid, spec),
            uid,
            version: 0,
            generation: 1,
            finalizer: false,
            held: false,
            deleting: false,
            status: Status::default(),
        };
        self.put_task(task);
    }

    /// Changes the Task if there is one.
    pub(crate) fn change_task(&mut self, change: impl FnOnce(&mut Task)) {
        if let Some(task) = &self.task {
            let mut changed = Task::clone(task);
            change(&mut changed);
            if changed != **task {
                self.put_task(changed);
            }
        }
    }

    pub(crate) fn edit_task(&mut self, spec: TaskSpec) {
        let key = self.key.clone();
        self.change_task(|task| {
            if task.wish.spec != spec {
                task.wish = Wish::new(&key, &task.uid, spec);
                task.generation += 1;
            }
        });
    }

    pub(crate) fn delete_task(&mut self) {
        self.change_task(|task| task.deleting = true);
    }

    /// Somebody removes our finalizer by hand.
    pub(crate) fn strip_task(&mut self) {
        self.change_task(|task| task.finalizer = false);
    }

    /// Somebody else's finalizer comes or goes.
    pub(crate) fn hold_task(&mut self, held: bool) {
        self.change_task(|task| task.held = held);
    }

    /// Somebody else writes the status.
    pub(crate) fn spoil_status(&mut self) {
        self.change_task(|task| task.status.available += 7);
    }

    /// Changes the child of this kind if there is one.
    fn change_child(&mut self, kind: ChildKind, change: impl FnOnce(&mut Child)) {
        if let Some(child) = self.child(kind) {
            let mut changed = Child::clone(child);
            change(&mut changed);
            if changed != **child {
                self.put_child(kind, Some(changed));
            }
        }
    }

    pub(crate) fn break_child(&mut self, kind: ChildKind) {
        self.change_child(kind, |child| child.carries = None);
    }

    /// The label that the watches select by is removed: to them the object is gone.
    pub(crate) fn unlabel_child(&mut self, kind: ChildKind) {
        self.change_child(kind, |child| {
            child.labelled = false;
            child.carries = None;
        });
    }

    /// Its owner reference is removed, as a restored backup has it.
    pub(crate) fn orphan_child(&mut self, kind: ChildKind) {
        self.change_child(kind, |child| {
            child.owner = None;
            child.carries = None;
        });
    }

    /// It is deleted, and somebody's finalizer holds it.
    pub(crate) fn hold_child(&mut self, kind: ChildKind) {
        self.change_child(kind, |child| child.terminating = true);
    }

    pub(crate) fn delete_child(&mut self, kind: ChildKind) {
        self.put_child(kind, None);
    }

    pub(crate) fn create_foreign(&mut self, kind: ChildKind) {
        if self.child(kind).is_none() {
            let uid = self.next_uid(of(kind));
            let child = Child { owner: None, labelled: false, carries: None, ..blank(uid) };
            self.put_child(kind, Some(child));
        }
    }

    fn put_task(&mut self, mut task: Task) {
        task.version = self.next_version(TASK);
        if task.deleting && !task.finalizer && !task.held {
            self.told.push(Told::TaskGone(task.uid, task.version));
            self.task = None;
        } else {
            let task = Arc::new(task);
            self.told.push(Told::Task(task.clone()));
            self.task = Some(task);
        }
    }

    /// Tells of it as a watch does that selects by label.
    fn put_child(&mut self, kind: ChildKind, child: Option<Child>) {
        let old = self.children[kind.index()].take();
        if child.is_none() && old.is_none() {
            return;
        }
        let version = self.next_version(of(kind));
        let child = child.map(|child| Arc::new(Child { version, ..child }));
        match (&child, old) {
            (Some(child), _) if child.labelled => self.told.push(Told::Child(kind, child.clone())),
            (_, Some(old)) if old.labelled => {
                self.told.push(Told::ChildGone(kind, old.uid.clone(), version));
            }
            _ => {}
        }
        self.children[kind.index()] = child;
    }

    // --- What controllers do ---

    /// Whether garbage collection, or whoever holds a child that is being deleted, has something to do.
    pub(crate) fn is_collectable(&self, kind: ChildKind) -> bool {
        let alive = self.task.as_ref().map(|task| &task.uid);
        self.child(kind).is_some_and(|it| it.terminating || it.owner.is_some() && it.owner.as_ref() != alive)
    }

    /// They do it; false if there is nothing to do.
    pub(crate) fn collect(&mut self, kind: ChildKind) -> bool {
        let goes = self.is_collectable(kind);
        if goes {
            self.put_child(kind, None);
        }
        goes
    }

    /// How the Deployment is once its controller has done its work; none if it has.
    pub(crate) fn rollout(&self) -> Option<Rollout> {
        let child = self.child(ChildKind::Deployment).filter(|child| child.owner.is_some())?;
        let replicas = child.replicas;
        let complete = Rollout {
            current: true,
            replicas,
            updated: replicas,
            ready: replicas,
            available: replicas,
            failure: None,
        };
        (child.rollout != complete).then_some(complete)
    }

    /// The Deployment's controller; false if there is nothing to do.
    pub(crate) fn roll_out(&mut self) -> bool {
        let rollout = self.rollout();
        let differs = rollout.is_some();
        if let Some(rollout) = rollout {
            self.change_child(ChildKind::Deployment, |child| child.rollout = rollout);
        }
        differs
    }

    /// Somebody else's finalizer keeps a Task that is being deleted.
    pub(crate) fn is_held(&self) -> bool {
        self.task.as_ref().is_some_and(|task| task.deleting && task.held)
    }

    /// Whoever holds it lets go; false if nobody does.
    pub(crate) fn let_go(&mut self) -> bool {
        let held = self.is_held();
        if held {
            self.hold_task(false);
        }
        held
    }

    // --- What requests do ---

    pub(crate) fn serve(&mut self, wire: &Wire) -> (Reply, Effect) {
        match &wire.request {
            Request::FindPodFault => (Reply::Pods, Effect::Nothing),
            Request::LookAtTask => (Reply::Task(self.task.clone()), Effect::Nothing),
            Request::LookAtChild(kind) => (self.show(*kind), Effect::Nothing),
            Request::AddFinalizer => self.patch_task(wire, |task| task.finalizer = true),
            Request::RemoveFinalizer => self.patch_task(wire, |task| task.finalizer = false),
            Request::WriteStatus(status) => self.write_status(wire, status),
            Request::Create(kind) => self.create_child(wire, *kind),
            Request::Correct(kind) => self.correct_child(wire, *kind),
        }
    }

    fn write_status(&mut self, wire: &Wire, status: &Status) -> (Reply, Effect) {
        let prunes = self.prunes;
        self.patch_task(wire, |task| {
            let mut written = status.clone().dated(&task.status, 1);
            written.notifications.take_if(|_| prunes);
            let known = &task.status;
            let tells_the_sink =
                (&written.notifications, &written.notified) != (&known.notifications, &known.notified);
            if tells_the_sink || !written.says_the_same(known) {
                task.status = written;
            }
        })
    }

    fn show(&self, kind: ChildKind) -> Reply {
        Reply::Child(kind, self.child(kind).cloned())
    }

    fn patch_task(&mut self, wire: &Wire, change: impl FnOnce(&mut Task)) -> (Reply, Effect) {
        let Some(task) = self.task.clone() else { return (Reply::Task(None), Effect::Vain) };
        if (task.uid != wire.uid || task.version != wire.version) && !wire.reckless {
            return (Reply::Conflict, Effect::Vain);
        }
        let mut changed = Task::clone(&task);
        change(&mut changed);
        if changed == *task {
            return (Reply::Task(Some(task)), Effect::Vain);
        }
        self.put_task(changed.clone());
        changed.version = self.versions[TASK];
        let effect = if task.uid == wire.uid { Effect::Changed } else { Effect::Trespass };
        (Reply::Task(Some(Arc::new(changed))), effect)
    }

    fn create_child(&mut self, wire: &Wire, kind: ChildKind) -> (Reply, Effect) {
        if self.child(kind).is_some() {
            return (Reply::Conflict, Effect::Vain);
        }
        let child = Child {
            owner: Some(wire.uid.clone()),
            carries: Some(wire.wish.wanted[kind.index()]),
            replicas: wire.wish.spec.replicas,
            ..blank(self.next_uid(of(kind)))
        };
        self.put_child(kind, Some(child));
        (self.show(kind), Effect::Changed)
    }

    /// The operator reads the object first, and patches it only if it is its own and differs.
    fn correct_child(&mut self, wire: &Wire, kind: ChildKind) -> (Reply, Effect) {
        let wanted = Some(wire.wish.wanted[kind.index()]);
        let Some(child) = self.child(kind) else { return (self.show(kind), Effect::Nothing) };
        let is_ours = child.owner.as_ref() == Some(&wire.uid);
        if !wire.reckless && (!is_ours || child.carries == wanted && child.labelled) {
            return (self.show(kind), Effect::Nothing);
        }
        let version = child.version;
        self.change_child(kind, |child| {
            child.owner = Some(wire.uid.clone());
            child.carries = wanted;
            child.labelled = true;
            child.replicas = wire.wish.spec.replicas;
            child.rollout.current = false;
        });
        let effect = match self.child(kind) {
            _ if !is_ours => Effect::Trespass,
            Some(child) if child.version == version => Effect::Vain,
            _ => Effect::Changed,
        };
        (self.show(kind), effect)
    }
}

/// The uid of the `number`th object that was made at this index.
pub(crate) fn uid(index: usize, number: u32) -> Uid {
    let kind = ["task", "config", "service", "deployment"][index];
    format!("{kind}-{number}").into()
}

fn blank(uid: Uid) -> Child {
    Child {
        uid,
        version: 0,
        owner: None,
        labelled: true,
        carries: None,
        terminating: false,
        rollout: Rollout::default(),
        replicas: 0,
    }
}

/// As a watch or an answer shows the Task.
pub(crate) fn task_view(task: &Task) -> TaskView {
    TaskView {
        uid: task.uid.clone(),
        version: ResourceVersion(task.version),
        generation: task.generation,
        deleting: task.deleting,
        deleted_at: i64::from(task.deleting),
        finalizer: task.finalizer,
        other_finalizers: if task.held { vec!["example.com/other".into()] } else { Vec::new() },
        spec: task.wish.spec.clone(),
        fault: None,
        wanted: task.wish.wanted,
        status: task.status.clone(),
    }
}

/// As the shell compares an object with what is wanted at this moment.
pub(crate) fn child_view(child: &Child, kind: ChildKind, state: &State) -> ChildView {
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
        terminating: child.terminating,
        carries: is_right.then(|| state.wanted(kind)),
        rollout: (kind == ChildKind::Deployment).then(|| child.rollout.clone()),
        contender: None,
    }
}
