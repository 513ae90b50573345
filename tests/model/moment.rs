//! Two states that differ only in how versions and uids are numbered, or in how
//! long ago something was that is long past, behave the same. Each state is
//! brought to the one form that stands for all of them, so that there are
//! finitely many.

use std::sync::Arc;

use task_operator::api::Uid;
use task_operator::supervisor::State;
use task_operator::supervisor::outbox::{Outbox, Settled};
use task_operator::supervisor::state::{Child, Diagnosis, Pass, Presence, TaskRecord};
use task_operator::supervisor::time::Instant;

use crate::shared::server::{self, Reply, Told};
use crate::system::{Site, System};
use crate::watch::Link;

/// The moment that every state is at, in milliseconds.
pub(crate) const PRESENT: u64 = 1_000_000_000;

/// Up to which age of a moment, in milliseconds, anything depends on it.
type Horizon = u64;
/// It is only asked whether it has come.
const DUE: Horizon = 0;
/// Older views are let in after a minute; lists are told from what they are older than.
const TOUCHED: Horizon = 100_000;
/// A list is a little newer than what it is compared with at the horizon.
const LISTED: Horizon = TOUCHED - 1_000;
const CORRECTED: Horizon = 301_000;
const STATUS: Horizon = 6_000;
const PROGRESS: Horizon = 16_000;
/// A deletion waits for its farewell for half a minute.
const FAREWELL: Horizon = 31_000;
/// Looks at the Pods from which on their number does not count.
const LOOKS: u8 = 5;

/// Brings `system` to its one form.
pub(crate) fn normalise(system: &mut System) {
    let now = system.clock;
    let mut shift = |moment: &mut Instant, horizon: Horizon| {
        let age = now.saturating_sub(moment.0).min(horizon);
        let ahead = moment.0.saturating_sub(now);
        *moment = Instant(PRESENT - age + ahead);
    };
    for site in &mut system.sites {
        for watch in &mut site.watches {
            if let Link::Listing { began, .. } = &mut watch.link {
                shift(began, LISTED);
            }
        }
        if let Some(supervisor) = &mut site.supervisor {
            if let Some(timer) = &mut supervisor.timer {
                shift(timer, DUE);
            }
            moments(&mut supervisor.state, &mut shift);
            // The seed of the jitter, which the core has no other use for.
            supervisor.state.passes = 0;
            // The wait between two looks at the Pods grows no further.
            let looks = &mut supervisor.state.diagnosis.looks;
            *looks = LOOKS.min(*looks);
        }
    }
    system.clock = PRESENT;
    let back = usize::from(system.faults > 0);
    for site in &mut system.sites {
        for watch in &mut site.watches {
            watch.trim(back);
        }
        for index in 0..4 {
            renumber(site, index);
        }
    }
    system.imprint();
}

/// Every moment in a record. Without `..`, so that a new one cannot be forgotten.
fn moments(state: &mut State, shift: &mut impl FnMut(&mut Instant, Horizon)) {
    let State {
        key: _,
        task,
        children,
        rollout: _,
        pass,
        trouble,
        status_trouble,
        diagnosis,
        requeue_at,
        wake_at,
        status_since,
        announced: _,
        parting: _,
        passes: _,
        outbox,
    } = state;
    let TaskRecord { touched, .. } = task;
    shift(touched, TOUCHED);
    for Child { presence, version: _, touched, corrections: _, corrected_at, contender: _ } in children {
        shift(touched, TOUCHED);
        shift(corrected_at, CORRECTED);
        if let Presence::Foreign { look_at, .. } = presence {
            shift(look_at, DUE);
        }
    }
    if let Pass::Running { started, .. } = pass {
        shift(started, DUE);
    }
    if let Some(trouble) = trouble {
        shift(&mut trouble.retry_at, DUE);
    }
    if let Some(trouble) = status_trouble {
        shift(&mut trouble.retry_at, DUE);
    }
    let Diagnosis { since, looked_at, looks: _, fault: _ } = diagnosis;
    shift(since, PROGRESS);
    if let Some(looked_at) = looked_at {
        shift(looked_at, CORRECTED);
    }
    shift(requeue_at, DUE);
    if let Some(wake_at) = wake_at {
        shift(wake_at, DUE);
    }
    shift(status_since, STATUS);
    if let Some(outbox) = outbox {
        let Outbox {
            farewell_timeout: _,
            offered: _,
            tried_since,
            failures: _,
            retry_at,
            settled,
            deleting_since,
            farewell_over: _,
            complained: _,
        } = &mut **outbox;
        shift(retry_at, DUE);
        if let Some(Settled { number: _, at: _, when, given_up: _ }) = settled {
            shift(when, STATUS);
        }
        for since in [tried_since, deleting_since].into_iter().flatten() {
            shift(since, FAREWELL);
        }
    }
}

