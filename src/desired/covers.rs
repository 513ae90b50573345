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
