//! One Task, led through all values of one property and back.

use std::time::Duration;

use http::Request;
use kube::Client;
use serde_json::{Value, json};
use test_cluster::wait::within;

use crate::oracle::{Scene, difference};
use crate::properties::{Property, V1};
use crate::support::Space;

/// How long an operation may take until all is right. Up to 100 Pods come and go in it.
const SETTLED: Duration = Duration::from_secs(60);

/// What a Task is before it is changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Start {
    /// Nothing was said: all is by default.
    Empty,
    /// Everything was said.
    Full,
    /// It is scaled to zero.
    Zero,
    /// It was made in the old version, with a list that is not sorted.
    Old,
    /// It is Failed: a foreign ConfigMap has the name of its own.
    Failed,
}

impl Start {
    pub(crate) const ALL: [Self; 5] = [Self::Empty, Self::Full, Self::Zero, Self::Old, Self::Failed];

    fn task(self, name: &str) -> Value {
        let env = json!({"KEY": "value", "OTHER": "$(KEY)"});
        let (version, spec) = match self {
            Self::Empty | Self::Failed => ("v1", json!({})),
            Self::Full => ("v1", json!({"replicas": 2, "image": "nginx:1.27", "port": 80, "env": env})),
            Self::Zero => ("v1", json!({"replicas": 0, "env": env})),
            Self::Old => (
                "v1alpha1",
                json!({"replicas": 1, "containerPort": 81,
                       "env": [{"name": "OTHER", "value": "$(KEY)"}, {"name": "KEY", "value": "value"}]}),
            ),
        };
        json!({
            "apiVersion": format!("task.example.io/{version}"), "kind": "Task", "spec": spec,
            "metadata": {"name": name, "labels": {"example.org/team": "a"}, "annotations": {"example.org/note": "n"}},
        })
    }
}

/// How the operations of a walk ended.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) carried_out: usize,
    pub(crate) refused: usize,
    pub(crate) undone: usize,
    /// Everything that was wrong.
    pub(crate) faults: Vec<String>,
}

impl Tally {
    /// Requests that asked for a change.
    pub(crate) fn operations(&self) -> usize {
        self.carried_out + self.refused + self.undone
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.carried_out += other.carried_out;
        self.refused += other.refused;
        self.undone += other.undone;
        self.faults.extend(other.faults);
    }
}

