//! The annotations that hold what the other version cannot derive.

use serde_json::{Map, Value};

use super::{ConvertError, wrong_type};

/// On v1: the order of `spec.env` in v1alpha1.
pub const ENV_ORDER: &str = "task.example.io/v1alpha1-env-order";
/// On v1alpha1: what the status of v1 has beyond that of v1alpha1.
pub const STATUS: &str = "task.example.io/v1-status";

/// What was remembered on an object.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    env_order: Option<String>,
    status: Option<String>,
}

impl Remembered {
    pub(super) fn env_order(&self) -> Option<&str> {
        self.env_order.as_deref()
    }

    /// The fields of the status; none if they cannot be read.
    pub(super) fn status(&self) -> Option<Map<String, Value>> {
        serde_json::from_str(self.status.as_deref()?).ok()
    }
}

/// Takes both annotations away, whichever is there.
pub(super) fn take(metadata: &mut Map<String, Value>) -> Result<Remembered, ConvertError> {
    let annotations = match metadata.get_mut("annotations") {
        None | Some(Value::Null) => return Ok(Remembered::default()),
        Some(Value::Object(annotations)) => annotations,
        Some(_) => return Err(wrong_type("metadata.annotations", "an object")),
    };
    let mut taken = |key| match annotations.remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let remembered = Remembered { env_order: taken(ENV_ORDER), status: taken(STATUS) };
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    Ok(remembered)
}

/// Sets an annotation; without a text there is nothing to remember.
pub(super) fn put(metadata: &mut Map<String, Value>, key: &str, text: Option<String>) {
    let Some(text) = text else { return };
    match metadata.get_mut("annotations") {
        Some(Value::Object(annotations)) => {
            annotations.insert(key.to_owned(), text.into());
        }
        _ => {
            let annotations = Map::from_iter([(key.to_owned(), text.into())]);
            metadata.insert("annotations".to_owned(), annotations.into());
        }
    }
}
