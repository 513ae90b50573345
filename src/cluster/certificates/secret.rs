//! The Secret: whose it is, and how it is written.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};

use super::Terms;
use super::held::{Held, Pems};
use crate::cluster::FIELD_MANAGER;
use crate::desired::MANAGED_BY;

/// What the annotations of cert-manager begin with.
const CERT_MANAGER: &str = "cert-manager.io/";

/// The contents, and what they are worth.
pub(super) enum Contents {
    /// There are none: the Secret is not there, or empty, as somebody may have
    /// prepared it so that the operator needs no permission to create one.
    Nothing,
    /// They belong together.
    Sound(Held),
    /// They were ours and are of no use any more, for this reason.
    Damaged(String),
    /// Somebody else's, by this sign. Not to be touched.
    Foreign(&'static str),
}

/// The Secret as it was last seen.
pub(super) struct Seen {
    /// None if it is not there.
    object: Option<Secret>,
    /// What is in it.
    pub contents: Contents,
}

impl Seen {
    /// Judges it.
    pub(super) fn new(object: Option<Secret>) -> Self {
        let contents = object.as_ref().map_or(Contents::Nothing, judge);
        Self { object, contents }
    }

    /// Puts `pems` in, if the Secret is still what was seen. What else is in it stays.
    ///
    /// # Errors
    /// If the API server does not take it; with 409 if another replica was quicker.
    pub(super) async fn write(&self, client: &Client, terms: &Terms, pems: &Pems) -> kube::Result<Self> {
        let api: Api<Secret> = Api::namespaced(client.clone(), &terms.namespace);
        let parameters =
            PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let mut secret = self.object.clone().unwrap_or_else(|| Secret {
            metadata: ObjectMeta { name: Some(terms.secret.clone()), ..ObjectMeta::default() },
            type_: Some("kubernetes.io/tls".to_owned()),
            ..Secret::default()
        });
        secret.labels_mut().insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
        let data = secret.data.get_or_insert_default();
        data.extend(pems.data().map(|(key, text)| (key.to_owned(), ByteString(text.as_bytes().to_vec()))));
        let written = match self.object {
            None => api.create(&parameters, &secret).await?,
            // Carries the version that was seen.
            Some(_) => api.replace(&terms.secret, &parameters, &secret).await?,
        };
        Ok(Self::new(Some(written)))
    }
}

fn judge(secret: &Secret) -> Contents {
    if secret.annotations().keys().any(|name| name.starts_with(CERT_MANAGER)) {
        return Contents::Foreign("it has an annotation of cert-manager");
    }
    let Some(data) = secret.data.as_ref().filter(|data| data.values().any(|value| !value.0.is_empty()))
    else {
        return Contents::Nothing;
    };
    let is_ours = secret.labels().get(MANAGED_BY.0).is_some_and(|value| value == MANAGED_BY.1);
    let held = match Pems::of(data) {
        Some(pems) => Held::read(pems).map_err(|error| format!("{error:#}")),
        None => Err("an entry is missing".to_owned()),
    };
    match held {
        Ok(held) => Contents::Sound(held),
        Err(reason) if is_ours => Contents::Damaged(reason),
        Err(_) => Contents::Foreign("it holds something else, and has no label of the operator"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use serde_json::json;

    use super::super::issue;
    use super::*;

    fn secret(pems: &Pems) -> Secret {
        let data = pems.data().map(|(key, text)| (key.to_owned(), ByteString(text.as_bytes().to_vec())));
        Secret { data: Some(data.into()), ..Secret::default() }
    }

    fn pems() -> Pems {
        issue::begin(&["a".to_owned()].into(), Duration::from_secs(60), SystemTime::now()).unwrap()
    }

    #[test]
    fn only_what_is_ours_or_empty_is_written() {
        let empty = json!({"type": "kubernetes.io/tls", "data": {"tls.crt": "", "tls.key": ""}});
        assert!(matches!(judge(&serde_json::from_value(empty).unwrap()), Contents::Nothing));
        assert!(matches!(judge(&secret(&pems())), Contents::Sound(_)));

        let mut damaged = secret(&pems());
        damaged.data.as_mut().unwrap().remove("ca.key");
        assert!(matches!(judge(&damaged), Contents::Foreign(_)));
        damaged.labels_mut().insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
        assert!(matches!(judge(&damaged), Contents::Damaged(_)));

        let mut theirs = secret(&pems());
        theirs.annotations_mut().insert("cert-manager.io/issuer-name".to_owned(), "x".to_owned());
        assert!(matches!(judge(&theirs), Contents::Foreign(_)));
    }
}
