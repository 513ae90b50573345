//! Task Operator: a Kubernetes operator that turns a `Task` into a running application.
//!
//! ```text
//!  API server ──watch── cluster::watches ──► dispatcher ──► supervisor (one per Task) ──► cluster::writer ── API server
//!                                              │ ▲ slots        │ State::on(event) → commands
//!                                              │ └──────────────┤
//!  Prometheus, kubelet ──────► web             └ timers         ├──► cluster::events
//!                                                               └──► queue ──► sink
//! ```
//!
//! The map, from the inside out:
//!
//! - [`api`]: the types, defaults and rules of the API group. Pure.
//! - [`desired`]: the children that a Task asks for, and how they compare with what is there. Pure.
//! - [`supervisor`]: the state machine of one Task, pure, and the thin actor around it.
//! - [`dispatcher`]: routes what the watches see, grants slots, keeps all timers.
//! - [`cluster`]: everything that talks to the API server.
//! - [`queue`]: work outside of the cluster: notifications of what happens to Tasks.
//! - [`web`]: the servers for probes, metrics and webhooks.
//! - [`telemetry`]: log lines and metrics.
//! - [`run`]: starts and stops all of it; [`finalize`]: lets Tasks go without it; [`cli`]: the command line.

pub mod api;
pub mod cli;
pub mod cluster;
pub mod desired;
pub mod dispatcher;
mod election;
pub mod finalize;
pub mod queue;
pub mod run;
mod servers;
pub mod supervisor;
pub mod telemetry;
pub mod web;
