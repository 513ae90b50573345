//! A sink and the queue before it, for the model; and what has to hold of what arrives there.

use std::time::Duration;

use proptest::prelude::*;
use task_operator::api::Uid;
use task_operator::api::v1::Phase;
use task_operator::queue::Outcome;
use task_operator::queue::notice::{Notice, What};
use task_operator::supervisor::State;
use task_operator::supervisor::event::Event;
use task_operator::supervisor::status::Status;

use crate::walks::{Step, steps, take};
use crate::world::{Fate, World, spec};

pub(crate) const FAREWELL: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, Default)]
pub(crate) struct Sink {
    pub(crate) offered: Option<Notice>,
    /// What it took or refused for good, in order.
    pub(crate) arrived: Vec<Notice>,
    /// Every phase that was written, of which Task.
    pub(crate) changes: Vec<(Uid, Phase)>,
    /// What offers were withdrawn for.
    pub(crate) withdrawn: Vec<Option<&'static str>>,
}

impl Sink {
    pub(crate) fn offer(&mut self, notice: Notice) {
        if let Some(offered) = &self.offered {
            assert_ne!(offered.id(), notice.id(), "offered twice");
        }
        self.offered = Some(notice);
    }

    pub(crate) fn withdraw(&mut self, uid: &Uid, counted: Option<&'static str>) {
        self.offered.take_if(|offered| offered.uid == *uid);
        self.withdrawn.push(counted);
    }

    fn arrives(&mut self, notice: Notice) {
        let of_task = self.arrived.iter().filter(|earlier| earlier.uid == notice.uid);
        match of_task.clone().find(|earlier| earlier.id() == notice.id()) {
            Some(earlier) => assert_eq!(*earlier, notice, "a repeat differs"),
            None => {
                let newest = of_task.map(Notice::number).max().unwrap_or_default();
                assert!(newest < notice.number(), "{notice} arrives after {newest}");
            }
        }
        self.arrived.push(notice);
    }

    /// All that was written of this Task arrived, each once or more.
    fn assert_complete(&self, uid: &Uid) {
        let mut told: Vec<&Notice> = Vec::new();
        for notice in self.arrived.iter().filter(|notice| notice.uid == *uid) {
            if told.iter().all(|earlier| earlier.id() != notice.id()) {
                told.push(notice);
            }
        }
        let (mut phase, mut count) = (Phase::Pending, 0);
        for notice in told {
            if let What::Phase(number, transition) = &notice.what {
                assert_eq!(transition.from, phase, "a change is missing before {notice}: {self:#?}");
                phase = transition.to;
                count += 1 + u64::from(transition.skipped);
                assert_eq!(*number, count);
            }
        }
        let changes = self.changes.iter().filter(|(of, _)| of == uid).count();
        assert_eq!(count, changes as u64, "{self:#?}");
    }
}

/// Whether the status tells the sink's affairs otherwise than the one that is known.
pub(crate) fn has_news(state: &State, status: &Status) -> bool {
    let known = &state.task.status;
    status.notifications != known.notifications || status.notified != known.notified
}

impl World {
    pub(crate) fn with_sink() -> Self {
        Self { sink: Some(Sink::default()), ..Self::default() }
    }

    fn the_sink(&self) -> &Sink {
        self.sink.as_ref().unwrap()
    }

    /// What was offered comes to this.
    pub(crate) fn sink_takes(&mut self, outcome: Outcome) {
        let sink = self.sink.as_mut().unwrap();
        let Some(notice) = sink.offered.take() else { return };
        if matches!(outcome, Outcome::Delivered | Outcome::Refused(_)) {
            sink.arrives(notice.clone());
        }
        if self.state.as_ref().is_some_and(|state| state.task.uid == notice.uid) {
            self.happen(Event::Told(notice.number(), outcome));
        }
    }

    /// It arrives, and the operator dies before it knows.
    fn sink_takes_the_last(&mut self) {
        let sink = self.sink.as_mut().unwrap();
        if let Some(notice) = sink.offered.take() {
            sink.arrives(notice);
            self.restart();
        }
    }

