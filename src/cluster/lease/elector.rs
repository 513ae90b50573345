//! Takes part in the election for as long as the process lives.

use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use tokio::sync::{oneshot, watch};

use crate::cluster::FIELD_MANAGER;
use crate::cluster::failure::chain;
use crate::supervisor::time::Instant;
use crate::telemetry::Metrics;

use super::election::{Attempt, Election, LeaseView};
use super::{Fence, Terms};

/// Takes part in the election.
pub struct Elector {
    api: Api<Lease>,
    terms: Terms,
    fence: Fence,
    metrics: Metrics,
    leads: watch::Sender<bool>,
    election: Election,
    /// The Lease as it was last read or written.
    lease: Option<Lease>,
}

/// Ends the part that a replica takes, giving the lease back.
pub struct Release(oneshot::Sender<oneshot::Sender<()>>);

impl Release {
    /// Gives the lease back, if it is held, and takes no further part.
    pub async fn release(self) {
        let (done, wait) = oneshot::channel();
        // An elector that is gone holds nothing that it could give back.
        if self.0.send(done).is_ok() {
            let _ = wait.await;
        }
    }
}

impl Elector {
    /// Takes part from now on; `leads` says whether this replica leads. The
    /// fence is open exactly while it may write.
    pub fn start(
        client: &Client,
        terms: Terms,
        fence: Fence,
        metrics: &Metrics,
    ) -> (watch::Receiver<bool>, Release) {
        let (leads, is_leading) = watch::channel(false);
        let (release, released) = oneshot::channel();
        metrics.leader(&terms.name, false);
        let elector = Self {
            api: Api::namespaced(client.clone(), &terms.namespace),
            election: Election::new(terms.identity.clone()),
            terms,
            fence,
            metrics: metrics.clone(),
            leads,
            lease: None,
        };
        tokio::task::spawn_local(elector.run(released));
        (is_leading, Release(release))
    }

    async fn run(mut self, mut released: oneshot::Receiver<oneshot::Sender<()>>) {
        let done = loop {
            tokio::select! {
                done = &mut released => break done,
                () = self.take_part() => {}
            }
        };
        self.give_back().await;
        if let Ok(done) = done {
            // Whoever asked may have given up at its deadline.
            let _ = done.send(());
        }
    }

    /// One step: renews while it leads, else waits for the lease and tries to take it.
    async fn take_part(&mut self) {
        if *self.leads.borrow() {
            tokio::time::sleep(self.terms.retry_period).await;
            self.renew().await;
        } else {
            self.follow().await;
        }
    }

    /// Renews on top of what is known; where that is old, on top of what is read.
    async fn renew(&mut self) {
        let sent = self.fence.now();
        let known = self.lease.clone();
        match self.put(known).await {
            Ok(lease) => return self.held(lease, sent),
            Err(error) if is_stale(&error) => {
                self.metrics.leader_slow_path(&self.terms.name);
                match self.read().await {
                    Ok(()) => return self.try_once().await,
                    Err(error) => tracing::warn!(error = chain(&error), "the lease could not be read"),
                }
            }
            Err(error) => tracing::warn!(error = chain(&error), "the lease could not be renewed"),
        }
        if !self.fence.may_write() {
            self.lost("it could not be renewed in time");
        }
    }

    async fn follow(&mut self) {
        match self.read().await {
            Ok(()) => {
                self.try_once().await;
                if !*self.leads.borrow() {
                    self.wait_for_a_change().await;
                }
            }
            Err(error) => {
                tracing::warn!(error = chain(&error), "the lease could not be read");
                tokio::time::sleep(self.terms.retry_period).await;
            }
        }
    }

    /// Tries what the Lease, as it was just read, allows.
    async fn try_once(&mut self) {
        let view = self.lease.as_ref().map(view);
        let sent = self.fence.now();
        let attempt = self.election.attempt(view.as_ref(), sent);
        let result = match attempt {
            Attempt::Create => self.put(None).await,
            Attempt::Renew | Attempt::Take => self.put(self.lease.clone()).await,
            Attempt::WaitUntil(_) => {
                if *self.leads.borrow() {
                    self.lost("another replica holds it");
                }
                return;
            }
        };
        match result {
            Ok(lease) => self.held(lease, sent),
            // Another replica was faster.
            Err(error) if is_stale(&error) => {
                tracing::debug!(%error, "the lease was taken by another replica")
            }
            Err(error) => tracing::warn!(error = chain(&error), "the lease could not be taken"),
        }
    }

    /// Waits until the Lease changes, or runs out.
    async fn wait_for_a_change(&mut self) {
        loop {
            let view = self.lease.as_ref().map(view);
            let until = match self.election.attempt(view.as_ref(), self.fence.now()) {
                Attempt::WaitUntil(until) => until,
                Attempt::Create | Attempt::Renew | Attempt::Take => return,
            };
            let left = until.since(self.fence.now());
            match tokio::time::timeout(left, self.next_change(left)).await {
                Ok(Ok(lease)) => self.lease = lease,
                Ok(Err(error)) => {
                    tracing::debug!(%error, "the watch of the lease ended");
                    // Without the watch the lease is read now and then.
                    return tokio::time::sleep(self.terms.retry_period.min(left)).await;
                }
                Err(_) => return,
            }
        }
    }

