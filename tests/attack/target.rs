//! What is attacked, and how it is spoken to.

#![allow(unreachable_pub, reason = "a module of a test")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::support::Operator;
use crate::support::webhooks::Certificates;

/// More than any deadline of the server.
pub const PATIENCE: Duration = Duration::from_secs(30);
pub const VALIDATE: &str = "/validate-task-example-io-v1-task";
pub const MUTATE: &str = "/mutate-task-example-io-v1-task";

pub type Tls = BufReader<TlsStream<TcpStream>>;

/// An operator that serves its webhooks, and whose API server is away: neither matters to the other.
pub struct Target {
    pub operator: Operator,
    address: String,
    connector: TlsConnector,
    _kept: (Certificates, TempDir),
}

impl Target {
    pub async fn start() -> Self {
        let certificates = Certificates::new();
        let directory = TempDir::with_prefix("task-operator-attack-").unwrap();
        let kubeconfig = directory.path().join("kubeconfig");
        let nowhere = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {}}],
        });
        std::fs::write(&kubeconfig, nowhere.to_string()).unwrap();
        let flag = format!("--webhook-cert-dir={}", certificates.path().display());
        let operator = Operator::start(&kubeconfig, &["--webhook-bind-address=127.0.0.1:0", &flag]);
        operator.wait_for_log("serving webhooks").await;
        let pem = std::fs::read(certificates.path().join("tls.crt")).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&pem).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.unwrap().with_root_certificates(roots).with_no_client_auth();
        Self {
            address: operator.address("webhooks"),
            operator,
            connector: TlsConnector::from(Arc::new(config)),
            _kept: (certificates, directory),
        }
    }

    pub async fn plain(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    pub async fn tls(&self) -> Tls {
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let stream = timeout(PATIENCE, self.connector.connect(name, self.plain().await)).await;
        BufReader::new(stream.expect("no handshake").unwrap())
    }

    /// One good request; how long it took from the connection to the answer.
    pub async fn good(&self, stream: &mut Tls) -> Duration {
        let began = Instant::now();
        stream.write_all(&request(VALIDATE, review(&task()).to_string().as_bytes())).await.unwrap();
        stream.flush().await.unwrap();
        let (code, body) =
            timeout(PATIENCE, answer(stream)).await.expect("a good request got no answer").unwrap();
        assert!(code == 200 && body.contains("\"allowed\":true"), "{code} {body}");
        began.elapsed()
    }

    /// What the program has used of memory at most, in MiB.
    pub fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.operator.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
    }

    pub fn files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.operator.id())).unwrap().count()
    }
}

pub fn task() -> Value {
    let metadata = json!({"name": "web", "namespace": "team"});
    json!({"apiVersion": "task.example.io/v1", "kind": "Task", "metadata": metadata, "spec": {"env": {"A": "1"}}})
}

pub fn review(object: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "operation": "CREATE", "name": "web", "namespace": "team",
            "kind": {"group": "task.example.io", "version": "v1", "kind": "Task"},
            "resource": {"group": "task.example.io", "version": "v1", "resource": "tasks"},
            "userInfo": {"username": "somebody"}, "object": object, "oldObject": null, "dryRun": false, "options": null,
        },
    })
}

pub fn request(path: &str, body: &[u8]) -> Vec<u8> {
    [&head(path, &format!("Content-Length: {}\r\n", body.len())), body].concat()
}

pub fn head(path: &str, more: &str) -> Vec<u8> {
    format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{more}\r\n").into_bytes()
}

/// The code and the body of the next answer; none if the connection was closed before.
pub async fn answer(stream: &mut Tls) -> Option<(u16, String)> {
    let mut code = None;
    let mut length = 0;
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let text = line.trim_end().to_ascii_lowercase();
        if code.is_none() {
            code = Some(text.split(' ').nth(1)?.parse().ok()?);
        } else if let Some(value) = text.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        } else if text.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((code?, String::from_utf8_lossy(&body).into_owned()))
}
