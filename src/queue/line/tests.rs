use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::super::notice::What;
use super::super::notice::tests::changed;
use super::*;
use crate::api::v1::Phase;

const T: Instant = Instant(0);

fn notice(task: usize, number: u64) -> Notice {
    let uid = format!("uid-{task}").as_str().into();
    Notice { uid, ..changed(number, Phase::Pending, Phase::Running) }
}

fn failed() -> Verdict {
    Verdict::Failed("it failed".to_owned(), None)
}

#[test]
fn what_does_not_fit_is_held_back_and_invited_in_its_turn() {
    let mut line = Line::new(1, 2);
    assert_eq!(line.offer(notice(0, 1), T), Offered::Taken);
    assert_eq!(line.offer(notice(1, 1), T), Offered::Taken);
    assert_eq!(line.offer(notice(2, 1), T), Offered::HeldBack);
    assert_eq!(line.offer(notice(3, 1), T), Offered::HeldBack);
    assert_eq!((line.depth(), line.held_back(), line.unsettled()), (2, 2, 4));
    let sent = line.next(T).unwrap();
    assert!(line.invite().is_empty(), "what is being sent still takes its place");
    line.finished(&sent.uid, &Verdict::Delivered, T);
    let invited = line.invite();
    assert_eq!(invited.len(), 1);
    assert_eq!(invited[0].uid, notice(2, 1).uid);
    // The place is kept free for who was invited.
    assert_eq!(line.offer(notice(4, 1), T), Offered::HeldBack);
    assert_eq!(line.offer(notice(2, 1), T), Offered::Taken);
}

#[test]
fn a_place_that_was_kept_is_free_again_when_its_task_is_gone() {
    let mut line = Line::new(1, 1);
    line.offer(notice(0, 1), T);
    line.offer(notice(1, 1), T);
    line.offer(notice(2, 1), T);
    let sent = line.next(T).unwrap();
    line.finished(&sent.uid, &Verdict::Delivered, T);
    assert_eq!(line.invite()[0].uid, notice(1, 1).uid);
    line.forget(&notice(1, 1).uid);
    assert_eq!(line.invite()[0].uid, notice(2, 1).uid);
}

#[test]
fn a_sink_that_is_down_is_tried_by_one_at_a_time() {
    let mut line = Line::new(4, 100);
    for task in 0..50 {
        line.offer(notice(task, 1), T);
    }
    let mut tried = 0;
    while let Some(sent) = line.next(T) {
        line.finished(&sent.uid, &failed(), T);
        tried += 1;
    }
    assert_eq!(tried, 5);
    assert!(line.sink_is_down() && line.is_at_rest());
    let later = line.wake_at().unwrap();
    let probe = line.next(later).unwrap();
    assert!(line.next(later).is_none(), "one at a time");
    line.finished(&probe.uid, &Verdict::Refused("no".to_owned()), later);
    assert!(!line.sink_is_down(), "a sink that refuses is there");
    assert_eq!(std::iter::from_fn(|| line.next(later)).count(), 4);
}

#[test]
fn who_has_been_started_again_may_offer_the_same_again() {
    let mut line = Line::new(1, 10);
    line.offer(notice(0, 1), T);
    assert_eq!(line.offer(notice(0, 1), T), Offered::Taken);
    assert_eq!(line.depth(), 1);
    let sent = line.next(T).unwrap();
    assert_eq!(line.offer(notice(0, 1), T), Offered::Taken);
    assert_eq!(line.depth(), 1);
    // Another one of the Task has to wait until this one is through.
    assert_eq!(line.offer(notice(0, 2), T), Offered::HeldBack);
    line.finished(&sent.uid, &Verdict::Delivered, T);
    assert_eq!(line.offer(notice(0, 2), T), Offered::Taken);
}

#[test]
fn who_does_not_lead_any_more_keeps_nothing() {
    let mut line = Line::new(1, 2);
    for task in 0..4 {
        line.offer(notice(task, 1), T);
    }
    let sent = line.next(T).unwrap();
    assert_eq!(line.give_back().len(), 3);
    assert_eq!((line.depth(), line.held_back(), line.unsettled()), (1, 0, 1));
    assert_eq!(line.finished(&sent.uid, &Verdict::NotSent, T), Outcome::Returned);
}

#[test]
fn a_closed_queue_takes_nothing_and_empties() {
    let mut line = Line::new(1, 2);
    line.offer(notice(0, 1), T);
    line.close();
    assert_eq!(line.offer(notice(1, 1), T), Offered::HeldBack);
    assert!(!line.is_at_rest());
    let sent = line.next(T).unwrap();
    line.finished(&sent.uid, &Verdict::Delivered, T);
    assert!(line.is_at_rest() && line.invite().is_empty());
}

