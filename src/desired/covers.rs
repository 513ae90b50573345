//! Whether an object carries all that is wanted of it.
//!
//! What others added does not count: more labels, annotations, containers,
//! variables, ports or volumes are theirs. What is wanted has to be there, the
//! same, and the variables of our container in the order they refer to each other.

use std::collections::HashSet;

use super::shape::{
    ConfigMapShape, ConfigMapVolume, Container, ContainerPort, DeploymentShape, DeploymentSpec, EnvVar, Map,
    Metadata, OwnerReference, PodSecurityContext, PodSpec, PodTemplate, SeccompProfile, ServicePort,
    ServiceShape, ServiceSpec, Volume, VolumeMount,
};

/// Whether an observed value carries a wanted one.
pub trait Covers {
    /// True if everything that `wanted` sets is the same here.
    fn covers(&self, wanted: &Self) -> bool;
}

/// An entry of a list that is a map by one of its fields.
trait Keyed {
    fn key(&self) -> &str;
}

impl<T: Keyed + Covers> Covers for Vec<T> {
    fn covers(&self, wanted: &Self) -> bool {
        wanted.iter().all(|entry| {
            self.iter()
                .find(|observed| observed.key() == entry.key())
                .is_some_and(|found| found.covers(entry))
        })
    }
}

impl Covers for Map {
    fn covers(&self, wanted: &Self) -> bool {
        wanted.iter().all(|(key, value)| self.get(key) == Some(value))
    }
}

impl<T: Covers> Covers for Option<T> {
    fn covers(&self, wanted: &Self) -> bool {
        match (self, wanted) {
            (_, None) => true,
            (Some(observed), Some(wanted)) => observed.covers(wanted),
            (None, Some(_)) => false,
        }
    }
}

/// Each named field covers its counterpart; those after `==` are the same.
macro_rules! covers {
    ($($shape:ident { $($field:ident),* ; == $($same:ident),* })*) => {$(
        impl Covers for $shape {
            fn covers(&self, wanted: &Self) -> bool {
                $(self.$field.covers(&wanted.$field) &&)* $(self.$same == wanted.$same &&)* true
            }
        }
    )*};
}

