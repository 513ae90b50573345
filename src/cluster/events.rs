//! Kubernetes events about Tasks.
//!
//! The name of an event follows from what it says, so a repeat, also one after
//! a restart, meets the earlier one and becomes part of its series. Events are
//! a help for people and never hold a pass up: the queue is bounded, and what
//! does not fit is counted and dropped. Everything that must be known stands in
//! the status too.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event as KubeEvent;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;

use super::failure::chain;
use super::lease::Fence;
use crate::api::{GROUP, TaskKey, Uid};
use crate::desired;
use crate::supervisor::event::Note;
use crate::supervisor::status::shortened;
use crate::telemetry::Metrics;

/// Who reports, as a qualified name.
const CONTROLLER: &str = "task.example.io/task-operator";
/// Events that may wait, per worker.
const CAPACITY: usize = 2048;
/// Workers; the events of one Task always go to the same one, in their order.
const WORKERS: usize = 2;
/// For one try.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often an event is tried.
const TRIES: u32 = 5;
/// The longest note that the API takes, in bytes.
const NOTE: usize = 1024;

/// An event on its way.
struct Entry {
    key: TaskKey,
    uid: Uid,
    note: Note,
    at: Timestamp,
}

/// Takes events in and has them written in the background.
pub struct Recorder {
    workers: Vec<Sender<Entry>>,
    metrics: Metrics,
}

impl Recorder {
    /// Starts the workers; they end once the recorder is gone and all is written.
    /// `instance` names this process, as `reportingInstance`.
    pub fn start(
        client: &Client,
        fence: &Fence,
        metrics: &Metrics,
        instance: &str,
    ) -> (Self, Vec<JoinHandle<()>>) {
        let instance: Arc<str> = instance.chars().take(128).collect::<String>().into();
        let (workers, handles) = (0..WORKERS)
            .map(|_| {
                let (sender, receiver) = channel(CAPACITY);
                let worker = Worker {
                    client: client.clone(),
                    fence: fence.clone(),
                    metrics: metrics.clone(),
                    instance: instance.clone(),
                    recent: Recent::default(),
                };
                (sender, tokio::task::spawn_local(worker.run(receiver)))
            })
            .unzip();
        (Self { workers, metrics: metrics.clone() }, handles)
    }

    /// Has `note` about the Task recorded, unless too many wait already.
    pub fn record(&self, key: &TaskKey, uid: &Uid, note: Note) {
        let worker = usize::try_from(hash(uid) % WORKERS as u64).unwrap_or_default();
        let entry = Entry { key: key.clone(), uid: uid.clone(), note, at: Timestamp::now() };
        if let Err(error) = self.workers[worker].try_send(entry) {
            self.metrics.event_recorded("dropped");
            tracing::warn!(task = %key, %error, "an event was dropped: too many wait to be written");
        }
    }
}

struct Worker {
    client: Client,
    fence: Fence,
    metrics: Metrics,
    instance: Arc<str>,
    recent: Recent,
}

/// How often each of the last events was told, so that a repeat costs one request.
#[derive(Default)]
struct Recent {
    counts: HashMap<String, i32>,
    order: VecDeque<String>,
}

impl Recent {
    /// The events that are remembered. One that is not costs two requests more.
    const CAPACITY: usize = 1024;

    fn count(&self, name: &str) -> Option<i32> {
        self.counts.get(name).copied()
    }

    fn remember(&mut self, name: String, count: i32) {
        if self.counts.insert(name.clone(), count).is_some() {
            return;
        }
        self.order.push_back(name);
        if self.order.len() > Self::CAPACITY
            && let Some(oldest) = self.order.pop_front()
        {
            self.counts.remove(&oldest);
        }
    }
}

impl Worker {
    async fn run(mut self, mut entries: Receiver<Entry>) {
        while let Some(entry) = entries.recv().await {
            if !self.fence.may_write() {
                // The replica that leads now tells what it does itself.
                self.metrics.event_recorded("dropped");
                continue;
            }
            let result = self.write_with_retries(&entry).await;
            self.metrics.event_recorded(if result.is_ok() { "written" } else { "failed" });
            if let Err(error) = result {
                tracing::warn!(task = %entry.key, reason = entry.note.reason, error = chain(&error), "an event could not be written");
            }
        }
    }