/// Numbers the versions and the uids of one kind of object from 1 on, in their order.
fn renumber(site: &mut Site, index: usize) {
    let (mut versions, mut numbers) = (vec![site.server.versions[index]], Vec::new());
    stamps(site, index, &mut |version| versions.push(*version), &mut |uid| numbers.push(number(uid)));
    rank(&mut versions, 0);
    rank(&mut numbers, 0);
    let is_dense = |sorted: &[u64]| sorted.iter().zip(1..).all(|(value, rank)| *value == rank);
    let renames = index > 0 && (!is_dense(&numbers) || site.server.made[index] != numbers.len() as u32);
    if is_dense(&versions) && !renames {
        return;
    }
    let of = |sorted: &[u64], value: u64| sorted.partition_point(|other| *other < value) as u64 + 1;
    let version = |old: &mut u64| {
        if *old != 0 {
            *old = of(&versions, *old);
        }
    };
    let uid = |old: &mut Uid| {
        if renames {
            *old = server::uid(index, of(&numbers, number(old)) as u32);
        }
    };
    version(&mut site.server.versions[index]);
    if renames {
        site.server.made[index] = numbers.len() as u32;
    }
    restamp(site, index, &version, &uid);
}

fn rank(values: &mut Vec<u64>, none: u64) {
    values.retain(|value| *value != none);
    values.sort_unstable();
    values.dedup();
}

/// The number in the uid that the server gave.
fn number(uid: &Uid) -> u64 {
    uid.as_str().rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Every version and every uid of one kind of object.
fn stamps(site: &Site, index: usize, version: &mut impl FnMut(&u64), uid: &mut impl FnMut(&Uid)) {
    let mut told = |told: &Told| match told {
        Told::Task(task) => version(&task.version),
        Told::TaskGone(_, gone) => version(gone),
        Told::Child(_, child) => {
            version(&child.version);
            uid(&child.uid);
        }
        Told::ChildGone(_, which, gone) => {
            version(gone);
            uid(which);
        }
    };
    site.watches[index].history.iter().flatten().for_each(&mut told);
    match index {
        0 => site.server.task.iter().for_each(|task| version(&task.version)),
        _ => site.server.children[index - 1].iter().for_each(|child| {
            version(&child.version);
            uid(&child.uid);
        }),
    }
    if index == 0 {
        site.stray.iter().for_each(|wire| version(&wire.version));
    }
    let Some(supervisor) = &site.supervisor else { return };
    match (&supervisor.reply, index) {
        (Some(Reply::Task(Some(task))), 0) => version(&task.version),
        (Some(Reply::Child(kind, Some(child))), _) if kind.index() + 1 == index => {
            version(&child.version);
            uid(&child.uid);
        }
        _ => {}
    }
    if index == 0 {
        version(&supervisor.state.task.version.0);
        supervisor.wire.iter().for_each(|wire| version(&wire.version));
    } else {
        let child = &supervisor.state.children[index - 1];
        version(&child.version.0);
        if let Presence::Ours { uid: which, .. } | Presence::Foreign { uid: which, .. } = &child.presence {
            uid(which);
        }
    }
}

/// The same, to change them.
fn restamp(site: &mut Site, index: usize, version: &impl Fn(&mut u64), uid: &impl Fn(&mut Uid)) {
    let child = |child: &mut Arc<server::Child>| {
        let child = Arc::make_mut(child);
        version(&mut child.version);
        uid(&mut child.uid);
    };
    for told in site.watches[index].history.iter_mut().flatten() {
        match told {
            Told::Task(task) => version(&mut Arc::make_mut(task).version),
            Told::TaskGone(_, gone) => version(gone),
            Told::Child(_, seen) => child(seen),
            Told::ChildGone(_, which, gone) => {
                version(gone);
                uid(which);
            }
        }
    }
    match index {
        0 => site.server.task.iter_mut().for_each(|task| version(&mut Arc::make_mut(task).version)),
        _ => site.server.children[index - 1].iter_mut().for_each(child),
    }
    if index == 0 {
        site.stray.iter_mut().for_each(|wire| version(&mut wire.version));
    }
    let Some(supervisor) = &mut site.supervisor else { return };
    match (&mut supervisor.reply, index) {
        (Some(Reply::Task(Some(task))), 0) => version(&mut Arc::make_mut(task).version),
        (Some(Reply::Child(kind, Some(seen))), _) if kind.index() + 1 == index => child(seen),
        _ => {}
    }
    if index == 0 {
        version(&mut supervisor.state.task.version.0);
        supervisor.wire.iter_mut().for_each(|wire| version(&mut wire.version));
    } else {
        let known = &mut supervisor.state.children[index - 1];
        version(&mut known.version.0);
        if let Presence::Ours { uid: which, .. } | Presence::Foreign { uid: which, .. } = &mut known.presence
        {
            uid(which);
        }
    }
}
