//! Objects of one version as objects of the other, without loss.
//!
//! | v1 | v1alpha1 |
//! |---|---|
//! | `spec.port` | `spec.containerPort` |
//! | `spec.env`, a map | `spec.env`, a list of name and value |
//! | `status` | `status`, with `phase` and `availableReplicas` alone |
//!
//! What the other version cannot derive stands in an annotation of it, and goes
//! when the object is converted back:
//!
//! - [`ENV_ORDER`] on v1: the order of the list, where it is not sorted by name. Two
//!   characters per variable, so 2 KB for the most that are legal.
//! - [`STATUS`] on v1alpha1: the rest of the status, as JSON. About 1 KB as the operator writes it, and up
//!   to 8 KB while a sink does not take what it is to be told.
//!
//! What was changed meanwhile wins over what is remembered: an order is forgotten
//! with the names it is of, and a field of the status that is there stays. A
//! status that is absent stays so, so that a Task created from an exported one
//! has none of the old one's. A memory that cannot be read is ignored. The size of
//! a memory never makes a conversion fail, since that would make every list
//! fail: where annotations grow beyond what the API server stores (256 KiB), it
//! refuses the write and says so.
//!
//! Fields that no version knows stay where they are, but for those of a status, which
//! are of v1; a `port` of v1alpha1 and a `containerPort` of v1, which are unknown too,
//! change places. What an entry of the list has beside `name` and `value` goes,
//! as the API server prunes it. Nothing else of the metadata changes.

mod env;
mod memory;
mod order;

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};
use thiserror::Error;

pub use memory::{ENV_ORDER, STATUS};

/// What the status of v1alpha1 has. All else of it is of v1 only.
const STATUS_OF_V1ALPHA1: [&str; 2] = ["phase", "availableReplicas"];

/// A version of the API that can be converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The stored one.
    V1,
    /// The old one.
    V1Alpha1,
}

impl Version {
    /// As it stands in `apiVersion`.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "task.example.io/v1",
            Self::V1Alpha1 => "task.example.io/v1alpha1",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.api_version())
    }
}

impl FromStr for Version {
    type Err = ConvertError;

    fn from_str(text: &str) -> Result<Self, ConvertError> {
        let all = [Self::V1, Self::V1Alpha1];
        all.into_iter()
            .find(|version| version.api_version() == text)
            .ok_or_else(|| ConvertError::UnknownVersion(shortened(text)))
    }
}

/// Why an object cannot be converted. Values are not shown: they may be secrets.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConvertError {
    /// It is of a version that is not known here.
    #[error(
        "apiVersion: Unsupported value: {0:?}: supported values: \"task.example.io/v1\", \"task.example.io/v1alpha1\""
    )]
    UnknownVersion(String),
    /// It is no Task.
    #[error("kind: Unsupported value: {0:?}: supported values: \"Task\"")]
    UnknownKind(String),
    /// A field is not of its type.
    #[error("{field}: Invalid value: must be {must}")]
    WrongType {
        /// The path of the field.
        field: String,
        /// What it must be.
        must: &'static str,
    },
    /// A name is twice in the list.
    #[error("{field}: Duplicate value: {name:?}")]
    Duplicate {
        /// The path of the second one.
        field: String,
        /// The name.
        name: String,
    },
}

/// The object in the version `to`. It is returned as it is where it is of that version.
///
/// # Errors
/// If it is no Task of a known version, or what has to be translated is malformed.
pub fn convert(object: Value, to: Version) -> Result<Value, ConvertError> {
    let Value::Object(mut object) = object else {
        return Err(wrong_type("", "an object"));
    };
    let from: Version = text(&object, "apiVersion").parse()?;
    if text(&object, "kind") != "Task" {
        return Err(ConvertError::UnknownKind(shortened(text(&object, "kind"))));
    }
    if from != to {
        match to {
            Version::V1 => to_v1(&mut object)?,
            Version::V1Alpha1 => to_v1alpha1(&mut object)?,
        }
        object.insert("apiVersion".to_owned(), to.api_version().into());
    }
    Ok(Value::Object(object))
}

fn to_v1(task: &mut Map<String, Value>) -> Result<(), ConvertError> {
    let remembered = memory::take(metadata(task)?)?;
    let mut order = None;
    if let Some(spec) = field(task, "spec")? {
        swap(spec, "containerPort", "port");
        order = env::list_to_map(spec)?;
    }
    if let (Some(status), Some(rest)) = (field(task, "status")?, remembered.status()) {
        for (name, value) in rest {
            if !STATUS_OF_V1ALPHA1.contains(&name.as_str()) {
                status.entry(name).or_insert(value);
            }
        }
    }
    memory::put(metadata(task)?, ENV_ORDER, order);
    Ok(())
}

fn to_v1alpha1(task: &mut Map<String, Value>) -> Result<(), ConvertError> {
    let remembered = memory::take(metadata(task)?)?;
    if let Some(spec) = field(task, "spec")? {
        swap(spec, "port", "containerPort");
        env::map_to_list(spec, remembered.env_order())?;
    }
    let mut rest = None;
    if let Some(status) = field(task, "status")? {
        let (kept, beyond): (Map<_, _>, Map<_, _>) = std::mem::take(status)
            .into_iter()
            .partition(|(name, _)| STATUS_OF_V1ALPHA1.contains(&name.as_str()));
        *status = kept;
        rest = (!beyond.is_empty()).then(|| Value::Object(beyond).to_string());
    }
    memory::put(metadata(task)?, STATUS, rest);
    Ok(())
}

/// The values of two fields in each other's place.
fn swap(fields: &mut Map<String, Value>, one: &str, other: &str) {
    let values = (fields.remove(one), fields.remove(other));
    for (name, value) in [(other, values.0), (one, values.1)] {
        if let Some(value) = value {
            fields.insert(name.to_owned(), value);
        }
    }
}

/// A field of the Task that is an object, unless it is absent or null.
fn field<'a>(
    task: &'a mut Map<String, Value>,
    name: &str,
) -> Result<Option<&'a mut Map<String, Value>>, ConvertError> {
    match task.get_mut(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(fields)) => Ok(Some(fields)),
        Some(_) => Err(wrong_type(name, "an object")),
    }
}

fn metadata(task: &mut Map<String, Value>) -> Result<&mut Map<String, Value>, ConvertError> {
    field(task, "metadata")?.ok_or_else(|| wrong_type("metadata", "an object"))
}

fn text<'a>(task: &'a Map<String, Value>, name: &str) -> &'a str {
    task.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn wrong_type(field: impl Into<String>, must: &'static str) -> ConvertError {
    ConvertError::WrongType { field: field.into(), must }
}

/// Text from outside, short enough for a message.
fn shortened(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests;
