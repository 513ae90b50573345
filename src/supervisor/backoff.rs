//! How long to wait: after a failure, and between passes that found nothing to do.

use std::time::Duration;

use crate::api::v1::Phase;

/// The first wait after a failure.
const FIRST: Duration = Duration::from_secs(1);
/// The longest wait after a failure.
const LONGEST: Duration = Duration::from_secs(60);

/// The wait after the `failures`th failure in a row (from 1): 1 s, 2 s, 4 s … 60 s,
/// each less up to a fifth, so that Tasks that failed together do not return together.
pub fn after_failures(failures: u32, seed: u64) -> Duration {
    doubling(failures, LONGEST, seed)
}

/// The same with another longest wait.
pub fn doubling(failures: u32, longest: Duration, seed: u64) -> Duration {
    let doubled = FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16));
    spread(doubled.min(longest), seed ^ u64::from(failures))
}

/// The time to the next pass of a Task that needs nothing now.
pub fn requeue(phase: Phase, seed: u64) -> Duration {
    let seconds = match phase {
        Phase::Pending => 10,
        Phase::Running => 30,
        Phase::Succeeded => 60,
        Phase::Failed => 5,
    };
    spread(Duration::from_secs(seconds), seed)
}

/// The wait between two corrections of one child that somebody keeps changing:
/// none for the first two, then 1 s, 2 s, 4 s … 60 s.
pub fn between_corrections(corrections: u8) -> Duration {
    match corrections {
        0 | 1 => Duration::ZERO,
        n => FIRST.saturating_mul(1 << (u32::from(n) - 2).min(16)).min(LONGEST),
    }
}

/// `wait` less up to a fifth of it, the same for the same seed: the core has no
/// source of chance, and needs none beyond Tasks being different.
fn spread(wait: Duration, seed: u64) -> Duration {
    // SplitMix64's finaliser: neighbouring seeds give unrelated results.
    let mut x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^= x >> 31;
    let part = u32::try_from(x % 1000).unwrap_or_default();
    wait - wait * part / 5000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute_and_are_never_shorter_than_four_fifths() {
        for seed in 0..500 {
            for (failures, full) in [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (100, 60), (u32::MAX, 60)] {
                let wait = after_failures(failures, seed);
                let full = Duration::from_secs(full);
                assert!(wait <= full && wait >= full * 4 / 5, "{failures} failures, seed {seed}: {wait:?}");
            }
        }
    }

    #[test]
    fn tasks_that_fail_together_return_apart() {
        let mut waits: Vec<_> = (0..100).map(|seed| after_failures(5, seed)).collect();
        waits.sort();
        waits.dedup();
        assert!(waits.len() > 80, "only {} different waits of 100", waits.len());
    }
}
