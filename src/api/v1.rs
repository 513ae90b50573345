//! `task.example.io/v1`: the version that is stored.
//!
//! What stands above a field here is what `kubectl explain` prints.

#![expect(unreachable_pub, reason = "KubeSchema repeats a struct within a function, as pub as it is")]

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{defaults, rules, schema};

/// What the Task asks for. Each field has a default.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[kube(
    group = "task.example.io",
    version = "v1",
    kind = "Task",
    plural = "tasks",
    shortname = "tsk",
    category = "all",
    namespaced,
    doc = "Task runs an image as a number of identical Pods behind one Service. The operator keeps \
           a Deployment and a Service of the Task's name and a ConfigMap NAME-config for it.",
    status = "TaskStatus",
    derive = "PartialEq",
    derive = "Default",
    validation = schema::name_rule(),
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    selectable = ".spec.image",
    selectable = ".status.phase",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase", description = "Where the Task stands"),
    printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.replicas", description = "How many Pods are wanted"),
    printcolumn(name = "Available", type_ = "integer", json_path = ".status.availableReplicas", description = "How many Pods are available"),
    printcolumn(name = "Image", type_ = "string", json_path = ".spec.image", description = "The image the Pods run"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Port", type_ = "integer", json_path = ".spec.port", priority = 1, description = "The port of the Service"),
    printcolumn(name = "Reason", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].reason"#, priority = 1, description = "Why the Task is ready or not, in a word"),
    printcolumn(name = "Message", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].message"#, priority = 1, description = "Why the Task is ready or not")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("default" = {}))]
pub struct TaskSpec {
    /// How many Pods are wanted, 0 to 100. With 0 the Task is scaled to zero:
    /// its Service stays and no Pod runs. Defaults to 1.
    #[serde(default = "defaults::replicas")]
    #[schemars(range(min = rules::replicas::MIN, max = rules::replicas::MAX))]
    pub replicas: i32,

    /// The image that the container runs, as an OCI reference such as nginx,
    /// nginx:1.27 or registry.example:5000/team/app@sha256:DIGEST. Defaults to
    /// nginx:alpine, which an empty text also means.
    #[serde(default = "defaults::image")]
    #[schemars(length(max = rules::image::MAX_LENGTH))]
    #[x_kube(validation = schema::image_rule())]
    #[x_kube(validation = schema::image_name_rule())]
    #[x_kube(validation = schema::image_identifier_rule())]
    pub image: String,

    /// The TCP port that the container listens on and the Service offers,
    /// 1 to 65535. Defaults to 8080, which 0 also means.
    #[serde(default = "defaults::port")]
    #[schemars(range(min = rules::port::MIN, max = rules::port::MAX))]
    pub port: i32,

    /// The environment of the container: at most 1000 names with their values.
    /// A name has 1 to 64 printable ASCII characters other than '=', a value at
    /// most 4096 bytes, and all of it at most 1 MiB. A value may refer to
    /// another one as $(NAME), and $$(NAME) stands for the text $(NAME). It is
    /// also stored in a ConfigMap, so it is no place for secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::env")]
    pub env: BTreeMap<String, String>,
}

impl Default for TaskSpec {
    fn default() -> Self {
        Self {
            replicas: defaults::replicas(),
            image: defaults::image(),
            port: defaults::port(),
            env: BTreeMap::new(),
        }
    }
}

/// What the operator found. Only the operator writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("default" = {}))]
pub struct TaskStatus {
    /// Where the Task stands, in one word. Pending: no Pod is available.
    /// Running: some are. Succeeded: all that are wanted are ready, with the
    /// current spec. Failed: it cannot go on without a change from outside; the
    /// message of the condition Ready says which.
    #[serde(default)]
    pub phase: Phase,

    /// How many Pods are available.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub available_replicas: i32,

    /// When this status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_update_time: Option<Time>,

    /// The metadata.generation that this status describes, -1 before the
    /// operator first saw the Task. While it is not the Task's generation, a
    /// change is still to be acted upon.
    #[serde(default = "defaults::observed_generation")]
    #[schemars(range(min = rules::status::UNOBSERVED))]
    pub observed_generation: i64,

    /// Ready: whether all Pods that are wanted are ready, and if not, why.
    /// Reconciling: only while the operator works on a change. Stalled: only
    /// while the phase is Failed. Notified: only while the last notification
    /// that was due could not be delivered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,

    /// How many Pods there are, ready or not. The scale subresource shows it.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub replicas: i32,

    /// The label selector of the Pods, for the scale subresource and for
    /// autoscalers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = rules::status::SELECTOR_MAX_LENGTH))]
    pub selector: String,

    /// Changes of the phase and whether a sink was told of them; only where
    /// the operator has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::notifications")]
    pub notifications: Option<Notifications>,
}

/// Changes of the phase and whether a sink was told of them. Its schema is made by
/// `schema::notifications`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Notifications {
    /// The number of the last change that was delivered or given up, with all before it.
    #[serde(default)]
    pub settled: u64,
    /// The changes after it, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<PendingNotification>,
}

/// A change of the phase that a sink still has to be told of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingNotification {
    /// Which change of this Task it is, from 1.
    pub number: u64,
    /// The phase before.
    pub from: Phase,
    /// The phase since.
    pub to: Phase,
    /// When, as RFC 3339 has it.
    pub time: String,
    /// The metadata.generation that it was judged by.
    #[serde(default)]
    pub generation: i64,
    /// The reason of the condition Ready.
    #[serde(default)]
    pub reason: Box<str>,
    /// The message of the condition Ready, shortened.
    #[serde(default)]
    pub message: Box<str>,
    /// Changes of the phase between the two that are not told one by one.
    #[serde(default)]
    pub skipped: u32,
}

/// The status of a Task that the operator has not seen, as the schema fills it in.
impl Default for TaskStatus {
    fn default() -> Self {
        Self {
            phase: Phase::default(),
            available_replicas: 0,
            last_update_time: None,
            observed_generation: defaults::observed_generation(),
            conditions: Vec::new(),
            replicas: 0,
            selector: String::new(),
            notifications: None,
        }
    }
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
