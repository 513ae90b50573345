//! What the operator tells of itself.
//!
//! - [`logging`]: log lines
//! - [`metrics`]: counters and gauges; [`per_task`]: those of each Task by name
//! - [`exposition`]: how they are written for a scraper

pub mod exposition;
pub mod logging;
pub mod metrics;
pub mod per_task;

pub use metrics::{Metrics, PassResult};