pub(crate) struct Walk<'a> {
    space: &'a Space<'a>,
    name: String,
    start: Start,
    property: &'a Property,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(space: &'a Space<'a>, name: String, start: Start, property: &'a Property) -> Self {
        Self { space, name, start, property }
    }

    /// Makes the Task, gives the property each of the values whose place `is_chosen`, and goes back each time.
    pub(crate) async fn go(&self, is_chosen: impl Fn(usize) -> bool) -> Tally {
        let mut tally = Tally::default();
        let chosen: Vec<_> = self
            .property
            .values
            .iter()
            .enumerate()
            .filter(|(place, _)| is_chosen(*place))
            .map(|(_, value)| value)
            .collect();
        if chosen.is_empty() {
            return tally;
        }
        if let Err(fault) = self.make().await {
            tally.faults.push(format!("{}: {fault}", self.title("the start")));
            return tally;
        }
        for (class, value) in chosen {
            if let Err(fault) = self.change_and_undo(value.as_ref(), &mut tally).await {
                tally.faults.push(format!("{}: {fault}", self.title(class)));
                // What follows would start from another state.
                break;
            }
        }
        self.space.delete("Task", &self.name).await;
        tally
    }

    fn title(&self, class: &str) -> String {
        format!(
            "{} ({:?}) {} {} = {class}",
            self.name, self.start, self.property.version, self.property.pointer
        )
    }

    async fn make(&self) -> Result<(), String> {
        if self.start == Start::Failed {
            self.space
                .create(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"foreign": "yes"},
                               "metadata": {"name": format!("{}-config", self.name)}}))
                .await;
        }
        let task = self.start.task(&self.name);
        let version = task["apiVersion"].as_str().unwrap_or_default().to_owned();
        let path = format!("/apis/{version}/namespaces/{}/tasks", self.space.namespace);
        send(&self.space.client, "POST", "application/json", &path, &task).await.map_err(|e| e.message)?;
        self.settled(|_| None).await.map(drop)
    }

    async fn change_and_undo(&self, value: Option<&Value>, tally: &mut Tally) -> Result<(), String> {
        let before = self.scene().await;
        let object = self.read(self.property.version).await;
        let Some(patch) = patch(&object, self.property.pointer, value) else { return Ok(()) };
        let path = self.path(self.property.version, self.property.is_status());
        let changed = send(&self.space.client, "PATCH", "application/json-patch+json", &path, &patch).await;
        match changed {
            Ok(_) => {
                tally.carried_out += 1;
                self.settled(|_| None).await?;
            }
            Err(refusal) => {
                tally.refused += 1;
                let is_told = self.property.names.iter().any(|name| refusal.message.contains(name));
                // Wrong types in the old version fail in the conversion, whose errors are no refusals to the API server.
                let is_refusal = matches!(refusal.code, 400 | 422)
                    || (refusal.code == 500 && refusal.message.contains("conversion webhook"));
                if !is_told || !is_refusal {
                    return Err(format!("the refusal does not name the field: {refusal:?}"));
                }
            }
        }
        let patches = self.way_back(&before.task);
        for (path, patch) in patches {
            send(&self.space.client, "PATCH", "application/json-patch+json", &path, &patch)
                .await
                .map_err(|e| format!("the way back: {e:?}"))?;
        }
        tally.undone += 1;
        let wanted = before.normal_form();
        self.settled(|scene| difference(&scene.normal_form(), &wanted, "")).await.map(drop)
    }

    /// The requests that bring back what the property changed.
    fn way_back(&self, before: &Value) -> Vec<(String, Value)> {
        if self.property.is_status() {
            let patch = json!([{"op": "add", "path": "/status", "value": before["status"]}]);
            return vec![(self.path(V1, true), patch)];
        }
        let parts = ["/spec", "/metadata/labels", "/metadata/annotations", "/metadata/finalizers"];
        let patch: Value = parts
            .iter()
            .filter_map(|part| Some(json!({"op": "add", "path": part, "value": before.pointer(part)?})))
            .collect();
        vec![(self.path(V1, false), patch)]
    }

    async fn settled(&self, more: impl Fn(&Scene) -> Option<String>) -> Result<Scene, String> {
        within(SETTLED, async || {
            let scene = self.scene().await;
            let mut faults = scene.faults();
            faults.extend(more(&scene));
            if faults.is_empty() { Ok(scene) } else { Err(faults.join("; ")) }
        })
        .await
    }

    async fn scene(&self) -> Scene {
        let get = async |kind: &str, name: &str| self.space.get(kind, name).await.unwrap_or_default();
        Scene {
            task: self.read(V1).await,
            deployment: get("Deployment", &self.name).await,
            service: get("Service", &self.name).await,
            config_map: get("ConfigMap", &format!("{}-config", self.name)).await,
            in_conflict: self.start == Start::Failed,
        }
    }

    async fn read(&self, version: &str) -> Value {
        send(&self.space.client, "GET", "application/json", &self.path(version, false), &Value::Null)
            .await
            .unwrap_or_else(|error| json!({"cannot be read": error.message}))
    }

    fn path(&self, version: &str, is_status: bool) -> String {
        let subresource = if is_status { "/status" } else { "" };
        format!(
            "/apis/task.example.io/{version}/namespaces/{}/tasks/{}{subresource}",
            self.space.namespace, self.name
        )
    }
}

/// The JSON patch that gives the property at `pointer` this value, with the parents
/// it needs; nothing where there is nothing to remove, or no list to stand in.
fn patch(object: &Value, pointer: &str, value: Option<&Value>) -> Option<Value> {
    let Some(value) = value else {
        object.pointer(pointer)?;
        return Some(json!([{"op": "remove", "path": pointer}]));
    };
    let mut operations = Vec::new();
    for (end, _) in pointer.match_indices('/').skip(1) {
        let (parent, rest) = pointer.split_at(end);
        if object.pointer(parent).is_none() {
            if rest.starts_with("/0") {
                return None;
            }
            operations.push(json!({"op": "add", "path": parent, "value": {}}));
        }
    }
    operations.push(json!({"op": "add", "path": pointer, "value": value}));
    Some(operations.into())
}

/// An answer that is no success.
#[derive(Debug)]
struct Refusal {
    code: u16,
    message: String,
}

async fn send(client: &Client, method: &str, kind: &str, path: &str, body: &Value) -> Result<Value, Refusal> {
    let refusal = |error: kube::Error| match error {
        kube::Error::Api(status) => Refusal { code: status.code, message: status.message.clone() },
        other => Refusal { code: 0, message: other.to_string() },
    };
    let body = if method == "GET" { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path).header("content-type", kind).body(body);
    let request = request.map_err(|error| Refusal { code: 0, message: error.to_string() })?;
    client.request(request).await.map_err(refusal)
}
