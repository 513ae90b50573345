//! What a Task that leaves something out asks for.

use super::rules::{DEFAULT_IMAGE, DEFAULT_PORT};
use super::v1::TaskSpec;

/// The spec with its defaults. The schema gives them to fields that are
/// absent; port 0 and image "" stand for the default too, and only code can
/// say so. An explicit 0 for replicas stays: it scales to zero.
pub fn effective(mut spec: TaskSpec) -> TaskSpec {
    if spec.port == 0 {
        spec.port = DEFAULT_PORT;
    }
    if spec.image.is_empty() {
        DEFAULT_IMAGE.clone_into(&mut spec.image);
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_port_and_empty_image_are_the_defaults_and_zero_replicas_stay() {
        let given: TaskSpec = serde_json::from_str(r#"{"replicas": 0, "port": 0, "image": ""}"#).unwrap();
        let spec = effective(given);
        assert_eq!((spec.replicas, spec.port, spec.image.as_str()), (0, 8080, "nginx:alpine"));
    }

    #[test]
    fn an_empty_spec_is_one_nginx() {
        let spec: TaskSpec = serde_json::from_str("{}").unwrap();
        assert_eq!(spec, TaskSpec::default());
        assert_eq!((spec.replicas, spec.port), (1, 8080));
    }
}
