//! The task queue: work outside of the cluster. Its work are notifications: one
//! CloudEvent per change of a Task's phase and per deletion, posted to an HTTP sink.
//!
//! - [`notice`]: what happened to a Task; what it is called is the same however often it is told
//! - [`cloud_event`]: a notice as an HTTP message, in the binary or the structured mode
//! - [`signature`]: what proves to the sink who sent it
//! - [`retry`]: when a notice that was not taken is tried again, and when it is given up
//!
//! All of these are pure.

pub mod cloud_event;
pub mod notice;
pub mod retry;
pub mod signature;
