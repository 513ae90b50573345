//! What a user sees, on a real control plane with a running operator. All tests
//! share both, each in a namespace of its own.

#![allow(clippy::unwrap_used, reason = "what fails here is a test that fails")]

mod support;
#[path = "behaviour/mod.rs"]
mod tests;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use support::{Operator, Space, crds};
use test_cluster::Cluster;

/// What all tests share.
pub(crate) struct Bed {
    cluster: Cluster,
    client: kube::Client,
    operator: Operator,
}

impl Bed {
    /// A namespace for the test of this name.
    pub(crate) async fn space(&self, name: &str) -> Space<'_> {
        let name: String =
            name.rsplit("::").next().unwrap_or(name).replace('_', "-").chars().take(60).collect();
        Space::new(&self.cluster, self.client.clone(), name.trim_matches('-')).await
    }
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // What the machine can bear, not what it has: the control plane runs on it too.
    arguments.test_threads = arguments.test_threads.or(Some(6));
    if arguments.list {
        let names = tests::all().into_iter().map(|(name, _)| Trial::test(name, || Ok(())));
        return libtest_mimic::run(&arguments, names.collect()).exit_code();
    }
    let runtime =
        Arc::new(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap());
    // On this thread, which lives as long as the tests do: the programs end with the thread that started them.
    let bed = runtime.block_on(async {
        let cluster = Cluster::builder().whole().crds(&crds()).start().await.unwrap();
        let operator = Operator::started(&cluster.kubeconfig("operator").unwrap(), &[]).await;
        let client = cluster.client("admin").await.unwrap();
        Arc::new(Bed { cluster, client, operator })
    });
    let trials = tests::all().into_iter().map(|(name, test)| {
        let (bed, runtime) = (bed.clone(), runtime.clone());
        Trial::test(name, move || {
            runtime.block_on(test(bed));
            Ok(())
        })
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    if conclusion.has_failed() {
        let log = bed.operator.log();
        let lines: Vec<&str> = log.lines().collect();
        eprintln!("the end of the operator's log:\n{}", lines[lines.len().saturating_sub(60)..].join("\n"));
    }
    bed.operator.assert_healthy();
    drop(bed);
    conclusion.exit_code()
}
