//! Conditions with deadlines: a test waits for what it wants to see, never for a time.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// Asks `condition` until it is met, and returns what it found. The condition
/// says by its error what it saw instead.
///
/// # Panics
/// If it is not met within `deadline`, with `what` and what was last seen; also
/// if the condition itself hangs.
pub async fn eventually<T, F>(deadline: Duration, what: &str, condition: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, String>>,
{
    match within(deadline, condition).await {
        Ok(found) => found,
        Err(last) => panic!("after {deadline:?} still not: {what}; last seen: {last}"),
    }
}

/// As [`eventually`], for a caller that goes on where it is not met.
///
/// # Errors
/// What was last seen, if it is not met within `deadline`.
pub async fn within<T, F>(deadline: Duration, mut condition: impl FnMut() -> F) -> Result<T, String>
where
    F: Future<Output = Result<T, String>>,
{
    let end = Instant::now() + deadline;
    let mut last = "nothing".to_owned();
    loop {
        match timeout_at(end, condition()).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(seen)) => last = seen,
            Err(_) => last = format!("{last} (the next look took longer than what was left)"),
        }
        if Instant::now() >= end {
            return Err(last);
        }
        sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    fn failure<F: Future<Output = Result<(), String>>>(condition: impl Fn() -> F) -> String {
        let wait = || runtime().block_on(eventually(Duration::from_millis(120), "it is so", &condition));
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(wait)).unwrap_err();
        panic.downcast_ref::<String>().unwrap().clone()
    }

    #[test]
    fn it_returns_what_was_found() {
        let looks = Cell::new(0);
        let found = runtime().block_on(eventually(Duration::from_secs(5), "three looks", async || {
            looks.set(looks.get() + 1);
            if looks.get() == 3 { Ok("found") } else { Err("not yet".to_owned()) }
        }));
        assert_eq!((found, looks.get()), ("found", 3));
    }

    #[test]
    fn it_fails_with_what_was_last_seen() {
        let message = failure(async || Err("phase Pending".to_owned()));
        assert!(message.contains("still not: it is so; last seen: phase Pending"), "{message}");
    }

    #[test]
    fn a_condition_that_hangs_fails_too() {
        let message = failure(async || std::future::pending().await);
        assert!(message.contains("the next look took longer"), "{message}");
    }
}
