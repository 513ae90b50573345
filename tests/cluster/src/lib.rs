//! A real Kubernetes control plane on one machine, for tests, the demo and benchmarks.
//!
//! [`Cluster::builder`] starts etcd and kube-apiserver, and with
//! [`Builder::whole`] also kube-controller-manager, kube-scheduler and kwok,
//! whose fake nodes make Pods Running. Each cluster has a directory and free
//! ports of its own, so several run side by side. Dropping it leaves nothing
//! behind, and neither does a panic or SIGKILL.
//!
//! - [`builder`]: what it is to be like; [`cluster`]: what tests do with it
//! - [`audit`]: who asked the API server for what
//! - [`wait`]: conditions with deadlines
//! - [`process`]: a program that ends with its owner, for operators under test
//! - [`credentials`]: users, keys and kubeconfigs; [`programs`]: what runs, with which flags
//! - [`assets`]: where the programs come from; [`existing`]: the cluster of KUBECONFIG instead
//! - private: `control_plane` starts, watches and ends the programs; `owned`,
//!   `scratch`, `ports` and `kubectl` see to processes, files, ports and kubectl

pub mod assets;
pub mod audit;
pub mod builder;
pub mod cluster;
mod control_plane;
pub mod credentials;
pub mod existing;
mod kubectl;
mod owned;
mod ports;
pub mod process;
pub mod programs;
mod scratch;
pub mod wait;

pub use builder::Builder;
pub use cluster::Cluster;
pub use credentials::User;
pub use programs::Program;
pub use wait::eventually;
