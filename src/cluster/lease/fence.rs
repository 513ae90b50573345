//! Whether this replica may write at this moment. Cheap to clone; all clones are one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::supervisor::clock::Clock;
use crate::supervisor::time::Instant;

/// Lets writes through until a moment on the monotonic clock.
#[derive(Clone, Debug)]
pub struct Fence {
    clock: Clock,
    /// In milliseconds of the clock.
    until: Arc<AtomicU64>,
}

impl Fence {
    /// A fence that lets everything through: there is only one replica.
    pub fn open(clock: Clock) -> Self {
        Self { clock, until: Arc::new(AtomicU64::new(u64::MAX)) }
    }

    /// A fence that lets nothing through until it is opened.
    pub fn closed(clock: Clock) -> Self {
        Self { clock, until: Arc::new(AtomicU64::new(0)) }
    }

    /// Whether a write may be sent now.
    pub fn may_write(&self) -> bool {
        self.now().0 < self.until.load(Ordering::Acquire)
    }

    /// For how long writes may be sent from now on, unless that is extended meanwhile.
    pub fn remaining(&self) -> Duration {
        Instant(self.until.load(Ordering::Acquire)).since(self.now())
    }

    /// Lets writes through until `span` after `from`.
    pub(super) fn open_until(&self, from: Instant, span: Duration) {
        self.until.store(from.after(span).0, Ordering::Release);
    }

    /// Lets nothing through any more.
    pub(super) fn close(&self) {
        self.until.store(0, Ordering::Release);
    }

    /// This moment on the clock that the fence goes by.
    pub(super) fn now(&self) -> Instant {
        self.clock.now().monotonic
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lets_writes_through_only_until_its_moment() {
        let fence = Fence::closed(Clock::default());
        assert!(!fence.may_write());
        fence.open_until(fence.now(), Duration::from_secs(60));
        assert!(fence.may_write() && fence.remaining() > Duration::from_secs(50));
        fence.open_until(Instant(0), Duration::ZERO);
        assert!(!fence.may_write() && fence.remaining().is_zero());
        assert!(Fence::open(Clock::default()).may_write());
    }
}
