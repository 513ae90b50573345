//! How much of the world a run looks at: who may do what, how often, and what may go wrong.

use task_operator::api::v1::TaskSpec;
use task_operator::desired::ChildKind;

use crate::shared::server::Server;
use crate::system::Step;

/// What people, backups and other controllers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Create(usize),
    Edit(usize),
    Delete,
    /// Our finalizer is removed.
    Strip,
    /// Somebody else's finalizer comes.
    Hold,
    /// The status is overwritten.
    Spoil,
    DeleteChild(ChildKind),
    /// It is deleted, and somebody's finalizer holds it.
    HoldChild(ChildKind),
    /// A declared field is changed.
    Break(ChildKind),
    /// The label that the watches select by is removed.
    Unlabel(ChildKind),
    /// The owner reference is removed.
    Orphan(ChildKind),
    /// An object of that name is created that is not the Task's.
    Foreign(ChildKind),
}

/// The specs that people write.
fn spec(number: usize) -> TaskSpec {
    let (replicas, port) = [(1, 80), (2, 81), (0, 80)][number];
    TaskSpec { replicas, port, ..TaskSpec::default() }
}

impl Deed {
    /// Whether it would change anything.
    pub(crate) fn is_possible(self, server: &Server) -> bool {
        let task = server.task.as_deref();
        let child = |kind| server.child(kind);
        match self {
            Self::Create(_) => task.is_none(),
            Self::Edit(number) => task.is_some_and(|task| task.wish.spec != spec(number)),
            Self::Delete => task.is_some_and(|task| !task.deleting),
            Self::Strip => task.is_some_and(|task| task.finalizer),
            Self::Hold => task.is_some_and(|task| !task.held && !task.deleting),
            Self::Spoil => task.is_some(),
            Self::DeleteChild(kind) => child(kind).is_some(),
            Self::HoldChild(kind) => child(kind).is_some_and(|child| !child.terminating),
            Self::Break(kind) => child(kind).is_some_and(|child| child.carries.is_some()),
            Self::Unlabel(kind) => child(kind).is_some_and(|child| child.labelled),
            Self::Orphan(kind) => child(kind).is_some_and(|child| child.owner.is_some()),
            Self::Foreign(kind) => child(kind).is_none(),
        }
    }

    pub(crate) fn carry_out(self, server: &mut Server) {
        match self {
            Self::Create(number) => server.create_task(spec(number)),
            Self::Edit(number) => server.edit_task(spec(number)),
            Self::Delete => server.delete_task(),
            Self::Strip => server.strip_task(),
            Self::Hold => server.hold_task(true),
            Self::Spoil => server.spoil_status(),
            Self::DeleteChild(kind) => server.delete_child(kind),
            Self::HoldChild(kind) => server.hold_child(kind),
            Self::Break(kind) => server.break_child(kind),
            Self::Unlabel(kind) => server.unlabel_child(kind),
            Self::Orphan(kind) => server.orphan_child(kind),
            Self::Foreign(kind) => server.create_foreign(kind),
        }
    }
}

/// What a run looks at.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    pub(crate) name: &'static str,
    /// Tasks, which share one slot.
    pub(crate) tasks: usize,
    /// Deeds of people, and faults, at most.
    pub(crate) users: u8,
    pub(crate) faults: u8,
    /// The watches that may lag: of the Task, then of each kind. The others tell at once.
    pub(crate) lagging: [bool; 4],
    pub(crate) deeds: Vec<Deed>,
    /// Whether the Tasks are there and right when it begins.
    pub(crate) settled: bool,
    /// What has happened then, at no cost.
    pub(crate) before: Vec<Step>,
    /// Whether a sink is told of what happens to them.
    pub(crate) sink: bool,
}
