//! The servers: probes, metrics and webhooks, each on an address of its own.
//!
//! - [`bind`] — the addresses; `server` — what all servers have in common
//! - [`health`] — the checks behind `/healthz` and `/readyz`; [`probes`] — their pages
//! - [`metrics`] — `/metrics`
//! - [`webhooks`] — the TLS server; [`tls`] — its certificate; [`admission`] — what it is asked about Tasks
//! - [`conversion`] — `/convert`; [`review`] — what it answers; `body` — bodies that are read with bounds
//!
//! Each server has a thread of its own, so that a probe is answered, and can
//! tell so, when the operator's own event loop is stuck.

pub mod admission;
pub mod bind;
mod body;
pub mod conversion;
pub mod health;
pub mod metrics;
pub mod probes;
pub mod review;
mod server;
pub mod tls;
pub mod webhooks;

pub use bind::BindAddress;
pub use conversion::Conversion;
pub use metrics::serve_metrics;
pub use probes::serve_probes;
pub use webhooks::serve_webhooks;
