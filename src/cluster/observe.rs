//! What watches and answers are decoded into: only what is needed.
//!
//! managedFields and everything else that no rule reads is skipped while it is
//! parsed, so an object costs no more memory than what is kept of it.

use std::borrow::Cow;
use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::NamespaceResourceScope;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use crate::api::defaults::effective;
use crate::api::v1::TaskSpec;
use crate::api::{FINALIZER, GROUP, ResourceVersion, TaskKey, Uid};
use crate::desired::shape::{ConfigMapShape, DeploymentShape, Metadata, ServiceShape};
use crate::desired::{self, ChildKind};
use crate::supervisor::event::TaskView;
use crate::supervisor::state::TaskRecord;

use super::task_status::{self, ObservedStatus};

/// A lean form of a kind that kube can list and watch.
pub trait Shape: DeserializeOwned + Clone + Debug + Send + 'static {
    /// The API group, empty for the core.
    const GROUP: &'static str;
    /// The version.
    const VERSION: &'static str;
    /// The kind.
    const KIND: &'static str;
    /// The name in paths.
    const PLURAL: &'static str;
    /// `metadata.resourceVersion`.
    fn resource_version(&self) -> &str;
}

impl Shape for ConfigMapShape {
    const GROUP: &'static str = "";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "ConfigMap";
    const PLURAL: &'static str = "configmaps";
    fn resource_version(&self) -> &str {
        version_of(&self.metadata)
    }
}

impl Shape for ServiceShape {
    const GROUP: &'static str = "";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Service";
    const PLURAL: &'static str = "services";
    fn resource_version(&self) -> &str {
        version_of(&self.metadata)
    }
}

impl Shape for DeploymentShape {
    const GROUP: &'static str = "apps";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Deployment";
    const PLURAL: &'static str = "deployments";
    fn resource_version(&self) -> &str {
        version_of(&self.metadata)
    }
}

impl Shape for ObservedTask {
    const GROUP: &'static str = GROUP;
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Task";
    const PLURAL: &'static str = "tasks";
    fn resource_version(&self) -> &str {
        &self.metadata.resource_version
    }
}

fn version_of(metadata: &Metadata) -> &str {
    metadata.resource_version.as_deref().unwrap_or_default()
}

/// Wraps a lean form so that kube's watcher takes it.
#[derive(Clone, Debug)]
pub struct Watched<S> {
    /// The object.
    pub shape: S,
    /// What kube wants to see: nothing but the resourceVersion.
    meta: ObjectMeta,
}

impl<'de, S: Shape> Deserialize<'de> for Watched<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let shape = S::deserialize(deserializer)?;
        let meta = ObjectMeta {
            resource_version: Some(shape.resource_version().to_owned()),
            ..ObjectMeta::default()
        };
        Ok(Self { shape, meta })
    }
}

impl<S: Shape> Resource for Watched<S> {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        S::KIND.into()
    }
    fn group((): &()) -> Cow<'_, str> {
        S::GROUP.into()
    }
    fn version((): &()) -> Cow<'_, str> {
        S::VERSION.into()
    }
    fn plural((): &()) -> Cow<'_, str> {
        S::PLURAL.into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

/// A child of any kind.
#[derive(Clone, Debug)]
pub enum ObservedChild {
    /// A ConfigMap.
    ConfigMap(ConfigMapShape),
    /// A Service.
    Service(ServiceShape),
    /// A Deployment.
    Deployment(Box<DeploymentShape>),
}

impl ObservedChild {
    /// Which kind.
    pub fn kind(&self) -> ChildKind {
        match self {
            Self::ConfigMap(_) => ChildKind::ConfigMap,
            Self::Service(_) => ChildKind::Service,
            Self::Deployment(_) => ChildKind::Deployment,
        }
    }

    /// Its metadata.
    pub fn metadata(&self) -> &Metadata {
        match self {
            Self::ConfigMap(shape) => &shape.metadata,
            Self::Service(shape) => &shape.metadata,
            Self::Deployment(shape) => &shape.metadata,
        }
    }

