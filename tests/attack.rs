//! The server of the webhooks under attack: as the whole program, over TLS, with
//! good requests beside every attack.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "what fails here is a test that fails; its figures are printed"
)]

mod support;
#[path = "attack/target.rs"]
mod target;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use target::{MUTATE, PATIENCE, Target, Tls, VALIDATE, answer, head, request, review, task};

/// Sends in pieces until the other side has enough, then reads what it says.
async fn flood(stream: &mut Tls, head: &[u8], piece: &[u8], times: usize) -> Option<(u16, String)> {
    stream.write_all(head).await.ok()?;
    for _ in 0..times {
        if stream.write_all(piece).await.is_err() {
            break;
        }
    }
    let _ = stream.flush().await;
    answer(stream).await
}

/// Until the other side closes the connection; what it said before.
async fn until_closed(stream: &mut (impl AsyncReadExt + Unpin)) -> Vec<u8> {
    let mut said = Vec::new();
    let ended = timeout(PATIENCE, stream.read_to_end(&mut said)).await;
    assert!(ended.is_ok(), "still open after {PATIENCE:?}");
    said
}

/// Sends good requests until `attack` ends, and tells how long they took.
async fn beside(target: &Target, name: &str, attack: impl Future<Output = ()>) {
    let over = AtomicBool::new(false);
    let good = async {
        let mut took = Vec::new();
        let mut kept = target.tls().await;
        while !over.load(Ordering::Relaxed) || took.len() < 100 {
            took.push(target.good(&mut kept).await);
            // A new connection has to be let in too, as the API server opens them.
            if took.len() % 20 == 0 {
                let began = Instant::now();
                let mut new = target.tls().await;
                target.good(&mut new).await;
                took.push(began.elapsed());
            }
            sleep(Duration::from_millis(5)).await;
        }
        took
    };
    let began = Instant::now();
    let attack = async {
        attack.await;
        over.store(true, Ordering::Relaxed);
    };
    let (mut took, ()) = tokio::join!(good, attack);
    took.sort();
    let p99 = took[took.len() * 99 / 100];
    println!(
        "{name}: {:.1} s; {} good requests beside it, p50 {:.1} ms, p99 {:.1} ms; {} MiB at most, {} files",
        began.elapsed().as_secs_f64(),
        took.len(),
        took[took.len() / 2].as_secs_f64() * 1e3,
        p99.as_secs_f64() * 1e3,
        target.peak_memory(),
        target.files(),
    );
    // Alone on a machine it is a few milliseconds; here others may want the processor too.
    assert!(p99 < Duration::from_secs(1), "{name}: p99 {p99:?}");
    assert!(target.peak_memory() < 256, "{name}: {} MiB", target.peak_memory());
    target.operator.assert_healthy();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_attack_ends_and_good_requests_are_answered_beside_it() {
    let target = Target::start().await;
    beside(&target, "nothing", sleep(Duration::from_secs(1))).await;
    let files = target.files();

    beside(&target, "bodies of 100 MB", async {
        let piece = vec![b' '; 1 << 20];
        for path in [VALIDATE, MUTATE, "/convert"] {
            let announced = head(path, "Content-Length: 104857600\r\n");
            let said = flood(&mut target.tls().await, &announced, &piece, 100).await;
            assert!(said.is_none_or(|(code, _)| code == 413), "{path}");
            let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat();
            let said =
                flood(&mut target.tls().await, &head(path, "Transfer-Encoding: chunked\r\n"), &chunk, 100)
                    .await;
            assert!(said.is_none_or(|(code, _)| code == 413), "{path}");
        }
    })
    .await;

    beside(&target, "slow heads and bodies", async {
        let slow = async |start: Vec<u8>, allowed: &[&str]| {
            let mut stream = target.tls().await;
            let began = Instant::now();
            // One after the other, for as long as it is let.
            for byte in start {
                let is_sent = stream.write_all(&[byte]).await.is_ok() && stream.flush().await.is_ok();
                if !is_sent || began.elapsed() > PATIENCE {
                    break;
                }
                let mut said = [0; 64];
                match timeout(Duration::from_millis(200), stream.read(&mut said)).await {
                    Err(_) => {}
                    Ok(Ok(count)) if count > 0 => {
                        let said = String::from_utf8_lossy(&said[..count]).into_owned();
                        assert!(allowed.iter().any(|code| said.contains(code)), "{said}");
                        break;
                    }
                    Ok(_) => break,
                }
            }
            assert!(began.elapsed() < PATIENCE, "still open after {:?}", began.elapsed());
        };
        let mut body = head(VALIDATE, "Content-Length: 10000\r\n");
        body.extend(vec![b'['; 10_000]);
        tokio::join!(slow(head(VALIDATE, &"X: y\r\n".repeat(100)), &["408", "400"]), async {
            let mut stream = target.tls().await;
            let length = head(VALIDATE, "Content-Length: 10000\r\n");
            stream.write_all(&length).await.unwrap();
            stream.flush().await.unwrap();
            let said = timeout(PATIENCE, answer(&mut stream)).await.expect("a slow body has no deadline");
            assert!(said.is_none_or(|(code, _)| code == 408));
        });
    })
    .await;

    beside(&target, "1000 idle connections, half of them with TLS", async {
        let mut plain = Vec::new();
        let mut tls = Vec::new();
        for _ in 0..500 {
            plain.push(target.plain().await);
            tls.push(target.tls().await);
        }
        // Those that did not even begin are closed before long; the others may stay for a while.
        for mut stream in plain {
            until_closed(&mut stream).await;
        }
    })
    .await;

    beside(&target, "no TLS, and an old one", async {
        let mut stream = target.plain().await;
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let said = until_closed(&mut stream).await;
        assert!(!said.starts_with(b"HTTP"), "{said:?}");
        let mut stream = target.plain().await;
        stream.write_all(&client_hello_of_tls_1_0()).await.unwrap();
        let said = until_closed(&mut stream).await;
        // A fatal alert: protocol_version (70), or handshake_failure (40) since the ciphers are as old.
        assert!(said.first() == Some(&21) && [Some(&70), Some(&40)].contains(&said.last()), "{said:?}");
    })
    .await;

    beside(&target, "deeply nested JSON", async {
        let mut stream = target.tls().await;
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
            for object in [deep.clone(), review(&task()).to_string().replace("\"1\"", &deep)] {
                for path in [VALIDATE, MUTATE, "/convert"] {
                    stream.write_all(&request(path, object.as_bytes())).await.unwrap();
                    stream.flush().await.unwrap();
                    let said = timeout(PATIENCE, answer(&mut stream)).await.unwrap();
                    let Some((code, body)) = said else { panic!("{path}: closed") };
                    assert!(code == 400 || body.contains("\"allowed\":false"), "{path}: {code} {body}");
                }
            }
        }
    })
    .await;

    beside(&target, "10 000 fuzzed reviews", fuzz(&target, 10_000)).await;

    // Nothing is left of it but what the API server would keep too.
    test_cluster::eventually(Duration::from_secs(120), "the connections are gone", async || {
        let now = target.files();
        if now <= files + 8 { Ok(()) } else { Err(format!("{now} files, {files} before")) }
    })
    .await;
}

