//! What the tests on a real control plane share: an operator, a namespace, and
//! steps that read like kubectl.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test binary uses its own part of it, and a helper that fails is a test that fails"
)]

pub mod webhooks;

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use tempfile::TempDir;
use test_cluster::process::Process;
use test_cluster::{Cluster, eventually};
use tokio::io::AsyncWriteExt;

/// For what the operator and the controllers do together.
pub const SOON: Duration = Duration::from_secs(30);

/// A running operator.
pub struct Operator {
    process: Process,
    directory: TempDir,
}

impl Operator {
    /// Starts the operator with this kubeconfig and these flags, its servers on free ports.
    pub fn start(kubeconfig: &Path, flags: &[&str]) -> Self {
        Self::start_with(kubeconfig, flags, &[])
    }

    /// Starts it with further variables of the environment.
    pub fn start_with(kubeconfig: &Path, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        let directory = TempDir::with_prefix("task-operator-test-").unwrap();
        let mut arguments = vec![
            "run".to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
            "--metrics-bind-address=127.0.0.1:0".to_owned(),
            "--health-probe-bind-address=127.0.0.1:0".to_owned(),
        ];
        arguments.extend(flags.iter().map(|&flag| flag.to_owned()));
        let program = PathBuf::from(env!("CARGO_BIN_EXE_task-operator"));
        let variables = variables.iter().chain(&[("NO_COLOR", "1")]);
        let environment: Vec<_> =
            variables.map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let process =
            Process::start("operator", &program, &arguments, &environment, directory.path()).unwrap();
        Self { process, directory }
    }

    /// Starts it and waits until its watches are synced.
    pub async fn started(kubeconfig: &Path, flags: &[&str]) -> Self {
        let operator = Self::start(kubeconfig, flags);
        operator.wait_for_log("all watches are synced").await;
        operator
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// The end of its log.
    pub fn log_tail(&self) -> String {
        self.process.log_tail()
    }

    /// Waits for a line of the log.
    pub async fn wait_for_log(&self, text: &str) {
        eventually(SOON, &format!("the operator logs '{text}'"), async || {
            if self.log().contains(text) { Ok(()) } else { Err(self.process.log_tail()) }
        })
        .await;
    }

    /// The address that it serves `what` on, from its log.
    pub fn address(&self, what: &str) -> String {
        let log = self.log();
        let line = log
            .lines()
            .find(|line| line.contains(&format!("serving {what}")))
            .unwrap_or_else(|| panic!("{log}"));
        line.split("address=").nth(1).unwrap().split_whitespace().next().unwrap().to_owned()
    }

    /// Reads a page of it.
    pub async fn get(&self, what: &str, path: &str) -> (u16, String) {
        http_get(&self.address(what), path).await
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: &str) {
        self.process.signal(signal).unwrap();
    }

    /// Waits until it has ended.
    pub async fn ended(&mut self, within: Duration) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.process.ended() {
                return status;
            }
            assert!(began.elapsed() < within, "the operator has not ended:\n{}", self.process.log_tail());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Ends it as a crash would.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Fails if the log holds what nobody wants to see on call.
    pub fn assert_healthy(&self) {
        let log = self.log();
        for line in log.lines() {
            assert!(!line.contains("panic") && !line.contains(" ERROR "), "in the operator's log: {line}");
        }
    }
}

/// A GET by hand, so that nothing stands between the test and the server.
pub async fn http_get(address: &str, path: &str) -> (u16, String) {
    use tokio::io::AsyncReadExt;
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let code = head.split_whitespace().nth(1).unwrap().parse().unwrap();
    (code, body.to_owned())
}

/// Where the CRD is, in the repository.
pub fn crds() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("config/crd")
}

/// Runs kubectl with this standard input; what it said on both outputs.
pub async fn kubectl(cluster: &Cluster, arguments: &[&str], input: Option<&str>) -> (bool, String) {
    let mut command = cluster.kubectl().unwrap();
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.unwrap_or_default().as_bytes()).await.unwrap();
    drop(stdin);
    let output = child.wait_with_output().await.unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// A namespace of one test.
pub struct Space<'a> {
    pub cluster: &'a Cluster,
    pub client: Client,
    pub namespace: String,
}

impl<'a> Space<'a> {
    /// Makes the namespace.
    pub async fn new(cluster: &'a Cluster, client: Client, namespace: &str) -> Self {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource("Namespace"));
        let body = serde_json::from_value(
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        );
        api.create(&PostParams::default(), &body.unwrap()).await.unwrap();
        Self { cluster, client, namespace: namespace.to_owned() }
    }

