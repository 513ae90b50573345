//! The Deployment in lean form, and how far its rollout has come.

use serde::{Deserialize, Serialize};

use super::{Map, Metadata, Present};

/// A Deployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeploymentShape {
    /// Metadata.
    pub metadata: Metadata,
    /// What is wanted.
    pub spec: DeploymentSpec,
    /// How far it has come; never written.
    #[serde(skip_serializing)]
    pub status: Option<DeploymentStatus>,
}

/// The part of a Deployment's spec that the operator owns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeploymentSpec {
    /// How many Pods.
    pub replicas: i32,
    /// Which Pods; cannot be changed.
    pub selector: LabelSelector,
    /// The Pods.
    pub template: PodTemplate,
}

/// Labels to match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Each of them.
    pub match_labels: Map,
    /// Further conditions; never written, and never there in a selector of ours.
    #[serde(skip_serializing)]
    pub match_expressions: Option<Present>,
}

/// The Pods of a Deployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodTemplate {
    /// Labels.
    pub metadata: Metadata,
    /// The Pods.
    pub spec: PodSpec,
}

/// The part of a Pod's spec that the operator owns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// Whether the Pod gets a token of the API server.
    pub automount_service_account_token: Option<bool>,
    /// The Pod's security settings.
    pub security_context: PodSecurityContext,
    /// Containers, by name.
    pub containers: Vec<Container>,
    /// Volumes, by name.
    pub volumes: Vec<Volume>,
}

/// The security settings of a Pod that the operator owns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSecurityContext {
    /// The seccomp profile.
    pub seccomp_profile: SeccompProfile,
}

/// A seccomp profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SeccompProfile {
    /// Which.
    pub r#type: String,
}

/// A container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// Its image.
    pub image: String,
    /// Ports, by name.
    pub ports: Vec<ContainerPort>,
    /// Environment, by name. Also an empty one is written: it says that what was
    /// in it has to go.
    pub env: Vec<EnvVar>,
    /// Volumes, by path.
    pub volume_mounts: Vec<VolumeMount>,
}

/// A port of a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerPort {
    /// Its name.
    pub name: String,
    /// Its number.
    pub container_port: i32,
    /// TCP, UDP or SCTP.
    pub protocol: String,
}

/// An environment variable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvVar {
    /// Its name.
    pub name: String,
    /// Its value. An empty one is left out, as the API server leaves it out.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// Where else its value may come from; never written.
    #[serde(skip_serializing)]
    pub value_from: Option<Present>,
}

/// A mounted volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeMount {
    /// Which volume.
    pub name: String,
    /// Where.
    pub mount_path: String,
    /// Whether it may not be written to.
    pub read_only: bool,
}

/// A volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Volume {
    /// Its name.
    pub name: String,
    /// The ConfigMap it shows, if it is of that kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapVolume>,
}

/// A volume that shows a ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfigMapVolume {
    /// Which.
    pub name: String,
}

/// How far a Deployment has come.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentStatus {
    /// The generation that its controller has seen.
    pub observed_generation: i64,
    /// Pods that exist.
    pub replicas: i32,
    /// Pods of the newest template.
    pub updated_replicas: i32,
    /// Pods that are ready.
    pub ready_replicas: i32,
    /// Pods that are available.
    pub available_replicas: i32,
    /// Conditions.
    pub conditions: Vec<DeploymentCondition>,
}

/// A condition of a Deployment.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct DeploymentCondition {
    /// Progressing, Available or ReplicaFailure.
    pub r#type: String,
    /// True, False or Unknown.
    pub status: String,
    /// Why, for machines.
    pub reason: Option<String>,
    /// Why, for people.
    pub message: Option<String>,
}
