//! What has to change in the Secret, and when to look again.
//!
//! A pair is renewed after two thirds of its life. Where the authority would
//! then not last for two more, it is replaced first: the new one is published,
//! and signs only once everybody has been told to trust it for a while. Each
//! step leaves a Secret that serves, so a replica may stop after any of them.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use super::held::Facts;

/// How long a new authority has to be trusted before it signs, at most: API
/// servers hear of it at different moments.
const SETTLED: Duration = Duration::from_secs(60);

/// One change of the Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A new authority and a pair: what was there, if anything, is of no use.
    Begin,
    /// A new pair for these names, signed by the newest authority.
    Pair(BTreeSet<String>),
    /// A new authority beside the others.
    Authority,
    /// Authorities that have expired go.
    Forget,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Nothing until then, unless something is seen.
    Wait(SystemTime),
    /// This, at once.
    Write(Change),
}

/// What the plan follows from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation<'a> {
    /// The names that are called.
    pub names: &'a BTreeSet<String>,
    /// How long a pair is valid.
    pub validity: Duration,
    /// The time.
    pub now: SystemTime,
    /// For how long all authorities have been trusted everywhere; none if they are not.
    pub trusted_for: Option<Duration>,
}

/// What to do with contents of which `facts` are known.
pub(super) fn plan(facts: &Facts, situation: Situation<'_>) -> Plan {
    let Situation { names, validity, now, trusted_for } = situation;
    let newest = facts.authorities[0];
    let renewal = facts.pair.made + facts.pair.life() * 2 / 3;
    let has_names = names.is_subset(&facts.names);
    let is_due = now >= renewal || !has_names;

    if !facts.by_newest {
        let settled = SETTLED.min(validity / 10);
        // An expired pair serves nobody: then there is nothing to wait for.
        let may_sign = trusted_for.is_some_and(|time| time >= settled) || facts.pair.expires <= now;
        return match may_sign {
            true => Plan::Write(Change::Pair(wanted(facts, situation))),
            false => {
                let settles = trusted_for.map(|time| now + settled.saturating_sub(time));
                Plan::Wait(settles.unwrap_or(facts.pair.expires).min(facts.pair.expires))
            }
        };
    }
    if is_due {
        return match newest.left(now) < validity * 2 {
            true => Plan::Write(Change::Authority),
            false => Plan::Write(Change::Pair(wanted(facts, situation))),
        };
    }
    let old = facts.authorities.iter().skip(1).map(|authority| authority.expires);
    match old.min() {
        Some(expires) if expires <= now => Plan::Write(Change::Forget),
        Some(expires) => Plan::Wait(expires.min(renewal)),
        None => Plan::Wait(renewal),
    }
}