    async fn write_with_retries(&mut self, entry: &Entry) -> Result<(), kube::Error> {
        let mut wait = Duration::from_millis(500);
        for _ in 1..TRIES {
            match self.write(entry).await {
                // An event about a Task whose namespace ends has no place to be.
                Err(kube::Error::Api(status)) if namespace_is_gone(&status) => {
                    tracing::debug!(task = %entry.key, message = status.message, "an event was refused");
                    return Ok(());
                }
                Err(kube::Error::Api(status)) if status.code < 500 && status.code != 429 => {
                    return Err(kube::Error::Api(status));
                }
                Err(error) => tracing::debug!(task = %entry.key, %error, "an event is tried again"),
                Ok(()) => return Ok(()),
            }
            tokio::time::sleep(wait).await;
            wait *= 2;
        }
        self.write(entry).await
    }

    async fn write(&mut self, entry: &Entry) -> Result<(), kube::Error> {
        if !self.fence.may_write() {
            return Ok(());
        }
        let writing = self.create_or_count(entry);
        let count = tokio::time::timeout(PATIENCE, writing)
            .await
            .map_err(|late| kube::Error::Service(late.into()))??;
        self.recent.remember(name(entry), count);
        Ok(())
    }

    /// Writes the event, or counts it in the series of an earlier one; how often it was told now.
    async fn create_or_count(&self, entry: &Entry) -> Result<i32, kube::Error> {
        let api: Api<KubeEvent> = Api::namespaced(self.client.clone(), &entry.key.namespace);
        if let Some(count) = self.recent.count(&name(entry)) {
            match count_in_series(&api, entry, count + 1).await {
                // Events live for an hour: it is a new one then.
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                other => return other,
            }
        }
        let body = self.body(entry);
        let path = <KubeEvent as kube::Resource>::url_path(&(), Some(&entry.key.namespace));
        let post = kube::core::Request::new(path)
            .create(&PostParams::default(), body.to_string().into_bytes())
            .map_err(kube::Error::BuildRequest)?;
        match self.client.request::<serde::de::IgnoredAny>(post).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                // Told before this process started, or long ago.
                let earlier = api.get(&name(entry)).await?;
                let count = earlier.series.map_or(1, |series| series.count) + 1;
                count_in_series(&api, entry, count).await
            }
            other => other.map(|_| 1),
        }
    }

    fn body(&self, entry: &Entry) -> Value {
        let Entry { key, uid, note, at } = entry;
        let mut body = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name(entry), "namespace": key.namespace},
            "eventTime": micros(*at),
            "reportingController": CONTROLLER,
            "reportingInstance": self.instance,
            "action": note.action,
            "reason": note.reason,
            "type": if note.warning { "Warning" } else { "Normal" },
            "note": shortened(&note.text, NOTE),
            "regarding": {
                "apiVersion": format!("{GROUP}/v1"),
                "kind": "Task",
                "namespace": key.namespace,
                "name": key.name,
                "uid": uid,
            },
        });
        if let Some(kind) = note.related {
            body["related"] = json!({
                "apiVersion": kind.api_version(),
                "kind": kind.as_str(),
                "namespace": key.namespace,
                "name": desired::name_of(kind, &key.name),
            });
        }
        body
    }
}

async fn count_in_series(api: &Api<KubeEvent>, entry: &Entry, count: i32) -> Result<i32, kube::Error> {
    let series = json!({"series": {"count": count, "lastObservedTime": micros(entry.at)}});
    api.patch(&name(entry), &PatchParams::default(), &Patch::Merge(series)).await.map(|_| count)
}

/// Whether the event has no place to be, rather than no permission.
fn namespace_is_gone(status: &kube::core::Status) -> bool {
    status.is_not_found()
        || (status.is_forbidden() && status.message.contains("because it is being terminated"))
}

fn name(entry: &Entry) -> String {
    let Entry { key, uid, note, .. } = entry;
    format!("{}.{:016x}", key.name, hash(&(uid, note.reason, note.action, &note.text)))
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

fn micros(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
