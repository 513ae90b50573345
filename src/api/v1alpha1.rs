//! `task.example.io/v1alpha1`: the old version, served where a conversion
//! webhook runs, and deprecated.
//!
//! What stands above a field here is what `kubectl explain` prints. Nothing in
//! the operator works with these types: [`convert`](mod@super::convert) turns objects
//! into v1 first. They are for the schema, and for clients that still use them.
//!
//! The selectable fields stand in another order than those of v1. An API server
//! takes lists that are equal in all versions out of them, and then refuses the
//! definition for having no schema beside (kubernetes/kubernetes#140689).

#![expect(unreachable_pub, reason = "KubeSchema repeats a struct within a function, as pub as it is")]

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::v1::Phase;
use super::{defaults, rules, schema};

/// What the Task asks for. Each field has a default.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[kube(
    group = "task.example.io",
    version = "v1alpha1",
    kind = "Task",
    plural = "tasks",
    shortname = "tsk",
    category = "all",
    namespaced,
    doc = "Task runs an image as a number of identical Pods behind one Service. This version is \
           deprecated: use task.example.io/v1.",
    deprecated = "task.example.io/v1alpha1 Task is deprecated; use task.example.io/v1 Task",
    status = "TaskStatus",
    derive = "PartialEq",
    derive = "Default",
    validation = schema::name_rule(),
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.availableReplicas"),
    selectable = ".status.phase",
    selectable = ".spec.image",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase", description = "Where the Task stands"),
    printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.replicas", description = "How many Pods are wanted"),
    printcolumn(name = "Available", type_ = "integer", json_path = ".status.availableReplicas", description = "How many Pods are available"),
    printcolumn(name = "Image", type_ = "string", json_path = ".spec.image", description = "The image the Pods run"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Port", type_ = "integer", json_path = ".spec.containerPort", priority = 1, description = "The port of the Service")
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
    /// 1 to 65535. Defaults to 8080, which 0 also means. In v1 it is called port.
    #[serde(default = "defaults::port")]
    #[schemars(range(min = rules::port::MIN, max = rules::port::MAX))]
    pub container_port: i32,

    /// The environment of the container: at most 1000 variables, each name once.
    /// In v1 it is a map. It is also stored in a ConfigMap, so it is no place for
    /// secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::env_list")]
    pub env: Vec<EnvVar>,
}

impl Default for TaskSpec {
    fn default() -> Self {
        Self {
            replicas: defaults::replicas(),
            image: defaults::image(),
            container_port: defaults::port(),
            env: Vec::new(),
        }
    }
}

/// One variable of the environment. Its schema is made by `schema::env_list`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EnvVar {
    /// The name.
    pub name: String,
    /// The value.
    #[serde(default)]
    pub value: String,
}

/// What the operator found. Only the operator writes it. v1 says more.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("default" = {}))]
pub struct TaskStatus {
    /// Where the Task stands, in one word. Pending: no Pod is available.
    /// Running: some are. Succeeded: all that are wanted are ready, with the
    /// current spec. Failed: it cannot go on without a change from outside.
    #[serde(default)]
    pub phase: Phase,

    /// How many Pods are available.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub available_replicas: i32,
}
