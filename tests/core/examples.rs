//! One thing at a time.

use task_operator::desired::ChildKind;
use task_operator::supervisor::event::{FailureClass, Outcome, Request};
use task_operator::supervisor::state::Presence;

use crate::world::{Fate, World, spec};

fn settled() -> World {
    let mut world = World::default();
    world.create_task(spec(2, 80));
    world.settle();
    world
}

fn reasons(world: &World) -> Vec<&str> {
    world.notes.iter().map(|note| note.reason).collect()
}

/// Goes on until the next request is under way.
fn until_request(world: &mut World) -> Request {
    for _ in 0..100 {
        if let Some(request) = &world.request {
            return request.clone();
        }
        if !world.told.is_empty() {
            world.deliver(false);
        } else if world.wants_slot {
            world.grant();
        } else {
            assert!(world.wake(), "nothing happens any more: {world:#?}");
        }
    }
    panic!("no request: {world:#?}");
}

#[test]
fn a_task_comes_up_with_one_write_of_each_kind() {
    let world = settled();
    assert_eq!(
        world.writes,
        ["AddFinalizer", "Create ConfigMap", "Create Service", "Create Deployment", "WriteStatus(S"]
    );
    assert_eq!(world.requests, 5);
    assert_eq!(reasons(&world), ["FinalizerAdded", "ReconcileSucceeded"]);
}

#[test]
fn an_edit_corrects_each_child_once() {
    let mut world = settled();
    world.writes.clear();
    world.edit_task(spec(2, 81));
    world.settle();
    let corrections: Vec<_> = world.writes.iter().filter(|write| write.starts_with("Correct")).collect();
    assert_eq!(corrections, ["Correct ConfigMap", "Correct Service", "Correct Deployment"]);
    assert!(world.writes.len() <= 5, "{:?}", world.writes);
}

#[test]
fn a_spec_in_between_costs_no_write() {
    let mut world = settled();
    world.writes.clear();
    for port in 81..100 {
        world.edit_task(spec(2, port));
    }
    world.settle();
    let corrections = world.writes.iter().filter(|write| write.starts_with("Correct")).count();
    assert_eq!(corrections, 3, "{:?}", world.writes);
}

#[test]
fn a_deletion_removes_the_finalizer_and_nothing_else() {
    let mut world = settled();
    world.writes.clear();
    world.delete_task();
    world.settle();
    assert_eq!(world.writes, ["RemoveFinaliz"]);
    assert_eq!(reasons(&world).last(), Some(&"Deleted"));
}

#[test]
fn a_deletion_is_told_of_once_however_its_end_becomes_known() {
    let endings: [fn(&mut World); 3] = [
        |world| world.answer(Fate::Answered),
        |world| world.answer(Fate::AnswerLost),
        |world| drop(world.take_effect()),
    ];
    for end in endings {
        let mut world = settled();
        world.delete_task();
        assert_eq!(until_request(&mut world), Request::RemoveFinalizer);
        end(&mut world);
        world.settle();
        assert_eq!(reasons(&world).iter().filter(|&&reason| reason == "Deleted").count(), 1, "{world:#?}");
    }
}

#[test]
fn a_lost_child_comes_back_and_a_broken_one_is_corrected_at_once() {
    for kind in ChildKind::ALL {
        let mut world = settled();
        world.delete_child(kind);
        assert_eq!(until_request(&mut world), Request::Create(kind));
        world.settle();
        world.break_child(kind);
        assert_eq!(until_request(&mut world), Request::Correct(kind));
        world.settle();
    }
}

#[test]
fn a_foreign_object_fails_the_task_until_it_goes() {
    for kind in ChildKind::ALL {
        let mut world = World::default();
        world.create_foreign(kind);
        world.create_task(spec(1, 80));
        world.settle();
        assert!(reasons(&world).contains(&"ReconcileFailed"), "{:?}", reasons(&world));
        world.delete_child(kind);
        world.settle();
    }
}

#[test]
fn a_task_made_again_waits_for_the_children_of_the_one_before() {
    let mut world = settled();
    world.delete_task();
    until_request(&mut world);
    world.answer(Fate::Answered);
    world.create_task(spec(1, 90));
    // The watches tell of both in order, and garbage collection comes last.
    world.settle();
}

#[test]
fn a_write_whose_answer_was_lost_is_noticed_and_not_sent_again() {
    let mut world = World::default();
    world.create_task(spec(1, 80));
    for expected in ["AddFinalizer", "Create ConfigMap", "Create Service", "Create Deployment"] {
        until_request(&mut world);
        world.answer(Fate::AnswerLost);
        assert_eq!(world.writes.last().unwrap(), expected);
    }
    world.settle();
    assert_eq!(
        world.writes.iter().filter(|write| write.starts_with("Create")).count(),
        3,
        "{:?}",
        world.writes
    );
}

#[test]
fn a_failure_that_may_pass_is_told_after_three_and_forgotten_when_it_passes() {
    let mut world = World::default();
    world.create_task(spec(1, 80));
    let mut waits = Vec::new();
    for _ in 0..3 {
        until_request(&mut world);
        let before = world.clock;
        world.answer(Fate::FailsBefore(FailureClass::Transient));
        waits.push(world.state.as_ref().unwrap().trouble.as_ref().unwrap().retry_at.0 - before);
    }
    assert!(waits[0] <= 1000 && waits[1] > waits[0] && waits[2] > waits[1], "{waits:?}");
    assert_eq!(reasons(&world), ["ReconcileFailed"]);
    world.settle();
    assert!(world.state.unwrap().trouble.is_none());
}

