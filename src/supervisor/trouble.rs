//! What a failed request leads to: another look at once, another try after a
//! wait, and what people are told of it.

use std::time::Duration;

use crate::desired::ChildKind;

use super::backoff;
use super::event::{Command, Failure, FailureClass, Note, Request};
use super::phase::TELL_AFTER_FAILURES;
use super::state::{Asked, Pass, State, StatusTrouble, Trouble};
use super::time::Instant;

/// A conflict is looked at again at once this often in a pass.
const QUICK_RETRIES: u8 = 3;
/// A pass that lost its leadership is tried again after this.
const AFTER_FENCING: Duration = Duration::from_secs(1);

impl State {
    pub(super) fn failed(&mut self, failure: Failure, now: Instant, out: &mut Vec<Command>) {
        let Pass::Running { asked, conflicts, failed, .. } = &mut self.pass else {
            return;
        };
        let asked = *asked;
        if asked == Asked::OfEarlierTask && failure.class != FailureClass::Fenced {
            return self.advance(now, out);
        }
        match failure.class {
            FailureClass::Stale if *conflicts < QUICK_RETRIES => {
                *conflicts += 1;
                let look = match asked {
                    Asked::Child(kind) => Request::LookAtChild(kind),
                    Asked::Task | Asked::Farewell | Asked::Status(_) | Asked::Pods | Asked::OfEarlierTask => {
                        Request::LookAtTask
                    }
                };
                return self.send(look, now, out);
            }
            FailureClass::Fenced => {
                self.finish(None, now, out);
                self.requeue_at = now.after(AFTER_FENCING);
                return self.wake(self.requeue_at, out);
            }
            FailureClass::Stale | FailureClass::Transient | FailureClass::Terminal | FailureClass::Ending => {
                *failed = true
            }
        }
        match asked {
            Asked::Status(_) => {
                self.status_failed(&failure, now, out);
                self.finish_after_failure(now, out);
            }
            Asked::Pods => {
                self.looked_at_pods(None, now);
                self.advance(now, out);
            }
            Asked::Task | Asked::Farewell | Asked::Child(_) | Asked::OfEarlierTask => {
                if self.work_failed(failure, asked, now, out) {
                    self.advance(now, out);
                } else {
                    self.finish_after_failure(now, out);
                }
            }
        }
    }

    fn finish_after_failure(&mut self, now: Instant, out: &mut Vec<Command>) {
        let retries = [self.trouble.as_ref().map(|t| t.retry_at), self.status_trouble.map(|t| t.retry_at)];
        self.finish(retries.into_iter().flatten().min(), now, out);
    }

    fn status_failed(&mut self, failure: &Failure, now: Instant, out: &mut Vec<Command>) {
        let failures = self.status_trouble.map_or(0, |trouble| trouble.failures).saturating_add(1);
        let wait =
            backoff::after_failures(failures, self.seed()).max(failure.retry_after.unwrap_or_default());
        self.status_trouble = Some(StatusTrouble { failures, retry_at: now.after(wait) });
        if failure.class == FailureClass::Terminal {
            out.push(Command::Record(reconcile_failed(failure.message.to_string(), None)));
        }
    }

    /// Remembers what stands in the way; true if the status should tell of it now.
    fn work_failed(&mut self, failure: Failure, asked: Asked, now: Instant, out: &mut Vec<Command>) -> bool {
        let terminal = failure.class == FailureClass::Terminal;
        let earlier = self.trouble.take().filter(|earlier| earlier.identity == failure.identity);
        let failures = earlier.as_ref().map_or(0, |earlier| earlier.failures).saturating_add(1);
        let wait =
            backoff::after_failures(failures, self.seed()).max(failure.retry_after.unwrap_or_default());
        // The text of the first one stays: request ids and durations in it would make each one new.
        let message = earlier.map_or(failure.message, |earlier| earlier.message);
        let told = terminal || (failures == TELL_AFTER_FAILURES && failure.class != FailureClass::Ending);
        if told {
            let related = if let Asked::Child(kind) = asked { Some(kind) } else { None };
            out.push(Command::Record(match asked {
                Asked::Farewell => cleanup_failed(message.to_string()),
                _ => reconcile_failed(message.to_string(), related),
            }));
        }
        let tells = terminal || (failures >= TELL_AFTER_FAILURES && failure.class != FailureClass::Ending);
        self.trouble = Some(Box::new(Trouble {
            terminal,
            reason: failure.reason,
            message,
            identity: failure.identity,
            failures,
            retry_at: now.after(wait),
        }));
        tells
    }

    /// The API server answers again: what failed for its sake is tried at once.
    pub(super) fn forget_passing_trouble(&mut self, now: Instant) -> bool {
        let mut any = false;
        if let Some(trouble) = self.trouble.as_mut().filter(|trouble| !trouble.terminal) {
            trouble.retry_at = now;
            any = true;
        }
        if let Some(trouble) = &mut self.status_trouble {
            trouble.retry_at = now;
            any = true;
        }
        any
    }
}

fn reconcile_failed(text: String, related: Option<ChildKind>) -> Note {
    Note { warning: true, reason: "ReconcileFailed", action: "Reconcile", text: text.into(), related }
}

fn cleanup_failed(text: String) -> Note {
    Note { warning: true, reason: "CleanupFailed", action: "Delete", text: text.into(), related: None }
}
