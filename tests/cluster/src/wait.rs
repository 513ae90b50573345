//! Conditions with deadlines: a test waits for what it wants to see, never for a time.

use std::future::Future;
use std::time::{Duration, Instant};

/// Asks `condition` until it is met, and returns what it found.
///
/// # Panics
/// If it is not met within `deadline`, with `what` and what was last seen.
pub async fn eventually<T, F>(deadline: Duration, what: &str, mut condition: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, String>>,
{
    let began = Instant::now();
    loop {
        match condition().await {
            Ok(found) => return found,
            Err(seen) if began.elapsed() > deadline => {
                panic!("after {} s still not: {what}; last seen: {seen}", deadline.as_secs())
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}
