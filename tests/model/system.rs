//! The whole: the sites of one or two Tasks, one operator with one slot, and
//! what may still go wrong.

use std::hash::{Hash, Hasher};

use task_operator::desired::ChildKind;
use task_operator::queue::Outcome;
use task_operator::supervisor::event::{Event, FailureClass, Request, Source};
use task_operator::supervisor::state::Pass;
use task_operator::supervisor::time::{Instant, Now};

use crate::moment;
use crate::mutants::Mutant;
use crate::print::print;
use crate::rules::Rule;
use crate::scope::{Deed, Scope};
use crate::shared::failure;
use crate::shared::server::{Effect, Server, Told, Wire};
use crate::slots::{Queue, key_of};
use crate::supervised::Supervised;
use crate::watch::{Link, Watch};

/// What there is of one Task: on the server, in the watches, in the operator, and on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Site {
    pub(crate) server: Server,
    /// Of the Task, then of each kind of child.
    pub(crate) watches: [Watch; 4],
    pub(crate) supervisor: Option<Supervised>,
    /// A write whose sender gave up or died: it may still take effect.
    pub(crate) stray: Option<Wire>,
    /// Objects that were written in vain, and have not changed since.
    vain: [bool; 4],
    /// Children that were collected since the watch last told of the Task, which it had more to tell of.
    early: u8,
}

/// Garbage collection learns of a Task's end by a watch of its own. It is ahead
/// of the operator's no more often than this in a row: if it always were, what
/// the operator makes would be taken away for ever.
const EARLY: u8 = 2;

/// One state of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct System {
    pub(crate) sites: Vec<Site>,
    pub(crate) alive: bool,
    pub(crate) queue: Queue,
    /// Milliseconds.
    pub(crate) clock: u64,
    /// What people may still do, and what may still go wrong.
    pub(crate) users: u8,
    pub(crate) faults: u8,
    /// The rule that was broken: nothing happens after that.
    pub(crate) broken: Option<Rule>,
    /// There is a sink for notifications.
    pub(crate) sink: bool,
    /// Its fingerprint, made when it is brought to its one form.
    pub(crate) print: u64,
}

impl Hash for System {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.print.hash(state);
    }
}

/// What happens next. Sites and watches are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Somebody does something.
    Deed(usize, Deed),
    /// A controller does something: garbage collection of a kind, or the rest of them.
    Collect(usize, ChildKind),
    RollOut(usize),
    LetGo(usize),
    /// A watch tells the next thing, or something too early, again, or of the past.
    Deliver(usize, usize),
    Retell(usize, usize, usize),
    /// A watch breaks; a list begins that shows how it was this many changes ago; it is complete.
    Cut(usize, usize),
    List(usize, usize, usize),
    Listed(usize, usize),
    /// The request under way takes effect; its answer arrives.
    Serve(usize),
    Answer(usize),
    /// It fails before it takes effect; its answer is lost; nobody waits for it any more.
    Fail(usize, FailureClass),
    LoseAnswer(usize),
    Abandon(usize),
    /// A write of which nobody waits takes effect, or never will.
    Land(usize),
    Vanish(usize),
    /// The sink takes what it is told, or does not.
    Tell(usize),
    FailToTell(usize),
    /// The next Task gets the slot; time goes on until a Task wants to be woken.
    Grant,
    Wake(usize),
    /// The operator dies; it starts.
    Crash,
    Start,
}

impl Site {
    fn new(number: usize) -> Self {
        Self {
            server: Server::new(key_of(number)),
            watches: Default::default(),
            supervisor: None,
            stray: None,
            vain: [false; 4],
            early: 0,
        }
    }

    fn task_lags(&self) -> bool {
        self.supervisor.is_some() && self.watches[0].link != Link::Live(self.watches[0].newest())
    }

    /// Whether garbage collection has something to do, and may.
    pub(crate) fn is_collectable(&self, kind: ChildKind) -> bool {
        self.server.is_collectable(kind) && (self.early < EARLY || !self.task_lags())
    }

    /// The watches take what the server has to tell.
    fn hear(&mut self) {
        for told in self.server.told.drain(..) {
            let index = match &told {
                Told::Task(_) | Told::TaskGone(..) => 0,
                Told::Child(kind, _) | Told::ChildGone(kind, ..) => kind.index() + 1,
            };
            self.watches[index].history.push(Some(told));
        }
    }

    /// Changes what is on the server; what changed may be written in vain once more.
    pub(crate) fn change<R>(&mut self, change: impl FnOnce(&mut Server) -> R) -> R {
        let versions = self.server.versions;
        let result = change(&mut self.server);
        for (vain, (before, now)) in self.vain.iter_mut().zip(versions.iter().zip(&self.server.versions)) {
            *vain &= before == now;
        }
        self.hear();
        result
    }
}