    /// Goes on until something is offered.
    fn until_offer(&mut self) -> Notice {
        for _ in 0..500 {
            if let Some(offered) = &self.the_sink().offered {
                return offered.clone();
            }
            if !self.told.is_empty() {
                self.deliver(false);
            } else if self.request.is_some() {
                self.answer(Fate::Answered);
            } else if self.wants_slot {
                self.grant();
            } else if !self.controllers() {
                assert!(self.wake(), "nothing is offered: {self:#?}");
            }
        }
        panic!("nothing is offered: {self:#?}");
    }

    fn notified(&self) -> Option<String> {
        let task = self.server.task.as_ref().unwrap();
        task.status.notified.as_ref().map(|condition| format!("{}: {}", condition.reason, condition.message))
    }

    fn reasons(&self) -> Vec<&str> {
        self.notes.iter().map(|note| note.reason).collect()
    }
}

fn failed() -> Outcome {
    Outcome::Failed("down".into(), None)
}

#[test]
fn a_delivery_costs_one_write_at_most_and_none_without_a_sink() {
    let mut without = World::default();
    without.create_task(spec(2, 80));
    without.settle();
    assert_eq!(without.server.task.as_ref().unwrap().status.notifications, None);

    let mut world = World::with_sink();
    world.create_task(spec(2, 80));
    world.settle();
    assert_eq!(world.writes.len(), without.writes.len() + 1, "{:?}", world.writes);
    let told: Vec<_> = world.the_sink().arrived.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["notification 1, phase Pending to Succeeded"]);
    let known = world.server.task.as_ref().unwrap().status.notifications.clone().unwrap();
    assert_eq!((known.settled, known.pending.len()), (1, 0));

    // A status that is written anyway takes the word along.
    world.writes.clear();
    world.edit_task(spec(3, 80));
    world.settle();
    assert_eq!(world.writes, ["Correct Deployment", "WriteStatus(S", "WriteStatus(S", "WriteStatus(S"]);
}

#[test]
fn a_deletion_waits_until_the_sink_was_told() {
    let mut world = World::with_sink();
    world.create_task(spec(1, 80));
    world.settle();
    world.delete_task();
    world.rest();
    assert!(world.server.task.is_some(), "it went before the sink was told");
    assert_eq!(world.the_sink().offered.as_ref().unwrap().number(), Notice::DELETION);
    world.sink_takes(failed());
    world.settle();
    assert!(world.server.task.is_none());
    assert_eq!(world.the_sink().arrived.last().unwrap().number(), Notice::DELETION);
    assert!(!world.reasons().contains(&"FarewellAbandoned"));
}

#[test]
fn a_deletion_goes_on_without_its_farewell_after_the_timeout_and_says_so() {
    let mut world = World::with_sink();
    world.create_task(spec(1, 80));
    world.settle();
    world.delete_task();
    world.rest();
    let began = world.clock;
    while world.server.task.is_some() {
        world.rest();
        world.sink_takes(failed());
        world.rest();
        assert!(world.server.task.is_none() || world.wants_slot || world.wake(), "{world:#?}");
        assert!(world.clock - began < 40_000, "it waits too long");
    }
    let waited = world.clock - began;
    assert!((30_000..31_000).contains(&waited), "{waited} ms");
    assert!(world.reasons().contains(&"FarewellAbandoned"));
    assert_eq!(world.the_sink().withdrawn, [Some("abandoned")]);
    assert!(world.the_sink().offered.is_none());
}

#[test]
fn what_the_sink_refuses_is_given_up_and_told_of_until_the_next_one_arrives() {
    let mut world = World::with_sink();
    world.create_task(spec(2, 80));
    world.until_offer();
    world.sink_takes(Outcome::Refused("it answered 410 Gone".into()));
    world.settle();
    let notified = world.notified();
    assert_eq!(notified.as_deref(), Some("Refused: notification 1 was not delivered: it answered 410 Gone"));
    assert!(world.reasons().contains(&"NotificationFailed"));
    world.edit_task(spec(0, 80));
    world.settle();
    assert_eq!(world.notified(), None);
}

