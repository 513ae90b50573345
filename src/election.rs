//! What `run` needs to take part in a leader election: who this replica is, and
//! how the dispatcher learns that it leads.

use std::hash::{BuildHasher, RandomState};

use actix::Addr;
use kube::Config;
use tokio::sync::watch;

use crate::cli::ElectionArgs;
use crate::cluster::lease::{NAME, Terms};
use crate::dispatcher::{Dispatcher, Lead};

/// Who this process is for people: the Pod, else the host, else its number.
pub(crate) fn instance() -> String {
    let named = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    named("POD_NAME")
        .or_else(|| named("HOSTNAME"))
        .unwrap_or_else(|| format!("task-operator-{}", std::process::id()))
}

/// The namespace of this process: the Pod's, else the kubeconfig's.
pub(crate) fn own_namespace(configuration: &Config) -> String {
    let pods = std::env::var("POD_NAMESPACE").ok().filter(|name| !name.is_empty());
    pods.unwrap_or_else(|| configuration.default_namespace.clone())
}

/// The election that the flags ask for.
pub(crate) fn terms(args: &ElectionArgs, configuration: &Config) -> Terms {
    let namespace = args.leader_election_namespace.clone().filter(|name| !name.is_empty());
    // A container that is started again has the name of the one before, which may still hold the lease.
    let own = RandomState::new().hash_one(std::process::id());
    Terms {
        namespace: namespace.unwrap_or_else(|| own_namespace(configuration)),
        name: NAME.to_owned(),
        identity: format!("{}_{own:016x}", instance()),
        lease_duration: args.lease_duration,
        renew_deadline: args.renew_deadline,
        retry_period: args.retry_period,
    }
}

/// Tells the dispatcher whenever this replica begins or ends to lead.
pub(crate) fn follow(mut leads: watch::Receiver<bool>, dispatcher: Addr<Dispatcher>) {
    tokio::task::spawn_local(async move {
        while leads.changed().await.is_ok() {
            let leading = *leads.borrow_and_update();
            if dispatcher.send(Lead(leading)).await.is_err() {
                return;
            }
        }
    });
}
