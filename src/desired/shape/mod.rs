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

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use crate::api::TaskKey;
    use crate::api::v1::TaskSpec;
    use crate::desired::{ChildKind, body, config_map, deployment, service};

    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let (key, uid) = (TaskKey::new("default", "web"), "u".into());
        let env = [("A", ""), ("B", "$(A)")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let spec = TaskSpec { env: env.into(), ..TaskSpec::default() };
        fn read<T: DeserializeOwned>(body: &Value) -> T {
            serde_json::from_str(&body.to_string()).unwrap()
        }
        let body = |kind| body(kind, &key, &uid, &spec);
        assert_eq!(read::<ConfigMapShape>(&body(ChildKind::ConfigMap)), config_map(&key, &uid, &spec));
        assert_eq!(read::<ServiceShape>(&body(ChildKind::Service)), service(&key, &uid, &spec));
        assert_eq!(read::<DeploymentShape>(&body(ChildKind::Deployment)), deployment(&key, &uid, &spec));
    }

    #[test]
    fn what_nothing_needs_is_skipped() {
        let read: DeploymentShape = serde_json::from_value(json!({
            "apiVersion": "apps/v1",
            "metadata": {
                "name": "web", "uid": "u", "resourceVersion": "7", "generation": 3,
                "deletionTimestamp": "2026-12-01T00:00:00Z",
                "managedFields": [{"manager": "x", "fieldsV1": {"f:spec": {}}}],
            },
            "spec": {
                "strategy": {"type": "RollingUpdate"},
                "selector": {"matchExpressions": [{"key": "x", "operator": "Exists"}]},
                "template": {"metadata": {"creationTimestamp": null}, "spec": {"containers": [
                    {"name": "task", "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
                ]}},
            },
            "status": {"observedGeneration": 2, "conditions": [{"type": "Progressing", "status": "False"}]},
        }))
        .unwrap();
        assert_eq!(read.metadata.deletion_timestamp, Some(Present));
        assert_eq!((read.metadata.generation, read.metadata.resource_version.as_deref()), (3, Some("7")));
        assert_eq!(read.spec.selector.match_expressions, Some(Present));
        assert_eq!(read.spec.template.spec.containers[0].env[0].value_from, Some(Present));
        let status = read.status.unwrap();
        assert_eq!((status.observed_generation, status.ready_replicas), (2, 0));
        assert_eq!(status.conditions[0].r#type, "Progressing");
    }

    #[test]
    fn a_target_port_is_a_number_or_a_name() {
        let read = |port: Value| serde_json::from_value::<ServicePort>(json!({"targetPort": port}));
        assert_eq!(read(json!(80)).unwrap().target_port, PortReference::Number(80));
        assert_eq!(read(json!("http")).unwrap().target_port, PortReference::Name("http".to_owned()));
        assert!(read(json!(true)).is_err());
    }
}