#[test]
fn what_nobody_takes_is_tried_for_a_day_and_given_up() {
    let mut world = World::with_sink();
    world.create_task(spec(1, 80));
    world.until_offer();
    let began = world.clock;
    let mut tries = 0;
    while !world.reasons().contains(&"NotificationFailed") {
        world.until_offer();
        world.sink_takes(failed());
        tries += 1;
    }
    let took = Duration::from_millis(world.clock - began);
    assert!((24..25).contains(&(took.as_secs() / 3600)), "{took:?}");
    assert!(tries > 280, "{tries}");
    world.settle();
    assert!(world.notified().unwrap().starts_with("Expired: "), "{:?}", world.notified());
    assert_eq!(world.the_sink().withdrawn, [Some("expired")]);
}

#[test]
fn more_than_a_status_holds_is_summed_up_and_its_sum_is_right() {
    let mut world = World::with_sink();
    world.create_task(spec(1, 80));
    world.until_offer();
    let first = world.the_sink().offered.clone().unwrap();
    // The phase goes to and fro, and the sink does not answer.
    for round in 0..20 {
        world.edit_task(spec(round % 2, 80));
        for _ in 0..30 {
            world.rest();
            if !world.controllers() && !world.wake() {
                break;
            }
        }
    }
    let known = world.server.task.as_ref().unwrap().status.notifications.clone().unwrap();
    assert_eq!(known.pending.len(), 16);
    assert!(known.pending.last().unwrap().1.skipped > 0);
    assert_eq!(world.the_sink().offered.as_ref(), Some(&first), "what is under way stays as it is");
    world.settle();
    let uid = world.server.task.as_ref().unwrap().uid.clone();
    world.the_sink().assert_complete(&uid);
}

#[test]
fn a_definition_that_keeps_nothing_is_complained_of_once() {
    let mut world = World::with_sink();
    world.server.prunes = true;
    world.create_task(spec(1, 80));
    world.settle();
    for replicas in [0, 1, 0] {
        world.edit_task(spec(replicas, 80));
        world.settle();
    }
    assert!(world.the_sink().changes.len() > 2 && world.the_sink().arrived.is_empty());
    let complaints = world.notes.iter().filter(|note| note.text.contains("CustomResourceDefinition")).count();
    assert_eq!(complaints, 1, "{:?}", world.notes);
}

#[test]
fn another_task_of_the_same_name_is_told_of_as_another() {
    let mut world = World::with_sink();
    world.create_task(spec(1, 80));
    world.until_offer();
    world.others(|server| {
        server.strip_task();
        server.delete_task();
    });
    world.create_task(spec(1, 80));
    world.settle();
    let uid = world.server.task.as_ref().unwrap().uid.clone();
    world.the_sink().assert_complete(&uid);
    assert!(world.the_sink().withdrawn.contains(&None));
}

#[derive(Clone, Copy, Debug)]
enum Told {
    Step(Step),
    Takes,
    Fails,
    Refuses,
    Returns,
    TakesTheLast,
}

fn told_steps() -> impl Strategy<Value = Vec<Told>> {
    let told = prop_oneof![
        3 => Just(Told::Takes),
        2 => Just(Told::Fails),
        1 => Just(Told::Refuses),
        1 => Just(Told::Returns),
        1 => Just(Told::TakesTheLast),
    ];
    (steps(), prop::collection::vec((told, any::<prop::sample::Index>()), 0..40)).prop_map(|(steps, told)| {
        let mut all: Vec<_> = steps.into_iter().map(Told::Step).collect();
        for (step, place) in told {
            all.insert(place.index(all.len() + 1), step);
        }
        all
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn however_it_goes_the_sink_is_told_all_of_it_in_order(steps in told_steps()) {
        let mut world = World::with_sink();
        for step in steps {
            match step {
                Told::Step(step) => take(&mut world, step),
                Told::Takes => world.sink_takes(Outcome::Delivered),
                Told::Fails => world.sink_takes(failed()),
                Told::Refuses => world.sink_takes(Outcome::Refused("no".into())),
                Told::Returns => world.sink_takes(Outcome::Returned),
                Told::TakesTheLast => world.sink_takes_the_last(),
            }
        }
        world.settle();
        if let Some(task) = &world.server.task {
            world.the_sink().assert_complete(&task.uid);
            let pending = task.status.notifications.as_ref().map_or(0, |known| known.pending.len());
            prop_assert_eq!(pending, 0);
        }
    }
}
