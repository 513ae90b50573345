//! The table of what the operator may do: each permission once, with the reason for it.
//!
//! [`rbac`](super::rbac) makes roles of it and the documentation shows it.

use super::webhooks::{MUTATING, SECRET, VALIDATING};
use super::{GROUP, crd};

/// Where a permission is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// In every namespace whose Tasks are reconciled.
    Tasks,
    /// In the namespace of the operator itself.
    Home,
    /// Of objects that are in no namespace.
    Cluster,
}

/// What has to be switched on for a permission to be needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Nothing: it is always needed.
    Reconciling,
    /// `--leader-elect`.
    LeaderElection,
    /// `--webhook-self-signed`.
    SelfSigned,
}

/// A permission: what is done with one resource, and why.
#[derive(Clone, Copy, Debug)]
pub struct Permission {
    /// Where it is needed.
    pub reach: Reach,
    /// When it is needed.
    pub feature: Feature,
    /// The API group; empty for the core.
    pub group: &'static str,
    /// The resource, with its subresource after a slash.
    pub resource: &'static str,
    /// The names of the only objects that it is about; empty for all.
    ///
    /// A list or a watch is within it if it selects the name. A creation is not:
    /// its name is not known yet when it is judged.
    pub names: &'static [&'static str],
    /// The verbs.
    pub verbs: &'static [&'static str],
    /// Why, as the end of a sentence that begins with "the operator needs it".
    pub why: &'static str,
}

/// The name of the Lease, and of the ServiceAccount and the Deployment of the operator.
pub const OPERATOR: &str = "task-operator";

/// All of them.
pub const ALL: &[Permission] = &[
    Permission {
        reach: Reach::Tasks,
        feature: Feature::Reconciling,
        group: GROUP,
        resource: "tasks",
        names: &[],
        verbs: &["get", "list", "watch", "patch"],
        why: "to know the Tasks, and to set and take away their finalizer",
    },
    Permission {
        reach: Reach::Tasks,
        feature: Feature::Reconciling,
        group: GROUP,
        resource: "tasks/status",
        names: &[],
        verbs: &["patch"],
        why: "to tell how a Task is",
    },
    Permission {
        reach: Reach::Tasks,
        feature: Feature::Reconciling,
        group: GROUP,
        resource: "tasks/finalizers",
        names: &[],
        verbs: &["update"],
        why: "to own children, where the admission plugin OwnerReferencesPermissionEnforcement asks for it",
    },
    Permission {
        reach: Reach::Tasks,
        feature: Feature::Reconciling,
        group: "apps",
        resource: "deployments",
        names: &[],
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
        why: "to keep them right; one whose selector is wrong can only be deleted and made anew",
    },
    Permission {
        reach: Reach::Tasks,
        feature: Feature::Reconciling,
        group: "",
        resource: "services",
        names: &[],
        verbs: &["get", "list", "watch", "create", "patch"],
        why: "to keep them right",
    },
    Permission {
        reach: Reach::Tasks,
        feature: Feature::Reconciling,
        group: "",
        resource: "configmaps",
        names: &[],
        verbs: &["get", "list", "watch", "create", "patch"],
        why: "to keep them right",
    },
    Permission {
        reach: Reach::Tasks,
        feature: Feature::Reconciling,
        group: "",
        resource: "pods",
        names: &[],
        verbs: &["list"],
        why: "to say why a rollout makes no progress",
    },
    Permission {
        reach: Reach::Tasks,
        feature: Feature::Reconciling,
        group: "events.k8s.io",
        resource: "events",
        names: &[],
        verbs: &["get", "create", "patch"],
        why: "to record what happened, and to count what repeats",
    },
    Permission {
        reach: Reach::Home,
        feature: Feature::LeaderElection,
        group: "coordination.k8s.io",
        resource: "leases",
        names: &[],
        verbs: &["create"],
        why: "to begin the election",
    },
    Permission {
        reach: Reach::Home,
        feature: Feature::LeaderElection,
        group: "coordination.k8s.io",
        resource: "leases",
        names: &[OPERATOR],
        verbs: &["get", "watch", "update"],
        why: "to take part in the election",
    },
    Permission {
        reach: Reach::Home,
        feature: Feature::SelfSigned,
        group: "",
        resource: "secrets",
        names: &[],
        verbs: &["create"],
        why: "to keep a new certificate",
    },
    Permission {
        reach: Reach::Home,
        feature: Feature::SelfSigned,
        group: "",
        resource: "secrets",
        names: &[SECRET],
        verbs: &["list", "watch", "update"],
        why: "to share the certificate between replicas, and to renew it",
    },
    Permission {
        reach: Reach::Cluster,
        feature: Feature::SelfSigned,
        group: "admissionregistration.k8s.io",
        resource: "mutatingwebhookconfigurations",
        names: &[MUTATING],
        verbs: &["list", "watch", "patch"],
        why: "to have the API server trust the certificate",
    },
    Permission {
        reach: Reach::Cluster,
        feature: Feature::SelfSigned,
        group: "admissionregistration.k8s.io",
        resource: "validatingwebhookconfigurations",
        names: &[VALIDATING],
        verbs: &["list", "watch", "patch"],
        why: "to have the API server trust the certificate",
    },
    Permission {
        reach: Reach::Cluster,
        feature: Feature::SelfSigned,
        group: "apiextensions.k8s.io",
        resource: "customresourcedefinitions",
        names: &[crd::NAME],
        verbs: &["list", "watch", "patch"],
        why: "to have the API server trust the certificate",
    },
];

