//! The `task-operator` binary.
fn main() {}
