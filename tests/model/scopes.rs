//! The runs: each lets other things lag, be done, and go wrong.
//!
//! `MODEL=large` adds runs with two faults, two deeds and a fault, and faults at two Tasks.

use task_operator::desired::ChildKind;
use task_operator::desired::ChildKind::{ConfigMap, Deployment, Service};

use task_operator::supervisor::event::FailureClass;

use crate::scope::{Deed, Scope};
use crate::system::Step;

const ALL: [bool; 4] = [true; 4];
const NONE: [bool; 4] = [false; 4];
const TASK: [bool; 4] = [true, false, false, false];
const DEPLOYMENT: [bool; 4] = [false, false, false, true];
const CONFIG_MAP: [bool; 4] = [false, true, false, false];

/// What is done to Tasks.
const TASKS: [Deed; 7] =
    [Deed::Create(0), Deed::Create(1), Deed::Edit(1), Deed::Edit(2), Deed::Delete, Deed::Strip, Deed::Spoil];

/// What is done to a child.
fn child(kind: ChildKind) -> [Deed; 6] {
    [
        Deed::DeleteChild(kind),
        Deed::HoldChild(kind),
        Deed::Break(kind),
        Deed::Unlabel(kind),
        Deed::Orphan(kind),
        Deed::Foreign(kind),
    ]
}

fn everything() -> Vec<Deed> {
    let children = [ConfigMap, Service, Deployment].into_iter().flat_map(child);
    TASKS.into_iter().chain([Deed::Hold]).chain(children).collect()
}

fn base() -> Scope {
    Scope {
        name: "a Task comes up, one fault, every watch lags",
        tasks: 1,
        users: 1,
        faults: 1,
        lagging: ALL,
        deeds: vec![Deed::Create(0)],
        settled: false,
        before: Vec::new(),
        sink: false,
    }
}

/// The runs for the shipped operator.
pub(crate) fn all() -> Vec<Scope> {
    let base = base();
    let mut scopes = vec![
        base.clone(),
        Scope {
            name: "two deeds while a Task comes up, its watch lags",
            users: 2,
            faults: 0,
            lagging: TASK,
            deeds: everything(),
            ..base.clone()
        },
        Scope {
            name: "a deed and a fault at a settled Task, the Deployment's watch lags",
            lagging: DEPLOYMENT,
            deeds: TASKS.into_iter().chain(child(Deployment)).collect(),
            settled: true,
            ..base.clone()
        },
        Scope {
            name: "a Task with a sink is deleted, and a fault",
            lagging: NONE,
            deeds: vec![Deed::Delete],
            settled: true,
            sink: true,
            ..base.clone()
        },
        Scope {
            name: "two Tasks and one slot, a deed",
            tasks: 2,
            faults: 0,
            lagging: NONE,
            deeds: vec![Deed::Edit(1), Deed::Delete, Deed::DeleteChild(Service), Deed::Foreign(Service)],
            settled: true,
            ..base.clone()
        },
    ];
    if !is_large() {
        return scopes;
    }
    scopes.extend([
        Scope {
            name: "two Tasks come up with one slot",
            tasks: 2,
            users: 2,
            faults: 0,
            lagging: NONE,
            deeds: vec![Deed::Create(0)],
            ..base.clone()
        },
        Scope {
            name: "two faults at a Task that changes, its watch lags",
            faults: 2,
            lagging: TASK,
            deeds: TASKS.to_vec(),
            settled: true,
            ..base.clone()
        },
        Scope {
            name: "two deeds at a child and a fault, its watch lags",
            users: 2,
            lagging: CONFIG_MAP,
            deeds: child(ConfigMap).to_vec(),
            settled: true,
            ..base.clone()
        },
        Scope {
            name: "a Task deleted and made again, and a fault, its watch lags",
            users: 3,
            lagging: TASK,
            deeds: vec![Deed::Create(1), Deed::Delete, Deed::Strip],
            settled: true,
            ..base.clone()
        },
    ]);
    for scope in &mut scopes {
        if scope.tasks > 1 {
            scope.faults += 1;
        }
    }
    scopes
}

fn is_large() -> bool {
    std::env::var("MODEL").is_ok_and(|size| size == "large")
}

/// The runs for operators that are broken: small ones, for each kind of mistake to show in one of them.
pub(crate) fn small() -> Vec<Scope> {
    let base = Scope { faults: 0, ..base() };
    let again = Scope {
        name: "made again",
        users: 3,
        lagging: TASK,
        deeds: vec![Deed::Create(1), Deed::Delete, Deed::Strip],
        settled: true,
        ..base.clone()
    };
    let settled = Scope { lagging: NONE, deeds: everything(), settled: true, ..base.clone() };
    // Without a farewell: somebody has removed the finalizer.
    let gone = vec![Step::Deed(0, Deed::Strip), Step::Deed(0, Deed::Delete)];
    let failed_edit = vec![
        Step::Deed(0, Deed::Edit(1)),
        Step::Deliver(0, 0),
        Step::Grant,
        Step::Fail(0, FailureClass::Transient),
    ];
    vec![
        Scope { name: "up", ..base.clone() },
        Scope { name: "a deed", ..settled.clone() },
        Scope { name: "a farewell", deeds: vec![Deed::Delete], sink: true, ..settled.clone() },
        again.clone(),
        Scope { name: "two faults on the way up", faults: 2, lagging: NONE, ..base.clone() },
        Scope {
            name: "a taken name",
            users: 2,
            deeds: vec![Deed::Create(0), Deed::Foreign(ConfigMap), Deed::DeleteChild(ConfigMap)],
            lagging: NONE,
            faults: 1,
            ..base
        },
        Scope {
            name: "a deed and a lagging child",
            faults: 1,
            lagging: CONFIG_MAP,
            deeds: child(ConfigMap).to_vec(),
            ..settled.clone()
        },
        Scope { name: "two deeds", users: 2, ..settled },
        Scope {
            name: "another Task of the name after a failure",
            before: [failed_edit, vec![Step::Cut(0, 0)], gone.clone()].concat(),
            users: 1,
            ..again.clone()
        },
        Scope {
            name: "another Task of the name during a write",
            before: [
                vec![Step::Deed(0, Deed::Spoil), Step::Deliver(0, 0), Step::Grant, Step::Cut(0, 0)],
                gone,
            ]
            .concat(),
            users: 1,
            ..again.clone()
        },
        Scope {
            name: "another Task of the name before an abandoned write lands",
            before: vec![Step::Deed(0, Deed::Delete), Step::Deliver(0, 0), Step::Grant, Step::Abandon(0)],
            users: 1,
            ..again
        },
    ]
}
