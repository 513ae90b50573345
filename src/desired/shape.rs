//! The children in lean form: what the operator writes of them and what it reads.
//!
//! One set of types serves both ways. Written, they are the body of a create;
//! read, everything that no rule needs is skipped while it is parsed, also
//! managedFields, so that decoding a watch event costs little.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Names to texts.
pub type Map = BTreeMap<String, String>;

/// The part of `metadata` that is written or read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// The name; absent in a Pod template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The uid; never written.
    #[serde(skip_serializing)]
    pub uid: Option<String>,
    /// The version; never written.
    #[serde(skip_serializing)]
    pub resource_version: Option<String>,
    /// The generation; never written.
    #[serde(skip_serializing)]
    pub generation: i64,
    /// Whether it is being deleted; never written.
    #[serde(skip_serializing)]
    pub deletion_timestamp: Option<Present>,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: Map,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: Map,
    /// Owners.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<OwnerReference>,
}

/// A field of which only its being there counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Present;

impl<'de> Deserialize<'de> for Present {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

/// An owner.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// Whether it manages the object; at most one owner does.
    pub controller: bool,
    /// Whether a foreground deletion of the owner waits for the object.
    pub block_owner_deletion: bool,
}

/// A ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfigMapShape {
    /// Metadata.
    pub metadata: Metadata,
    /// Texts by key.
    pub data: Map,
}

/// A Service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServiceShape {
    /// Metadata.
    pub metadata: Metadata,
    /// What is wanted.
    pub spec: ServiceSpec,
}

/// The part of a Service's spec that the operator owns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServiceSpec {
    /// Which Pods.
    pub selector: Map,
    /// Ports, by name.
    pub ports: Vec<ServicePort>,
}

/// A port of a Service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    /// Its name.
    pub name: String,
    /// Its number.
    pub port: i32,
    /// The port of the Pods, by name or number.
    pub target_port: PortReference,
    /// TCP, UDP or SCTP.
    pub protocol: String,
}

/// A port by its name or its number.
#[derive(Clone, Debug, PartialEq)]
pub enum PortReference {
    /// By number.
    Number(i64),
    /// By name.
    Name(String),
}

impl Default for PortReference {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl Serialize for PortReference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Name(name) => serializer.serialize_str(name),
        }
    }
}

impl<'de> Deserialize<'de> for PortReference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(i64),
            Name(String),
        }
        Ok(match Either::deserialize(deserializer)? {
            Either::Number(number) => Self::Number(number),
            Either::Name(name) => Self::Name(name),
        })
    }
}

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
    /// Environment, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
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
    /// Its value.
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
