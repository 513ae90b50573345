//! Whose an object is.

use crate::api::{GROUP, Uid};

use super::shape::{Metadata, OwnerReference};

/// Whose an object is, seen from one Task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// The Task controls it.
    Ours,
    /// An earlier Task of the same name controls it: garbage collection will remove it.
    Predecessor,
    /// Something else controls it.
    OtherController {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// Nothing controls it.
    Unowned,
}

/// Whose the object of this metadata is, seen from the Task of this name and uid.
pub fn ownership(metadata: &Metadata, task_name: &str, task_uid: &Uid) -> Ownership {
    let Some(controller) = metadata.owner_references.iter().find(|owner| owner.controller) else {
        return Ownership::Unowned;
    };
    if is_task(controller) && controller.uid == task_uid.as_str() {
        Ownership::Ours
    } else if is_task(controller) && controller.name == task_name {
        Ownership::Predecessor
    } else {
        Ownership::OtherController { kind: controller.kind.clone(), name: controller.name.clone() }
    }
}

/// The name of the Task that controls the object, if one does.
pub fn owner_task_name(metadata: &Metadata) -> Option<&str> {
    let controller = metadata.owner_references.iter().find(|owner| owner.controller)?;
    is_task(controller).then_some(controller.name.as_str())
}

fn is_task(owner: &OwnerReference) -> bool {
    let group = owner.api_version.split_once('/').map(|(group, _)| group);
    owner.kind == "Task" && group == Some(GROUP)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(owners: &[(&str, &str, &str, &str, bool)]) -> Metadata {
        let owner_references = owners
            .iter()
            .map(|&(api_version, kind, name, uid, controller)| OwnerReference {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                name: name.to_owned(),
                uid: uid.to_owned(),
                controller,
                block_owner_deletion: true,
            })
            .collect();
        Metadata { owner_references, ..Metadata::default() }
    }

    #[test]
    fn the_controller_says_whose_an_object_is() {
        let other = |kind: &str, name: &str| Ownership::OtherController {
            kind: kind.to_owned(),
            name: name.to_owned(),
        };
        const V1: &str = "task.example.io/v1";
        let cases = [
            (owned(&[]), Ownership::Unowned),
            (owned(&[(V1, "Task", "web", "u-1", true)]), Ownership::Ours),
            (owned(&[("task.example.io/v1alpha1", "Task", "web", "u-1", true)]), Ownership::Ours),
            (owned(&[("v1", "Node", "n", "n", false), (V1, "Task", "web", "u-1", true)]), Ownership::Ours),
            (owned(&[(V1, "Task", "web", "u-0", true)]), Ownership::Predecessor),
            (owned(&[(V1, "Task", "api", "u-2", true)]), other("Task", "api")),
            (owned(&[("tekton.dev/v1", "Task", "web", "u-1", true)]), other("Task", "web")),
            (owned(&[("apps/v1", "ReplicaSet", "web", "u-1", true)]), other("ReplicaSet", "web")),
            (owned(&[(V1, "Task", "web", "u-1", false)]), Ownership::Unowned),
        ];
        for (metadata, whose) in cases {
            assert_eq!(ownership(&metadata, "web", &"u-1".into()), whose, "{metadata:?}");
        }
    }

    #[test]
    fn only_a_task_that_controls_it_is_told_of_it() {
        let of = |group: &str, controller| owned(&[(group, "Task", "web", "u-1", controller)]);
        assert_eq!(owner_task_name(&of("task.example.io/v1", true)), Some("web"));
        assert_eq!(owner_task_name(&of("task.example.io/v1", false)), None);
        assert_eq!(owner_task_name(&of("tekton.dev/v1", true)), None);
    }
}
