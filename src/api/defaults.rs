//! What a Task means where it says nothing.
//!
//! The schema fills in what is absent. It cannot replace a value that was given,
//! so port 0 and image `""` are legal in it, and everything that acts on a Task
//! goes through [`effective`] first, whether a webhook ran or not.

use super::rules;
use super::v1::TaskSpec;

/// The spec that is meant: port 0 and image `""` are the defaults.
///
/// Idempotent, and nothing else is changed: replicas 0 stays 0.
pub fn effective(mut spec: TaskSpec) -> TaskSpec {
    if spec.image.is_empty() {
        spec.image = image();
    }
    if spec.port == 0 {
        spec.port = port();
    }
    spec
}

/// The default of `spec.replicas`.
pub(super) fn replicas() -> i32 {
    rules::replicas::DEFAULT
}

/// The default of `spec.image`.
pub(super) fn image() -> String {
    rules::image::DEFAULT.to_owned()
}

/// The default of `spec.port`.
pub(super) fn port() -> i32 {
    rules::port::DEFAULT
}

/// The default of `status.observedGeneration`.
pub(super) fn observed_generation() -> i64 {
    rules::status::UNOBSERVED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_spec_gets_every_default() {
        let spec: TaskSpec = serde_json::from_str("{}").unwrap();
        assert_eq!(spec, TaskSpec::default());
        assert_eq!((spec.replicas, spec.image.as_str(), spec.port), (1, "nginx:alpine", 8080));
        assert!(spec.env.is_empty());
    }

    #[test]
    fn zero_and_the_empty_text_mean_the_default_and_no_replicas_mean_none() {
        let spec = TaskSpec { replicas: 0, image: String::new(), port: 0, ..TaskSpec::default() };
        let meant = effective(spec);
        assert_eq!((meant.replicas, meant.image.as_str(), meant.port), (0, "nginx:alpine", 8080));
        assert_eq!(effective(meant.clone()), meant);
    }

    #[test]
    fn what_was_given_stays() {
        let spec =
            TaskSpec { replicas: 7, image: "app:1".into(), port: 80, env: [("A".into(), "".into())].into() };
        assert_eq!(effective(spec.clone()), spec);
    }
}
