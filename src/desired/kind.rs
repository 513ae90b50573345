//! The kinds of children, and their names.

use std::borrow::Cow;

/// A kind of child, in the order in which they are created: a Pod that starts
/// finds its ConfigMap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ChildKind {
    /// The configuration.
    ConfigMap,
    /// The address.
    Service,
    /// The Pods.
    Deployment,
}

impl ChildKind {
    /// All of them, in their order.
    pub const ALL: [Self; 3] = [Self::ConfigMap, Self::Service, Self::Deployment];

    /// Its place in [`ChildKind::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// The kind, as the API names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Service => "Service",
            Self::Deployment => "Deployment",
        }
    }

    /// The resource, as it stands in paths and in permissions.
    pub fn plural(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Service => "services",
            Self::Deployment => "deployments",
        }
    }

    /// Group and version.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::ConfigMap | Self::Service => "v1",
            Self::Deployment => "apps/v1",
        }
    }
}

const CONFIG_SUFFIX: &str = "-config";

/// The name of the child of this kind of the Task `task`.
pub fn name_of(kind: ChildKind, task: &str) -> Cow<'_, str> {
    match kind {
        ChildKind::ConfigMap => format!("{task}{CONFIG_SUFFIX}").into(),
        ChildKind::Service | ChildKind::Deployment => task.into(),
    }
}

/// The Task whose child of this kind would have this name, if any.
pub fn task_name_of(kind: ChildKind, child: &str) -> Option<&str> {
    match kind {
        ChildKind::ConfigMap => child.strip_suffix(CONFIG_SUFFIX).filter(|task| !task.is_empty()),
        ChildKind::Service | ChildKind::Deployment => Some(child),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_to_the_child_and_back() {
        for kind in ChildKind::ALL {
            for task in ["web", "web-config", "w"] {
                assert_eq!(task_name_of(kind, &name_of(kind, task)), Some(task), "{kind:?}");
            }
        }
        assert_eq!(name_of(ChildKind::ConfigMap, "web"), "web-config");
    }

    #[test]
    fn a_config_map_of_another_name_belongs_to_no_task() {
        for name in ["web", "-config", "kube-root-ca.crt"] {
            assert_eq!(task_name_of(ChildKind::ConfigMap, name), None, "{name}");
        }
    }

    #[test]
    fn the_pods_come_last() {
        assert_eq!(ChildKind::ALL.map(ChildKind::index), [0, 1, 2]);
        assert_eq!(ChildKind::ALL[2].plural(), "deployments");
    }
}