/// The names of the next pair. Where one is missing the others stay for now, so
/// that two replicas with different flags do not take turns in renewing it.
fn wanted(facts: &Facts, situation: Situation<'_>) -> BTreeSet<String> {
    let mut names = situation.names.clone();
    if !names.is_subset(&facts.names) {
        names.extend(facts.names.iter().cloned());
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::held::Period;
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn begun(names: &BTreeSet<String>, validity: Duration, now: SystemTime) -> Facts {
        let period = |times| Period { made: now, expires: now + validity * times };
        Facts { authorities: vec![period(4)], names: names.clone(), pair: period(1), by_newest: true }
    }

    /// What `issue` does, without the cryptography.
    fn after(mut facts: Facts, change: &Change, validity: Duration, now: SystemTime) -> Facts {
        let period = |times| Period { made: now, expires: now + validity * times };
        match change {
            Change::Begin => panic!("never while there is something that serves"),
            Change::Pair(names) => {
                facts.pair = period(1);
                facts.pair.expires = facts.pair.expires.min(facts.authorities[0].expires);
                facts.names.clone_from(names);
                facts.by_newest = true;
            }
            Change::Authority => {
                facts.authorities.insert(0, period(4));
                facts.by_newest = false;
            }
            Change::Forget => {
                let newest = facts.authorities.remove(0);
                facts.authorities.retain(|authority| authority.expires > now);
                facts.authorities.insert(0, newest);
            }
        }
        facts
    }

    #[test]
    fn over_five_years_there_is_always_a_pair_that_is_trusted_and_few_changes() {
        for validity in [Duration::from_secs(30), 90 * DAY, 365 * DAY] {
            let names = names(&["a"]);
            let start = SystemTime::now();
            let end = start + (5 * 365 * DAY).min(validity * 200);
            let (mut now, mut facts) = (start, begun(&names, validity, start));
            let mut trusted_since = Some(start);
            let (mut pairs, mut authorities) = (0, 0);
            while now < end {
                let trusted_for = trusted_since.map(|since| now.duration_since(since).unwrap());
                let situation = Situation { names: &names, validity, now, trusted_for };
                match plan(&facts, situation) {
                    Plan::Wait(until) => {
                        assert!(until > now, "a hot loop");
                        now = until;
                    }
                    Plan::Write(change) => {
                        pairs += u32::from(matches!(change, Change::Pair(_)));
                        if change == Change::Authority {
                            authorities += 1;
                            trusted_since = Some(now);
                        } else if let Change::Pair(_) = change {
                            let trusted_for = now.duration_since(trusted_since.unwrap()).unwrap();
                            assert!(
                                trusted_for >= SETTLED.min(validity / 10),
                                "signed before it was trusted"
                            );
                        }
                        facts = after(facts, &change, validity, now);
                    }
                }
                assert!(facts.pair.left(now) > validity / 5, "{:?} left", facts.pair.left(now));
                assert!(facts.authorities.len() <= 3);
                assert!(facts.authorities[0].expires > now);
            }
            let lives =
                u32::try_from(end.duration_since(start).unwrap().as_secs() / validity.as_secs()).unwrap();
            assert!(pairs >= lives && pairs <= lives * 2, "{pairs} pairs in {lives} lives");
            assert!(authorities >= lives / 4 && authorities <= lives, "{authorities} in {lives} lives");
        }
    }

    #[test]
    fn an_authority_that_is_not_trusted_signs_only_when_nothing_is_lost_by_it() {
        let (names, validity, now) = (names(&["a"]), 90 * DAY, SystemTime::now());
        let begun = begun(&names, validity, now);
        let facts = after(begun, &Change::Authority, validity, now);
        let at = |now, trusted_for| plan(&facts, Situation { names: &names, validity, now, trusted_for });
        assert_eq!(at(now, None), Plan::Wait(facts.pair.expires));
        assert_eq!(at(now, Some(Duration::ZERO)), Plan::Wait(now + SETTLED));
        assert_eq!(at(now, Some(SETTLED)), Plan::Write(Change::Pair(names.clone())));
        assert_eq!(at(facts.pair.expires, None), Plan::Write(Change::Pair(names.clone())));
    }

    #[test]
    fn a_missing_name_is_added_and_the_others_stay_until_the_next_renewal() {
        let (old, new, validity, now) = (names(&["a"]), names(&["b"]), 90 * DAY, SystemTime::now());
        let facts = begun(&old, validity, now);
        let situation = |names, now| Situation { names, validity, now, trusted_for: None };
        let both: BTreeSet<String> = old.union(&new).cloned().collect();
        assert_eq!(plan(&facts, situation(&new, now)), Plan::Write(Change::Pair(both.clone())));
        let facts = after(facts, &Change::Pair(both), validity, now);
        for names in [&old, &new] {
            assert!(matches!(plan(&facts, situation(names, now)), Plan::Wait(_)));
        }
        let due = now + 61 * DAY;
        assert_eq!(plan(&facts, situation(&new, due)), Plan::Write(Change::Pair(new.clone())));
    }

    #[test]
    fn after_years_away_it_recovers_in_two_steps() {
        let (names, validity, start) = (names(&["a"]), 90 * DAY, SystemTime::now());
        let facts = begun(&names, validity, start);
        let now = start + 1000 * DAY;
        let situation = Situation { names: &names, validity, now, trusted_for: None };
        assert_eq!(plan(&facts, situation), Plan::Write(Change::Authority));
        let facts = after(facts, &Change::Authority, validity, now);
        assert_eq!(plan(&facts, situation), Plan::Write(Change::Pair(names.clone())));
        let facts = after(facts, &Change::Pair(names.clone()), validity, now);
        assert_eq!(plan(&facts, situation), Plan::Write(Change::Forget));
    }
}
