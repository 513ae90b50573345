//! Every property of a Task in both versions is given a value of every class, from
//! every start state, and brought back. Each change is carried out or refused by
//! name, and the way back leads to the state from before.
//!
//! All of it is some 5 500 operations (`make transitions`). `cargo test` takes a
//! part, spread over all properties: every `TRANSITIONS_EVERY`th value, 13 if that
//! is not set.

#![allow(clippy::unwrap_used, reason = "what fails here is a test that fails")]

mod oracle;
mod properties;
#[path = "../support/mod.rs"]
mod support;
mod walk;

use std::time::{Duration, Instant};

use futures::StreamExt;
use support::webhooks::Bed;
use test_cluster::audit::summary;
use test_cluster::{Cluster, eventually};
use walk::{Start, Tally, Walk};

/// Tasks that are led at once. The control plane shares the machine.
const AT_ONCE: usize = 8;
/// The operator is quiet if it writes nothing for so long.
const QUIET: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_value_is_carried_out_or_refused_by_name_and_can_be_taken_back() {
    let every: usize = std::env::var("TRANSITIONS_EVERY").map_or(13, |text| text.parse().unwrap());
    let bed = Bed::start(Cluster::builder().whole()).await;
    let space = bed.space("transitions").await;
    let properties = properties::all();
    let began = Instant::now();
    let mut walks = Vec::new();
    let mut number = 0;
    for (place, property) in properties.iter().enumerate() {
        for start in Start::ALL {
            let name = format!("web-{place}-{start:?}").to_lowercase();
            walks.push((Walk::new(&space, name, start, property), number));
            number += property.values.len();
        }
    }
    let mut tally = Tally::default();
    let mut ends = futures::stream::iter(&walks)
        .map(|(walk, first)| walk.go(move |place| (first + place).is_multiple_of(every)))
        .buffer_unordered(AT_ONCE);
    while let Some(end) = ends.next().await {
        for fault in &end.faults {
            eprintln!("{fault}");
        }
        tally.add(end);
    }
    println!(
        "{} operations in {} s: {} carried out, {} refused, {} taken back",
        tally.operations(),
        began.elapsed().as_secs(),
        tally.carried_out,
        tally.refused,
        tally.undone
    );
    assert!(tally.faults.is_empty(), "{:#?}\n{}", tally.faults, bed.operator.log_tail());
    assert!(tally.carried_out > 0 && tally.refused > 0);
    if every == 1 {
        assert!(tally.operations() >= 2000, "{tally:?}");
    }
    eventually(support::SOON, "the Tasks are gone", async || {
        let left = space.api("Task").list(&kube::api::ListParams::default()).await.unwrap().items.len();
        if left == 0 { Ok(()) } else { Err(format!("{left} are left")) }
    })
    .await;
    let mark = bed.cluster.audit_mark().unwrap();
    tokio::time::sleep(QUIET).await;
    let mut writes = mark.requests_of("operator").unwrap();
    writes.retain(|request| request.is_write());
    assert!(writes.is_empty(), "{:?}", summary(&writes));
    bed.operator.assert_healthy();
}
