//! The certificate of the webhooks, made and kept by the operator itself.
//!
//! An authority (CA) and a pair signed by it stand in one Secret that all
//! replicas share; whoever writes it first wins, by the preconditions of the API
//! server, and the others take over what they see. What the API server trusts,
//! the `caBundle` of both webhook configurations and of the definition of Tasks,
//! is kept equal to the authorities in the Secret.
//!
//! - `held`: what the Secret holds, read and judged. Pure.
//! - `plan`: what has to change, and when to look again. Pure.
//! - `issue`: makes authorities and pairs
//! - `secret`: writes the Secret
//! - `trust`: the objects that say whom the API server trusts
//! - `sightings`: what the watches of these four objects see
//! - `keeper`: the task that holds all this together
//!
//! A new authority is published, next to the old one, before anything is signed
//! by it, and the old one stays until it has expired: at every moment each
//! replica serves a pair that each API server trusts.

mod held;
mod issue;
mod keeper;
mod plan;
mod secret;
mod sightings;
mod trust;

use std::collections::BTreeSet;
use std::time::Duration;

use kube::Client;
use tokio::sync::watch;

/// What is to be kept, and where.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The namespace of the Secret.
    pub namespace: String,
    /// The name of the Secret.
    pub secret: String,
    /// The DNS names and IP addresses under which the API server calls the webhooks.
    pub names: BTreeSet<String>,
    /// How long a pair is valid. It is renewed after two thirds of that; an
    /// authority is valid four times as long.
    pub validity: Duration,
}

/// How things stand.
#[derive(Clone, Debug)]
pub struct Kept {
    /// What to serve with: `tls.crt` and `tls.key`, once they are there.
    pub pair: Option<[Vec<u8>; 2]>,
    /// Whether the API server is told to trust it; else what is in the way.
    pub trust: Result<(), String>,
    /// Whether the Secret is as it should be; else what is in the way.
    pub secret: Result<(), String>,
}

/// Begins to keep the certificate, on the present thread, for as long as the
/// receiver or a clone of it lives.
pub fn start(client: &Client, terms: Terms) -> watch::Receiver<Kept> {
    keeper::start(client.clone(), terms)
}
