//! The core of a supervisor against a small model of the API server, without
//! I/O and in microseconds: named examples, and random walks through faults
//! that all have to settle.

#![allow(clippy::unwrap_used, reason = "what fails here is a test that fails")]

mod examples;
#[path = "../world/mod.rs"]
mod shared;
mod sink;
mod walks;
mod world;
