//! The API group `task.example.io`: its types, defaults and rules.
//!
//! Plain data and plain functions: nothing in here talks to a cluster, reads a
//! clock or knows of the actors.
//!
//! - [`v1`]: the types, and [`v1alpha1`], those of the old version; [`crd`]: the definition made of them
//! - [`mod@convert`]: objects of one version as objects of the other
//! - [`rules`]: the table of what a Task may say, which the CRD's schema, [`mod@validate`] and [`policy`] share
//! - [`fault`]: one thing that is wrong with a Task; [`image`] and [`size`]: what finds some of them
//! - [`defaults`]: what a Task that leaves something out asks for
//! - [`permissions`]: the table of what the operator may do; [`rbac`]: the roles made of it
//! - [`identity`]: what names an object, and which state of it was seen

mod cel;
pub mod convert;
pub mod crd;
pub mod defaults;
pub mod fault;
pub mod identity;
pub mod image;
pub mod permissions;
pub mod policy;
pub mod rbac;
pub mod rules;
mod schema;
pub mod size;
pub mod v1;
pub mod v1alpha1;
pub mod validate;
pub mod webhooks;

pub use defaults::effective;
pub use fault::{Fault, FaultKind};
pub use identity::{ResourceVersion, TaskKey, Uid};
pub use validate::validate;

/// The API group.
pub const GROUP: &str = "task.example.io";
/// The finalizer that lets a deletion wait for the operator.
pub const FINALIZER: &str = "task.example.io/finalizer";
