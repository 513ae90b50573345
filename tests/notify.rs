//! Notifications of an operator on a real control plane, to a sink behind a real socket.
//!
//! Nothing makes Pods here: the tests write the status of the Deployments themselves.

#![allow(clippy::unwrap_used, reason = "what fails here is a test that fails")]

#[path = "support/receiver.rs"]
mod receiver;
mod support;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::StreamExt;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use receiver::{Post, Receiver, Reply};
use serde_json::{Value, json};
use support::{Operator, SOON, Space, condition, crds};
use test_cluster::{Cluster, User, eventually};

/// For many Tasks, or after an outage.
const PATIENCE: Duration = Duration::from_secs(240);

async fn cluster() -> Cluster {
    Cluster::builder().crds(&crds()).start().await.unwrap()
}

async fn space<'a>(cluster: &'a Cluster, name: &str) -> Space<'a> {
    Space::new(cluster, cluster.client("admin").await.unwrap(), name).await
}

async fn operator(cluster: &Cluster, sink: &str, flags: &[&str]) -> Operator {
    let url = format!("--notify-url={sink}");
    let flags = [&[url.as_str()], flags].concat();
    Operator::started(&cluster.kubeconfig("operator").unwrap(), &flags).await
}

/// What the controller of the Deployments would say: so many Pods of two are ready.
fn ready(pods: u32) -> Value {
    let status = json!({
        "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2,
        "readyReplicas": pods, "availableReplicas": pods,
    });
    json!({ "status": status })
}

/// A Task with two replicas in this phase.
async fn task_in(space: &Space<'_>, name: &str, pods: u32, phase: &str) {
    space.task(name, json!({"replicas": 2})).await;
    space.until(SOON, "Deployment", name, "made", |_| true).await;
    space.patch_status("Deployment", name, ready(pods)).await;
    space.until_phase(name, phase).await;
}

async fn until_arrived(sink: &Receiver, count: usize) -> Vec<Post> {
    eventually(SOON, &format!("{count} notifications arrive"), async || {
        let posts = sink.posts();
        if posts.len() >= count { Ok(posts) } else { Err(format!("{} did", posts.len())) }
    })
    .await
}

async fn until_metric(operator: &Operator, line: &str) {
    eventually(SOON, line, async || {
        let (_, page) = operator.get("metrics", "/metrics").await;
        if page.lines().any(|found| found == line) {
            return Ok(());
        }
        let name = line.split(['{', ' ']).next().unwrap();
        Err(page.lines().filter(|found| found.starts_with(name)).collect::<Vec<_>>().join("\n"))
    })
    .await;
}

fn told(post: &Post) -> (String, String) {
    let event = post.json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&event["type"]), format!("{} {}", text(&event["subject"]), text(&event["data"]["phase"])))
}

