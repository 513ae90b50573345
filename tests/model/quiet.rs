//! What becomes of a state once people let it be and nothing goes wrong any more.
//!
//! From each state all orders of what is still under way are followed; time
//! goes on only when nothing else can. Each of them has to end at rest: where
//! everything is right, and where waiting leads round in a circle without one
//! write. Any other circle would be work without an end, and any other end a
//! Task that is forgotten. What was shown of a state is not searched again.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use crate::machine::Machine;
use crate::shared::right::wrong;
use crate::supervised::is_write;
use crate::system::{Step, System};

/// What is known of quiet states.
#[derive(Debug, Default)]
pub(crate) struct Quiet {
    /// Steps to rest on the longest way, by fingerprint.
    known: Mutex<HashMap<u64, u16>>,
    /// The first way that leads elsewhere, for people.
    pub(crate) failure: Mutex<Option<String>>,
}

impl Quiet {
    /// States, and the most steps that one of them is from rest.
    pub(crate) fn figures(&self) -> (usize, u16) {
        let known = self.known.lock().unwrap();
        (known.len(), known.values().copied().max().unwrap_or_default())
    }
}

/// A state on the way that is searched.
struct Visit {
    fingerprint: u64,
    by: Option<Step>,
    steps: Vec<Step>,
    system: System,
    /// Steps to rest, as far as it was searched.
    longest: u16,
}

impl Machine {
    /// Whether it settles from here, on every way.
    pub(crate) fn settles(&self, system: &System) -> bool {
        if system.broken.is_some() {
            return true;
        }
        let mut start = system.clone();
        (start.users, start.faults) = (0, 0);
        crate::moment::normalise(&mut start);
        match self.search(start) {
            Ok(()) => true,
            Err(failure) => {
                self.quiet.failure.lock().unwrap().get_or_insert(failure);
                false
            }
        }
    }

    fn search(&self, start: System) -> Result<(), String> {
        let mut way: Vec<Visit> = Vec::new();
        let mut on_the_way = HashSet::new();
        let mut next = Some((None, start));
        loop {
            if let Some((by, system)) = next.take() {
                let fingerprint = system.print;
                let known = self.quiet.known.lock().unwrap().get(&fingerprint).copied();
                if let Some(longest) = known {
                    match way.last_mut() {
                        Some(last) => last.longest = last.longest.max(longest + 1),
                        None => return Ok(()),
                    }
                } else {
                    let visit = self.visit(by, system, fingerprint, &way)?;
                    if !on_the_way.insert(fingerprint) {
                        return Err(tell(&way, by, "it goes round in circles"));
                    }
                    way.push(visit);
                }
            }
            let Some(last) = way.last_mut() else { return Ok(()) };
            if let Some(step) = last.steps.pop() {
                next = Some((Some(step), self.after(&last.system, step)));
                continue;
            }
            let (fingerprint, longest) = (last.fingerprint, last.longest);
            self.quiet.known.lock().unwrap().insert(fingerprint, longest);
            on_the_way.remove(&fingerprint);
            way.pop();
            match way.last_mut() {
                Some(above) => above.longest = above.longest.max(longest + 1),
                None => return Ok(()),
            }
        }
    }

    fn visit(
        &self,
        by: Option<Step>,
        system: System,
        fingerprint: u64,
        way: &[Visit],
    ) -> Result<Visit, String> {
        if system.broken.is_some() {
            // The rule's own property tells of it: this state is reached without quiet too.
            return Ok(Visit { fingerprint, by, steps: Vec::new(), system, longest: 0 });
        }
        let mut steps = system.instant_steps();
        if steps.is_empty() {
            match self.rest(&system) {
                Rest::Settled => {}
                Rest::Wrong(why) => return Err(tell(way, by, why)),
                Rest::Works => steps.extend(system.next_wake()),
            }
        }
        Ok(Visit { fingerprint, by, steps, system, longest: 0 })
    }

    /// Lets time go on until the same comes again, or something is written.
    fn rest(&self, idle: &System) -> Rest {
        let mut system = idle.clone();
        let mut seen = HashSet::new();
        for _ in 0..400 {
            let mut steps = system.instant_steps();
            if steps.is_empty() {
                if !seen.insert(system.print) {
                    return self.judge(&system);
                }
                match system.next_wake() {
                    Some(wake) => steps.push(wake),
                    None => return self.judge(&system),
                }
            }
            let writes = |site: &crate::system::Site| {
                let wire = site.supervisor.as_ref().and_then(|supervisor| supervisor.wire.as_ref());
                wire.is_some_and(|wire| is_write(&wire.request))
            };
            system = self.after(&system, steps[0]);
            if system.broken.is_some() || system.sites.iter().any(writes) {
                return Rest::Works;
            }
        }
        Rest::Wrong("waiting comes to no end")
    }

    fn judge(&self, system: &System) -> Rest {
        let mut sites = system.sites.iter();
        let found = sites.find_map(|site| wrong(&site.server, site.supervisor.as_ref().map(|it| &it.state)));
        found.map_or(Rest::Settled, Rest::Wrong)
    }
}

enum Rest {
    Settled,
    Works,
    Wrong(&'static str),
}

fn tell(way: &[Visit], by: Option<Step>, what: &str) -> String {
    let steps = way.iter().map(|visit| visit.by).chain([by]).flatten();
    let steps: Vec<_> = steps.map(|step| format!("{step:?}")).collect();
    format!("{what} after quiet: {}", steps.join(" → "))
}