    /// The next state of the Lease after the one that is known.
    async fn next_change(&self, within: Duration) -> Result<Option<Lease>, kube::Error> {
        let version = self.lease.as_ref().and_then(|lease| lease.metadata.resource_version.as_deref());
        let seconds = u32::try_from(within.as_secs()).unwrap_or(u32::MAX).saturating_add(1);
        let params =
            WatchParams::default().fields(&format!("metadata.name={}", self.terms.name)).timeout(seconds);
        let mut events = std::pin::pin!(self.api.watch(&params, version.unwrap_or("0")).await?);
        while let Some(event) = events.next().await {
            match event? {
                WatchEvent::Added(lease) | WatchEvent::Modified(lease) => return Ok(Some(lease)),
                WatchEvent::Deleted(_) => return Ok(None),
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
            }
        }
        Ok(self.lease.clone())
    }

    async fn read(&mut self) -> Result<(), kube::Error> {
        self.lease = self.in_time(self.api.get_opt(&self.terms.name)).await?;
        Ok(())
    }

    /// Writes the Lease as ours: on top of `known`, or as a new one.
    async fn put(&self, known: Option<Lease>) -> Result<Lease, kube::Error> {
        let now = MicroTime(Timestamp::now());
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let spec = known.as_ref().and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let is_ours = spec.holder_identity.as_ref() == Some(&self.terms.identity);
        let transitions = spec.lease_transitions.unwrap_or_default();
        let spec = LeaseSpec {
            holder_identity: Some(self.terms.identity.clone()),
            lease_duration_seconds: i32::try_from(self.terms.lease_duration.as_secs()).ok(),
            acquire_time: if is_ours { spec.acquire_time.clone() } else { Some(now.clone()) },
            renew_time: Some(now),
            lease_transitions: Some(if is_ours || known.is_none() {
                transitions
            } else {
                transitions.saturating_add(1)
            }),
            ..spec
        };
        match known {
            Some(known) => {
                let lease = Lease { spec: Some(spec), ..known };
                self.in_time(self.api.replace(&self.terms.name, &params, &lease)).await
            }
            None => {
                let metadata = ObjectMeta { name: Some(self.terms.name.clone()), ..ObjectMeta::default() };
                self.in_time(self.api.create(&params, &Lease { metadata, spec: Some(spec) })).await
            }
        }
    }

    /// A request that hangs must leave time for another one before the deadline.
    async fn in_time<T>(&self, request: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
        let limit = self.terms.renew_deadline / 2;
        tokio::time::timeout(limit, request)
            .await
            .unwrap_or_else(|late| Err(kube::Error::Service(late.into())))
    }

    fn held(&mut self, lease: Lease, sent: Instant) {
        self.lease = Some(lease);
        self.fence.open_until(sent, self.terms.renew_deadline);
        if !self.leads.send_replace(true) {
            self.metrics.leader(&self.terms.name, true);
            tracing::info!(lease = self.terms.name, identity = self.terms.identity, "leading");
        }
    }

    fn lost(&mut self, why: &str) {
        self.fence.close();
        if self.leads.send_replace(false) {
            self.metrics.leader(&self.terms.name, false);
            tracing::warn!(lease = self.terms.name, why, "not leading any more");
        }
    }

    /// Whether the Lease, as it was last read, is ours.
    fn holds(&self) -> bool {
        self.lease.as_ref().is_some_and(|lease| view(lease).holder == self.terms.identity)
    }

    /// Lets the next replica in at once rather than when the lease has run out.
    async fn give_back(&mut self) {
        let led = *self.leads.borrow();
        self.fence.close();
        self.leads.send_replace(false);
        let (true, Some(mut lease)) = (led, self.lease.take()) else { return };
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(1);
        }
        let mut result =
            self.in_time(self.api.replace(&self.terms.name, &PostParams::default(), &lease)).await;
        if result.as_ref().is_err_and(is_stale) && self.read().await.is_ok() && self.holds() {
            // A renewal was under way when the release was asked for.
            lease.metadata = self.lease.take().unwrap_or_default().metadata;
            result = self.in_time(self.api.replace(&self.terms.name, &PostParams::default(), &lease)).await;
        }
        match result {
            Ok(_) => tracing::info!(lease = self.terms.name, "gave the lease back"),
            Err(error) => {
                tracing::warn!(error = chain(&error), "the lease could not be given back; it will run out")
            }
        }
        self.metrics.leader(&self.terms.name, false);
    }
}

fn is_stale(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_conflict() || status.is_already_exists() || status.is_not_found())
}

fn view(lease: &Lease) -> LeaseView {
    let spec = lease.spec.clone().unwrap_or_default();
    LeaseView {
        version: lease.metadata.resource_version.clone().unwrap_or_default(),
        holder: spec.holder_identity.unwrap_or_default(),
        duration: Duration::from_secs(
            spec.lease_duration_seconds.and_then(|s| u64::try_from(s).ok()).unwrap_or(15),
        ),
    }
}