    /// The objects of this kind in the namespace.
    pub fn api(&self, kind: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource(kind))
    }

    /// kubectl in the namespace.
    pub async fn kubectl(&self, arguments: &[&str]) -> (bool, String) {
        let all = [&["-n", &self.namespace], arguments].concat();
        kubectl(self.cluster, &all, None).await
    }

    /// `kubectl apply` of a text.
    pub async fn apply(&self, text: &str) -> (bool, String) {
        kubectl(self.cluster, &["-n", &self.namespace, "apply", "-f", "-"], Some(text)).await
    }

    /// Creates an object.
    pub async fn create(&self, object: Value) -> Value {
        let kind = object["kind"].as_str().unwrap().to_owned();
        let object = serde_json::from_value(object).unwrap();
        value(&self.api(&kind).create(&PostParams::default(), &object).await.unwrap())
    }

    /// Creates a Task.
    pub async fn task(&self, name: &str, spec: Value) -> Value {
        self.create(task(name, spec)).await
    }

    /// Reads an object.
    pub async fn get(&self, kind: &str, name: &str) -> Option<Value> {
        self.api(kind).get_opt(name).await.unwrap().map(|object| value(&object))
    }

    /// Changes an object by a merge patch, as the field manager `somebody`.
    pub async fn patch(&self, kind: &str, name: &str, patch: Value) -> Value {
        let params = PatchParams { field_manager: Some("somebody".to_owned()), ..PatchParams::default() };
        value(&self.api(kind).patch(name, &params, &Patch::Merge(patch)).await.unwrap())
    }

    /// Changes the status of an object by a merge patch.
    pub async fn patch_status(&self, kind: &str, name: &str, patch: Value) -> Value {
        let patched = self.api(kind).patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        value(&patched.unwrap())
    }

    /// Changes an object by a strategic merge patch.
    pub async fn strategic(&self, kind: &str, name: &str, patch: Value) -> Value {
        let params = PatchParams { field_manager: Some("somebody".to_owned()), ..PatchParams::default() };
        value(&self.api(kind).patch(name, &params, &Patch::Strategic(patch)).await.unwrap())
    }

    /// Deletes an object in the background.
    pub async fn delete(&self, kind: &str, name: &str) {
        self.api(kind).delete(name, &DeleteParams::background()).await.unwrap();
    }

    /// Waits until an object is as `condition` wants it.
    pub async fn until(
        &self,
        within: Duration,
        kind: &str,
        name: &str,
        what: &str,
        condition: impl Fn(&Value) -> bool,
    ) -> Value {
        eventually(within, &format!("{kind} {}/{name}: {what}", self.namespace), async || {
            match self.get(kind, name).await {
                Some(object) if condition(&object) => Ok(object),
                Some(object) => Err(format!("{:#}", without_noise(object))),
                None => Err("it does not exist".to_owned()),
            }
        })
        .await
    }

    /// Waits until an object is gone.
    pub async fn until_gone(&self, kind: &str, name: &str) {
        eventually(SOON, &format!("{kind} {}/{name} is gone", self.namespace), async || {
            self.get(kind, name).await.map_or(Ok(()), |object| Err(format!("{:#}", without_noise(object))))
        })
        .await;
    }

    /// Waits until a Task is in this phase, with a status of its newest spec.
    pub async fn until_phase(&self, name: &str, phase: &str) -> Value {
        self.until(SOON, "Task", name, &format!("phase {phase} of the newest spec"), |task| {
            task["status"]["phase"] == phase
                && task["status"]["observedGeneration"] == task["metadata"]["generation"]
        })
        .await
    }

    /// Waits until an event with this reason and text is there.
    pub async fn until_event(&self, task: &str, reason: &str, text: &str) -> Value {
        eventually(SOON, &format!("an event {reason} with '{text}' about {task}"), async || {
            let events = self.events(task).await;
            let found = events.iter().find(|event| {
                event["reason"] == reason && event["note"].as_str().unwrap_or_default().contains(text)
            });
            found.cloned().ok_or_else(|| {
                format!("{:?}", events.iter().map(|e| (&e["reason"], &e["note"])).collect::<Vec<_>>())
            })
        })
        .await
    }

    /// The events about a Task.
    pub async fn events(&self, task: &str) -> Vec<Value> {
        let all = self.api("Event").list(&ListParams::default()).await.unwrap();
        let all = all.items.iter().map(value);
        all.filter(|event| event["regarding"]["kind"] == "Task" && event["regarding"]["name"] == task)
            .collect()
    }
}

/// A Task as an object.
pub fn task(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "task.example.io/v1", "kind": "Task", "metadata": {"name": name}, "spec": spec})
}

/// The condition of this type, or null.
pub fn condition<'a>(task: &'a Value, kind: &str) -> &'a Value {
    let conditions = task["status"]["conditions"].as_array();
    conditions.into_iter().flatten().find(|one| one["type"] == kind).unwrap_or(&Value::Null)
}

/// The container named `task` of a Deployment.
pub fn container(deployment: &Value) -> &Value {
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array();
    containers.into_iter().flatten().find(|one| one["name"] == "task").unwrap_or(&Value::Null)
}

fn resource(kind: &str) -> ApiResource {
    let (group, version) = match kind {
        "Task" => ("task.example.io", "v1"),
        "Deployment" | "ReplicaSet" => ("apps", "v1"),
        "Event" => ("events.k8s.io", "v1"),
        "HorizontalPodAutoscaler" => ("autoscaling", "v2"),
        "CustomResourceDefinition" => ("apiextensions.k8s.io", "v1"),
        "ValidatingAdmissionPolicy" | "ValidatingAdmissionPolicyBinding" => {
            ("admissionregistration.k8s.io", "v1")
        }
        _ => ("", "v1"),
    };
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

fn value(object: &DynamicObject) -> Value {
    serde_json::to_value(object).unwrap()
}

fn without_noise(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object
}
