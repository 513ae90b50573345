//! The task that keeps the certificate: sees, plans, writes, tells.

use std::time::{Duration, SystemTime};

use anyhow::Context;
use futures::StreamExt;
use kube::Client;
use tokio::sync::watch;
use tokio::time::Instant;

use super::held::{Held, Pems};
use super::plan::{Change, Plan, Situation, plan};
use super::secret::{Contents, Seen};
use super::sightings::{self, Sighting};
use super::trust::{Target, Trusting};
use super::{Kept, Terms, issue};
use crate::cluster::watches::Reconnect;

/// For one request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long it is at most between two looks: the clock of the machine may be set.
const LONGEST: Duration = Duration::from_secs(60);

/// Begins; see [`super::start`].
pub(super) fn start(client: Client, terms: Terms) -> watch::Receiver<Kept> {
    let (kept, receiver) = watch::channel(Kept {
        pair: None,
        trust: Err("the API server has not been told whom to trust".to_owned()),
        secret: Err("the Secret has not been looked at".to_owned()),
    });
    let keeper = Keeper {
        client,
        terms,
        kept,
        secret: None,
        trusting: [const { None }; 3],
        last: None,
        trusted: None,
        failures: Reconnect::default(),
    };
    tokio::task::spawn_local(keeper.run());
    receiver
}

struct Keeper {
    client: Client,
    terms: Terms,
    kept: watch::Sender<Kept>,
    /// None until it was looked for.
    secret: Option<Seen>,
    /// Per target: none until it was looked for.
    trusting: [Option<Option<Trusting>>; 3],
    /// The last contents that were sound, to be put back if they are lost.
    last: Option<Pems>,
    /// The authorities that all targets trust, and since when.
    trusted: Option<(String, Instant)>,
    failures: Reconnect,
}

/// A step that did not succeed: others were quicker, or something is in the way.
enum Obstacle {
    /// What was written is no longer what is there; the watch tells what is.
    Stale,
    /// This.
    Trouble(String),
}

impl Keeper {
    async fn run(mut self) {
        let mut seen = sightings::all(&self.client, &self.terms).ready_chunks(16);
        let mut next = Instant::now() + LONGEST;
        loop {
            tokio::select! {
                sightings = seen.next() => sightings.into_iter().flatten().for_each(|sighting| self.see(sighting)),
                () = tokio::time::sleep_until(next) => {}
                () = self.kept.closed() => return,
            }
            let wait = match self.step().await {
                Some(until) => {
                    self.failures = Reconnect::default();
                    until.duration_since(SystemTime::now()).unwrap_or_default()
                }
                None => self.failures.next().unwrap_or(LONGEST),
            };
            next = Instant::now() + wait.min(LONGEST);
        }
    }

    fn see(&mut self, sighting: Sighting) {
        match sighting {
            Sighting::Secret(secret) => self.secret = Some(Seen::new(secret.map(|secret| *secret))),
            Sighting::Trusting(target, trusting) => self.trusting[target as usize] = Some(trusting),
        }
    }

    /// Does what is to be done now. When to look again; none: soon, since it did not succeed.
    async fn step(&mut self) -> Option<SystemTime> {
        // Whether the API server trusts what is there comes before what is next.
        let mut trust = self.keep_trust().await;
        let before = self.authorities().map(str::to_owned);
        let secret = self.keep_secret().await;
        if self.authorities() != before.as_deref() {
            trust = self.keep_trust().await;
        }
        self.tell(&secret, &trust);
        trust.ok().and(secret.ok())
    }

    /// Keeps the contents of the Secret; when they have to change next.
    async fn keep_secret(&mut self) -> Result<SystemTime, Obstacle> {
        loop {
            let Some(seen) = &self.secret else { return Ok(SystemTime::now() + LONGEST) };
            let now = SystemTime::now();
            let (change, held) = match &seen.contents {
                Contents::Sound(held) => match plan(&held.facts, self.situation(held, now)) {
                    Plan::Wait(until) => {
                        self.last = Some(held.pems.clone());
                        return Ok(until);
                    }
                    Plan::Write(change) => (change, Some(held)),
                },
                Contents::Nothing => (Change::Begin, None),
                Contents::Damaged(reason) => {
                    tracing::warn!(
                        secret = self.terms.secret,
                        reason,
                        "the Secret of the webhooks is damaged"
                    );
                    (Change::Begin, None)
                }
                Contents::Foreign(sign) => {
                    let Terms { namespace, secret, .. } = &self.terms;
                    return Err(Obstacle::Trouble(format!(
                        "the Secret {namespace}/{secret} is somebody else's: {sign}. \
                         Delete it, name another one by --webhook-secret-name, or mount it with --webhook-cert-dir"
                    )));
                }
            };
            let pems =
                self.contents(&change, held, now).map_err(|error| Obstacle::Trouble(format!("{error:#}")))?;
            let written = limited(seen.write(&self.client, &self.terms, &pems)).await;
            self.secret = Some(written.map_err(|error| obstacle(&error, "the Secret cannot be written"))?);
            tracing::info!(secret = self.terms.secret, ?change, "the certificate of the webhooks changed");
        }
    }

