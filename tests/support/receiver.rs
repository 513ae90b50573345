//! A sink: takes what the operator posts, keeps it, and answers as it is told to.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test binary uses its own part of it, and a helper that fails is a test that fails"
)]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Post {
    pub at: Instant,
    pub path: String,
    /// By their names in lowercase.
    pub headers: HashMap<String, String>,
    pub body: String,
}

impl Post {
    /// The header, or nothing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// The body.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// What a request is answered with.
#[derive(Clone, Debug)]
pub enum Reply {
    /// This status, these headers and this body.
    Answer(u16, Vec<(&'static str, String)>, String),
    /// 204, after a while.
    Late(Duration),
    /// Nothing, on a connection that stays.
    Never,
    /// The connection is closed.
    HangUp,
    /// 200, and a body that does not end.
    Endless,
}

impl Reply {
    /// This status without a body.
    pub fn status(code: u16) -> Self {
        Self::Answer(code, Vec::new(), String::new())
    }

    /// This status with a header.
    pub fn with(code: u16, name: &'static str, value: impl Into<String>) -> Self {
        Self::Answer(code, vec![(name, value.into())], String::new())
    }
}

type Plan = Box<dyn FnMut(&Post) -> Reply + Send>;

struct Shared {
    posts: Mutex<Vec<Post>>,
    plan: Mutex<Plan>,
    tls: Option<TlsAcceptor>,
}

/// A sink on a port of its own.
pub struct Receiver {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    running: Option<JoinSet<()>>,
}

impl Receiver {
    /// One that answers by this plan.
    pub async fn start(plan: impl FnMut(&Post) -> Reply + Send + 'static) -> Self {
        Self::start_with(None, plan).await
    }

    /// One with a certificate and its key in PEM.
    pub async fn with_tls(
        certificate: &[u8],
        key: PrivateKeyDer<'static>,
        plan: impl FnMut(&Post) -> Reply + Send + 'static,
    ) -> Self {
        use rustls::pki_types::CertificateDer;
        use rustls::pki_types::pem::PemObject;
        let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<Vec<_>, _>>().unwrap();
        let provider = rustls::crypto::ring::default_provider();
        let builder = ServerConfig::builder_with_provider(provider.into());
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let config = builder.with_no_client_auth().with_single_cert(chain, key).unwrap();
        Self::start_with(Some(TlsAcceptor::from(Arc::new(config))), plan).await
    }

    async fn start_with(tls: Option<TlsAcceptor>, plan: impl FnMut(&Post) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let shared = Arc::new(Shared { posts: Mutex::default(), plan: Mutex::new(Box::new(plan)), tls });
        let address = listener.local_addr().unwrap();
        let mut receiver = Self { address, shared, running: None };
        receiver.listen(listener);
        receiver
    }

    fn listen(&mut self, listener: TcpListener) {
        let shared = self.shared.clone();
        let mut running = JoinSet::new();
        running.spawn(async move {
            // What is dropped with this task are all its connections.
            let mut connections = JoinSet::new();
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                connections.spawn(welcome(stream, shared.clone()));
                while connections.try_join_next().is_some() {}
            }
        });
        self.running = Some(running);
    }

    /// Closes the port and all connections.
    pub async fn go_down(&mut self) {
        if let Some(mut running) = self.running.take() {
            running.shutdown().await;
        }
    }

    /// Opens the same port again.
    pub async fn come_back(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.listen(listener);
    }

    /// Answers by another plan from now on.
    pub fn plan(&self, plan: impl FnMut(&Post) -> Reply + Send + 'static) {
        *self.shared.plan.lock().unwrap() = Box::new(plan);
    }

    /// What has arrived.
    pub fn posts(&self) -> Vec<Post> {
        self.shared.posts.lock().unwrap().clone()
    }

    /// How much has arrived.
    pub fn count(&self) -> usize {
        self.shared.posts.lock().unwrap().len()
    }

    /// Its address as a URL.
    pub fn url(&self, path: &str) -> String {
        let scheme = if self.shared.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}{path}", self.address)
    }
}

async fn welcome(stream: TcpStream, shared: Arc<Shared>) {
    // A sink that does not hold its answers back, as any server does not.
    stream.set_nodelay(true).unwrap();
    // Who hangs up in the middle of it is not of interest here.
    let _ = match shared.tls.clone() {
        None => serve(stream, &shared).await,
        Some(tls) => match tls.accept(stream).await {
            Ok(stream) => serve(stream, &shared).await,
            Err(_) => return,
        },
    };
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, shared: &Shared) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    while let Some(post) = read(&mut stream, &mut bytes).await? {
        let reply = (shared.plan.lock().unwrap())(&post);
        shared.posts.lock().unwrap().push(post);
        match reply {
            Reply::Answer(code, headers, body) => answer(&mut stream, code, &headers, &body).await?,
            Reply::Late(wait) => {
                tokio::time::sleep(wait).await;
                answer(&mut stream, 204, &[], "").await?;
            }
            Reply::Never => std::future::pending().await,
            Reply::HangUp => return Ok(()),
            Reply::Endless => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await?;
                let piece = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
                loop {
                    stream.write_all(piece.as_bytes()).await?;
                }
            }
        }
    }
    Ok(())
}

async fn answer(
    stream: &mut (impl AsyncWrite + Unpin),
    code: u16,
    headers: &[(&str, String)],
    body: &str,
) -> std::io::Result<()> {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = if code == 204 { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    stream.write_all(format!("HTTP/1.1 {code} Test\r\n{headers}{length}\r\n{body}").as_bytes()).await?;
    stream.flush().await
}

/// The next request; none once the connection is closed.
async fn read(stream: &mut (impl AsyncRead + Unpin), bytes: &mut Vec<u8>) -> std::io::Result<Option<Post>> {
    let end = loop {
        match bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            Some(end) => break end,
            None if stream.read_buf(bytes).await? == 0 => return Ok(None),
            None => {}
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let headers: HashMap<_, _> = head
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    while bytes.len() < end + 4 + length {
        if stream.read_buf(bytes).await? == 0 {
            return Ok(None);
        }
    }
    let body = String::from_utf8_lossy(&bytes[end + 4..end + 4 + length]).into_owned();
    bytes.drain(..end + 4 + length);
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    Ok(Some(Post { at: Instant::now(), path, headers, body }))
}
