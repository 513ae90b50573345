//! The servers for probes and metrics, over real sockets.
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use actix_web::dev::ServerHandle;
use task_operator::api::TaskKey;
use task_operator::api::v1::Phase;
use task_operator::telemetry::{Metrics, PassResult};
use task_operator::web::health::Health;
use task_operator::web::{BindAddress, serve_metrics, serve_probes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// More than any answer takes, less than a test may hang.
const DEADLINE: Duration = Duration::from_secs(20);

/// Any free port.
fn anywhere() -> BindAddress {
    "127.0.0.1:0".parse().unwrap()
}

fn probes(health: &Health) -> (ServerHandle, SocketAddr) {
    running(serve_probes(&anywhere(), health.clone()))
}

fn metrics(metrics: &Metrics) -> (ServerHandle, SocketAddr) {
    running(serve_metrics(&anywhere(), metrics.clone()))
}

fn running(
    served: anyhow::Result<Option<(actix_web::dev::Server, SocketAddr)>>,
) -> (ServerHandle, SocketAddr) {
    let (server, address) = served.unwrap().unwrap();
    let handle = server.handle();
    actix_web::rt::spawn(server);
    (handle, address)
}

/// What came back.
struct Answer {
    head: String,
    body: String,
}

impl Answer {
    fn status(&self) -> u16 {
        self.head
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .unwrap_or_else(|| panic!("{}", self.head))
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(": "))
            .find_map(|(found, value)| found.eq_ignore_ascii_case(name).then_some(value))
    }

    fn parse(bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes).unwrap();
        let (head, body) =
            text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no end of the head in {text:?}"));
        let mut answer = Self { head: head.to_owned(), body: body.to_owned() };
        // An answer to HEAD has the header and no chunk.
        if answer.header("transfer-encoding") == Some("chunked") && !answer.body.is_empty() {
            answer.body = unchunked(&answer.body);
        }
        answer
    }
}

fn unchunked(mut text: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = text.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return whole;
        }
        whole.push_str(&rest[..size]);
        text = rest[size..].strip_prefix("\r\n").unwrap();
    }
    panic!("the last chunk is missing")
}

/// Sends this and reads until the server closes.
async fn exchange(address: SocketAddr, request: &str) -> Vec<u8> {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        match stream.read_to_end(&mut bytes).await {
            // A reset is also an end.
            Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
            _ => bytes,
        }
    };
    let result = tokio::time::timeout(DEADLINE, exchange).await;
    result.unwrap_or_else(|_| panic!("the connection is still open after {DEADLINE:?}: {request:?}"))
}

async fn ask(address: SocketAddr, method: &str, path: &str, headers: &str) -> Answer {
    let request = format!("{method} {path} HTTP/1.1\r\nHost: it\r\nConnection: close\r\n{headers}\r\n");
    Answer::parse(&exchange(address, &request).await)
}

async fn get(address: SocketAddr, path: &str) -> Answer {
    ask(address, "GET", path, "").await
}

#[actix_web::test]
async fn probes_pass_and_list_their_checks() {
    let health = Health::default();
    let _heartbeat = health.heartbeat("event-loop");
    health.add_information("watches-synced", || Err("Task is not listed yet".to_owned()));
    let (_server, address) = probes(&health);

    for path in ["/healthz", "/readyz", "/healthz/event-loop", "/readyz/shutdown"] {
        let answer = get(address, path).await;
        assert_eq!((answer.status(), answer.body.as_str()), (200, "ok"), "{path}");
        assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"), "{path}");
    }
    let answer = get(address, "/readyz?verbose").await;
    assert_eq!(answer.status(), 200);
    assert_eq!(
        answer.body,
        "[+]shutdown ok\n[-]watches-synced failed (not required): Task is not listed yet\n\
         readyz check passed\n"
    );
    let answer = get(address, "/readyz/watches-synced").await;
    assert_eq!(answer.status(), 500);
    assert_eq!(answer.body, "[-]watches-synced failed: Task is not listed yet\n");
    assert_eq!(get(address, "/readyz/nothing").await.status(), 404);
    // A check belongs to one of the two probes.
    assert_eq!(get(address, "/readyz/event-loop").await.status(), 404);
}

