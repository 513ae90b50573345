//! The model as stateright takes it.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::mutants::Mutant;
use crate::quiet::Quiet;
use crate::rules::Rule;
use crate::scope::{Deed, Scope};
use crate::system::{Step, System};

/// What stability is called among the properties.
pub(crate) const SETTLES: &str =
    "once it is quiet it settles where it should, on every way, and writes nothing more";

/// A scope, an operator that may be broken on purpose, and what is known of quiet states.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) scope: Scope,
    pub(crate) mutant: Mutant,
    pub(crate) quiet: Arc<Quiet>,
}

impl Machine {
    pub(crate) fn new(scope: Scope, mutant: Mutant) -> Self {
        Self { scope, mutant, quiet: Arc::default() }
    }

    pub(crate) fn after(&self, system: &System, step: Step) -> System {
        system.after(step, &self.scope, self.mutant)
    }
}

impl Model for Machine {
    type State = System;
    type Action = Step;

    fn init_states(&self) -> Vec<System> {
        let mut system = System::new(&self.scope);
        if self.scope.settled {
            // The shipped operator, undisturbed, brings it there.
            for site in 0..self.scope.tasks {
                system = system.after(Step::Deed(site, Deed::Create(0)), &self.scope, Mutant::None);
            }
            for _ in 0..1000 {
                match system.instant_steps().first().copied().or_else(|| system.next_wake()) {
                    Some(step) => system = system.after(step, &self.scope, Mutant::None),
                    None => break,
                }
            }
        }
        for &step in &self.scope.before {
            system.faults = u8::from(step.is_fault());
            system = self.after(&system, step);
        }
        system.users = self.scope.users;
        system.faults = self.scope.faults;
        system.imprint();
        vec![system]
    }

    fn actions(&self, system: &System, steps: &mut Vec<Step>) {
        if system.broken.is_none() {
            system.steps(&self.scope, steps);
        }
    }

    fn next_state(&self, system: &System, step: Step) -> Option<System> {
        Some(self.after(system, step))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = Rule::properties();
        properties.push(Property::always(SETTLES, |machine: &Self, system| machine.settles(system)));
        properties
    }
}

/// What a run came to.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    name: &'static str,
    /// States that were reached while things went on.
    pub(crate) states: usize,
    /// States that were reached once it was quiet.
    pub(crate) quiet: usize,
    /// Steps between the former.
    pub(crate) steps: usize,
    /// The longest of the shortest ways to a state.
    depth: usize,
    /// The longest way to rest, in steps.
    longest: u16,
    seconds: f32,
    /// The property that does not hold, with the way there.
    pub(crate) broken: Option<&'static str>,
    way: Vec<Step>,
    after_quiet: Option<String>,
}

impl Machine {
    /// Searches all states, or until a property is seen not to hold.
    pub(crate) fn check(self) -> Checked {
        let began = Instant::now();
        let (name, quiet) = (self.scope.name, self.quiet.clone());
        let checker = self.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        let (found, longest) = quiet.figures();
        let broken =
            checker.discoveries().into_iter().map(|(property, path)| (path.into_actions(), property));
        let first = broken.min_by_key(|(way, _)| way.len());
        Checked {
            name,
            states: checker.unique_state_count(),
            quiet: found,
            steps: checker.state_count(),
            depth: checker.max_depth(),
            longest,
            seconds: began.elapsed().as_secs_f32(),
            broken: first.as_ref().map(|(_, property)| *property),
            way: first.map(|(way, _)| way).unwrap_or_default(),
            after_quiet: quiet.failure.lock().unwrap().clone(),
        }
    }
}

impl Checked {
    /// How it came to the property that does not hold.
    pub(crate) fn explanation(&self) -> String {
        let way: Vec<_> = self.way.iter().map(|step| format!("{step:?}")).collect();
        let after_quiet = self.after_quiet.as_deref().unwrap_or("a rule was broken on the way");
        format!("{}: {}; {after_quiet}", self.broken.unwrap_or("nothing is broken"), way.join(" → "))
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, states, quiet, steps, depth, longest, seconds, .. } = self;
        write!(
            f,
            "{name}: {states} states, {steps} steps, depth {depth}; {quiet} quiet states, at rest after at \
             most {longest} steps; {seconds:.1} s"
        )
    }
}
