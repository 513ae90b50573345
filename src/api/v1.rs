//! `task.example.io/v1`: the version that is stored.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a Task asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskSpec {
    /// How many Pods are wanted.
    pub replicas: i32,
    /// The OCI image.
    pub image: String,
    /// The port of the container and of the Service.
    pub port: i32,
    /// The environment of the container.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// Where a Task stands, in one word.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Phase {
    /// Nothing is available yet.
    #[default]
    Pending,
    /// Something is available.
    Running,
    /// Everything that was asked for is ready.
    Succeeded,
    /// It cannot go on without a change from outside.
    Failed,
}

impl Phase {
    /// The phase as it stands in the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