    /// Which object it is.
    pub fn uid(&self) -> Uid {
        self.metadata().uid.as_deref().unwrap_or_default().into()
    }

    /// Which state of it.
    pub fn version(&self) -> ResourceVersion {
        ResourceVersion::parse(version_of(self.metadata()))
    }

    /// Namespace and name of the Task it belongs to or stands in the way of.
    pub fn task(&self) -> Option<(&str, &str)> {
        let metadata = self.metadata();
        let name = desired::owner_task_name(metadata)
            .or_else(|| desired::task_name_of(self.kind(), metadata.name.as_deref()?))?;
        Some((metadata.namespace.as_deref()?, name))
    }
}

impl From<ConfigMapShape> for ObservedChild {
    fn from(shape: ConfigMapShape) -> Self {
        Self::ConfigMap(shape)
    }
}

impl From<ServiceShape> for ObservedChild {
    fn from(shape: ServiceShape) -> Self {
        Self::Service(shape)
    }
}

impl From<DeploymentShape> for ObservedChild {
    fn from(shape: DeploymentShape) -> Self {
        Self::Deployment(Box::new(shape))
    }
}

/// A Task as it is decoded.
#[derive(Clone, Debug, Deserialize)]
pub struct ObservedTask {
    /// The part of the metadata that is read.
    pub metadata: TaskMetadata,
    /// The spec with its defaults, or what is wrong with it. The schema lets
    /// nothing wrong in, but a CRD can be replaced: one bad Task must not stop
    /// the watch of all the others.
    #[serde(default = "empty_spec", deserialize_with = "tolerant_spec")]
    pub spec: Result<TaskSpec, String>,
    /// The status.
    #[serde(default, deserialize_with = "task_status::decode")]
    pub status: ObservedStatus,
}

/// The part of a Task's metadata that is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskMetadata {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The uid.
    pub uid: Uid,
    /// The version.
    pub resource_version: String,
    /// The generation.
    pub generation: i64,
    /// Set while it is being deleted.
    deletion_timestamp: Option<Box<str>>,
    /// The finalizers.
    finalizers: Vec<Box<str>>,
}

fn empty_spec() -> Result<TaskSpec, String> {
    Ok(effective(TaskSpec::default()))
}

fn tolerant_spec<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Result<TaskSpec, String>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).map(effective).map_err(|error| error.to_string()))
}

impl ObservedTask {
    /// Which Task.
    pub fn key(&self) -> TaskKey {
        TaskKey::new(self.metadata.namespace.as_str(), self.metadata.name.as_str())
    }

    /// Which state of it.
    pub fn version(&self) -> ResourceVersion {
        ResourceVersion::parse(&self.metadata.resource_version)
    }

    /// The Task as the core sees it. With what is known of it, digests of a
    /// spec that is still the same are not computed again.
    pub fn into_view(self, known: Option<&TaskRecord>) -> TaskView {
        let key = self.key();
        let TaskMetadata { uid, resource_version, generation, deletion_timestamp, finalizers, .. } =
            self.metadata;
        let (spec, fault) = match self.spec {
            Ok(spec) => (spec, None),
            Err(fault) => (effective(TaskSpec::default()), Some(fault.into())),
        };
        let wanted = match known {
            Some(known) if known.uid == uid && known.spec == spec => known.wanted,
            _ => ChildKind::ALL.map(|kind| desired::digest(kind, &key, &uid, &spec)),
        };
        let finalizer = finalizers.iter().any(|name| **name == *FINALIZER);
        TaskView {
            uid,
            version: ResourceVersion::parse(&resource_version),
            generation,
            deleting: deletion_timestamp.is_some(),
            deleted_at: task_status::seconds(deletion_timestamp.as_deref()),
            finalizer,
            other_finalizers: finalizers.into_iter().filter(|name| **name != *FINALIZER).collect(),
            spec,
            fault,
            wanted,
            status: self.status.judged_by(&desired::labels::selector_text(&key.name)),
        }
    }
}
