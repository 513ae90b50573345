//! The API group `task.example.io`: its types, defaults and rules.
//!
//! Plain data and plain functions: nothing in here talks to a cluster, reads a
//! clock or knows of the actors.
//!
//! - [`v1`]: the types; [`rules`]: their bounds, which [`schema`] puts into the [`crd`]
//! - [`defaults`]: what a Task that leaves something out asks for
//! - [`identity`]: what names an object, and which state of it was seen

pub mod crd;
pub mod defaults;
pub mod identity;
pub mod rules;
mod schema;
pub mod v1;

pub use identity::{ResourceVersion, TaskKey, Uid};

/// The API group.
pub const GROUP: &str = "task.example.io";
/// The finalizer that lets a deletion wait for the operator.
pub const FINALIZER: &str = "task.example.io/finalizer";
