//! Leader election on a Lease: of several replicas one writes, the others are warm.
//!
//! - [`election`]: whose turn it is, pure
//! - [`fence`]: whether this replica may write at this moment
//! - [`elector`]: takes part in the election for as long as the process lives
//!
//! The holder renews the lease every `retry_period`. The others watch it; they
//! take it when it is given back, or when it was not renewed for its duration
//! by their own monotonic clock. The holder sends no write later than
//! `renew_deadline` after it sent its last good renewal, which is well before
//! anybody else can have taken the lease: also if it was stopped in between and
//! does not know how long. What was sent just before is covered by the
//! preconditions of every write.

pub mod election;
pub mod elector;
pub mod fence;

use std::time::Duration;

pub use elector::{Elector, Release};
pub use fence::Fence;

/// How an election goes.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The namespace of the Lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// This replica: a name that no other one has or will have.
    pub identity: String,
    /// After this long without a renewal others may take the lease; whole seconds.
    pub lease_duration: Duration,
    /// After this long without a renewal the holder stops to write.
    pub renew_deadline: Duration,
    /// Between two renewals.
    pub retry_period: Duration,
}

/// The name of the Lease.
pub const NAME: &str = "task-operator";
