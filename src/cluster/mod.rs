//! All that talks to the API server.
//!
//! - [`certificates`]: the certificate of the webhooks, where the operator makes it itself
//! - [`client`]: the connection, and how requests on it are counted
//! - [`observe`]: the lean types that watches and answers are decoded into
//! - [`watches`]: what happens in the cluster, as batches for the dispatcher
//! - [`requests`]: a [`Request`](crate::supervisor::event::Request) as HTTP; [`writer`]: sends it
//! - [`failure`]: what an error means for the next step
//! - [`pods`]: the worst fault among a Task's Pods
//! - [`events`]: Kubernetes events
//! - [`lease`]: leader election, and the fence before every write
//! - [`task_status`]: the status as JSON

pub mod certificates;
pub mod client;
pub mod events;
pub mod failure;
pub mod lease;
pub mod observe;
pub mod pods;
pub mod requests;
pub mod task_status;
pub mod watches;
pub mod writer;

/// The field manager of everything but the status, and the name in the user agent.
pub const FIELD_MANAGER: &str = "task-operator";
/// The field manager of the status.
pub const STATUS_MANAGER: &str = "task-operator-status";
