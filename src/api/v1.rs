//! `task.example.io/v1`: the version that is stored.
//!
//! The schema in the CRD is generated from these types: their documentation is
//! what `kubectl explain` prints. The bounds are added from [`rules`](super::rules)
//! by [`schema`](super::schema).

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules::{DEFAULT_IMAGE, DEFAULT_PORT, DEFAULT_REPLICAS};

/// What the Task asks for. Everything has a default: an empty spec is one replica of nginx.
#[derive(CustomResource, JsonSchema, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[kube(
    group = "task.example.io",
    version = "v1",
    kind = "Task",
    plural = "tasks",
    namespaced,
    doc = "A Task is a small application: a Deployment, a Service and a ConfigMap that the operator makes and keeps right.",
    status = "TaskStatus",
    shortname = "tsk",
    category = "all",
    selectable = ".spec.image",
    selectable = ".status.phase",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "Where the Task stands"
    ),
    printcolumn(
        name = "Desired",
        type_ = "integer",
        json_path = ".spec.replicas",
        description = "Pods that are wanted"
    ),
    printcolumn(
        name = "Available",
        type_ = "integer",
        json_path = ".status.availableReplicas",
        description = "Pods that are available"
    ),
    printcolumn(name = "Image", type_ = "string", json_path = ".spec.image", description = "The image"),
    printcolumn(
        name = "Port",
        type_ = "integer",
        json_path = ".spec.port",
        priority = 1,
        description = "The port"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason",
        priority = 1,
        description = "Why the Task is ready or not"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].message",
        priority = 1,
        description = "The same for people"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "How long the Task has existed"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct TaskSpec {
    /// How many Pods are wanted, from 0 to 100. 0 scales the Task to zero; absent means 1.
    #[serde(default = "default_replicas")]
    pub replicas: i32,

    /// The OCI image to run, with an optional registry, tag and digest, such as
    /// 'nginx:1.27' or 'registry.example:5000/team/app@sha256:…'. Absent or empty means nginx:alpine.
    #[serde(default = "default_image")]
    pub image: String,

    /// The port that the container listens on and the Service offers, from 1 to
    /// 65535. Absent or 0 means 8080.
    #[serde(default = "default_port")]
    pub port: i32,

    /// The environment of the container, by name. It also stands in the file
    /// /etc/task/app.conf. A value may refer to other variables as $(NAME).
    /// At most 1000 variables, names of 1 to 64 printable ASCII characters
    /// without '=', values of at most 4096 bytes.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

impl Default for TaskSpec {
    fn default() -> Self {
        Self {
            replicas: DEFAULT_REPLICAS,
            image: DEFAULT_IMAGE.to_owned(),
            port: DEFAULT_PORT,
            env: BTreeMap::new(),
        }
    }
}

fn default_replicas() -> i32 {
    DEFAULT_REPLICAS
}

fn default_image() -> String {
    DEFAULT_IMAGE.to_owned()
}

fn default_port() -> i32 {
    DEFAULT_PORT
}

/// Where the Task stands, as the operator last observed it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskStatus {
    /// Where the Task stands in one word. Pending: nothing is available yet.
    /// Running: something is available. Succeeded: all wanted replicas are ready.
    /// Failed: it cannot go on without a change from outside; the Ready condition says why.
    #[serde(default)]
    pub phase: Phase,
    /// Pods that are available.
    #[serde(default)]
    pub available_replicas: i32,
    /// Pods that exist; for the scale subresource.
    #[serde(default)]
    pub replicas: i32,
    /// The label selector of the Pods; for the scale subresource and autoscalers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// The generation of the Task that this status is about; -1 before the first one was looked at.
    #[serde(default = "not_observed")]
    pub observed_generation: i64,
    /// When this status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
    /// Ready is always there once the Task was looked at. Reconciling is there
    /// only while the operator or the Deployment works, Stalled only while the phase is Failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

fn not_observed() -> i64 {
    -1
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
