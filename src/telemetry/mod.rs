//! What the operator tells of itself.
//!
//! - [`logging`] — log lines; `json` — their form for machines
//! - [`metrics`] — counters and gauges, a file for each part of the operator
//! - [`exposition`] — how metrics are written for a scraper; [`accept`] — in which format

pub mod accept;
pub mod exposition;
mod json;
pub mod logging;
pub mod metrics;

pub use exposition::Format;
pub use metrics::{Metrics, PassResult, QueueGauges};
