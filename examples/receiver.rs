//! Receives notifications and prints one line for each: `receiver [ADDRESS [SECRET_FILE]]`.
//!
//! What a receiver has to do and no more: read a POST, check who sent it if there is a secret,
//! drop repeats, answer 204. It takes structured events, one connection at a time each in a
//! thread of its own, and ends with whoever started it.

#![allow(clippy::print_stdout, reason = "what it prints is what it is for")]

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::Value;

/// The largest body that is read, in bytes. Notifications have about one KB.
const LARGEST: usize = 64 * 1024;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let secret = arguments.next().map(std::fs::read_to_string).transpose()?;
    let key = secret.as_deref().map(key).transpose()?.map(Arc::new);
    let listener = TcpListener::bind(address)?;
    eprintln!("listening on http://{}", listener.local_addr()?);
    let known = Arc::new(Mutex::new(HashSet::new()));
    for stream in listener.incoming() {
        let (stream, key, known) = (stream?, key.clone(), known.clone());
        std::thread::spawn(move || {
            if let Err(error) = serve(&stream, key.as_deref(), &known) {
                eprintln!("a connection ended: {error:#}");
            }
        });
    }
    Ok(())
}

/// The first secret of a file of them.
fn key(text: &str) -> anyhow::Result<hmac::Key> {
    let line = text.lines().next().and_then(|line| line.trim().strip_prefix("whsec_"));
    let bytes = STANDARD.decode(line.ok_or_else(|| anyhow::anyhow!("a secret begins with whsec_"))?)?;
    Ok(hmac::Key::new(hmac::HMAC_SHA256, &bytes))
}

fn serve(stream: &TcpStream, key: Option<&hmac::Key>, known: &Mutex<HashSet<String>>) -> anyhow::Result<()> {
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    loop {
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            match line.trim_end() {
                "" => break,
                line => headers.push(line.to_owned()),
            }
        }
        let header = |name: &str| {
            let of = |line: &String| {
                let (found, value) = line.split_once(": ")?;
                found.eq_ignore_ascii_case(name).then(|| value.to_owned())
            };
            headers.iter().find_map(of).unwrap_or_default()
        };
        let length: usize = header("content-length").parse()?;
        anyhow::ensure!(length <= LARGEST, "a body of {length} bytes");
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let id = header("webhook-id");
        let signed = [id.as_bytes(), b".", header("webhook-timestamp").as_bytes(), b".", &body].concat();
        let is_true = key.is_none_or(|key| {
            let signatures = header("webhook-signature");
            let mut all =
                signatures.split(' ').filter_map(|one| STANDARD.decode(one.strip_prefix("v1,")?).ok());
            all.any(|signature| hmac::verify(key, &signed, &signature).is_ok())
        });
        let code = if is_true { print(&serde_json::from_slice(&body)?, known) } else { "401 Unauthorized" };
        write!(writer, "HTTP/1.1 {code}\r\nContent-Length: 0\r\n\r\n")?;
    }
}

fn print(event: &Value, known: &Mutex<HashSet<String>>) -> &'static str {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let is_new = known.lock().unwrap_or_else(PoisonError::into_inner).insert(text(&event["id"]));
    if is_new {
        let data = &event["data"];
        let [time, kind, subject] = ["time", "type", "subject"].map(|name| text(&event[name]));
        let message = data["message"].as_str().map(|message| format!(": {message}")).unwrap_or_default();
        println!("{time}  {kind:<30}  {subject}  {}{message}", text(&data["phase"]));
    }
    "200 OK"
}
