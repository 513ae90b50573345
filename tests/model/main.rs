//! The shipped core of a supervisor, model-checked with stateright.
//!
//! Around [`State`](task_operator::supervisor::State) stand a small API server,
//! four watches, the dispatcher's slots, and an environment that crashes the
//! operator between any two steps, cuts, delays, repeats and reorders what the
//! watches tell, lists the past, fails any request before or after it took
//! effect, lets a write land that nobody waits for any more, and lets people
//! edit, delete and make anew whatever they like: each only so often, so that
//! all of it can be searched.
//!
//! - [`system`]: one state, and what a step makes of it; [`steps`]: which may come next
//! - [`supervised`], [`watch`], [`slots`]: the shell around the core
//! - [`rules`]: what may never happen; [`quiet`]: that it always settles
//! - [`moment`], [`print`]: one form for all states that behave the same
//! - [`scope`], [`scopes`]: how much of the world a run looks at
//! - [`mutants`]: operators that are broken on purpose, each of which has to be caught

#![allow(clippy::unwrap_used, reason = "what fails here is a test that fails")]

mod machine;
mod moment;
mod mutants;
mod print;
mod quiet;
mod rules;
mod scope;
mod scopes;
#[path = "../world/mod.rs"]
mod shared;
mod slots;
mod steps;
mod supervised;
mod system;
mod watch;

use crate::machine::Machine;
use crate::mutants::Mutant;

#[test]
fn the_shipped_core_breaks_no_rule_and_always_settles() {
    let (mut states, mut steps) = (0, 0);
    for scope in scopes::all() {
        let checked = Machine::new(scope, Mutant::None).check();
        println!("{checked}");
        assert_eq!(checked.broken, None, "{}", checked.explanation());
        states += checked.states + checked.quiet;
        steps += checked.steps;
    }
    println!("together {states} states, {steps} steps between them");
}

#[test]
fn every_broken_operator_is_caught() {
    let mut escaped = Vec::new();
    let only = std::env::var("MUTANT").ok();
    for &(mutant, hint, what) in Mutant::ALL {
        if only.as_ref().is_some_and(|only| *only != format!("{mutant:?}")) {
            continue;
        }
        // The run that is known to show it goes first; the others are for when the core changes.
        let mut scopes = scopes::small();
        scopes.sort_by_key(|scope| scope.name != hint);
        let caught = scopes.into_iter().find_map(|scope| {
            let checked = Machine::new(scope, mutant).check();
            checked.broken.map(|property| (property, checked.states + checked.quiet))
        });
        match caught {
            Some((property, states)) => {
                println!("an operator that {what}: {property}, after {states} states")
            }
            None => escaped.push(what),
        }
    }
    assert!(escaped.is_empty(), "not caught: {escaped:#?}");
}
