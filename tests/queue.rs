//! The task queue in one process, with a sink behind a real socket that behaves badly.
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

#[path = "support/receiver.rs"]
mod receiver;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use actix::{Actor, Addr, Context, Handler};
use receiver::{Post, Receiver, Reply};
use task_operator::api::TaskKey;
use task_operator::api::v1::Phase;
use task_operator::cluster::lease::Fence;
use task_operator::queue::actor::{Drain, Offer, Parts, Queue, ReportTo};
use task_operator::queue::cloud_event::Mode;
use task_operator::queue::notice::{Notice, Transition, What};
use task_operator::queue::secret_file::SecretFile;
use task_operator::queue::sink::Sink;
use task_operator::queue::{Outcome, Told};
use task_operator::supervisor::clock::Clock;
use task_operator::telemetry::{Format, Metrics};

/// More than anything here takes, less than a test may hang.
const DEADLINE: Duration = Duration::from_secs(30);
/// `whsec_` and 24 bytes.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Keeps what the queue reports.
struct Ear(Rc<RefCell<Vec<Told>>>);

impl Actor for Ear {
    type Context = Context<Self>;
}

impl Handler<Told> for Ear {
    type Result = ();

    fn handle(&mut self, told: Told, _: &mut Self::Context) {
        self.0.borrow_mut().push(told);
    }
}

struct Bench {
    queue: Addr<Queue>,
    told: Rc<RefCell<Vec<Told>>>,
    metrics: Metrics,
}

impl Bench {
    fn new(url: &str, workers: usize, capacity: usize) -> Self {
        Self::with(
            Sink::new(url.parse().unwrap(), Mode::Structured, None, workers).unwrap(),
            workers,
            capacity,
        )
    }

    fn with(sink: Sink, workers: usize, capacity: usize) -> Self {
        let (metrics, clock) = (Metrics::new(false), Clock::default());
        let fence = Fence::open(clock);
        let parts = Parts { sink, workers, capacity, fence, metrics: metrics.clone(), clock };
        let queue = Queue::new(parts).start();
        let told = Rc::new(RefCell::new(Vec::new()));
        queue.do_send(ReportTo(Ear(told.clone()).start().recipient()));
        Self { queue, told, metrics }
    }

    fn offer(&self, task: usize) {
        self.queue.do_send(Offer(notice(task)));
    }

    /// Offers one notice and returns what became of it.
    async fn deliver(&self) -> Outcome {
        self.offer(0);
        until("the outcome", || self.told.borrow_mut().pop()).await.outcome
    }

    fn metric(&self, name: &str) -> f64 {
        let text: String = self.metrics.scrape(Format::Text).collect();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse().unwrap()
    }
}

fn notice(task: usize) -> Notice {
    let transition = Transition {
        from: Phase::Running,
        to: Phase::Succeeded,
        at: 1_700_000_000,
        generation: 1,
        reason: "Available".into(),
        message: "the replica is ready".into(),
        skipped: 0,
    };
    Notice {
        key: TaskKey::new("default", format!("task-{task}").as_str()),
        uid: format!("uid-{task}").as_str().into(),
        what: What::Phase(1, transition),
    }
}

async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < DEADLINE, "after {DEADLINE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What becomes of a notice that is answered like this.
async fn outcome_of(reply: Reply) -> Outcome {
    let receiver = Receiver::start(move |_| reply.clone()).await;
    Bench::new(&receiver.url("/hook"), 2, 8).deliver().await
}

fn failed(outcome: &Outcome) -> (&str, Option<Duration>) {
    match outcome {
        Outcome::Failed(why, asked) => (why, *asked),
        other => panic!("{other:?}"),
    }
}

