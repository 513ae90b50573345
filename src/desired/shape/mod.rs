//! The children in lean form: what the operator writes of them and what it reads.
//!
//! One set of types serves both ways. Written, they are the body of a create;
//! read, everything that no rule needs is skipped while it is parsed, also
//! managedFields, so that decoding a watch event costs little.
//!
//! - here: metadata, and the ConfigMap, which is hardly more
//! - [`service`], [`deployment`]: the others, with what is theirs

pub mod deployment;
pub mod service;

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

pub use deployment::{
    ConfigMapVolume, Container, ContainerPort, DeploymentCondition, DeploymentShape, DeploymentSpec,
    DeploymentStatus, EnvVar, LabelSelector, PodSecurityContext, PodSpec, PodTemplate, SeccompProfile,
    Volume, VolumeMount,
};
pub use service::{PortReference, ServicePort, ServiceShape, ServiceSpec};

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
