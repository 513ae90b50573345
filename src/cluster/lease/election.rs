//! Whose turn it is. Pure: what was seen of the Lease goes in, what to try comes out.

use std::time::Duration;

use crate::supervisor::time::Instant;

/// A Lease as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseView {
    /// Its version, for the precondition of a write.
    pub version: String,
    /// Who holds it; empty if it was given back.
    pub holder: String,
    /// For how long after a renewal.
    pub duration: Duration,
}

/// What to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// There is no Lease: create it.
    Create,
    /// It is ours: renew it.
    Renew,
    /// It is free or has run out: take it.
    Take,
    /// Somebody holds it: nothing before this moment, unless it changes.
    WaitUntil(Instant),
}

/// What one replica has seen of the Lease.
#[derive(Debug)]
pub struct Election {
    identity: String,
    /// The version seen last, and when it was first seen: by our clock, since
    /// the times in the Lease are by the clock of somebody else.
    seen: Option<(String, Instant)>,
}

impl Election {
    /// A replica that has seen nothing yet.
    pub fn new(identity: String) -> Self {
        Self { identity, seen: None }
    }

    /// What to try, given the Lease as it is now.
    pub fn attempt(&mut self, lease: Option<&LeaseView>, now: Instant) -> Attempt {
        let Some(lease) = lease else {
            self.seen = None;
            return Attempt::Create;
        };
        let since = match &self.seen {
            Some((version, since)) if *version == lease.version => *since,
            _ => {
                self.seen = Some((lease.version.clone(), now));
                now
            }
        };
        let runs_out = since.after(lease.duration);
        if lease.holder == self.identity {
            Attempt::Renew
        } else if lease.holder.is_empty() || now >= runs_out {
            Attempt::Take
        } else {
            Attempt::WaitUntil(runs_out)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(version: &str, holder: &str) -> LeaseView {
        LeaseView {
            version: version.to_owned(),
            holder: holder.to_owned(),
            duration: Duration::from_secs(15),
        }
    }

    fn at(seconds: u64) -> Instant {
        Instant(seconds * 1000)
    }

    #[test]
    fn a_lease_that_is_missing_is_created_and_a_free_one_is_taken() {
        let mut election = Election::new("me".to_owned());
        assert_eq!(election.attempt(None, at(0)), Attempt::Create);
        assert_eq!(election.attempt(Some(&lease("1", "")), at(0)), Attempt::Take);
        assert_eq!(election.attempt(Some(&lease("1", "me")), at(0)), Attempt::Renew);
    }

    #[test]
    fn a_lease_of_another_runs_out_by_our_own_clock_from_when_it_was_first_seen_so() {
        let mut election = Election::new("me".to_owned());
        assert_eq!(election.attempt(Some(&lease("1", "other")), at(100)), Attempt::WaitUntil(at(115)));
        assert_eq!(election.attempt(Some(&lease("1", "other")), at(114)), Attempt::WaitUntil(at(115)));
        assert_eq!(election.attempt(Some(&lease("1", "other")), at(115)), Attempt::Take);
    }

    #[test]
    fn each_renewal_begins_the_time_anew() {
        let mut election = Election::new("me".to_owned());
        election.attempt(Some(&lease("1", "other")), at(100));
        assert_eq!(election.attempt(Some(&lease("2", "other")), at(114)), Attempt::WaitUntil(at(129)));
        // A lease that was deleted and made again counts as new too.
        election.attempt(None, at(115));
        assert_eq!(election.attempt(Some(&lease("2", "other")), at(120)), Attempt::WaitUntil(at(135)));
    }
}
