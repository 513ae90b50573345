//! Both versions on a real API server, which asks the webhook over TLS.

#![allow(clippy::unwrap_used, reason = "what fails here is a test that fails")]

use std::net::SocketAddr;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpServer};
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use task_operator::api::crd::with_conversion;
use task_operator::api::webhooks::Webhook;
use task_operator::telemetry::Metrics;
use task_operator::web::Conversion;
use test_cluster::{Cluster, eventually};
use tokio::io::AsyncWriteExt;

const SOON: Duration = Duration::from_secs(30);

/// The webhook, served over TLS with a certificate of its own.
struct Converter {
    handle: ServerHandle,
    address: SocketAddr,
    ca: String,
}

impl Converter {
    /// Starts it on a thread of its own, which ends with it.
    fn start() -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let (started, handle) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                let conversion = Conversion::new(&Metrics::new(false));
                let app = move || {
                    let conversion = conversion.clone();
                    App::new().configure(move |routes| conversion.routes(routes))
                };
                let server = HttpServer::new(app)
                    .workers(1)
                    .disable_signals()
                    .bind_rustls_0_23("127.0.0.1:0", config)
                    .unwrap();
                let address = server.addrs()[0];
                let server = server.run();
                started.send((server.handle(), address)).unwrap();
                server.await.unwrap();
            });
        });
        let (handle, address) = handle.recv().unwrap();
        Self { handle, address, ca: made.cert.pem() }
    }

    fn crd(&self) -> Value {
        let webhook = Webhook::Url(format!("https://{}", self.address));
        serde_json::to_value(with_conversion(&webhook, Some(self.ca.as_bytes()))).unwrap()
    }
}

/// An API server with both versions.
struct Bed {
    cluster: Cluster,
    client: kube::Client,
    converter: Converter,
}

impl Bed {
    async fn start(stored: &str) -> Self {
        let cluster = Cluster::builder().start().await.unwrap();
        let bed =
            Self { client: cluster.client("admin").await.unwrap(), cluster, converter: Converter::start() };
        bed.definitions().create(&PostParams::default(), &object(&bed.crd(stored))).await.unwrap();
        for version in ["v1", "v1alpha1"] {
            eventually(SOON, &format!("{version} is served"), async || {
                bed.tasks(version).list(&ListParams::default()).await.map_err(|error| error.to_string())
            })
            .await;
        }
        bed
    }

    /// The definition with this version stored.
    fn crd(&self, stored: &str) -> Value {
        let mut crd = self.converter.crd();
        for version in crd["spec"]["versions"].as_array_mut().unwrap() {
            version["storage"] = (version["name"] == stored).into();
        }
        crd
    }

    fn definitions(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        Api::all_with(self.client.clone(), &ApiResource::from_gvk(&kind))
    }

    fn tasks(&self, version: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("task.example.io", version, "Task");
        Api::default_namespaced_with(self.client.clone(), &ApiResource::from_gvk(&kind))
    }

    async fn get(&self, version: &str, name: &str) -> Value {
        serde_json::to_value(self.tasks(version).get(name).await.unwrap()).unwrap()
    }

    async fn kubectl(&self, arguments: &str, input: Option<&Value>) -> (bool, String) {
        let mut command = self.cluster.kubectl().unwrap();
        command
            .args(arguments.split(' '))
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        if let Some(input) = input {
            stdin.write_all(input.to_string().as_bytes()).await.unwrap();
        }
        drop(stdin);
        let output = child.wait_with_output().await.unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.success(), said)
    }

    async fn done(&self, arguments: &str, input: Option<&Value>) -> String {
        let (success, said) = self.kubectl(arguments, input).await;
        assert!(success, "kubectl {arguments}: {said}");
        said
    }

    async fn stop(self) {
        drop(self.cluster);
        self.converter.handle.stop(false).await;
    }
}

fn object(value: &Value) -> DynamicObject {
    serde_json::from_value(value.clone()).unwrap()
}

fn old(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "task.example.io/v1alpha1", "kind": "Task", "metadata": {"name": name}, "spec": spec})
}

fn new(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "task.example.io/v1", "kind": "Task", "metadata": {"name": name}, "spec": spec})
}

/// Annotations other than those of kubectl.
fn annotations(task: &Value) -> Vec<&str> {
    let all = task["metadata"]["annotations"].as_object();
    all.into_iter().flatten().map(|(key, _)| key.as_str()).filter(|key| !key.starts_with("kubectl")).collect()
}

