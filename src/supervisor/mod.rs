//! One supervisor per Task: it owns the Task's record, its passes and its retries.
//!
//! The rules are pure: [`State::on`] takes an event and returns commands, does
//! no I/O and reads no clock. Around it stands a thin actor that carries the
//! commands out. Within:
//!
//! - [`state`]: the record; `record`: how views of objects change it
//! - [`event`]: what comes in and what goes out
//! - `decide`: the pass and its end; `trouble`: what a failed request leads to
//! - `plan`: the next difference between what is and what should be
//! - [`outbox`]: what a sink still has to be told
//! - `phase`: phase and conditions; [`status`]: their form
//! - [`backoff`], [`time`]: waits, and the clock as an argument
//! - [`actor`]: the shell; `compare`: an observed child against what is wanted

pub mod actor;
pub mod backoff;
pub mod clock;
mod compare;
mod decide;
pub mod event;
pub mod outbox;
mod phase;
mod plan;
mod record;
pub mod state;
pub mod status;
pub mod time;
mod trouble;

pub use event::{Command, Event};
pub use state::State;