/// Reviews with bytes flipped, cut out, doubled and put in: each gets an answer that is no failure of the server.
async fn fuzz(target: &Target, times: usize) {
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut number = |below: usize| random.next_u64() as usize % below;
    let good = review(&task()).to_string().into_bytes();
    let tokens: [&[u8]; 8] =
        [b"null", b"1e999", b"\"\\ud800\"", b"{", b"]", b"-0", b"\xff\xfe", b"9999999999999999999999"];
    let mut stream = target.tls().await;
    let mut codes = std::collections::BTreeMap::<u16, usize>::new();
    for round in 0..times {
        let mut body = good.clone();
        for _ in 0..=number(4) {
            let at = number(body.len());
            match number(5) {
                0 => body[at] ^= 1 << number(8),
                1 => drop(body.drain(at..(at + number(40)).min(body.len()))),
                2 => body.truncate(at.max(1)),
                3 => drop(body.splice(at..at, tokens[number(tokens.len())].iter().copied())),
                _ => body.extend_from_slice(&good[at.min(good.len() - 1)..]),
            }
            if body.is_empty() {
                body.push(b'x');
            }
        }
        let path = [VALIDATE, MUTATE, "/convert"][round % 3];
        stream.write_all(&request(path, &body)).await.unwrap();
        stream.flush().await.unwrap();
        let said = timeout(PATIENCE, answer(&mut stream)).await;
        let text = String::from_utf8_lossy(&body);
        match said.unwrap_or_else(|_| panic!("round {round}: no answer to {text}")) {
            Some((code, _)) => {
                assert!(code == 200 || (400..500).contains(&code), "round {round}: {code} to {text}");
                *codes.entry(code).or_default() += 1;
            }
            None => stream = target.tls().await,
        }
    }
    println!("fuzzed reviews by the code of their answer: {codes:?}");
}

/// The first message of a client that knows TLS 1.0 and nothing newer (RFC 2246 section 7.4.1.2).
fn client_hello_of_tls_1_0() -> Vec<u8> {
    let mut hello = vec![3, 1];
    hello.extend([7; 32]);
    // No session; two cipher suites; no compression.
    hello.extend([0, 0, 4, 0xc0, 0x13, 0, 0x2f, 1, 0]);
    let mut message = vec![1, 0, 0, hello.len() as u8];
    message.extend(hello);
    let mut record = vec![22, 3, 1, 0, message.len() as u8];
    record.extend(message);
    record
}
