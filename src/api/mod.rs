//! The API group `task.example.io`: its types, defaults and rules.
//!
//! Plain data and plain functions: nothing in here talks to a cluster, reads a
//! clock or knows of the actors. The webhooks, the supervisors, the CRD
//! generator and the tests all call the same code.

pub mod identity;
pub mod v1;

pub use identity::{ResourceVersion, TaskKey, Uid};

/// The API group.
pub const GROUP: &str = "task.example.io";
/// The finalizer that lets a deletion wait for the operator.
pub const FINALIZER: &str = "task.example.io/finalizer";