#[test]
fn a_failure_that_will_not_pass_fails_the_task_at_once_and_it_recovers() {
    let mut world = World::default();
    world.create_task(spec(1, 80));
    until_request(&mut world);
    world.answer(Fate::Answered);
    assert_eq!(until_request(&mut world), Request::Create(ChildKind::ConfigMap));
    world.answer(Fate::FailsBefore(FailureClass::Terminal));
    assert!(
        matches!(until_request(&mut world), Request::WriteStatus(status) if status.phase.as_str() == "Failed")
    );
    world.answer(Fate::Answered);
    assert_eq!(world.reports.last().unwrap().outcome, Outcome::FailedForGood);
    world.settle();
}

#[test]
fn after_losing_the_lease_a_pass_ends_and_is_tried_again() {
    let mut world = World::default();
    world.create_task(spec(1, 80));
    until_request(&mut world);
    world.answer(Fate::FailsBefore(FailureClass::Fenced));
    assert!(world.request.is_none() && world.state.as_ref().unwrap().trouble.is_none());
    world.settle();
}

#[test]
fn a_view_older_than_our_own_write_is_ignored() {
    let mut world = settled();
    world.break_child(ChildKind::Deployment);
    let broken = world.told.front().unwrap().clone();
    assert_eq!(until_request(&mut world), Request::Correct(ChildKind::Deployment));
    world.answer(Fate::Answered);
    world.rest();
    let requests = world.requests;
    world.told.push_back(broken);
    world.deliver(false);
    assert!(world.request.is_none() && !world.wants_slot);
    world.settle();
    assert!(
        world.writes.iter().filter(|write| write.starts_with("Correct")).count() == 1,
        "{:?}",
        world.writes
    );
    assert!(world.requests <= requests + 1, "{} requests after {requests}", world.requests);
}

#[test]
fn a_deletion_that_no_watch_told_of_is_seen_by_the_next_list() {
    let mut world = settled();
    world.delete_child(ChildKind::Service);
    world.relist();
    world.settle();
}

#[test]
fn an_answer_that_a_watch_overtook_takes_nothing_back() {
    let mut world = World::default();
    world.create_task(spec(2, 80));
    while until_request(&mut world) != Request::Create(ChildKind::Deployment) {
        world.answer(Fate::Answered);
    }
    let created = world.take_effect();
    world.controllers();
    world.deliver_all();
    world.arrive(created);
    while !matches!(until_request(&mut world), Request::WriteStatus(_)) {
        world.answer(Fate::Answered);
    }
    let written = world.take_effect();
    world.edit_task(spec(2, 81));
    world.deliver_all();
    world.arrive(written);
    world.settle();
    assert_eq!(world.server.task.as_ref().map(|task| task.status.observed_generation), Some(2));
}

#[test]
fn an_answer_about_an_earlier_task_of_the_name_says_nothing_of_the_next() {
    let mut world = World::default();
    world.create_task(spec(1, 80));
    assert_eq!(until_request(&mut world), Request::AddFinalizer);
    let added = world.take_effect();
    world.others(|server| {
        server.strip_task();
        server.delete_task();
    });
    world.create_task(spec(1, 90));
    // The watch broke, and the list shows the next Task only.
    world.relist();
    world.arrive(added);
    world.settle();
}

#[test]
fn ready_is_not_said_while_a_child_is_known_to_be_missing() {
    let mut world = World::default();
    world.create_task(spec(1, 80));
    while until_request(&mut world) != Request::Create(ChildKind::Deployment) {
        world.answer(Fate::Answered);
    }
    world.delete_child(ChildKind::ConfigMap);
    world.take_effect();
    world.answer(Fate::FailsBefore(FailureClass::Transient));
    world.controllers();
    world.deliver_all();
    assert_eq!(until_request(&mut world), Request::Create(ChildKind::ConfigMap));
    world.settle();
}

#[test]
fn a_child_that_the_watches_do_not_tell_of_comes_back_once_its_deletion_ends() {
    for kind in ChildKind::ALL {
        let mut world = settled();
        world.others(|server| server.unlabel_child(kind));
        world.others(|server| server.hold_child(kind));
        while world.state.as_ref().is_some_and(|state| {
            !matches!(state.child(kind).presence, Presence::Ours { terminating: true, .. })
        }) {
            until_request(&mut world);
            world.answer(Fate::Answered);
        }
        world.settle();
    }
}

#[test]
fn a_restart_writes_nothing() {
    let mut world = settled();
    world.writes.clear();
    world.restart();
    world.settle();
    assert_eq!(world.writes, Vec::<String>::new());
}

#[test]
fn a_fight_over_a_child_is_bounded() {
    let mut world = settled();
    world.writes.clear();
    let began = world.clock;
    while world.clock < began + 60_000 {
        if world.told.is_empty() && world.request.is_none() && !world.wants_slot {
            world.break_child(ChildKind::Service);
        }
        world.clock += 100;
        world.deliver(false);
        if world.request.is_some() {
            world.answer(Fate::Answered);
        } else if world.wants_slot {
            world.grant();
        } else if world.wake.is_some_and(|at| at.0 <= world.clock) {
            world.wake();
        }
    }
    let corrections = world.writes.iter().filter(|write| write.starts_with("Correct")).count();
    assert!((4..=10).contains(&corrections), "{corrections} corrections in a minute");
}
