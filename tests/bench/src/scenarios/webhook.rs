//! How many admission reviews a second are answered over TLS, how soon, and at which cost.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::bed::{Bed, USER};
use crate::results::Run;
use crate::sight::quantile;
use crate::subject::Subject;
use crate::usage::cpu_seconds;

/// Connections, each with one call at a time, as an API server keeps them.
const CONNECTIONS: usize = 8;
/// For a server to listen.
const PATIENCE: Duration = Duration::from_secs(10);
/// Calls before it is measured.
const WARM: Duration = Duration::from_secs(1);

/// Calls both webhooks for `length` each.
///
/// # Errors
/// If a call is not answered with `allowed`.
pub(crate) async fn run(bed: &Bed, subject: &Subject, length: Duration, run: &mut Run) -> anyhow::Result<()> {
    let directory = TempDir::with_prefix("task-operator-bench-")?;
    let certificate = write_certificate(directory.path())?;
    let mut operator = subject.start(&bed.cluster.kubeconfig(USER)?, &[], Some(directory.path()))?;
    operator.ready().await?;
    for (name, path) in
        [("mutate", "/mutate-task-example-io-v1-task"), ("validate", "/validate-task-example-io-v1-task")]
    {
        let request = request(path);
        call(operator.webhooks, &certificate, &request, WARM).await.with_context(|| path.to_owned())?;
        let (cpu, began) = (cpu_seconds(operator.id()), Instant::now());
        let took = call(operator.webhooks, &certificate, &request, length).await?;
        let (lasted, calls) = (began.elapsed().as_secs_f64(), took.len() as f64);
        run.set("webhook", &format!("{name}_per_s"), calls / lasted);
        run.set("webhook", &format!("{name}_p50_ms"), quantile(&took, 0.5));
        run.set("webhook", &format!("{name}_p99_ms"), quantile(&took, 0.99));
        run.set("webhook", &format!("{name}_cpu_us"), (cpu_seconds(operator.id()) - cpu) * 1e6 / calls);
    }
    operator.check()?;
    operator.stop();
    Ok(())
}

/// Makes a certificate for this machine, as a Secret is mounted.
fn write_certificate(directory: &Path) -> anyhow::Result<CertificateDer<'static>> {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()])?;
    std::fs::write(directory.join("tls.crt"), made.cert.pem())?;
    std::fs::write(directory.join("tls.key"), made.signing_key.serialize_pem())?;
    Ok(made.cert.der().clone())
}

/// Calls for this long; how long each took, in milliseconds, in order.
async fn call(
    port: u16,
    certificate: &CertificateDer<'static>,
    request: &[u8],
    length: Duration,
) -> anyhow::Result<Vec<f64>> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone())?;
    let connector = TlsConnector::from(Arc::new(
        ClientConfig::builder().with_root_certificates(roots).with_no_client_auth(),
    ));
    let began = Instant::now();
    let connections = (0..CONNECTIONS).map(|_| connection(port, connector.clone(), request, began, length));
    let mut all = futures::future::try_join_all(connections).await?.concat();
    all.sort_by(f64::total_cmp);
    Ok(all)
}

async fn connection(
    port: u16,
    connector: TlsConnector,
    request: &[u8],
    began: Instant,
    length: Duration,
) -> anyhow::Result<Vec<f64>> {
    let plain = connect(port).await?;
    plain.set_nodelay(true)?;
    let mut stream = BufReader::new(connector.connect(ServerName::try_from("127.0.0.1")?, plain).await?);
    let mut took = Vec::new();
    let mut body = Vec::new();
    while began.elapsed() < length {
        let sent = Instant::now();
        stream.write_all(request).await?;
        stream.flush().await?;
        body.resize(read_head(&mut stream).await?, 0);
        stream.read_exact(&mut body).await?;
        took.push(sent.elapsed().as_secs_f64() * 1000.0);
        let allowed = br#""allowed":true"#;
        ensure!(
            body.windows(allowed.len()).any(|part| part == allowed),
            "refused: {}",
            String::from_utf8_lossy(&body)
        );
    }
    Ok(took)
}

/// Connects once the server listens: some are ready before that.
async fn connect(port: u16) -> std::io::Result<TcpStream> {
    let began = Instant::now();
    loop {
        match TcpStream::connect(("127.0.0.1", port)).await {
            Err(_) if began.elapsed() < PATIENCE => tokio::time::sleep(Duration::from_millis(20)).await,
            answer => return answer,
        }
    }
}

/// Reads the head of an answer; the length of its body.
async fn read_head(stream: &mut (impl AsyncBufReadExt + Unpin)) -> anyhow::Result<usize> {
    let mut length = None;
    let mut line = String::new();
    loop {
        line.clear();
        ensure!(stream.read_line(&mut line).await? > 0, "the connection was closed");
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = Some(value.trim().parse()?);
            }
            Some(_) => {}
            None if line.trim_end().is_empty() => return length.context("an answer without its length"),
            None => ensure!(line.contains(" 200 "), "{line}"),
        }
    }
}

fn request(path: &str) -> Vec<u8> {
    let body = review().to_string();
    let head = format!(
        "POST {path}?timeout=10s HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: kube-apiserver-admission\r\n\
         Accept: application/json\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

/// What an API server asks when somebody creates a Task with kubectl.
fn review() -> Value {
    let kind = json!({"group": "task.example.io", "version": "v1", "kind": "Task"});
    let resource = json!({"group": "task.example.io", "version": "v1", "resource": "tasks"});
    let env = json!({"ENV": "prod", "DATABASE_URL": "postgres://db.example:5432/app", "LOG_LEVEL": "info"});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "2f0b4b2c-3b1e-4a43-9c52-0d6d3f0c9b11", "kind": kind, "resource": resource,
        "requestKind": kind, "requestResource": resource, "name": "web", "namespace": "load-0",
        "operation": "CREATE", "dryRun": false, "oldObject": null,
        "userInfo": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
        "object": {
            "apiVersion": "task.example.io/v1", "kind": "Task",
            "metadata": {
                "name": "web", "namespace": "load-0", "generation": 1,
                "creationTimestamp": "2026-12-01T00:00:00Z", "uid": "b6f0b6d8-64f7-4bb8-8d4c-0a3d4c2f0d5e",
                "finalizers": ["task.example.io/finalizer"],
                "managedFields": [{
                    "manager": "kubectl", "operation": "Update", "apiVersion": "task.example.io/v1",
                    "time": "2026-12-01T00:00:00Z", "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:spec": {".": {}, "f:env": {".": {}, "f:ENV": {}}, "f:image": {}, "f:port": {}}},
                }],
            },
            "spec": {"replicas": 3, "image": "nginx:alpine", "port": 80, "env": env},
        },
    }})
}
