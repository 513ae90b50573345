//! What an error of the API server means for the next step.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use kube::core::Status;

use crate::supervisor::event::{Failure, FailureClass};
use crate::supervisor::status::Reason;

/// What was tried: for messages, and to tell one failure from another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// The verb of the API: create, patch, get, list.
    pub verb: &'static str,
    /// The resource as RBAC names it, such as `deployments.apps` or `tasks.task.example.io/status`.
    pub resource: &'static str,
    /// The kind, for people.
    pub kind: &'static str,
    /// `namespace/name`.
    pub object: String,
}

/// Why a request got no answer that could be used.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// kube could not send it, or the API server refused it.
    #[error(transparent)]
    Kube(#[from] kube::Error),
    /// Not sent: this replica does not hold the lease.
    #[error("this replica does not hold the lease")]
    Fenced,
    /// No answer within this time; the request may still have taken effect.
    #[error("no answer within {} s", .0.as_secs())]
    TimedOut(Duration),
}

/// Classifies `error`, which `attempt` ended with.
pub fn classify(attempt: &Attempt, error: &RequestError) -> Failure {
    match error {
        RequestError::Kube(kube::Error::Api(status)) => refused(attempt, status),
        RequestError::Kube(error) => {
            failure(attempt, FailureClass::Transient, "ApiServerUnreachable".into(), &chain(error), None)
        }
        RequestError::Fenced => {
            failure(attempt, FailureClass::Fenced, "NotLeading".into(), &error.to_string(), None)
        }
        RequestError::TimedOut(_) => {
            failure(attempt, FailureClass::Transient, "ApiServerTimeout".into(), &error.to_string(), None)
        }
    }
}

fn refused(attempt: &Attempt, status: &Status) -> Failure {
    let text = &status.message;
    let by_admission = text.contains("admission webhook") || text.contains("denied request");
    let is_ending = text.contains("because it is being terminated")
        || status
            .details
            .iter()
            .flat_map(|details| &details.causes)
            .any(|c| c.reason == "NamespaceTerminating");
    let retry_after = status.details.as_ref().map(|details| details.retry_after_seconds).filter(|&s| s > 0);
    let (class, reason): (_, Reason) = match status.code {
        _ if is_ending => (FailureClass::Ending, "NamespaceTerminating".into()),
        404 if attempt.verb == "create" => (FailureClass::Ending, "NamespaceNotFound".into()),
        404 | 409 | 410 => (FailureClass::Stale, "Conflict".into()),
        403 if text.contains("exceeded quota") => (FailureClass::Terminal, "QuotaExceeded".into()),
        400..=499 if by_admission => (FailureClass::Terminal, "AdmissionDenied".into()),
        403 => (FailureClass::Terminal, "Forbidden".into()),
        422 => (FailureClass::Terminal, "Invalid".into()),
        401 => (FailureClass::Transient, "Unauthorized".into()),
        408 | 429 | 500..=599 => (FailureClass::Transient, "ApiServerError".into()),
        _ => (FailureClass::Terminal, "Refused".into()),
    };
    let text = if reason == "Forbidden" {
        format!("the operator needs the permission to {} {}: {text}", attempt.verb, attempt.resource)
    } else {
        text.clone()
    };
    failure(attempt, class, reason, &text, retry_after.map(|seconds| Duration::from_secs(seconds.into())))
}

fn failure(
    attempt: &Attempt,
    class: FailureClass,
    reason: Reason,
    text: &str,
    retry_after: Option<Duration>,
) -> Failure {
    let mut hasher = DefaultHasher::new();
    (attempt, class as u8, &reason).hash(&mut hasher);
    let Attempt { verb, kind, object, .. } = attempt;
    Failure {
        class,
        identity: hasher.finish(),
        message: format!("cannot {verb} {kind} {object}: {}", shorten(text)).into(),
        reason,
        retry_after,
    }
}

/// An error with all its causes, since the outer ones of a connection say little.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    text
}

/// At most 700 bytes: an event's note may have 1024, and the object is named beside it.
fn shorten(text: &str) -> &str {
    let mut end = text.len().min(700);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt() -> Attempt {
        Attempt {
            verb: "create",
            resource: "deployments.apps",
            kind: "Deployment",
            object: "default/web".to_owned(),
        }
    }

    fn answer(code: u16, message: &str) -> Failure {
        let status = Status::failure(message, "").with_code(code);
        classify(&attempt(), &RequestError::Kube(kube::Error::Api(Box::new(status))))
    }

    #[test]
    fn each_refusal_is_told_apart() {
        use FailureClass::{Ending, Stale, Terminal, Transient};
        for (code, message, class, reason) in [
            (409, "already exists", Stale, "Conflict"),
            (403, "deployments.apps is forbidden: exceeded quota: q", Terminal, "QuotaExceeded"),
            (403, "User \"operator\" cannot create resource", Terminal, "Forbidden"),
            (403, "admission webhook \"x\" denied the request: no", Terminal, "AdmissionDenied"),
            (
                403,
                "unable to create new content in namespace x because it is being terminated",
                Ending,
                "NamespaceTerminating",
            ),
            (404, "namespaces \"x\" not found", Ending, "NamespaceNotFound"),
            (422, "Deployment is invalid", Terminal, "Invalid"),
            (429, "slow down", Transient, "ApiServerError"),
            (500, "etcdserver: request timed out", Transient, "ApiServerError"),
            (401, "Unauthorized", Transient, "Unauthorized"),
        ] {
            let failure = answer(code, message);
            assert_eq!((failure.class, &*failure.reason), (class, reason), "{code} {message}");
            assert!(
                failure.message.starts_with("cannot create Deployment default/web: "),
                "{}",
                failure.message
            );
        }
    }

    #[test]
    fn a_missing_permission_is_named() {
        let failure = answer(403, "no");
        assert!(failure.message.contains("permission to create deployments.apps"), "{}", failure.message);
    }

    #[test]
    fn failures_that_differ_in_their_text_only_are_the_same() {
        assert_eq!(answer(500, "request 17 failed").identity, answer(500, "request 18 failed").identity);
        assert_ne!(answer(500, "x").identity, answer(403, "x").identity);
    }

    #[test]
    fn what_the_server_asks_to_wait_is_kept() {
        let status =
            serde_json::json!({"code": 429, "message": "later", "details": {"retryAfterSeconds": 7}});
        let status: Status = serde_json::from_value(status).unwrap();
        let failure = classify(&attempt(), &RequestError::Kube(kube::Error::Api(Box::new(status))));
        assert_eq!(failure.retry_after, Some(Duration::from_secs(7)));
    }
}