#[actix_web::test]
async fn a_stuck_loop_fails_liveness_and_not_readiness() {
    let health = Health::default();
    // Each probe is later than its last beat.
    let _heartbeat = health.heartbeat_within("event-loop", Duration::ZERO);
    let (_server, address) = probes(&health);
    let deadline = Instant::now() + DEADLINE;
    let failed = loop {
        let answer = get(address, "/healthz").await;
        if answer.status() == 500 {
            break answer;
        }
        assert!(Instant::now() < deadline, "still {}", answer.body);
    };
    assert!(failed.body.starts_with("[-]event-loop failed: has not turned for"), "{}", failed.body);
    assert!(failed.body.ends_with("healthz check failed\n"), "{}", failed.body);
    assert_eq!(get(address, "/healthz?exclude=event-loop").await.body, "ok");
    assert_eq!(get(address, "/readyz").await.body, "ok");
}

#[actix_web::test]
async fn draining_ends_readiness_while_the_server_goes_on() {
    let health = Health::default();
    let (_server, address) = probes(&health);
    assert_eq!(get(address, "/readyz").await.status(), 200);
    health.drain();
    let answer = get(address, "/readyz").await;
    assert_eq!(answer.status(), 500);
    assert!(answer.body.contains("[-]shutdown failed: the process is shutting down\n"), "{}", answer.body);
    assert_eq!(get(address, "/healthz").await.status(), 200);
}

#[actix_web::test]
async fn other_methods_and_paths_are_refused_in_plain_text() {
    let (_probes, probes) = probes(&Health::default());
    let (_metrics, metrics) = metrics(&Metrics::new(true));
    for (address, path) in
        [(probes, "/readyz"), (probes, "/healthz/x"), (metrics, "/metrics"), (metrics, "/")]
    {
        let answer = ask(address, "POST", path, "Content-Length: 0\r\n").await;
        assert_eq!(answer.status(), 405, "{path}");
        assert_eq!(answer.header("allow"), Some("GET, HEAD"), "{path}");
        assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"), "{path}");
        assert_eq!(answer.body, "405 method not allowed\n", "{path}");
    }
    for (address, path) in [(probes, "/metrics"), (metrics, "/readyz"), (metrics, "/metrics/x")] {
        for method in ["GET", "DELETE"] {
            let answer = ask(address, method, path, "").await;
            assert_eq!(
                (answer.status(), answer.body.as_str()),
                (404, "404 page not found\n"),
                "{method} {path}"
            );
            assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"), "{path}");
        }
    }
    assert_eq!(get(probes, "/").await.body, "/healthz\n/healthz/CHECK\n/readyz\n/readyz/CHECK\n");
    assert_eq!(get(metrics, "/").await.body, "/metrics\n");
}

#[actix_web::test]
async fn head_answers_as_get_without_the_body() {
    let (_probes, probes) = probes(&Health::default());
    let many = Metrics::new(true);
    count_passes(&many, 1000);
    let (_metrics, metrics) = metrics(&many);
    for (address, path) in [(probes, "/"), (probes, "/readyz"), (metrics, "/metrics")] {
        let answer = ask(address, "HEAD", path, "").await;
        assert_eq!((answer.status(), answer.body.as_str()), (200, ""), "{path}");
        assert!(answer.header("content-type").is_some(), "{path}");
    }
    assert_eq!(ask(probes, "HEAD", "/nothing", "").await.status(), 404);
}

fn count_passes(metrics: &Metrics, tasks: usize) {
    for number in 0..tasks {
        let key = TaskKey::new("default", format!("web-{number}"));
        metrics.pass_started();
        metrics.pass_finished(&key, Phase::Succeeded, PassResult::RequeueAfter, Duration::from_millis(20));
    }
}

