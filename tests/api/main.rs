//! The API's rules, judged by the same corpus of Tasks in Rust and by a real API server.

mod corpus;
mod crd;
mod validation;
