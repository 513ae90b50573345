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