/// What a supervisor does with its Task's notices.
#[derive(Clone, Debug, Default)]
struct Task {
    told: u64,
    last: u64,
    offered: bool,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Happens(usize),
    Send,
    Deliver,
    Fail,
    Refuse,
    Gone(usize),
    Later(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0_usize..8).prop_map(Step::Happens),
        4 => Just(Step::Send),
        3 => Just(Step::Deliver),
        2 => Just(Step::Fail),
        1 => Just(Step::Refuse),
        1 => (0_usize..8).prop_map(Step::Gone),
        1 => (0_u64..40_000).prop_map(Step::Later),
    ];
    prop::collection::vec(step, 0..200)
}

struct World {
    line: Line,
    tasks: BTreeMap<String, Task>,
    sending: VecDeque<Notice>,
    arrived: Vec<(String, u64)>,
    /// How many Tasks of each name are gone.
    ended: [u32; 8],
    clock: Instant,
    workers: usize,
    capacity: usize,
}

impl World {
    fn uid(&self, task: usize) -> String {
        format!("uid-{task}-{}", self.ended[task])
    }

    fn offer(&mut self, uid: &str) {
        let task = self.tasks.get_mut(uid).unwrap();
        if !task.offered && task.told < task.last {
            task.offered = true;
            let next = Notice { uid: uid.into(), ..notice(0, task.told + 1) };
            self.line.offer(next, self.clock);
        }
    }

    fn finish(&mut self, verdict: &Verdict) {
        let Some(sent) = self.sending.pop_front() else { return };
        let What::Phase(number, _) = sent.what else { unreachable!() };
        let uid = sent.uid.to_string();
        if *verdict == Verdict::Delivered {
            self.arrived.push((uid.clone(), number));
        }
        let outcome = self.line.finished(&sent.uid, verdict, self.clock);
        if let Some(task) = self.tasks.get_mut(&uid) {
            task.offered = false;
            if !matches!(outcome, Outcome::Failed(..)) {
                task.told = number;
            }
            self.offer(&uid);
        }
        self.invite();
    }

    fn invite(&mut self) {
        for guest in self.line.invite() {
            let uid = guest.uid.to_string();
            if let Some(task) = self.tasks.get_mut(&uid) {
                task.offered = false;
                self.offer(&uid);
            }
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Happens(task) => {
                let uid = self.uid(task);
                self.tasks.entry(uid.clone()).or_default().last += 1;
                self.offer(&uid);
            }
            Step::Send => {
                if let Some(notice) = self.line.next(self.clock) {
                    assert!(self.sending.iter().all(|other| other.uid != notice.uid), "two of one Task");
                    self.sending.push_back(notice);
                }
            }
            Step::Deliver => self.finish(&Verdict::Delivered),
            Step::Fail => self.finish(&failed()),
            Step::Refuse => self.finish(&Verdict::Refused("no".to_owned())),
            Step::Gone(task) => {
                let uid = self.uid(task);
                self.tasks.remove(&uid);
                self.line.forget(&uid.as_str().into());
                self.ended[task] += 1;
                self.invite();
            }
            Step::Later(wait) => self.clock = self.clock.after(Duration::from_millis(wait)),
        }
        assert!(self.line.depth() <= self.capacity && self.sending.len() <= self.workers);
        assert_eq!(self.line.sending, self.sending.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn all_is_told_in_order_however_it_goes(
        steps in steps(), workers in 1_usize..5, capacity in 1_usize..6,
    ) {
        let mut world = World {
            line: Line::new(workers, capacity),
            tasks: BTreeMap::new(),
            sending: VecDeque::new(),
            arrived: Vec::new(),
            ended: [0; 8],
            clock: T,
            workers,
            capacity,
        };
        for step in steps {
            world.take(step);
        }
        // The sink is well from now on.
        for _ in 0..4000 {
            world.take(Step::Later(40_000));
            world.take(Step::Send);
            world.take(Step::Deliver);
        }
        for (uid, task) in &world.tasks {
            prop_assert_eq!(task.told, task.last, "{} is behind", uid);
            let of_task = world.arrived.iter().filter(|(arrived, _)| arrived == uid).map(|(_, number)| *number);
            let numbers: Vec<_> = of_task.collect();
            prop_assert!(numbers.is_sorted(), "{:?}", numbers);
        }
        prop_assert_eq!((world.line.depth(), world.line.held_back(), world.line.unsettled()), (0, 0, 0));
    }
}
