//! The clock that the actors read and hand to the core.

use std::time;

use super::time::{Instant, Now};

/// Both clocks. The monotonic one counts from when this was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero: time::Instant,
}

impl Default for Clock {
    fn default() -> Self {
        Self { zero: time::Instant::now() }
    }
}

impl Clock {
    /// This moment.
    pub fn now(&self) -> Now {
        let milliseconds = u64::try_from(self.zero.elapsed().as_millis()).unwrap_or(u64::MAX);
        Now { monotonic: Instant(milliseconds), wall: jiff::Timestamp::now().as_second() }
    }

    /// A moment of the runtime's clock on this one.
    pub fn read(&self, moment: time::Instant) -> Instant {
        let since = moment.saturating_duration_since(self.zero);
        Instant(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}
