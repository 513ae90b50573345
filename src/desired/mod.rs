//! The children that a Task asks for, and how an object that is there compares
//! with them. Pure: what is rendered depends on the Task only, never on the
//! operator's version, so an upgrade restarts no Pod.
//!
//! - [`shape`]: the children in lean form, for writing and reading
//! - [`labels`], [`render`]: what they look like; [`env_order`]: the order of variables
//! - [`covers`]: whether an object carries all that is wanted
//! - [`merge`]: what to change of an object that does not; [`managed_fields`]: who set what of it
//! - [`mod@ownership`]: whose an object is
//! - [`kind`], [`mod@digest`]: which child, and in which state

pub mod covers;
pub mod digest;
pub mod env_order;
pub mod kind;
pub mod labels;
pub mod managed_fields;
pub mod merge;
#[cfg(test)]
mod on_a_server;
pub mod ownership;
pub mod render;
pub mod shape;

pub use covers::Covers;
pub use digest::{Digest, digest};
pub use kind::{ChildKind, name_of, task_name_of};
pub use labels::{MANAGED_BY, MANAGED_BY_SELECTOR};
pub use managed_fields::contender;
pub use merge::{Correction, correction};
pub use ownership::{Ownership, owner_task_name, ownership};
pub use render::{body, config_map, deployment, service, text};
