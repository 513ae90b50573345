//! Task Operator: a Kubernetes operator that turns a Task into a running application.

pub mod api;