impl Permission {
    /// Where it is needed, and when, for people.
    pub fn place(&self) -> &'static str {
        match (self.reach, self.feature) {
            (Reach::Tasks, _) => "namespaces of Tasks",
            (Reach::Home, Feature::LeaderElection) => "the operator's namespace, with `--leader-elect`",
            (Reach::Home, _) => "the operator's namespace, with `--webhook-self-signed`",
            (Reach::Cluster, _) => "the cluster, with `--webhook-self-signed`",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_shows_the_table() {
        let page = include_str!("../../docs/operations.md");
        let rows = ALL.iter().map(|permission| {
            let Permission { group, resource, names, verbs, why, .. } = permission;
            let group = if group.is_empty() { "core".to_owned() } else { format!("`{group}`") };
            let names: String = names.iter().map(|name| format!(" `{name}`")).collect();
            let verbs = verbs.join(", ");
            format!("| {group} | `{resource}`{names} | {verbs} | {} | {why} |", permission.place())
        });
        for row in rows {
            assert!(page.contains(&row), "docs/operations.md lacks:\n{row}");
        }
        let shown = page.lines().filter(|line| {
            line.contains("| namespaces of Tasks |")
                || line.contains("with `--leader-elect` |")
                || line.contains("with `--webhook-self-signed` |")
        });
        assert_eq!(shown.count(), ALL.len(), "docs/operations.md shows what the operator may not do");
    }

    #[test]
    fn nothing_is_unbounded() {
        for permission in ALL {
            let Permission { resource, verbs, names, .. } = permission;
            assert!(!verbs.is_empty() && !verbs.contains(&"*") && !resource.contains('*'), "{resource}");
            assert!(verbs.iter().all(|verb| !["escalate", "bind", "impersonate"].contains(verb)));
            // Outside of the Tasks' namespaces it touches nothing but what is its own.
            let is_creation = *verbs == ["create"];
            assert!(permission.reach == Reach::Tasks || is_creation || !names.is_empty(), "{resource}");
            assert!(names.is_empty() || !verbs.contains(&"create"), "{resource}: a creation has no name yet");
        }
    }

    #[test]
    fn only_what_is_switched_on_reaches_beyond_the_tasks() {
        for permission in ALL {
            assert_eq!(permission.reach == Reach::Tasks, permission.feature == Feature::Reconciling);
        }
    }
}