#[tokio::test]
async fn what_happens_to_a_task_is_told_in_order_and_its_deletion_waits_for_that() {
    let cluster = cluster().await;
    let space = space(&cluster, "told").await;
    let sink = Receiver::start(|_| Reply::status(204)).await;
    let mut operator = operator(&cluster, &sink.url("/hook"), &[]).await;
    task_in(&space, "web", 1, "Running").await;
    space.patch_status("Deployment", "web", ready(2)).await;
    space.until_phase("web", "Succeeded").await;
    let task = space
        .until(SOON, "Task", "web", "told", |task| task["status"]["notifications"] == json!({"settled": 2}))
        .await;
    assert_eq!(*condition(&task, "Notified"), Value::Null);

    sink.plan(|_| Reply::Late(Duration::from_secs(2)));
    let mark = cluster.audit_mark().unwrap();
    let began = Instant::now();
    space.delete("Task", "web").await;
    space.until_gone("Task", "web").await;
    assert!(began.elapsed() >= Duration::from_secs(2), "it went before the sink had answered");
    let writes: Vec<_> =
        mark.requests_of("operator").unwrap().into_iter().filter(|it| it.is_write()).collect();
    let of_task: Vec<_> = writes.iter().filter(|it| it.resource().starts_with("tasks")).collect();
    assert_eq!(of_task.len(), 1, "the removal of the finalizer and nothing else: {of_task:?}");

    let posts = sink.posts();
    let changed = "io.example.task.phase.changed".to_owned();
    assert_eq!(
        posts.iter().map(told).collect::<Vec<_>>(),
        [
            (changed.clone(), "told/web Running".to_owned()),
            (changed, "told/web Succeeded".to_owned()),
            ("io.example.task.deleted".to_owned(), "told/web Succeeded".to_owned()),
        ]
    );
    let sequences: Vec<_> =
        posts.iter().map(|post| post.json()["sequence"].as_str().unwrap().to_owned()).collect();
    assert!(sequences.is_sorted(), "{sequences:?}");
    assert_eq!(posts[0].json()["data"]["previousPhase"], "Pending");
    assert_eq!(posts[0].json()["data"]["reason"], "RollingOut");
    until_metric(&operator, r#"task_operator_deliveries_total{result="delivered"} 3"#).await;
    let (code, page) = operator.get("probes", "/healthz?verbose").await;
    assert!(code == 200 && page.contains("task-queue"), "{page}");
    operator.signal("TERM");
    assert!(operator.ended(SOON).await.success());
    operator.assert_healthy();
}

#[tokio::test]
async fn a_deletion_goes_on_without_a_farewell_that_takes_too_long() {
    let cluster = cluster().await;
    let space = space(&cluster, "farewell").await;
    let sink = Receiver::start(|_| Reply::Never).await;
    let operator = operator(&cluster, &sink.url("/hook"), &["--farewell-timeout=3s"]).await;
    space.task("web", json!({})).await;
    space.until(SOON, "Deployment", "web", "made", |_| true).await;
    let began = Instant::now();
    space.delete("Task", "web").await;
    space.until_gone("Task", "web").await;
    let took = began.elapsed();
    assert!((3..6).contains(&took.as_secs()), "{took:?}");
    space.until_event("web", "FarewellAbandoned", "within 3 s").await;
    until_metric(&operator, r#"task_operator_deliveries_total{result="abandoned"} 1"#).await;
    operator.assert_healthy();
}

#[tokio::test]
async fn what_the_sink_refuses_is_seen_by_whoever_looks_at_the_task() {
    let cluster = cluster().await;
    let space = space(&cluster, "refused").await;
    let gone = Reply::Answer(410, Vec::new(), "this hook is gone".to_owned());
    let sink = Receiver::start(move |_| gone.clone()).await;
    let operator = operator(&cluster, &sink.url("/hook"), &["--notify-mode=binary"]).await;
    task_in(&space, "web", 1, "Running").await;
    let task = space
        .until(SOON, "Task", "web", "says so", |task| condition(task, "Notified")["status"] == "False")
        .await;
    assert_eq!(condition(&task, "Notified")["reason"], "Refused");
    let message = condition(&task, "Notified")["message"].as_str().unwrap();
    assert!(message.contains("410") && message.contains("this hook is gone"), "{message}");
    space.until_event("web", "NotificationFailed", "410").await;
    until_metric(&operator, r#"task_operator_deliveries_total{result="refused"} 1"#).await;
    // kstatus and `kubectl wait` look elsewhere.
    assert_eq!(condition(&task, "Stalled"), &Value::Null);
    assert_eq!(sink.posts()[0].header("ce-type"), "io.example.task.phase.changed");

    sink.plan(|_| Reply::status(204));
    space.patch_status("Deployment", "web", ready(2)).await;
    space.until(SOON, "Task", "web", "is well again", |task| condition(task, "Notified").is_null()).await;
    operator.assert_healthy();
}

#[tokio::test]
async fn a_sink_behind_tls_is_told_if_its_authority_is_trusted() {
    let cluster = cluster().await;
    let space = space(&cluster, "trusted").await;
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let authority = directory.path().join("ca.crt");
    std::fs::write(&authority, made.cert.pem()).unwrap();
    let secret = directory.path().join("secret");
    std::fs::write(&secret, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let sink = Receiver::with_tls(made.cert.pem().as_bytes(), key, |_| Reply::status(204)).await;
    let flags =
        [format!("--notify-url={}", sink.url("/hook")), format!("--notify-secret-file={}", secret.display())];
    let environment = [("SSL_CERT_FILE", authority.to_str().unwrap())];
    let kubeconfig = cluster.kubeconfig("operator").unwrap();
    let operator = Operator::start_with(&kubeconfig, &[&flags[0], &flags[1]], &environment);
    operator.wait_for_log("all watches are synced").await;
    task_in(&space, "web", 2, "Succeeded").await;
    let posts = until_arrived(&sink, 1).await;
    assert!(posts[0].header("webhook-signature").starts_with("v1,"), "{:?}", posts[0]);
    operator.assert_healthy();
}

/// Two replicas that tell the same sink, each under a path of its own.
#[tokio::test]
async fn only_the_leader_tells_and_a_frozen_one_tells_nothing_more() {
    let builder = Cluster::builder().crds(&crds()).user(User::admin("replica-a"));
    let cluster = builder.user(User::admin("replica-b")).start().await.unwrap();
    let space = space(&cluster, "replicas").await;
    let sink = Receiver::start(|_| Reply::status(204)).await;
    let election = [
        "--leader-elect",
        "--leader-election-namespace=default",
        "--lease-duration=4s",
        "--renew-deadline=3s",
        "--retry-period=500ms",
    ];
    let replica = async |user: &str, path: &str| {
        let url = format!("--notify-url={}", sink.url(path));
        let flags = [&[url.as_str()], &election[..]].concat();
        Operator::started(&cluster.kubeconfig(user).unwrap(), &flags).await
    };
    let told_by = |path: &str| {
        let posts = sink.posts().into_iter().filter(|post| post.path == path);
        posts.map(|post| told(&post).1).collect::<Vec<_>>()
    };
    let until_told = async |path: &str, what: &str| {
        eventually(SOON, &format!("{path} tells of {what}"), async || {
            let all = told_by(path);
            if all.iter().any(|told| told.ends_with(what)) { Ok(()) } else { Err(format!("{all:?}")) }
        })
        .await;
    };
    let first = replica("replica-a", "/a").await;
    first.wait_for_log("leading").await;
    let mut second = replica("replica-b", "/b").await;
    task_in(&space, "web", 1, "Running").await;
    until_told("/a", "Running").await;
    assert_eq!(told_by("/b"), Vec::<String>::new());

    first.signal("STOP");
    second.wait_for_log("leading").await;
    space.patch_status("Deployment", "web", ready(2)).await;
    until_told("/b", "Succeeded").await;
    first.signal("CONT");
    tokio::time::sleep(Duration::from_secs(3)).await;
    space.patch_status("Deployment", "web", ready(0)).await;
    until_told("/b", "Pending").await;
    assert_eq!(told_by("/a"), ["replicas/web Running"], "the frozen one told more once it went on");

    // It hands over what it could not tell.
    sink.plan(|post| if post.path == "/b" { Reply::Never } else { Reply::status(204) });
    space.patch_status("Deployment", "web", ready(1)).await;
    space.until_phase("web", "Running").await;
    second.signal("TERM");
    assert!(second.ended(SOON).await.success());
    eventually(SOON, "the first one leads again and tells", async || {
        let all = told_by("/a");
        if all.len() == 2 { Ok(()) } else { Err(format!("{all:?}")) }
    })
    .await;
    first.assert_healthy();
    second.assert_healthy();
}

/// The children of so many Tasks are made; how long that took.
async fn made(space: &Space<'_>, prefix: &str, count: usize) -> Duration {
    let began = Instant::now();
    let numbers: Vec<usize> = (0..count).collect();
    let clients = numbers.chunks(count.div_ceil(8)).map(async |numbers| {
        for number in numbers {
            space.task(&format!("{prefix}-{number}"), json!({"replicas": 2})).await;
        }
    });
    futures::future::join_all(clients).await;
    eventually(PATIENCE, &format!("{count} Deployments {prefix}"), async || {
        let all = space.api("Deployment").list(&ListParams::default()).await.unwrap().items;
        let found = all.iter().filter(|it| it.metadata.name.as_ref().unwrap().starts_with(prefix)).count();
        if found == count { Ok(()) } else { Err(format!("{found}")) }
    })
    .await;
    began.elapsed()
}

/// A sink that hangs, with all workers and all places taken: Tasks are as fast as without a sink.
#[tokio::test]
async fn a_bad_sink_never_slows_reconciling() {
    const TASKS: usize = 60;
    let cluster = cluster().await;
    let space = space(&cluster, "unhurried").await;
    let kubeconfig = cluster.kubeconfig("operator").unwrap();
    let mut without = Operator::started(&kubeconfig, &[]).await;
    made(&space, "warm", TASKS).await;
    let alone = made(&space, "alone", TASKS).await;
    without.signal("TERM");
    assert!(without.ended(SOON).await.success());

    let sink = Receiver::start(|_| Reply::Never).await;
    let operator = operator(&cluster, &sink.url("/hook"), &["--queue-capacity=16"]).await;
    for number in 0..TASKS {
        space.patch_status("Deployment", &format!("warm-{number}"), ready(1)).await;
    }
    until_metric(&operator, "task_operator_queue_depth 16").await;
    until_metric(&operator, &format!("task_operator_queue_held_back {}", TASKS - 16)).await;
    let beside = made(&space, "beside", TASKS).await;
    println!("{TASKS} Tasks: {alone:?} without a sink, {beside:?} beside one that hangs");
    assert!(beside < alone * 2 + Duration::from_secs(1), "{alone:?} without a sink, {beside:?} with one");
    operator.assert_healthy();
}

/// Numbers that look random, the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// The phases of each Task by its uid, in order, as an observer sees them that misses nothing.
type Seen = Arc<Mutex<HashMap<String, Vec<String>>>>;

async fn observe(api: Api<DynamicObject>, mut version: String, seen: Seen) {
    loop {
        let params = WatchParams::default().timeout(250);
        let mut events = api.watch(&params, &version).await.unwrap().boxed();
        while let Some(event) = events.next().await {
            let (WatchEvent::Added(task) | WatchEvent::Modified(task) | WatchEvent::Deleted(task)) =
                event.unwrap()
            else {
                continue;
            };
            version.clone_from(task.metadata.resource_version.as_ref().unwrap());
            let phase = task.data["status"]["phase"].as_str().unwrap_or("Pending").to_owned();
            let mut seen = seen.lock().unwrap();
            let phases = seen.entry(task.metadata.uid.clone().unwrap()).or_default();
            if phases.last() != Some(&phase) {
                phases.push(phase);
            }
        }
    }
}

/// Holds what arrived against what was seen; how many changes, repeats and deletions there were.
fn compare(posts: &[Post], seen: &HashMap<String, Vec<String>>) -> (usize, usize, usize) {
    let mut bodies: HashMap<String, &str> = HashMap::new();
    let mut place: HashMap<String, usize> = HashMap::new();
    let (mut changes, mut repeats, mut deletions) = (0, 0, 0);
    for post in posts {
        let event = post.json();
        let id = event["id"].as_str().unwrap().to_owned();
        if let Some(first) = bodies.get(&id) {
            assert_eq!(*first, post.body, "a repeat differs");
            repeats += 1;
            continue;
        }
        bodies.insert(id, &post.body);
        let data = &event["data"];
        let uid = data["uid"].as_str().unwrap();
        let phases = &seen[uid];
        let at = place.entry(uid.to_owned()).or_default();
        if event["type"] == "io.example.task.deleted" {
            assert_eq!(*at, phases.len() - 1, "the deletion comes before a change: {event}");
            deletions += 1;
            continue;
        }
        assert_eq!(data["previousPhase"], json!(phases[*at]), "{event}\n{phases:?}");
        *at += 1 + usize::try_from(data["skipped"].as_u64().unwrap()).unwrap();
        assert_eq!(data["phase"], json!(phases[*at]), "{event}\n{phases:?}");
        assert_eq!(data["number"], json!(*at), "{event}");
        changes += 1;
    }
    for (uid, phases) in seen {
        let told = place.get(uid).copied().unwrap_or_default();
        assert_eq!(told, phases.len() - 1, "of {uid} only {told} changes arrived: {phases:?}");
    }
    (changes, repeats, deletions)
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// The promise, with everything against it. `NOTIFY_TASKS=1000 NOTIFY_OUTAGE=30` is the full
/// measure, which takes some minutes; without them it is a smaller one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_often_operator_and_sink_die_each_change_arrives_in_order() {
    let (tasks, outage) = (setting("NOTIFY_TASKS", 60), setting("NOTIFY_OUTAGE", 6));
    let cluster = cluster().await;
    let space = space(&cluster, "storm").await;
    let version = space.api("Task").list(&ListParams::default()).await.unwrap().metadata.resource_version;
    let seen = Seen::default();
    let observer = tokio::spawn(observe(space.api("Task"), version.unwrap(), seen.clone()));
    let mut dice = Chance(0x5eed);
    let mut sink = Receiver::start(move |_| match dice.below(50) {
        0 => Reply::status(503),
        1 => Reply::HangUp,
        2 => Reply::with(429, "Retry-After", "1"),
        3 => Reply::Late(Duration::from_millis(300)),
        _ => Reply::status(204),
    })
    .await;
    let url = sink.url("/hook");
    let mut running = operator(&cluster, &url, &[]).await;
    let began = Instant::now();
    made(&space, "web", usize::try_from(tasks).unwrap()).await;
    println!("{tasks} Tasks are there after {:?}", began.elapsed());

    let over = AtomicBool::new(false);
    let deployments = space.api("Deployment");
    // Their Pods come and go.
    let pods = async {
        let (mut dice, mut round) = (Chance(7), 0);
        while !over.load(Ordering::Relaxed) || round < tasks {
            // At first each once. No Task changes more often in an outage than its status can hold.
            let number = if round < tasks { round } else { dice.below(tasks) };
            let patch = Patch::Merge(ready(u32::try_from(dice.below(3)).unwrap()));
            let patched =
                deployments.patch_status(&format!("web-{number}"), &PatchParams::default(), &patch).await;
            patched.unwrap();
            tokio::time::sleep(Duration::from_millis(1000 / tasks.max(20))).await;
            round += 1;
        }
        round
    };
    let deaths = async {
        let mut dice = Chance(11);
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(dice.below(outage * 1200))).await;
            running.assert_healthy();
            running.kill();
            running = operator(&cluster, &url, &[]).await;
        }
        running
    };
    let outages = async {
        for _ in 0..2 {
            tokio::time::sleep(Duration::from_secs(outage) / 2).await;
            sink.go_down().await;
            tokio::time::sleep(Duration::from_secs(outage)).await;
            sink.come_back().await;
        }
        sink
    };
    let trouble = async {
        let both = tokio::join!(deaths, outages);
        over.store(true, Ordering::Relaxed);
        both
    };
    let (rounds, (running, sink)) = tokio::join!(pods, trouble);
    println!("{rounds} changes of Deployments until {:?}", began.elapsed());

    eventually(PATIENCE, "all is told", async || {
        let deployments = space.api("Deployment").list(&ListParams::default()).await.unwrap().items;
        let phases: HashMap<_, _> = deployments
            .iter()
            .map(|it| (it.metadata.name.clone(), it.data["status"]["readyReplicas"].as_u64().unwrap_or(0)))
            .collect();
        let all = space.api("Task").list(&ListParams::default()).await.unwrap().items;
        let behind = all.iter().filter(|task| {
            let pods = usize::try_from(phases[&task.metadata.name]).unwrap();
            let status = &task.data["status"];
            status["phase"] != ["Pending", "Running", "Succeeded"][pods]
                || !status["notifications"]["pending"].is_null()
        });
        let behind = behind.count();
        if behind == 0 { Ok(()) } else { Err(format!("{behind} Tasks are behind; {}", running.log_tail())) }
    })
    .await;
    println!("all is told after {:?}", began.elapsed());
    for number in 0..tasks / 10 {
        space.delete("Task", &format!("web-{number}")).await;
    }
    for number in 0..tasks / 10 {
        space.until_gone("Task", &format!("web-{number}")).await;
    }
    observer.abort();
    let seen = seen.lock().unwrap();
    let (changes, repeats, deletions) = compare(&sink.posts(), &seen);
    println!("{changes} changes and {deletions} deletions arrived, {repeats} of them more than once");
    assert_eq!(deletions, usize::try_from(tasks / 10).unwrap());
    assert!(changes > usize::try_from(tasks).unwrap() / 2, "{changes} changes");
    running.assert_healthy();
}
