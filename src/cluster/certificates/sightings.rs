//! What the watches of single objects see.

use std::fmt::Debug;
use std::pin::Pin;

use futures::future;
use futures::stream::{self, Stream, StreamExt};
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use super::Terms;
use super::trust::{Target, Trusting};
use crate::cluster::watches::{Reconnect, WATCH_SECONDS, begun, reason};

/// One of the objects as it is now; none if it is not there.
pub(super) enum Sighting {
    /// The Secret.
    Secret(Option<Box<Secret>>),
    /// An object that says whom the API server trusts.
    Trusting(Target, Option<Trusting>),
}

/// Begins to watch all of them, each by its name.
pub(super) fn all(client: &Client, terms: &Terms) -> impl Stream<Item = Sighting> + Unpin + use<> {
    let secrets = Api::namespaced(client.clone(), &terms.namespace);
    let secret = one(secrets, &terms.secret, "Secret").map(|secret| Sighting::Secret(secret.map(Box::new)));
    let mut streams: Vec<Pin<Box<dyn Stream<Item = Sighting>>>> = vec![Box::pin(secret)];
    for target in Target::ALL {
        streams.push(match target {
            Target::Mutating => follow(client, target, |object| Trusting::mutating(&object)),
            Target::Validating => follow(client, target, |object| Trusting::validating(&object)),
            Target::Definition => follow(client, target, |object| Trusting::definition(&object)),
        });
    }
    stream::select_all(streams)
}

fn follow<K>(
    client: &Client,
    target: Target,
    read: impl Fn(K) -> Trusting + 'static,
) -> Pin<Box<dyn Stream<Item = Sighting>>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let seen = one(Api::<K>::all(client.clone()), target.name(), target.kind());
    Box::pin(seen.map(move |object| Sighting::Trusting(target, object.map(&read))))
}

/// The object `name`, again whenever it changes, comes or goes. A watch that
/// breaks is started again with backoff, and tells anew what there is.
fn one<K>(api: Api<K>, name: &str, kind: &'static str) -> impl Stream<Item = Option<K>> + use<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let config = Config::default().fields(&format!("metadata.name={name}")).timeout(WATCH_SECONDS);
    let events = begun(watcher(api, config)).backoff(Reconnect::default());
    let name = name.to_owned();
    let (mut is_there, mut is_broken) = (false, false);
    events.filter_map(move |event| {
        let event = match event {
            Ok((began, event)) => {
                if is_broken {
                    tracing::info!(kind, name, "the watch works again");
                }
                is_broken = false;
                is_there &= began.is_none();
                event
            }
            Err(error) => {
                // Said once per outage.
                if !is_broken {
                    let error = reason(&error);
                    tracing::warn!(kind, name, error, "the watch broke and is started again");
                }
                is_broken = true;
                return future::ready(None);
            }
        };
        future::ready(match event {
            Event::InitApply(object) | Event::Apply(object) => {
                is_there = true;
                Some(Some(object))
            }
            Event::Delete(_) => {
                is_there = false;
                Some(None)
            }
            Event::InitDone if !is_there => Some(None),
            Event::Init | Event::InitDone => None,
        })
    })
}
