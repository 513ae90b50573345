//! What may happen in a state.

use task_operator::desired::ChildKind;
use task_operator::supervisor::event::FailureClass;

use crate::scope::Scope;
use crate::supervised::is_write;
use crate::system::{Site, Step, System};
use crate::watch::Link;

impl System {
    /// What happens by itself and takes no time. In a quiet world all of it
    /// happens, in any order, before time goes on.
    pub(crate) fn instant_steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if !self.alive {
            steps.push(Step::Start);
        }
        if self.is_synced() && self.queue.next().is_some() {
            steps.push(Step::Grant);
        }
        let tasks_listed = self.sites.iter().all(|site| site.watches[0].listed);
        for (number, site) in self.sites.iter().enumerate() {
            if self.alive {
                for (index, watch) in site.watches.iter().enumerate() {
                    match watch.link {
                        // Children are listed once the Tasks are.
                        Link::Broken if index == 0 || tasks_listed => {
                            steps.push(Step::List(number, index, 0))
                        }
                        Link::Broken => {}
                        Link::Listing { .. } => steps.push(Step::Listed(number, index)),
                        Link::Live(_) if watch.next().is_some() => steps.push(Step::Deliver(number, index)),
                        Link::Live(_) => {}
                    }
                }
            }
            site.instant_steps(number, &mut steps);
        }
        steps
    }

    /// Nothing is under way: only time can go on.
    pub(crate) fn is_idle(&self) -> bool {
        self.instant_steps().is_empty()
    }

    /// The next wake-up, if time can only go on.
    pub(crate) fn next_wake(&self) -> Option<Step> {
        let timers = self.sites.iter().enumerate();
        let timers = timers.filter_map(|(site, it)| Some((it.supervisor.as_ref()?.timer?, site)));
        timers.min().map(|(_, site)| Step::Wake(site))
    }

    /// Everything that may happen.
    pub(crate) fn steps(&self, scope: &Scope, steps: &mut Vec<Step>) {
        let instant = self.instant_steps();
        // Time that goes on while something is under way is a delay, which is a fault.
        let may_wait = instant.is_empty() || self.faults > 0;
        steps.extend(instant);
        for (number, site) in self.sites.iter().enumerate() {
            if may_wait && site.supervisor.as_ref().is_some_and(|it| it.timer.is_some()) {
                steps.push(Step::Wake(number));
            }
            if self.users > 0 {
                let possible = scope.deeds.iter().filter(|deed| deed.is_possible(&site.server));
                steps.extend(possible.map(|&deed| Step::Deed(number, deed)));
            }
            if self.faults > 0 && self.alive {
                self.faults_of(number, site, scope, steps);
            }
        }
        if self.faults > 0 && self.alive {
            steps.push(Step::Crash);
        }
    }

    fn faults_of(&self, number: usize, site: &Site, scope: &Scope, steps: &mut Vec<Step>) {
        for (index, watch) in site.watches.iter().enumerate().filter(|(index, _)| scope.lagging[*index]) {
            match watch.link {
                Link::Live(at) => {
                    steps.push(Step::Cut(number, index));
                    // Again, out of order, or of the past.
                    let next = watch.next();
                    let others = (0..watch.history.len()).filter(|&other| other != at && Some(other) != next);
                    steps.extend(others.map(|other| Step::Retell(number, index, other)));
                    steps.push(Step::Retell(number, index, at));
                }
                Link::Broken if index == 0 || self.sites[number].watches[0].listed => {
                    steps.extend((1..watch.history.len()).map(|back| Step::List(number, index, back)));
                }
                Link::Broken | Link::Listing { .. } => {}
            }
        }
        let Some(supervisor) = &site.supervisor else { return };
        if supervisor.offered.is_some() {
            steps.push(Step::FailToTell(number));
        }
        let Some(wire) = &supervisor.wire else { return };
        if supervisor.reply.is_some() {
            return steps.push(Step::LoseAnswer(number));
        }
        steps.push(Step::Fail(number, FailureClass::Transient));
        steps.push(Step::Fail(number, FailureClass::Terminal));
        if is_write(&wire.request) {
            let classes = [FailureClass::Stale, FailureClass::Ending, FailureClass::Fenced];
            steps.extend(classes.map(|class| Step::Fail(number, class)));
            if site.stray.is_none() {
                steps.push(Step::Abandon(number));
            }
        }
    }
}

impl Site {
    fn instant_steps(&self, number: usize, steps: &mut Vec<Step>) {
        if let Some(supervisor) = self.supervisor.as_ref().filter(|supervisor| supervisor.wire.is_some()) {
            steps.push(if supervisor.reply.is_some() { Step::Answer(number) } else { Step::Serve(number) });
        }
        if self.supervisor.as_ref().is_some_and(|supervisor| supervisor.offered.is_some()) {
            steps.push(Step::Tell(number));
        }
        if self.stray.is_some() {
            steps.extend([Step::Land(number), Step::Vanish(number)]);
        }
        let server = &self.server;
        let kinds = ChildKind::ALL.into_iter().filter(|kind| self.is_collectable(*kind));
        steps.extend(kinds.map(|kind| Step::Collect(number, kind)));
        if server.rollout().is_some() {
            steps.push(Step::RollOut(number));
        }
        if server.is_held() {
            steps.push(Step::LetGo(number));
        }
    }
}
