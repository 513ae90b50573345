//! What names an object, and which state of it was seen.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Namespace and name of a Task. Cheap to clone: both parts are shared.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskKey {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name, which is also the name of its Deployment and Service.
    pub name: Arc<str>,
}

impl TaskKey {
    /// The key of the Task `name` in `namespace`.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// As `namespace/name`, the form of logs and of kubectl's messages.
impl fmt::Display for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// `metadata.uid`: which object it is, as against which name it has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Uid(Box<str>);

impl Uid {
    /// The uid as the API server writes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: Into<Box<str>>> From<T> for Uid {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `metadata.resourceVersion` as a number.
///
/// The API server promises since Kubernetes 1.35 that versions of one resource
/// type are integers that can be compared (KEP-5504), and etcd made them so
/// before. A version that is no number becomes 0, which is older than any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceVersion(pub u64);

impl ResourceVersion {
    /// Reads what the API server wrote.
    pub fn parse(text: &str) -> Self {
        Self(text.parse().unwrap_or_default())
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
