//! The dashboard and the alerts, on a real Prometheus that scrapes a real operator.

#![allow(clippy::unwrap_used, reason = "what fails here is a test that fails")]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use support::{Operator, SOON, Space, http_get};
use tempfile::TempDir;
use test_cluster::process::Process;
use test_cluster::{Cluster, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn file(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Where prometheus and promtool are.
fn programs() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/monitoring/prometheus");
    let output = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "prometheus cannot be had");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

/// The rules as Prometheus reads them; the Prometheus operator unwraps them in a cluster.
fn rules() -> Value {
    let rule: Value = serde_saphyr::from_str(&file("config/prometheus/rules.yaml")).unwrap();
    rule["spec"].clone()
}

/// The names of the alerts.
fn alerts() -> Vec<String> {
    let rules = rules();
    let rules =
        rules["groups"].as_array().unwrap().iter().flat_map(|group| group["rules"].as_array().unwrap());
    rules.map(|rule| rule["alert"].as_str().unwrap().to_owned()).collect()
}

/// The queries of the dashboard, as it would ask them, with the title of their panel.
fn queries() -> Vec<(String, String)> {
    let dashboard: Value = serde_json::from_str(&file("manifests/monitoring/dashboard.json")).unwrap();
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let query = target["expr"].as_str().unwrap();
            let query = query.replace("$job", "task-operator-metrics").replace("$namespace", ".*");
            let query = query.replace("$__rate_interval", "30s");
            assert!(!query.contains('$'), "an unknown variable: {query}");
            queries.push((panel["title"].as_str().unwrap().to_owned(), query));
        }
    }
    queries
}

#[test]
fn each_alert_fires_when_it_should_and_has_a_runbook() {
    let directory = TempDir::with_prefix("task-operator-alerts-").unwrap();
    std::fs::write(directory.path().join("rules.yaml"), rules().to_string()).unwrap();
    std::fs::write(directory.path().join("alerts.yaml"), file("tests/monitoring/alerts.yaml")).unwrap();
    let promtool = programs().join("promtool");
    for arguments in
        [["check", "rules", "--lint-fatal", "rules.yaml"].as_slice(), &["test", "rules", "alerts.yaml"]]
    {
        let output = Command::new(&promtool).args(arguments).current_dir(directory.path()).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "promtool {arguments:?}: {}", String::from_utf8_lossy(&said));
    }
    let (tests, runbooks) = (file("tests/monitoring/alerts.yaml"), file("docs/runbooks/README.md"));
    for alert in alerts() {
        let tried = tests.matches(&format!("alertname=\"{alert}\"")).count();
        assert_eq!(tried, 2, "{alert} has to be shown to fire, and not to fire");
        assert!(runbooks.contains(&format!("\n## {alert}\n")), "docs/runbooks lacks {alert}");
    }
    assert_eq!(runbooks.matches("\n## ").count(), alerts().len(), "docs/runbooks has one that is no alert");
}

#[test]
fn what_kube_state_metrics_reads_is_in_the_schema() {
    let config: Value =
        serde_saphyr::from_str(&file("manifests/monitoring/kube-state-metrics.yaml")).unwrap();
    let crd = serde_json::to_value(task_operator::api::crd::crd()).unwrap();
    let v1 =
        crd["spec"]["versions"].as_array().unwrap().iter().find(|version| version["name"] == "v1").unwrap();
    let schema = &v1["schema"]["openAPIV3Schema"];
    let metrics = config["spec"]["resources"][0]["metrics"].as_array().unwrap();
    assert!(metrics.len() > 5);
    for metric in metrics {
        let each = &metric["each"];
        let kind = each["type"].as_str().unwrap();
        let how = &each[kind[..1].to_lowercase() + &kind[1..]];
        let labels = how["labelsFromPath"].as_object().into_iter().flat_map(|labels| labels.values());
        let start = how["path"].as_array().cloned().unwrap_or_default();
        let read = labels.chain([&how["valueFrom"]]).filter_map(Value::as_array);
        let paths = read.map(|path| [start.clone(), path.clone()].concat()).chain([start.clone()]);
        for path in paths {
            let at = path.iter().fold(schema, |at, name| {
                let at = if at["type"] == "array" { &at["items"] } else { at };
                &at["properties"][name.as_str().unwrap()]
            });
            assert!(path.is_empty() || !at.is_null(), "{}: there is no {path:?}", metric["name"]);
        }
        if kind == "StateSet" {
            assert_eq!(how["list"], schema["properties"]["status"]["properties"]["phase"]["enum"]);
        }
    }
}

/// A Prometheus that scrapes `target` each second.
struct Prometheus {
    _process: Process,
    _directory: TempDir,
    address: String,
}

