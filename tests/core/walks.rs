//! Random walks: people, crashes, lost and repeated events, failed requests in
//! any order. However it went, once it is undisturbed it settles where it
//! should, and writes nothing more.

use proptest::prelude::*;
use task_operator::desired::ChildKind;
use task_operator::supervisor::event::FailureClass;

use crate::world::{Fate, World, spec};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Create(i32, i32),
    Edit(i32, i32),
    Delete,
    DeleteChild(usize),
    BreakChild(usize),
    Foreign(usize),
    Others(Others, usize),
    Deliver,
    DeliverAgain,
    Grant,
    Answer,
    Fail(FailureClass),
    LoseAnswer,
    Wake,
    Controllers,
    Restart,
    Relist,
    Later(u64),
}

/// What else people and backups do to the Task and to a child.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Others {
    StripTask,
    HoldTask,
    SpoilStatus,
    Unlabel,
    Orphan,
    HoldChild,
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let class = prop_oneof![
        Just(FailureClass::Stale),
        Just(FailureClass::Transient),
        Just(FailureClass::Terminal),
        Just(FailureClass::Ending),
        Just(FailureClass::Fenced),
    ];
    let others = prop_oneof![
        Just(Others::StripTask),
        Just(Others::HoldTask),
        Just(Others::SpoilStatus),
        Just(Others::Unlabel),
        Just(Others::Orphan),
        Just(Others::HoldChild),
    ];
    let step = prop_oneof![
        2 => (0..3, 80..83).prop_map(|(replicas, port)| Step::Create(replicas, port)),
        2 => (0..3, 80..83).prop_map(|(replicas, port)| Step::Edit(replicas, port)),
        1 => Just(Step::Delete),
        1 => (0_usize..3).prop_map(Step::DeleteChild),
        1 => (0_usize..3).prop_map(Step::BreakChild),
        1 => (0_usize..3).prop_map(Step::Foreign),
        2 => (others, 0_usize..3).prop_map(|(deed, number)| Step::Others(deed, number)),
        8 => Just(Step::Deliver),
        1 => Just(Step::DeliverAgain),
        6 => Just(Step::Grant),
        9 => Just(Step::Answer),
        2 => class.prop_map(Step::Fail),
        2 => Just(Step::LoseAnswer),
        2 => Just(Step::Wake),
        3 => Just(Step::Controllers),
        1 => Just(Step::Restart),
        1 => Just(Step::Relist),
        1 => (0_u64..100_000).prop_map(Step::Later),
    ];
    prop::collection::vec(step, 0..120)
}

pub(crate) fn take(world: &mut World, step: Step) {
    let kind = |number: usize| ChildKind::ALL[number];
    world.clock += 1;
    match step {
        Step::Create(replicas, port) if world.server.task.is_none() => {
            world.create_task(spec(replicas, port))
        }
        Step::Create(..) => {}
        Step::Edit(replicas, port) => world.edit_task(spec(replicas, port)),
        Step::Delete => world.delete_task(),
        Step::DeleteChild(number) => world.delete_child(kind(number)),
        Step::BreakChild(number) => world.break_child(kind(number)),
        Step::Foreign(number) => world.create_foreign(kind(number)),
        Step::Others(deed, number) => world.others(|server| match deed {
            Others::StripTask => server.strip_task(),
            Others::HoldTask => server.hold_task(true),
            Others::SpoilStatus => server.spoil_status(),
            Others::Unlabel => server.unlabel_child(kind(number)),
            Others::Orphan => server.orphan_child(kind(number)),
            Others::HoldChild => server.hold_child(kind(number)),
        }),
        Step::Deliver => world.deliver(false),
        Step::DeliverAgain => world.deliver(true),
        Step::Grant => world.grant(),
        Step::Answer => world.answer(Fate::Answered),
        Step::Fail(class) => world.answer(Fate::FailsBefore(class)),
        Step::LoseAnswer => world.answer(Fate::AnswerLost),
        Step::Wake => drop(world.wake()),
        Step::Controllers => drop(world.controllers()),
        Step::Restart => world.restart(),
        Step::Relist => world.relist(),
        Step::Later(wait) => world.clock += wait,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn every_walk_settles(steps in steps()) {
        let mut world = World::default();
        for step in steps {
            take(&mut world, step);
        }
        world.settle();
    }
}