#[tokio::test]
async fn what_is_applied_in_one_version_is_read_in_the_other_and_nothing_is_lost() {
    let bed = Bed::start("v1").await;
    let env = json!([{"name": "B", "value": "2"}, {"name": "A", "value": "1"}, {"name": "EMPTY"}]);
    let manifest = old("web", json!({"replicas": 2, "image": "nginx:1.27", "containerPort": 80, "env": env}));
    let said = bed.done("apply -f -", Some(&manifest)).await;
    assert!(said.contains("deprecated; use task.example.io/v1 Task"), "{said}");
    let said = bed.done("get tasks.v1alpha1.task.example.io web -o wide", None).await;
    assert!(said.contains("PORT") && said.contains("nginx:1.27") && said.contains("Pending"), "{said}");

    let v1 = bed.get("v1", "web").await;
    let expected =
        json!({"replicas": 2, "image": "nginx:1.27", "port": 80, "env": {"A": "1", "B": "2", "EMPTY": ""}});
    assert_eq!((&v1["spec"], &v1["metadata"]["generation"]), (&expected, &json!(1)));
    assert_eq!(annotations(&v1), ["task.example.io/v1alpha1-env-order"]);
    let read = bed.get("v1alpha1", "web").await;
    let names = |task: &Value| -> Vec<String> {
        let list = task["spec"]["env"].as_array().unwrap().iter();
        list.map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&read), ["B", "A", "EMPTY"]);
    assert_eq!(annotations(&read), ["task.example.io/v1-status"]);

    // The status that the operator writes survives whatever is done through the old version.
    let condition = json!({
        "type": "Ready", "status": "False", "reason": "RollingOut", "message": "1 of 2",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
    });
    let status = json!({
        "phase": "Running", "availableReplicas": 1, "replicas": 2, "selector": "a=b", "observedGeneration": 1,
        "lastUpdateTime": "2026-01-01T00:00:00Z", "conditions": [condition],
    });
    let patch = Patch::Merge(json!({"status": status}));
    bed.tasks("v1").patch_status("web", &PatchParams::default(), &patch).await.unwrap();
    let before = bed.get("v1", "web").await;
    assert_eq!(before["status"], status);
    assert_eq!(
        bed.get("v1alpha1", "web").await["status"],
        json!({"phase": "Running", "availableReplicas": 1})
    );

    bed.done("apply -f -", Some(&manifest)).await;
    assert_eq!(
        bed.get("v1", "web").await["metadata"]["resourceVersion"],
        before["metadata"]["resourceVersion"]
    );
    bed.done("label tasks.v1alpha1.task.example.io web a=b", None).await;
    bed.done("scale tasks.v1alpha1.task.example.io web --replicas 3", None).await;
    let after = bed.get("v1", "web").await;
    assert_eq!((&after["status"], &after["spec"]["replicas"]), (&status, &json!(3)));
    assert_eq!(after["spec"]["env"], before["spec"]["env"]);
    let patch = Patch::Merge(json!({"status": {"phase": "Failed"}}));
    bed.tasks("v1alpha1").patch_status("web", &PatchParams::default(), &patch).await.unwrap();
    let mut failed = status.clone();
    failed["phase"] = "Failed".into();
    assert_eq!(bed.get("v1", "web").await["status"], failed);

    // Over an object of one version with the other, by either kind of apply, and back.
    let as_v1 = new(
        "web",
        json!({"replicas": 2, "image": "nginx:1.28", "port": 80, "env": {"A": "1", "B": "3", "EMPTY": ""}}),
    );
    for how in ["apply -f -", "apply --server-side --force-conflicts -f -"] {
        bed.done(how, Some(&as_v1)).await;
        let read = bed.get("v1alpha1", "web").await;
        assert_eq!(
            (names(&read), &read["spec"]["env"][0]["value"]),
            (vec!["B".into(), "A".into(), "EMPTY".into()], &json!("3")),
            "{how}"
        );
        bed.done(how, Some(&manifest)).await;
        let back = bed.get("v1", "web").await;
        assert_eq!((&back["spec"], &back["status"]), (&expected, &failed), "{how}");
        assert_eq!(annotations(&back), ["task.example.io/v1alpha1-env-order"], "{how}");
    }

    // What one version refuses the other refuses too, with its own names.
    for (spec, field) in [
        (json!({"containerPort": 70_000}), "spec.containerPort"),
        (json!({"replicas": 101}), "spec.replicas"),
        (json!({"image": "Nginx"}), "spec.image"),
        (json!({"env": [{"name": "A=B", "value": "x"}]}), "spec.env"),
        (json!({"env": [{"name": "A"}, {"name": "A"}]}), "spec.env[1]"),
        (json!({"env": [{"value": "x"}]}), "spec.env[0].name"),
        (json!({"env": [{"name": "A", "value": "é".repeat(2049)}]}), "spec.env"),
    ] {
        let (success, said) = bed.kubectl("create -f -", Some(&old("bad", spec.clone()))).await;
        assert!(!success && said.contains(field), "{field} in {spec}: {said}");
    }
    bed.stop().await;
}

