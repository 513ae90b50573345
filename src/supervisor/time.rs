//! Time as the core sees it: an argument.

use std::time::Duration;

/// Milliseconds on the monotonic clock since the process started. Every wait,
/// deadline and backoff is measured in it, so a stepping wall clock changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Instant(pub u64);

impl Instant {
    /// This moment plus `wait`.
    pub fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)))
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// Both clocks at the moment of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Now {
    /// For waits and deadlines.
    pub monotonic: Instant,
    /// Seconds since 1970, only for the timestamps that people read.
    pub wall: i64,
}