covers! {
    ConfigMapShape { metadata, data; == }
    ServiceShape { metadata, spec; == }
    // Another key in a Service's selector would keep Pods out: the selector is one value.
    ServiceSpec { ports; == selector }
    ServicePort { ; == name, port, target_port, protocol }
    DeploymentShape { metadata, spec; == }
    DeploymentSpec { template; == replicas, selector }
    PodTemplate { metadata, spec; == }
    PodSpec { security_context, containers, volumes; == automount_service_account_token }
    PodSecurityContext { seccomp_profile; == }
    SeccompProfile { ; == r#type }
    ContainerPort { ; == name, container_port, protocol }
    VolumeMount { ; == name, mount_path, read_only }
    Volume { config_map; == name }
    ConfigMapVolume { ; == name }
    Metadata { labels, annotations, owner_references; == }
    OwnerReference { ; == api_version, kind, name, uid, controller, block_owner_deletion }
}

impl Covers for Container {
    fn covers(&self, wanted: &Self) -> bool {
        self.image == wanted.image
            && self.ports.covers(&wanted.ports)
            && self.volume_mounts.covers(&wanted.volume_mounts)
            && covers_in_order(&self.env, &wanted.env)
    }
}

/// Whether the observed variables of wanted names are the wanted ones, in their
/// order: a second one of the same name would win over the first.
fn covers_in_order(observed: &[EnvVar], wanted: &[EnvVar]) -> bool {
    if observed == wanted {
        return true;
    }
    let names: HashSet<&str> = wanted.iter().map(|entry| entry.name.as_str()).collect();
    observed.iter().filter(|entry| names.contains(entry.name.as_str())).eq(wanted)
}

macro_rules! keyed {
    ($($shape:ident by $field:ident),*) => {$(
        impl Keyed for $shape {
            fn key(&self) -> &str {
                &self.$field
            }
        }
    )*};
}

keyed!(
    Container by name, ContainerPort by name, ServicePort by name, Volume by name,
    VolumeMount by mount_path, OwnerReference by uid
);

#[cfg(test)]
mod tests {
    use super::*;

    use crate::api::TaskKey;
    use crate::api::v1::TaskSpec;
    use crate::desired::shape::Present;
    use crate::desired::{config_map, deployment, service};

    fn spec() -> TaskSpec {
        let env = [("A", "$(B)"), ("B", "1")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        TaskSpec { replicas: 2, env: env.into(), ..TaskSpec::default() }
    }

    fn wanted() -> DeploymentShape {
        deployment(&TaskKey::new("default", "web"), &"u".into(), &spec())
    }

    fn container(shape: &mut DeploymentShape) -> &mut Container {
        &mut shape.spec.template.spec.containers[0]
    }

    type Change = (&'static str, fn(&mut DeploymentShape));

    #[test]
    fn what_others_add_does_not_count() {
        let additions: [Change; 8] = [
            ("label", |shape| drop(shape.metadata.labels.insert("team".into(), "blue".into()))),
            ("annotation", |shape| drop(shape.metadata.annotations.insert("note".into(), "x".into()))),
            ("owner", |shape| shape.metadata.owner_references.insert(0, OwnerReference::default())),
            ("volume", |shape| shape.spec.template.spec.volumes.insert(0, Volume::default())),
            ("variable", |shape| container(shape).env.insert(1, EnvVar::default())),
            ("port", |shape| container(shape).ports.insert(0, ContainerPort::default())),
            ("mount", |shape| container(shape).volume_mounts.insert(0, VolumeMount::default())),
            ("sidecar", |shape| shape.spec.template.spec.containers.insert(0, Container::default())),
        ];
        let mut observed = wanted();
        for (what, add) in additions {
            add(&mut observed);
            assert!(observed.covers(&wanted()), "{what}");
        }
    }

    #[test]
    fn what_is_wanted_has_to_be_there_the_same() {
        let changes: [Change; 17] = [
            ("replicas", |shape| shape.spec.replicas = 3),
            ("selector", |shape| drop(shape.spec.selector.match_labels.pop_first())),
            ("selector, more", |shape| shape.spec.selector.match_expressions = Some(Present)),
            ("label", |shape| drop(shape.metadata.labels.pop_first())),
            ("label of the Pods", |shape| drop(shape.spec.template.metadata.labels.pop_first())),
            ("names of the variables", |shape| shape.metadata.annotations.clear()),
            ("owner", |shape| shape.metadata.owner_references[0].block_owner_deletion = false),
            ("token", |shape| shape.spec.template.spec.automount_service_account_token = None),
            ("profile", |shape| shape.spec.template.spec.security_context.seccomp_profile.r#type.clear()),
            ("volume", |shape| shape.spec.template.spec.volumes[0].config_map = None),
            ("container", |shape| shape.spec.template.spec.containers.clear()),
            ("image", |shape| container(shape).image.push('x')),
            ("value", |shape| container(shape).env[0].value.push('x')),
            ("value from elsewhere", |shape| container(shape).env[0].value_from = Some(Present)),
            ("variable", |shape| drop(container(shape).env.pop())),
            ("port", |shape| container(shape).ports[0].container_port += 1),
            ("mount", |shape| container(shape).volume_mounts[0].read_only = false),
        ];
        for (what, change) in changes {
            let mut observed = wanted();
            change(&mut observed);
            assert!(!observed.covers(&wanted()), "{what}");
        }
    }

    #[test]
    fn variables_count_in_their_order_and_once() {
        let mut observed = wanted();
        assert_eq!(container(&mut observed).env[0].name, "B");
        container(&mut observed).env.swap(0, 1);
        assert!(!observed.covers(&wanted()), "A would see no B");
        let mut observed = wanted();
        let again = EnvVar { name: "A".to_owned(), value: "2".to_owned(), value_from: None };
        container(&mut observed).env.push(again);
        assert!(!observed.covers(&wanted()), "the last one of a name wins");
    }

    #[test]
    fn a_service_takes_more_ports_but_no_more_selector() {
        let wanted = service(&TaskKey::new("default", "web"), &"u".into(), &spec());
        let mut observed = wanted.clone();
        observed.spec.ports.insert(0, ServicePort::default());
        assert!(observed.covers(&wanted));
        observed.spec.selector.insert("more".to_owned(), "x".to_owned());
        assert!(!observed.covers(&wanted));
    }

    #[test]
    fn a_config_map_takes_more_keys() {
        let wanted = config_map(&TaskKey::new("default", "web"), &"u".into(), &spec());
        let mut observed = wanted.clone();
        observed.data.insert("more".to_owned(), "x".to_owned());
        assert!(observed.covers(&wanted));
        observed.data.insert("app.conf".to_owned(), "x".to_owned());
        assert!(!observed.covers(&wanted));
    }
}