impl Prometheus {
    async fn start(target: &str) -> Self {
        let directory = TempDir::with_prefix("task-operator-prometheus-").unwrap();
        let configuration = json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yaml"],
            "scrape_configs": [{
                "job_name": "task-operator-metrics", "honor_labels": true, "static_configs": [{"targets": [target]}],
            }],
        });
        std::fs::write(directory.path().join("prometheus.yml"), configuration.to_string()).unwrap();
        std::fs::write(directory.path().join("rules.yaml"), rules().to_string()).unwrap();
        // It cannot be asked which port it took.
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let path = |name: &str| directory.path().join(name).display().to_string();
        let arguments = [
            format!("--config.file={}", path("prometheus.yml")),
            format!("--storage.tsdb.path={}", path("data")),
            format!("--web.listen-address={address}"),
        ];
        let program = programs().join("prometheus");
        let process = Process::start("prometheus", &program, &arguments, &[], directory.path()).unwrap();
        eventually(SOON, "Prometheus is ready", async || {
            match tokio::net::TcpStream::connect(&address).await {
                Ok(_) if http_get(&address, "/-/ready").await.0 == 200 => Ok(()),
                _ => Err(process.log_tail()),
            }
        })
        .await;
        Self { _process: process, _directory: directory, address }
    }

    async fn get(&self, path: &str) -> Value {
        let (code, body) = http_get(&self.address, path).await;
        assert_eq!(code, 200, "{path}: {body}");
        // It may come in chunks, whose lengths stand on lines of their own.
        let body: String = body.lines().filter(|line| line.starts_with('{')).collect();
        serde_json::from_str::<Value>(&body).unwrap_or_else(|error| panic!("{path}: {error}: {body}"))["data"]
            .clone()
    }

    /// The values that a query gives now.
    async fn query(&self, query: &str) -> Vec<f64> {
        let escaped: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let data = self.get(&format!("/api/v1/query?query={escaped}")).await;
        let series = data["result"].as_array().unwrap_or_else(|| panic!("{query}: {data}"));
        series.iter().map(|one| one["value"][1].as_str().unwrap().parse().unwrap()).collect()
    }
}

/// Takes every notification, and says so.
async fn sink() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut buffer = vec![0; 64 << 10];
                while matches!(stream.read(&mut buffer).await, Ok(read) if read > 0) {
                    let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
                }
            });
        }
    });
    url
}

#[tokio::test]
async fn every_query_of_the_dashboard_has_data_and_no_alert_fires() {
    let cluster = Cluster::builder().whole().crds(&support::crds()).start().await.unwrap();
    let notify = format!("--notify-url={}", sink().await);
    let flags = [
        "--leader-elect",
        "--webhook-bind-address=127.0.0.1:0",
        "--webhook-self-signed",
        "--webhook-dns-name=127.0.0.1",
        &notify,
    ];
    let mut operator = Operator::started(&cluster.kubeconfig("operator").unwrap(), &flags).await;
    operator.install(&cluster, None).await;
    eventually(SOON, "the webhooks are asked", async || support::webhooks::ask(&cluster).await).await;
    let prometheus = Prometheus::start(&operator.address("metrics")).await;
    let space = Space::new(&cluster, cluster.client("admin").await.unwrap(), "team").await;

    // Load for as long as it takes until every query has data that is a number.
    let queries = queries();
    assert!(queries.len() > 40, "{}", queries.len());
    let round = std::cell::Cell::new(0);
    eventually(Duration::from_secs(120), "every query has data", async || {
        round.set(round.get() + 1);
        let name = format!("task-{}", round.get());
        space.task(&name, json!({})).await;
        space.until_phase(&name, "Succeeded").await;
        space.patch("Task", &name, json!({"spec": {"replicas": 2}})).await;
        if round.get() > 3 {
            space.delete("Task", &format!("task-{}", round.get() - 3)).await;
        }
        let mut without = Vec::new();
        for (panel, query) in &queries {
            let values = prometheus.query(query).await;
            if values.is_empty() || values.iter().all(|value| value.is_nan()) {
                without.push(format!("{panel}: {query}: {values:?}"));
            }
        }
        if without.is_empty() { Ok(()) } else { Err(without.join("\n")) }
    })
    .await;
    println!("{} queries have data after {} rounds", queries.len(), round.get());

    let groups = prometheus.get("/api/v1/rules").await;
    let rules = groups["groups"][0]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), alerts().len());
    for rule in rules {
        assert_eq!((&rule["health"], &rule["state"]), (&json!("ok"), &json!("inactive")), "{rule:#}");
    }
    operator.assert_healthy();

    operator.kill();
    eventually(SOON, "the alert of an operator that is gone is pending", async || {
        let alerts = prometheus.get("/api/v1/alerts").await;
        if alerts.to_string().contains("TaskOperatorDown") { Ok(()) } else { Err(alerts.to_string()) }
    })
    .await;
}
