//! What happens in the cluster, as batches for the dispatcher.
//!
//! One stream per kind and namespace, each for as long as the process lives:
//! a broken one is started again with backoff, an expired one (410 Gone) with a
//! new list. Children are listed only once all Tasks are known, so that there
//! is a supervisor for each of them to be told of it. Batches are handed over
//! one at a time: a slow dispatcher slows the streams down, and nothing piles up.

use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future;
use futures::stream::{self, Stream};
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use tokio::sync::watch;

use crate::desired::shape::{ConfigMapShape, DeploymentShape, ServiceShape};
use crate::desired::{ChildKind, MANAGED_BY_SELECTOR};
use crate::telemetry::Metrics;

use super::failure::chain;
use super::observe::{ObservedChild, ObservedTask, Shape, Watched};

/// The API server ends a watch after this long, in seconds. kube waits 5 s more
/// for an event or a bookmark (which come every minute), then calls the stream
/// dead: together less than two minutes.
pub(super) const WATCH_SECONDS: u32 = 110;
/// Objects per page of a list.
const PAGE: u32 = 500;
/// What is handed over at once, at most.
const BATCH: usize = 64;
/// The longest wait before a broken watch is started again.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Which of the streams: its kind, and its namespace if not all are watched.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WatchId {
    /// None for the Tasks themselves.
    pub kind: Option<ChildKind>,
    /// None for all namespaces.
    pub namespace: Option<String>,
}

impl WatchId {
    /// The kind, for metrics and logs.
    pub fn kind_name(&self) -> &'static str {
        self.kind.map_or("Task", ChildKind::as_str)
    }
}

/// What a stream told.
#[derive(Debug)]
pub enum Sighting {
    /// A list began then; what it does not hold is gone once it is complete.
    ListBegan(Instant),
    /// A Task, from a list or because it changed.
    Task(Box<ObservedTask>, bool),
    /// A Task that is gone.
    TaskGone(Box<ObservedTask>),
    /// A child, from a list or because it changed.
    Child(ObservedChild, bool),
    /// A child that is gone.
    ChildGone(ObservedChild),
    /// The list is complete.
    ListDone,
    /// The stream broke and is started again.
    Broke,
    /// The first answer after it broke.
    Restored,
}

/// Some of it, in order.
#[derive(Debug)]
pub struct Batch {
    /// From which stream.
    pub watch: WatchId,
    /// What happened.
    pub sightings: Vec<Sighting>,
}

/// Takes batches; resolves once one is dealt with.
pub trait Sink: Clone + 'static {
    /// Hands `batch` over. False if nobody listens any more.
    fn deliver(&self, batch: Batch) -> impl Future<Output = bool>;
}

/// Which streams there will be: each kind in each of `namespaces`, or in all if there are none.
pub fn ids(namespaces: &[String]) -> Vec<WatchId> {
    let namespaces: Vec<Option<String>> =
        if namespaces.is_empty() { vec![None] } else { namespaces.iter().cloned().map(Some).collect() };
    let kinds = std::iter::once(None).chain(ChildKind::ALL.into_iter().map(Some));
    kinds
        .flat_map(|kind| {
            namespaces.iter().map(move |namespace| WatchId { kind, namespace: namespace.clone() })
        })
        .collect()
}

/// Starts the streams on the present arbiter. `tasks_listed` turns true once
/// the Tasks of all namespaces are known.
pub fn start(
    client: &Client,
    ids: Vec<WatchId>,
    tasks_listed: &watch::Receiver<bool>,
    metrics: &Metrics,
    sink: &impl Sink,
) {
    for id in ids {
        let (client, metrics, sink) = (client.clone(), metrics.clone(), sink.clone());
        let tasks_listed = tasks_listed.clone();
        let run = async move {
            match id.kind {
                None => follow::<ObservedTask>(client, id, metrics, sink).await,
                Some(kind) => {
                    wait_for(tasks_listed).await;
                    match kind {
                        ChildKind::ConfigMap => follow::<ConfigMapShape>(client, id, metrics, sink).await,
                        ChildKind::Service => follow::<ServiceShape>(client, id, metrics, sink).await,
                        ChildKind::Deployment => follow::<DeploymentShape>(client, id, metrics, sink).await,
                    }
                }
            }
        };
        tokio::task::spawn_local(run);
    }
}