impl System {
    /// Nothing there, and the operator not started.
    pub(crate) fn new(scope: &Scope) -> Self {
        Self {
            sites: (0..scope.tasks).map(Site::new).collect(),
            alive: false,
            queue: Queue::default(),
            clock: moment::PRESENT,
            users: scope.users,
            faults: scope.faults,
            broken: None,
            sink: scope.sink,
            print: 0,
        }
    }

    /// Makes its fingerprint.
    pub(crate) fn imprint(&mut self) {
        let Self { sites, alive, queue, clock: _, users, faults, broken, sink: _, print: _ } = self;
        self.print = print(&(sites, alive, queue, users, faults, broken));
    }

    /// The watch told of the Task.
    fn caught_up(&mut self, site: usize, watch: usize) {
        if watch == 0 {
            self.sites[site].early = 0;
        }
    }

    pub(crate) fn now(&self) -> Now {
        Now { monotonic: Instant(self.clock), wall: 1_700_000_000 }
    }

    /// All watches have been listed: passes may begin.
    pub(crate) fn is_synced(&self) -> bool {
        self.alive && self.sites.iter().all(|site| site.watches.iter().all(|watch| watch.listed))
    }

    /// The state after this step, in its one form.
    pub(crate) fn after(&self, step: Step, scope: &Scope, mutant: Mutant) -> Self {
        let mut next = self.clone();
        next.pay(step);
        next.take(step, mutant);
        while next.broken.is_none()
            && let Some((site, watch)) = next.prompt(scope)
        {
            next.take(Step::Deliver(site, watch), mutant);
        }
        moment::normalise(&mut next);
        next
    }

    fn pay(&mut self, step: Step) {
        match step {
            Step::Deed(..) => self.users = self.users.saturating_sub(1),
            Step::Wake(_) if !self.is_idle() => self.faults = self.faults.saturating_sub(1),
            _ if step.is_fault() => {
                self.faults = self.faults.saturating_sub(1);
                for site in &mut self.sites {
                    site.vain = [false; 4];
                }
            }
            _ => {}
        }
    }

    /// A watch that never lags in this scope, and has something to tell.
    fn prompt(&self, scope: &Scope) -> Option<(usize, usize)> {
        let all = (0..self.sites.len()).flat_map(|site| (0..4).map(move |watch| (site, watch)));
        all.filter(|&(_, watch)| !scope.lagging[watch])
            .find(|&(site, watch)| self.sites[site].watches[watch].next().is_some())
    }

    fn take(&mut self, step: Step, mutant: Mutant) {
        match step {
            Step::Deed(site, deed) => self.sites[site].change(|server| deed.carry_out(server)),
            Step::Collect(site, kind) => {
                let it = &mut self.sites[site];
                it.early += u8::from(it.task_lags());
                it.change(|server| server.collect(kind));
            }
            Step::RollOut(site) => drop(self.sites[site].change(Server::roll_out)),
            Step::LetGo(site) => drop(self.sites[site].change(Server::let_go)),
            Step::Deliver(site, watch) => {
                if let Some(next) = self.sites[site].watches[watch].next() {
                    self.sites[site].watches[watch].link = Link::Live(next);
                    self.caught_up(site, watch);
                    self.tell(site, watch, next, Source::Change, mutant);
                }
            }
            Step::Retell(site, watch, at) => {
                // A stream that goes back tells all that came after it once more.
                if let Link::Live(now) = &mut self.sites[site].watches[watch].link {
                    *now = at.min(*now);
                }
                self.tell(site, watch, at, Source::Change, mutant);
            }
            Step::Cut(site, watch) => self.sites[site].watches[watch].link = Link::Broken,
            Step::List(site, watch, back) => self.list(site, watch, back, mutant),
            Step::Listed(site, watch) => self.listed(site, watch, mutant),
            Step::Serve(site) => self.serve(site),
            Step::Answer(site) => {
                let answered = self.sites[site].supervisor.as_mut().and_then(Supervised::answered);
                if let Some(event) = answered {
                    self.happen(site, event, mutant);
                }
            }
            Step::Fail(site, class) => self.fail(site, class, mutant),
            Step::LoseAnswer(site) => self.fail(site, FailureClass::Transient, mutant),
            Step::Abandon(site) => {
                self.sites[site].stray =
                    self.sites[site].supervisor.as_ref().and_then(|supervisor| supervisor.wire.clone());
                self.fail(site, FailureClass::Transient, mutant);
            }
            Step::Land(site) => {
                if let Some(wire) = self.sites[site].stray.take() {
                    let (_, effect) = self.sites[site].change(|server| server.serve(&wire));
                    self.condemn((effect == Effect::Trespass).then_some(Rule::TouchesForeign));
                }
            }
            Step::Vanish(site) => self.sites[site].stray = None,
            Step::Tell(site) => self.told(site, Outcome::Delivered, mutant),
            Step::FailToTell(site) => self.told(site, Outcome::Failed("down".into(), None), mutant),
            Step::Grant => self.grant(mutant),
            Step::Wake(site) => {
                if let Some(at) = self.sites[site].supervisor.as_mut().and_then(|it| it.timer.take()) {
                    self.clock = self.clock.max(at.0);
                    self.happen(site, Event::TimePassed, mutant);
                }
            }
            Step::Crash => {
                for site in 0..self.sites.len() {
                    self.forget(site);
                    self.sites[site].watches.iter_mut().for_each(Watch::reset);
                }
                self.queue = Queue::default();
                self.alive = false;
            }
            Step::Start => self.alive = true,
        }
    }