#[actix_web::test]
async fn metrics_come_in_the_format_that_is_asked_for() {
    let counted = Metrics::new(true);
    count_passes(&counted, 1);
    let (_server, address) = metrics(&counted);

    let text = get(address, "/metrics").await;
    assert_eq!(text.status(), 200);
    assert_eq!(text.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert!(text.header("content-length").is_some(), "{}", text.head);
    assert!(text.body.contains("\n# TYPE task_reconcile_total counter\n"), "{}", text.body);
    assert!(!text.body.contains("# EOF"));

    let open =
        ask(address, "GET", "/metrics", "Accept: application/openmetrics-text;version=1.0.0\r\n").await;
    assert_eq!(
        open.header("content-type"),
        Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    assert!(open.body.contains("\n# TYPE task_reconcile counter\n"), "{}", open.body);
    assert!(open.body.ends_with("\n# EOF\n"), "{}", open.body);
}

#[actix_web::test]
async fn metrics_of_many_tasks_come_in_pieces_and_whole() {
    let counted = Metrics::new(true);
    count_passes(&counted, 3000);
    let (_server, address) = metrics(&counted);
    let answer = get(address, "/metrics").await;
    assert_eq!(answer.header("transfer-encoding"), Some("chunked"));
    let count = |start: &str| answer.body.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!(count("task_reconcile_total{"), 3000);
    assert_eq!(count("task_reconcile_duration_seconds_count{"), 3000);
    assert!(answer.body.ends_with('\n'));
}

#[actix_web::test]
async fn a_server_that_is_off_is_none_and_a_taken_address_names_its_flag() {
    assert!(serve_probes(&BindAddress::Off, Health::default()).unwrap().is_none());
    let (_server, taken) = probes(&Health::default());
    let error = serve_metrics(&BindAddress::At(taken), Metrics::new(true)).err().unwrap();
    let error = format!("{error:#}");
    assert!(error.starts_with(&format!("--metrics-bind-address {taken}: ")), "{error}");
    assert!(error.contains("in use"), "{error}");
}

#[actix_web::test]
async fn slow_and_broken_requests_end_within_their_deadline() {
    let (_server, address) = probes(&Health::default());
    let slow_head = exchange(address, "GET /readyz HTTP/1.1\r\nHost: it\r\n");
    let no_body =
        exchange(address, "POST /readyz HTTP/1.1\r\nHost: it\r\nContent-Length: 1000000\r\n\r\nabc");
    let unread = exchange(
        address,
        "GET /readyz HTTP/1.1\r\nHost: it\r\nConnection: close\r\nContent-Length: 1000\r\n\r\nabc",
    );
    let garbage = exchange(address, "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}garbage\r\n\r\n");
    let long_head = format!("GET /readyz HTTP/1.1\r\nHost: it\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    let long_head = exchange(address, &long_head);
    let (slow_head, no_body, unread, garbage, long_head) =
        tokio::join!(slow_head, no_body, unread, garbage, long_head);
    for (name, bytes, allowed) in [
        ("slow head", slow_head, &["408"][..]),
        ("no body", no_body, &["405"][..]),
        ("unread body", unread, &["200"][..]),
        ("garbage", garbage, &["400"][..]),
        // It may have been cut off while it was still sending.
        ("long head", long_head, &["431", "400", ""][..]),
    ] {
        let text = String::from_utf8_lossy(&bytes);
        let code = text.split(' ').nth(1).unwrap_or_default();
        assert!(allowed.contains(&code), "{name}: {text}");
    }
    assert_eq!(get(address, "/readyz").await.status(), 200);
}

#[actix_web::test]
async fn a_stop_does_not_wait_for_those_who_only_connect() {
    let (server, address) = probes(&Health::default());
    let _idle = TcpStream::connect(address).await.unwrap();
    assert_eq!(get(address, "/readyz").await.status(), 200);
    let began = Instant::now();
    tokio::time::timeout(DEADLINE, server.stop(true)).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(3), "it took {:?}", began.elapsed());
    assert!(TcpStream::connect(address).await.is_err());
}

#[actix_web::test]
async fn a_connection_is_for_one_request() {
    let (_server, address) = probes(&Health::default());
    // The second request never ends.
    let bytes =
        exchange(address, "GET /readyz HTTP/1.1\r\nHost: it\r\n\r\nGET /readyz HTTP/1.1\r\nHost:").await;
    let answer = Answer::parse(&bytes);
    assert_eq!((answer.status(), answer.body.as_str()), (200, "ok"));
    assert_eq!(answer.header("connection"), Some("close"));
}

/// With many more of them than there may be connections, honest clients would wait.
#[actix_web::test]
async fn clients_that_send_nothing_keep_nobody_else_waiting_for_long() {
    let (_server, address) = probes(&Health::default());
    let mut silent = Vec::new();
    for _ in 0..400 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    assert_eq!(get(address, "/healthz").await.status(), 200);
}