#[actix_web::test]
async fn a_notice_arrives_signed_as_a_cloud_event() {
    let receiver = Receiver::start(|_| Reply::status(204)).await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("secret");
    std::fs::write(&file, SECRET).unwrap();
    let secrets = Some(SecretFile::open(&file).unwrap());
    let url = receiver.url("/hook?from=here").parse().unwrap();
    let bench = Bench::with(Sink::new(url, Mode::Structured, secrets, 1).unwrap(), 1, 8);
    assert_eq!(bench.deliver().await, Outcome::Delivered);
    let posts = receiver.posts();
    let [post] = &posts[..] else { panic!("{posts:?}") };
    assert_eq!(post.path, "/hook?from=here");
    assert_eq!(post.json()["subject"], "default/task-0");
    assert_eq!(post.json()["id"], post.header("webhook-id"));
    assert!(post.header("webhook-signature").starts_with("v1,"));
    assert!(post.header("user-agent").starts_with("task-operator/"));
    // Standard Webhooks: over id, time and body, with the bytes behind the prefix.
    use base64::Engine;
    let base64 = base64::engine::general_purpose::STANDARD;
    let key = base64.decode(SECRET.trim_start_matches("whsec_")).unwrap();
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key);
    let signed = format!("{}.{}.{}", post.header("webhook-id"), post.header("webhook-timestamp"), post.body);
    let signature = base64.decode(post.header("webhook-signature").trim_start_matches("v1,")).unwrap();
    ring::hmac::verify(&key, signed.as_bytes(), &signature).unwrap();
}

#[actix_web::test]
async fn what_the_sink_answers_decides_what_becomes_of_a_notice() {
    for code in [200, 201, 202, 204] {
        assert_eq!(outcome_of(Reply::status(code)).await, Outcome::Delivered, "{code}");
    }
    for code in [400, 401, 403, 404, 410, 413, 422, 425] {
        let outcome = outcome_of(Reply::Answer(code, vec![], "go\r\n away".to_owned())).await;
        let Outcome::Refused(why) = outcome else { panic!("{code}: {outcome:?}") };
        assert!(why.contains(&code.to_string()) && why.ends_with(": go away"), "{why}");
    }
    for code in [408, 429, 500, 502, 503, 504] {
        let outcome = outcome_of(Reply::with(code, "Retry-After", "7")).await;
        let (why, asked) = failed(&outcome);
        assert!(why.contains(&code.to_string()), "{why}");
        assert_eq!(asked, Some(Duration::from_secs(7)), "{code}");
    }
    assert_eq!(failed(&outcome_of(Reply::status(503)).await).1, None);
}

#[actix_web::test]
async fn a_sink_that_does_not_answer_is_given_ten_seconds() {
    let receiver = Receiver::start(|_| Reply::Never).await;
    let bench = Bench::new(&receiver.url("/"), 1, 8);
    let began = Instant::now();
    assert!(failed(&bench.deliver().await).0.contains("no answer within 10 s"));
    assert!((9..13).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    receiver.plan(|_| Reply::HangUp);
    failed(&bench.deliver().await);
    receiver.plan(|_| Reply::Late(Duration::from_millis(300)));
    assert_eq!(bench.deliver().await, Outcome::Delivered);
}

#[actix_web::test]
async fn an_answer_without_end_is_not_read_to_its_end() {
    let before = memory();
    assert_eq!(outcome_of(Reply::Endless).await, Outcome::Delivered);
    let grown = memory().saturating_sub(before);
    assert!(grown < 32 << 20, "{grown} bytes more");
}

#[actix_web::test]
async fn a_redirect_is_followed_on_the_same_host_and_nowhere_else() {
    let elsewhere = Receiver::start(|_| Reply::status(204)).await;
    for code in [307, 308] {
        let reply = move |post: &Post| match &*post.path {
            "/old" => Reply::with(code, "Location", "/new"),
            _ => Reply::status(204),
        };
        let receiver = Receiver::start(reply).await;
        assert_eq!(Bench::new(&receiver.url("/old"), 1, 8).deliver().await, Outcome::Delivered);
        let posts = receiver.posts();
        assert_eq!(posts.iter().map(|post| &*post.path).collect::<Vec<_>>(), ["/old", "/new"]);
        assert_eq!(posts[0].body, posts[1].body);

        let outcome = outcome_of(Reply::with(code, "Location", elsewhere.url("/"))).await;
        assert!(failed(&outcome).0.contains("another host"), "{outcome:?}");
        let outcome = outcome_of(Reply::with(code, "Location", "/hook")).await;
        assert!(failed(&outcome).0.contains("more than 3 times"), "{outcome:?}");
    }
    for code in [301, 302, 303] {
        failed(&outcome_of(Reply::with(code, "Location", "/new")).await);
    }
    assert_eq!(elsewhere.count(), 0);
}

#[actix_web::test]
async fn a_sink_that_cannot_be_trusted_or_found_is_told_nothing() {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let receiver = Receiver::with_tls(made.cert.pem().as_bytes(), key, |_| Reply::status(204)).await;
    let outcome = Bench::new(&receiver.url("/"), 1, 8).deliver().await;
    assert!(failed(&outcome).0.contains("certificate"), "{outcome:?}");
    assert_eq!(receiver.count(), 0);
    // A sink without TLS where TLS is asked for.
    let plain = Receiver::start(|_| Reply::status(204)).await;
    failed(&Bench::new(&plain.url("/").replace("http:", "https:"), 1, 8).deliver().await);
    assert_eq!(plain.count(), 0);
    // RFC 2606: this name never resolves.
    let outcome = Bench::new("http://sink.invalid/", 1, 8).deliver().await;
    assert!(failed(&outcome).0.contains("dns error"), "{outcome:?}");
    let mut gone = Receiver::start(|_| Reply::status(204)).await;
    gone.go_down().await;
    let outcome = Bench::new(&gone.url("/"), 1, 8).deliver().await;
    assert!(failed(&outcome).0.contains("refused"), "{outcome:?}");
}

#[actix_web::test]
async fn no_more_than_the_workers_are_sent_at_once() {
    let (at_once, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, peak) = (at_once.clone(), most.clone());
    let receiver = Receiver::start(move |_| {
        peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let now = now.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(19)).await;
            now.fetch_sub(1, Ordering::SeqCst);
        });
        Reply::Late(Duration::from_millis(20))
    })
    .await;
    let bench = Bench::new(&receiver.url("/"), 3, 100);
    for task in 0..40 {
        bench.offer(task);
    }
    until("all are delivered", || (bench.told.borrow().len() == 40).then_some(())).await;
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

