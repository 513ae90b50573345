//! A real Kubernetes control plane on one machine, for tests, the demo and benchmarks.
//!
//! [`Cluster::builder`] starts etcd and kube-apiserver, and with
//! [`Builder::whole`] also kube-controller-manager, kube-scheduler and kwok,
//! whose fake nodes make Pods Running. Each has its own directory and free
//! ports, so several run side by side; dropping it leaves nothing behind.
//!
//! - [`assets`]: where the programs come from
//! - [`process`]: a program that ends with its owner
//! - [`cluster`]: the control plane; [`credentials`]: its users and keys
//! - [`audit`]: who asked the API server for what
//! - [`wait`]: conditions with deadlines

pub mod assets;
pub mod audit;
pub mod cluster;
pub mod credentials;
pub mod process;
pub mod wait;

pub use cluster::{Builder, Cluster};
pub use wait::eventually;