#[tokio::test]
async fn a_task_created_from_an_exported_one_has_no_status_of_it() {
    let bed = Bed::start("v1").await;
    bed.done("create -f -", Some(&new("web", json!({})))).await;
    let status = json!({"status": {"phase": "Succeeded", "observedGeneration": 1, "selector": "a=b"}});
    bed.tasks("v1").patch_status("web", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    let mut exported = bed.get("v1alpha1", "web").await;
    assert_eq!(annotations(&exported), ["task.example.io/v1-status"]);
    exported["metadata"] = json!({"name": "copy", "annotations": exported["metadata"]["annotations"]});
    bed.done("create -f -", Some(&exported)).await;
    let copy = bed.get("v1", "copy").await;
    assert_eq!((&copy["status"]["observedGeneration"], annotations(&copy)), (&json!(-1), vec![]));
    bed.stop().await;
}

#[tokio::test]
async fn the_largest_legal_task_passes_through_both_versions() {
    let bed = Bed::start("v1").await;
    let name = |n: usize| format!("{}{:04}", "K".repeat(60), n * 7 % 1000);
    let env: Vec<Value> = (0..1000).map(|n| json!({"name": name(n), "value": "x".repeat(970)})).collect();
    bed.tasks("v1alpha1")
        .create(&PostParams::default(), &object(&old("large", json!({"env": env}))))
        .await
        .unwrap();
    let v1 = bed.get("v1", "large").await;
    assert_eq!(v1["spec"]["env"].as_object().unwrap().len(), 1000);
    let order = v1["metadata"]["annotations"]["task.example.io/v1alpha1-env-order"].as_str().unwrap();
    assert!(order.len() < 2100, "{} bytes", order.len());
    bed.done("label tasks.v1.task.example.io large a=b", None).await;
    assert!(bed.get("v1alpha1", "large").await["spec"]["env"] == json!(env));
    bed.stop().await;
}

#[tokio::test]
async fn what_was_stored_as_v1alpha1_is_read_after_v1_is_stored() {
    let bed = Bed::start("v1alpha1").await;
    let env = json!([{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]);
    for n in 0..50 {
        let task = object(&old(&format!("old-{n:02}"), json!({"containerPort": 80 + n, "env": env})));
        bed.tasks("v1alpha1").create(&PostParams::default(), &task).await.unwrap();
    }
    let moved = Patch::Merge(json!({"spec": {"versions": bed.crd("v1")["spec"]["versions"]}}));
    bed.definitions().patch("tasks.task.example.io", &PatchParams::default(), &moved).await.unwrap();
    eventually(SOON, "both versions are marked as stored", async || {
        let crd = bed.definitions().get("tasks.task.example.io").await.unwrap();
        match crd.data["status"]["storedVersions"] == json!(["v1alpha1", "v1"]) {
            true => Ok(()),
            false => Err(crd.data["status"].to_string()),
        }
    })
    .await;
    let listed = bed.tasks("v1").list(&ListParams::default()).await.unwrap();
    assert_eq!(listed.items.len(), 50);
    for task in listed {
        assert_eq!(task.data["spec"]["env"], json!({"A": "1", "B": "2"}));
    }
    // A write stores it anew, and the old version still reads it as it was.
    bed.tasks("v1")
        .patch("old-07", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}})))
        .await
        .unwrap();
    for name in ["old-07", "old-08"] {
        assert_eq!(bed.get("v1alpha1", name).await["spec"]["env"], env, "{name}");
    }
    let selected = bed
        .done("get tasks.v1alpha1.task.example.io --field-selector spec.image=nginx:alpine -o name", None)
        .await;
    assert_eq!(selected.lines().filter(|line| line.contains("old-")).count(), 50, "{selected}");
    bed.stop().await;
}
