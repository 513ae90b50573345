//! When a notice that was not taken is tried again, and when it is given up.

use std::time::Duration;

use crate::supervisor::backoff;
use crate::supervisor::time::Instant;

/// The longest wait between two tries.
pub const LONGEST: Duration = Duration::from_secs(300);
/// The longest wait that a sink may ask for.
pub const LONGEST_ASKED: Duration = Duration::from_secs(3600);
/// A notice that was not taken for this long is given up.
pub const PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// When to try again after the `failures`th failure in a row (from 1) of a
/// notice that was first tried at `since`; none if it is to be given up.
///
/// The waits are 1 s, 2 s, 4 s … 300 s, each less up to a fifth, or what the
/// sink asked for if that is longer. The last try is at the end of [`PATIENCE`],
/// however the waits fall.
pub fn again(
    failures: u32,
    since: Instant,
    now: Instant,
    asked: Option<Duration>,
    seed: u64,
) -> Option<Instant> {
    let end = since.after(PATIENCE);
    if now >= end {
        return None;
    }
    let wait = backoff::doubling(failures, LONGEST, seed);
    let asked = asked.unwrap_or_default().min(LONGEST_ASKED);
    Some(now.after(wait.max(asked)).min(end))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All tries of a notice that is never taken, from the first one.
    fn tries(seed: u64, asked: Option<Duration>) -> Vec<Instant> {
        let since = Instant(17_000);
        let mut tries = vec![since];
        while let Some(at) = again(tries.len() as u32, since, tries[tries.len() - 1], asked, seed) {
            tries.push(at);
        }
        tries
    }

    proptest! {
        #[test]
        fn it_is_tried_for_a_day_and_then_given_up(seed: u64, asked in proptest::option::of(0_u64..100_000)) {
            let asked = asked.map(Duration::from_secs);
            let tries = tries(seed, asked);
            prop_assert_eq!(tries[tries.len() - 1].since(tries[0]), PATIENCE);
            // Some 300 with waits of five minutes, and no fewer than a sink may ask for.
            prop_assert!((25..450).contains(&tries.len()), "{} tries", tries.len());
            for (number, pair) in tries.windows(2).enumerate() {
                let wait = pair[1].since(pair[0]);
                prop_assert!(wait > Duration::ZERO && wait <= LONGEST.max(LONGEST_ASKED));
                if asked.is_none() && number + 2 < tries.len() {
                    let full = Duration::from_secs(1 << number.min(16)).min(LONGEST);
                    prop_assert!(wait <= full && wait >= full * 4 / 5, "wait {number}: {wait:?}");
                }
            }
        }

        #[test]
        fn what_the_sink_asks_for_is_honoured_within_bounds(seed: u64, failures in 1_u32..40, asked in 0_u64..10_000) {
            let now = Instant(1_000_000);
            let wait = again(failures, now, now, Some(Duration::from_secs(asked)), seed).unwrap().since(now);
            prop_assert!(wait >= Duration::from_secs(asked).min(LONGEST_ASKED));
            prop_assert!(wait <= LONGEST.max(LONGEST_ASKED));
        }
    }

    #[test]
    fn notices_that_fail_together_return_apart() {
        let mut waits: Vec<_> =
            (0..100).map(|seed| again(5, Instant(0), Instant(0), None, seed).unwrap()).collect();
        waits.sort();
        waits.dedup();
        assert!(waits.len() > 80, "only {} different waits of 100", waits.len());
    }
}
