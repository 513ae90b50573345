//! Of several replicas one writes: by hand-over, crash, freeze, outage and meddling.
//!
//! Each replica is a user of its own, so that the audit log tells them apart.

#![allow(clippy::unwrap_used, reason = "what fails here is a test that fails")]

mod support;

use std::time::{Duration, Instant};

use serde_json::json;
use support::{Operator, SOON, Space, crds};
use test_cluster::audit::{Mark, Request};
use test_cluster::{Cluster, Program, User, eventually};

const FLAGS: [&str; 5] = [
    "--leader-elect",
    "--leader-election-namespace=default",
    "--lease-duration=4s",
    "--renew-deadline=3s",
    "--retry-period=500ms",
];
/// What a lease may last, and what the other replica needs to notice.
const LEASE: Duration = Duration::from_secs(4);

async fn cluster() -> Cluster {
    let builder = Cluster::builder().crds(&crds());
    builder.user(User::admin("replica-a")).user(User::admin("replica-b")).start().await.unwrap()
}

/// Two replicas; the first one leads.
async fn pair(cluster: &Cluster) -> (Operator, Operator) {
    let a = Operator::started(&cluster.kubeconfig("replica-a").unwrap(), &FLAGS).await;
    a.wait_for_log("leading").await;
    let b = Operator::started(&cluster.kubeconfig("replica-b").unwrap(), &FLAGS).await;
    (a, b)
}

async fn space<'a>(cluster: &'a Cluster, name: &str) -> Space<'a> {
    Space::new(cluster, cluster.client("admin").await.unwrap(), name).await
}

/// Creates a Task and waits for its last child: somebody leads.
async fn somebody_works(space: &Space<'_>, task: &str) {
    space.task(task, json!({})).await;
    space.until(SOON, "Deployment", task, "made", |_| true).await;
}

/// What `user` wrote since, its part in the election aside.
fn writes(mark: &Mark, user: &str) -> Vec<Request> {
    let requests = mark.requests_of(user).unwrap();
    requests.into_iter().filter(|request| request.is_write() && request.resource() != "leases").collect()
}

#[tokio::test]
async fn only_the_leader_writes_and_it_hands_over_at_once() {
    let cluster = cluster().await;
    let space = space(&cluster, "handover").await;
    let (mut a, b) = pair(&cluster).await;
    let mark = cluster.audit_mark().unwrap();
    somebody_works(&space, "one").await;
    assert!(!writes(&mark, "replica-a").is_empty());
    assert!(writes(&mark, "replica-b").is_empty(), "{:?}", writes(&mark, "replica-b"));
    let (_, page) = b.get("metrics", "/metrics").await;
    assert!(page.contains("leader_election_master_status{name=\"task-operator\"} 0"), "{page}");

    let began = Instant::now();
    a.signal("TERM");
    assert!(a.ended(SOON).await.success());
    let ended = began.elapsed();
    b.wait_for_log("leading").await;
    println!("handed over {:?} after SIGTERM; the old leader had ended after {ended:?}", began.elapsed());
    assert!(began.elapsed() < LEASE, "the lease ran out instead of being given back");
    let mark = cluster.audit_mark().unwrap();
    somebody_works(&space, "two").await;
    assert!(!writes(&mark, "replica-b").is_empty());
    a.assert_healthy();
    b.assert_healthy();
}

#[tokio::test]
async fn after_a_crash_the_other_one_leads_once_the_lease_has_run_out() {
    let cluster = cluster().await;
    let space = space(&cluster, "crash").await;
    let (mut a, b) = pair(&cluster).await;
    somebody_works(&space, "one").await;
    let began = Instant::now();
    a.kill();
    b.wait_for_log("leading").await;
    let took = began.elapsed();
    println!("leading {took:?} after a crash, with a lease of {LEASE:?}");
    assert!(took < LEASE + Duration::from_secs(2), "{took:?}");
    somebody_works(&space, "two").await;
}

#[tokio::test]
async fn a_leader_that_was_frozen_beyond_its_lease_writes_nothing() {
    let cluster = cluster().await;
    let space = space(&cluster, "frozen").await;
    let (a, b) = pair(&cluster).await;
    somebody_works(&space, "one").await;
    a.signal("STOP");
    // Work that the frozen one will find in its sockets when it goes on.
    for number in 0..20 {
        space.task(&format!("two-{number}"), json!({})).await;
    }
    b.wait_for_log("leading").await;
    let mark = cluster.audit_mark().unwrap();
    a.signal("CONT");
    for number in 0..20 {
        space.patch("Task", &format!("two-{number}"), json!({"spec": {"env": {"A": "1"}}})).await;
    }
    a.wait_for_log("not leading any more").await;
    somebody_works(&space, "three").await;
    let wrote = writes(&mark, "replica-a");
    assert!(wrote.is_empty(), "the old leader wrote: {wrote:?}");
    assert!(!writes(&mark, "replica-b").is_empty());
}

#[tokio::test]
async fn an_outage_longer_than_the_lease_and_meddling_leave_one_leader() {
    let mut cluster = cluster().await;
    let (a, b) = pair(&cluster).await;
    cluster.kill(Program::ApiServer).unwrap();
    a.wait_for_log("not leading any more").await;
    tokio::time::sleep(LEASE).await;
    cluster.start(Program::ApiServer).await.unwrap();
    let space = space(&cluster, "meddling").await;
    somebody_works(&space, "after-the-outage").await;

    let (ok, said) = space.kubectl(&["delete", "lease", "-n", "default", "task-operator"]).await;
    assert!(ok, "{said}");
    somebody_works(&space, "after-the-deletion").await;

    let patch = r#"{"spec": {"holderIdentity": "nobody-that-lives"}}"#;
    let (ok, said) = space
        .kubectl(&["patch", "lease", "-n", "default", "task-operator", "--type=merge", "-p", patch])
        .await;
    assert!(ok, "{said}");
    // Whoever led sees that it does not any more; the made-up holder does not renew.
    somebody_works(&space, "after-the-theft").await;
    let leaders = async || {
        let mut leaders = 0;
        for replica in [&a, &b] {
            let (_, page) = replica.get("metrics", "/metrics").await;
            leaders += usize::from(page.contains("leader_election_master_status{name=\"task-operator\"} 1"));
        }
        if leaders == 1 { Ok(()) } else { Err(format!("{leaders} leaders")) }
    };
    eventually(SOON, "exactly one leader", leaders).await;
}

#[tokio::test]
async fn times_that_do_not_fit_are_refused_at_the_start() {
    let cluster = cluster().await;
    for (flags, flag) in [
        (["--leader-elect", "--renew-deadline=15s"], "--renew-deadline"),
        (["--leader-elect", "--retry-period=6s"], "--retry-period"),
        (["--leader-elect", "--lease-duration=1500ms"], "--lease-duration"),
    ] {
        let mut operator = Operator::start(&cluster.kubeconfig("replica-a").unwrap(), &flags);
        let status = operator.ended(SOON).await;
        assert!(!status.success() && operator.log().contains(flag), "{status}: {}", operator.log());
    }
}
