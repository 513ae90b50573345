//! One thing that is wrong with a Task, in the words of the API server.

use std::fmt;

/// What kind of wrong it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// A value is missing.
    Required,
    /// A value is out of bounds or malformed.
    Invalid,
    /// A value is longer than it may be.
    TooLong,
    /// There are more values than there may be.
    TooMany,
}

impl FaultKind {
    /// The `reason` of a cause in a Status (`metav1.CauseType`).
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
        }
    }

    /// The words that begin a message (apimachinery's `field.ErrorType`).
    fn words(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid => "Invalid value",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }
}

/// One thing that is wrong with a Task.
///
/// Displayed as built-in kinds display theirs:
/// `spec.port: Invalid value: 70000: must be between 0 and 65535, inclusive`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The path of the field, such as `spec.env[KEY]`.
    pub field: String,
    /// What kind of wrong it is.
    pub kind: FaultKind,
    /// The value as it is shown: text quoted, numbers bare. `None` where showing it would not help.
    pub value: Option<String>,
    /// What the value must be.
    pub message: String,
}

impl Fault {
    /// The message of a cause in a Status: everything but the field.
    pub fn body(&self) -> String {
        let words = self.kind.words();
        match &self.value {
            Some(value) => format!("{words}: {value}: {}", self.message),
            None => format!("{words}: {}", self.message),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}