    fn situation(&self, held: &Held, now: SystemTime) -> Situation<'_> {
        // The trust in other authorities says nothing of these.
        let trusted = self.trusted.as_ref().filter(|(trusted, _)| *trusted == held.pems.authorities);
        Situation {
            names: &self.terms.names,
            validity: self.terms.validity,
            now,
            trusted_for: trusted.map(|(_, since)| since.elapsed()),
        }
    }

    /// The contents of the Secret, if they serve.
    fn held(&self) -> Option<&Held> {
        match &self.secret {
            Some(Seen { contents: Contents::Sound(held), .. }) => Some(held),
            _ => None,
        }
    }

    fn authorities(&self) -> Option<&str> {
        self.held().map(|held| held.pems.authorities.as_str())
    }

    /// What is to be in the Secret. Contents that were lost come back: whoever trusted them goes on.
    fn contents(&self, change: &Change, held: Option<&Held>, now: SystemTime) -> anyhow::Result<Pems> {
        if let (Change::Begin, Some(last)) = (change, &self.last) {
            return Ok(last.clone());
        }
        issue::carry_out(change, held, &self.terms.names, self.terms.validity, now)
            .context("no certificate can be issued")
    }

    /// Has every target trust the authorities.
    async fn keep_trust(&mut self) -> Result<(), Obstacle> {
        let Some(bundle) = self.authorities().map(str::to_owned) else {
            self.trusted = None;
            return Err(Obstacle::Stale);
        };
        let mut result = Ok(());
        for target in Target::ALL {
            if let Err(obstacle) = self.have_trusted(target, &bundle).await {
                result = Err(obstacle);
            }
        }
        self.trusted = match (&result, self.trusted.take()) {
            (Err(_), _) => None,
            (Ok(()), Some((trusted, since))) if trusted == bundle => Some((trusted, since)),
            (Ok(()), _) => Some((bundle, Instant::now())),
        };
        result
    }

    async fn have_trusted(&mut self, target: Target, bundle: &str) -> Result<(), Obstacle> {
        let Some(seen) = &self.trusting[target as usize] else { return Err(Obstacle::Stale) };
        // Without it nobody calls.
        let Some(trusting) = seen.as_ref().filter(|trusting| !trusting.trusts(bundle)) else { return Ok(()) };
        let (kind, name) = (target.kind(), target.name());
        if let Some(rival) = trusting.rival() {
            return Err(Obstacle::Trouble(format!(
                "{kind} {name}: {rival} fills in its caBundle. Remove the annotation cert-manager.io/inject-ca-from, \
                 or run with --webhook-cert-dir"
            )));
        }
        let told = limited(target.tell(&self.client, trusting, bundle)).await;
        told.map_err(|error| obstacle(&error, &format!("{kind} {name}: its caBundle cannot be written")))?;
        tracing::info!(kind, name, "the API server is told whom to trust");
        // What it is now comes by the watch; until then nothing can be said of it.
        self.trusting[target as usize] = None;
        Err(Obstacle::Stale)
    }

    /// Publishes how things stand; troubles are logged when they come and when they go.
    fn tell(&self, secret: &Result<SystemTime, Obstacle>, trust: &Result<(), Obstacle>) {
        let pair = self
            .held()
            .map(|Held { pems, .. }| [&pems.pair, &pems.pair_key].map(|pem| pem.clone().into_bytes()));
        let before = self.kept.borrow().clone();
        let kept = Kept {
            // The last one serves for as long as there is no other.
            pair: pair.or_else(|| before.pair.clone()),
            trust: stands(trust.as_ref().err(), &before.trust),
            secret: stands(secret.as_ref().err(), &before.secret),
        };
        for (before, after) in [(&before.secret, &kept.secret), (&before.trust, &kept.trust)] {
            match (before, after) {
                (before, Err(trouble)) if before != after => {
                    tracing::warn!(trouble, "the webhooks are in trouble")
                }
                (Err(trouble), Ok(())) => tracing::debug!(trouble, "no longer the case"),
                _ => {}
            }
        }
        self.kept.send_replace(kept);
    }
}

/// What is said of a part. A write that waits for its echo leaves what was said before.
fn stands(obstacle: Option<&Obstacle>, before: &Result<(), String>) -> Result<(), String> {
    match obstacle {
        None => Ok(()),
        Some(Obstacle::Stale) => before.clone(),
        Some(Obstacle::Trouble(trouble)) => Err(trouble.clone()),
    }
}

async fn limited<T>(request: impl Future<Output = kube::Result<T>>) -> anyhow::Result<T> {
    match tokio::time::timeout(TIMEOUT, request).await {
        Ok(answer) => Ok(answer?),
        Err(_) => anyhow::bail!("no answer within {} s", TIMEOUT.as_secs()),
    }
}

fn obstacle(error: &anyhow::Error, what: &str) -> Obstacle {
    match error.downcast_ref() {
        Some(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => Obstacle::Stale,
        Some(kube::Error::Api(status)) => Obstacle::Trouble(format!("{what}: {}", status.message)),
        _ => Obstacle::Trouble(format!("{what}: {error:#}")),
    }
}