    fn list(&mut self, site: usize, watch: usize, back: usize, mutant: Mutant) {
        // What was touched before is older than the list, by the millisecond.
        self.clock += 1;
        let began = Instant(self.clock);
        let it = &mut self.sites[site].watches[watch];
        it.link = Link::Listing { began, at: it.newest() - back };
        let past = back > 0;
        if let Some(supervisor) = self.sites[site].supervisor.as_mut().filter(|_| past) {
            // An API server that shows the past may bring the end of a Task twice.
            supervisor.said.clear();
        }
        if self.sites[site].watches[watch].listed {
            self.happen(site, Event::ConnectionRestored, mutant);
        }
    }

    fn listed(&mut self, site: usize, watch: usize, mutant: Mutant) {
        let it = &mut self.sites[site].watches[watch];
        let Link::Listing { began, at } = it.link else { return };
        it.link = Link::Live(at);
        it.listed = true;
        self.caught_up(site, watch);
        let it = &self.sites[site].watches[watch];
        let shows = matches!(it.history[at], Some(Told::Task(_) | Told::Child(..)));
        match watch.checked_sub(1) {
            None if shows => self.tell(site, watch, at, Source::List(began), mutant),
            None => self.retire(site, mutant),
            Some(kind) => {
                if shows {
                    self.tell(site, watch, at, Source::List(began), mutant);
                }
                self.happen(site, Event::ChildrenListed(ChildKind::ALL[kind], began), mutant);
            }
        }
    }

    fn serve(&mut self, number: usize) {
        let site = &mut self.sites[number];
        let Some(wire) = site.supervisor.as_ref().and_then(|supervisor| supervisor.wire.clone()) else {
            return;
        };
        let (reply, effect) = site.change(|server| server.serve(&wire));
        if let Some(supervisor) = &mut site.supervisor {
            supervisor.reply = Some(reply);
        }
        let object = match wire.request {
            Request::Create(kind) | Request::Correct(kind) => kind.index() + 1,
            _ => 0,
        };
        let again = effect == Effect::Vain && std::mem::replace(&mut site.vain[object], true);
        self.condemn(match effect {
            Effect::Trespass => Some(Rule::TouchesForeign),
            _ if again => Some(Rule::VainTwice),
            _ => None,
        });
    }

    fn fail(&mut self, site: usize, class: FailureClass, mutant: Mutant) {
        let request = self.sites[site].supervisor.as_mut().and_then(Supervised::give_up);
        if let Some(request) = request {
            self.happen(site, Event::Failed(failure(class, &request)), mutant);
        }
    }

    fn told(&mut self, site: usize, outcome: Outcome, mutant: Mutant) {
        if let Some(event) = self.sites[site].supervisor.as_mut().and_then(|it| it.told(outcome)) {
            self.happen(site, event, mutant);
        }
    }

    fn grant(&mut self, mutant: Mutant) {
        let Some(site) = self.queue.next() else { return };
        self.queue.grant(site);
        let waits = |it: &Supervised| matches!(it.state.pass, Pass::Queued { .. });
        if self.sites[site].supervisor.as_ref().is_some_and(waits) {
            self.happen(site, Event::SlotGranted, mutant);
        } else {
            self.queue.release(site);
        }
    }

    /// Remembers the first rule that was broken.
    pub(crate) fn condemn(&mut self, rule: Option<Rule>) {
        self.broken = self.broken.or(rule);
    }
}

impl Step {
    /// Something that does not happen while all goes well.
    pub(crate) fn is_fault(self) -> bool {
        match self {
            Self::List(_, _, back) => back > 0,
            Self::Retell(..) | Self::Cut(..) | Self::Fail(..) | Self::LoseAnswer(_) | Self::Abandon(_) => {
                true
            }
            Self::Crash | Self::FailToTell(_) => true,
            _ => false,
        }
    }
}
