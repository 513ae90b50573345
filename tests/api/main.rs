//! The API's rules, judged by the same corpus of Tasks in Rust and by a real API server.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

mod corpus;
mod crd;
mod policy;
mod served;
mod validation;