async fn wait_for(mut flag: watch::Receiver<bool>) {
    // The sender lives as long as the dispatcher; without it there is nobody to watch for.
    if flag.wait_for(|&set| set).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// What an object of this kind is told of as.
trait Sighted: Shape {
    const LABELS: Option<&'static str>;
    fn seen(self, listed: bool) -> Sighting;
    fn gone(self) -> Sighting;
}

impl Sighted for ObservedTask {
    const LABELS: Option<&'static str> = None;
    fn seen(self, listed: bool) -> Sighting {
        Sighting::Task(Box::new(self), listed)
    }
    fn gone(self) -> Sighting {
        Sighting::TaskGone(Box::new(self))
    }
}

macro_rules! sighted_child {
    ($($shape:ty),*) => {$(
        impl Sighted for $shape {
            const LABELS: Option<&'static str> = Some(MANAGED_BY_SELECTOR);
            fn seen(self, listed: bool) -> Sighting {
                Sighting::Child(self.into(), listed)
            }
            fn gone(self) -> Sighting {
                Sighting::ChildGone(self.into())
            }
        }
    )*};
}
sighted_child!(ConfigMapShape, ServiceShape, DeploymentShape);

async fn follow<S: Sighted>(client: Client, id: WatchId, metrics: Metrics, sink: impl Sink) {
    let api: Api<Watched<S>> = match &id.namespace {
        None => Api::all(client),
        Some(namespace) => Api::namespaced(client, namespace),
    };
    let config =
        watcher::Config { label_selector: S::LABELS.map(str::to_owned), ..watcher::Config::default() }
            .timeout(WATCH_SECONDS)
            .page_size(PAGE);
    let events = begun(watcher(api, config)).backoff(Reconnect::default());
    let mut batches = pin!(sightings::<S>(events, id.clone(), metrics).ready_chunks(BATCH));
    while let Some(chunks) = batches.next().await {
        let sightings = chunks.into_iter().flatten().collect();
        if !sink.deliver(Batch { watch: id.clone(), sightings }).await {
            return;
        }
    }
}

/// The events with the moment at which the list they begin was asked for. A
/// list that fails has told nothing: it neither ends an outage nor the backoff.
pub(super) fn begun<S>(
    events: impl Stream<Item = watcher::Result<Event<S>>>,
) -> impl Stream<Item = watcher::Result<(Option<Instant>, Event<S>)>> {
    let mut began = None;
    events.filter_map(move |event| {
        let told = match event {
            Ok(Event::Init) => {
                began = Some(Instant::now());
                None
            }
            Ok(event) => Some(Ok((began.take(), event))),
            Err(error) => {
                began = None;
                Some(Err(error))
            }
        };
        future::ready(told)
    })
}

/// An error of a watch in one line.
pub(super) fn reason(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.message.clone(),
        error => chain(error),
    }
}

fn sightings<S: Sighted>(
    events: impl Stream<Item = watcher::Result<(Option<Instant>, Event<Watched<S>>)>>,
    id: WatchId,
    metrics: Metrics,
) -> impl Stream<Item = Vec<Sighting>> {
    let mut broken = false;
    events.flat_map(move |event| {
        let mut out = Vec::with_capacity(2);
        if broken && event.is_ok() {
            broken = false;
            tracing::info!(kind = id.kind_name(), namespace = id.namespace, "the watch works again");
            out.push(Sighting::Restored);
        }
        let event = event.map(|(began, event)| {
            out.extend(began.map(Sighting::ListBegan));
            event
        });
        match event {
            Ok(Event::Init) => {}
            Ok(Event::InitApply(object)) => out.push(object.shape.seen(true)),
            Ok(Event::InitDone) => out.push(Sighting::ListDone),
            Ok(Event::Apply(object)) => out.push(object.shape.seen(false)),
            Ok(Event::Delete(object)) => out.push(object.shape.gone()),
            Err(error) => {
                metrics.watch_restarted(id.kind_name());
                // Said once per outage: on call, nobody wants it every few seconds.
                let error = reason(&error);
                if broken {
                    tracing::debug!(kind = id.kind_name(), error, "the watch is still broken");
                } else {
                    tracing::warn!(
                        kind = id.kind_name(),
                        namespace = id.namespace,
                        error,
                        "the watch broke and is started again"
                    );
                    out.push(Sighting::Broke);
                }
                broken = true;
            }
        }
        stream::iter(Some(out))
    })
}

/// Waits of 0.2 s, 0.4 s … 5 s, each less up to a half, so that the streams of
/// many operators do not return together.
#[derive(Default)]
pub(super) struct Reconnect {
    failures: u32,
}

impl Iterator for Reconnect {
    type Item = Duration;
    fn next(&mut self) -> Option<Duration> {
        let wait = Duration::from_millis(200).saturating_mul(1 << self.failures.min(10)).min(LONGEST_WAIT);
        self.failures += 1;
        // The hasher's keys are random for each one that is made: enough chance for jitter.
        let chance = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), self.failures) % 1000;
        Some(wait - wait * u32::try_from(chance).unwrap_or_default() / 2000)
    }
}

impl Backoff for Reconnect {
    fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_watch_is_started_again_after_growing_waits_and_soon_after_success() {
        let mut waits = Reconnect::default();
        for full in [200, 400, 800, 1600, 3200, 5000, 5000, 5000] {
            let wait = waits.next().unwrap();
            let full = Duration::from_millis(full);
            assert!(wait <= full && wait >= full / 2, "{wait:?} for {full:?}");
        }
        waits.reset();
        assert!(waits.next().unwrap() <= Duration::from_millis(200));
    }

    #[tokio::test]
    async fn a_list_that_fails_tells_of_no_beginning() {
        let events = stream::iter([
            Ok(Event::Init),
            Err(watcher::Error::NoResourceVersion),
            Ok(Event::Init),
            Ok(Event::InitApply(1)),
            Ok(Event::InitDone),
        ]);
        let told: Vec<_> =
            begun(events).map(|told| told.map(|(began, _)| began.is_some()).ok()).collect().await;
        assert_eq!(told, [None, Some(true), Some(false)]);
    }

    #[test]
    fn every_kind_is_watched_in_every_namespace() {
        assert_eq!(ids(&[]).len(), 4);
        assert_eq!(ids(&["a".to_owned(), "b".to_owned()]).len(), 8);
    }
}