/// Ten thousand Tasks with something to tell, and nobody who listens: the queue
/// keeps as many as it may, and holds the others back. Once the sink is there, all of it arrives.
#[actix_web::test]
async fn ten_thousand_undelivered_notices_cost_no_memory_and_none_is_lost() {
    const TASKS: usize = 10_000;
    let mut receiver = Receiver::start(|_| Reply::status(204)).await;
    receiver.go_down().await;
    let bench = Bench::new(&receiver.url("/"), 4, 1024);
    let before = memory();
    for task in 0..TASKS {
        bench.offer(task);
        if task % 500 == 0 {
            tokio::task::yield_now().await;
        }
    }
    let held_back = || bench.metric("task_operator_queue_held_back");
    until("most are held back", || (held_back() > 8000.0).then_some(())).await;
    let grown = memory().saturating_sub(before);
    println!("{} MiB for {TASKS} undelivered notices, {} held back", grown >> 20, held_back());
    assert!(bench.metric("task_operator_queue_depth") <= 1024.0);
    assert!(grown < 48 << 20, "{grown} bytes more");
    until("the sink counts as down", || (bench.metric("task_operator_sink_up") == 0.0).then_some(())).await;

    receiver.come_back().await;
    let mut delivered = 0;
    let began = Instant::now();
    while delivered < TASKS {
        assert!(began.elapsed() < DEADLINE * 2, "{delivered} delivered");
        let told = std::mem::take(&mut *bench.told.borrow_mut());
        for told in told {
            match told.outcome {
                Outcome::Delivered => delivered += 1,
                // What a supervisor does, without the wait.
                _ => bench.offer(told.key.name.trim_start_matches("task-").parse().unwrap()),
            }
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    println!("delivered within {:?}", began.elapsed());
    assert_eq!(receiver.count(), TASKS);
    until("nothing is left", || (bench.metric("task_operator_queue_unsettled") == 0.0).then_some(())).await;
}

#[actix_web::test]
async fn a_queue_that_is_told_to_stop_sends_what_it_has() {
    let receiver = Receiver::start(|_| Reply::Late(Duration::from_millis(10))).await;
    let bench = Bench::new(&receiver.url("/"), 2, 100);
    for task in 0..20 {
        bench.offer(task);
    }
    bench.queue.send(Drain).await.unwrap();
    assert_eq!(receiver.count(), 20);
    bench.offer(99);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(receiver.count(), 20, "nothing is taken in any more");
}

#[actix_web::test]
async fn a_queue_that_is_told_to_stop_does_not_wait_for_a_sink_that_is_down() {
    let mut receiver = Receiver::start(|_| Reply::status(204)).await;
    receiver.go_down().await;
    let bench = Bench::new(&receiver.url("/"), 2, 100);
    for task in 0..20 {
        bench.offer(task);
    }
    let began = Instant::now();
    bench.queue.send(Drain).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

/// The memory of this process that is in RAM, in bytes.
fn memory() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
