//! The objects that say whom the API server trusts when it calls the webhooks.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::held::ders;
use crate::api::{crd, webhooks};
use crate::cluster::FIELD_MANAGER;

/// What the annotations of cert-manager's injector begin with.
const INJECTED: &str = "cert-manager.io/inject-";

/// One of the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The configuration of the mutating webhook.
    Mutating,
    /// The configuration of the validating webhooks.
    Validating,
    /// The definition of Tasks, for their conversion.
    Definition,
}

impl Target {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [Self::Mutating, Self::Validating, Self::Definition];

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mutating => webhooks::MUTATING,
            Self::Validating => webhooks::VALIDATING,
            Self::Definition => crd::NAME,
        }
    }

    /// Its kind.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Mutating => "MutatingWebhookConfiguration",
            Self::Validating => "ValidatingWebhookConfiguration",
            Self::Definition => "CustomResourceDefinition",
        }
    }

    fn resource(self) -> ApiResource {
        let group = match self {
            Self::Mutating | Self::Validating => "admissionregistration.k8s.io",
            Self::Definition => "apiextensions.k8s.io",
        };
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", self.kind()))
    }

    /// Has the API server trust `bundle`, in PEM, if the object is still what was seen.
    ///
    /// # Errors
    /// If the API server does not take the patch.
    pub(super) async fn tell(self, client: &Client, seen: &Trusting, bundle: &str) -> kube::Result<()> {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &self.resource());
        let parameters =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let patch = seen.patch(self, bundle);
        let patch = match self {
            // Entries of a list, merged by their name.
            Self::Mutating | Self::Validating => Patch::Strategic(patch),
            Self::Definition => Patch::Merge(patch),
        };
        api.patch(self.name(), &parameters, &patch).await.map(drop)
    }
}

/// What matters of such an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trusting {
    version: String,
    /// Whether cert-manager fills in the bundle.
    is_injected: bool,
    /// The webhooks in it with the bundle of each. Only the definition's has no name.
    entries: Vec<(Option<String>, Vec<u8>)>,
}

impl Trusting {
    fn new(metadata: &ObjectMeta, entries: Vec<(Option<String>, Option<&ByteString>)>) -> Self {
        let mut annotations = metadata.annotations.iter().flatten();
        let pem = |bundle: Option<&ByteString>| bundle.map(|bundle| bundle.0.clone()).unwrap_or_default();
        Self {
            version: metadata.resource_version.clone().unwrap_or_default(),
            is_injected: annotations.any(|(name, _)| name.starts_with(INJECTED)),
            entries: entries.into_iter().map(|(name, bundle)| (name, pem(bundle))).collect(),
        }
    }

    /// Of the configuration of the mutating webhook.
    pub(super) fn mutating(object: &MutatingWebhookConfiguration) -> Self {
        let entries = object.webhooks.iter().flatten();
        let entries = entries.map(|entry| (Some(entry.name.clone()), entry.client_config.ca_bundle.as_ref()));
        Self::new(&object.metadata, entries.collect())
    }

    /// Of the configuration of the validating webhooks.
    pub(super) fn validating(object: &ValidatingWebhookConfiguration) -> Self {
        let entries = object.webhooks.iter().flatten();
        let entries = entries.map(|entry| (Some(entry.name.clone()), entry.client_config.ca_bundle.as_ref()));
        Self::new(&object.metadata, entries.collect())
    }

    /// Of the definition; without a conversion by webhook there is nothing to trust.
    pub(super) fn definition(object: &CustomResourceDefinition) -> Self {
        let webhook = object.spec.conversion.as_ref().and_then(|conversion| conversion.webhook.as_ref());
        let config = webhook.and_then(|webhook| webhook.client_config.as_ref());
        let entries = config.map(|config| (None, config.ca_bundle.as_ref()));
        Self::new(&object.metadata, entries.into_iter().collect())
    }

    /// Whether all webhooks in it trust exactly what is in `bundle`.
    pub(super) fn trusts(&self, bundle: &str) -> bool {
        let Ok(wanted) = ders(bundle) else { return false };
        self.entries.iter().all(|(_, trusted)| {
            let trusted = std::str::from_utf8(trusted).ok().and_then(|pem| ders(pem).ok());
            trusted.is_some_and(|trusted| trusted == wanted)
        })
    }

    /// Who else fills in the bundle, if somebody does: two would overwrite each other for ever.
    pub(super) fn rival(&self) -> Option<&'static str> {
        (self.is_injected && !self.entries.is_empty()).then_some("cert-manager")
    }

    fn patch(&self, target: Target, bundle: &str) -> Value {
        let client_config = json!({"caBundle": BASE64_STANDARD.encode(bundle)});
        let mut patch = json!({"metadata": {"resourceVersion": self.version}});
        match target {
            Target::Definition => {
                patch["spec"] = json!({"conversion": {"webhook": {"clientConfig": client_config}}})
            }
            Target::Mutating | Target::Validating => {
                let entry =
                    |(name, _): &(Option<String>, _)| json!({"name": name, "clientConfig": client_config});
                patch["webhooks"] = self.entries.iter().map(entry).collect();
            }
        }
        patch
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::super::issue;
    use super::*;
    use crate::api::webhooks::Webhook;

    fn authority() -> String {
        let names = ["a".to_owned()].into();
        issue::begin(&names, Duration::from_secs(60), SystemTime::now()).unwrap().authorities
    }

    #[test]
    fn every_webhook_that_the_manifests_bring_is_told() {
        let bundle = authority();
        let url = Webhook::Url("https://127.0.0.1:1".to_owned());
        let read = |ca: Option<&[u8]>| {
            let [mutating, validating] = webhooks::configurations(&url, ca);
            [
                Trusting::mutating(&serde_json::from_value(mutating).unwrap()),
                Trusting::validating(&serde_json::from_value(validating).unwrap()),
                Trusting::definition(&crd::with_conversion(&url, ca)),
            ]
        };
        for ((before, target), entries) in read(None).iter().zip(Target::ALL).zip([1, 2, 1]) {
            assert_eq!((before.entries.len(), before.rival()), (entries, None));
            assert!(!before.trusts(&bundle));
            let patch = before.patch(target, &bundle).to_string();
            assert_eq!(patch.matches("caBundle").count(), entries, "{patch}");
        }
        assert!(read(Some(bundle.as_bytes())).iter().all(|after| after.trusts(&bundle)));
        assert!(
            !read(Some((bundle.clone() + &authority()).as_bytes())).iter().any(|after| after.trusts(&bundle))
        );
    }

    #[test]
    fn nothing_is_told_where_nothing_is_called_and_where_cert_manager_does_it() {
        let bundle = authority();
        assert!(Trusting::definition(&crd::crd()).trusts(&bundle));
        let [mutating, _] = webhooks::configurations(&Webhook::in_cluster(), None);
        let mutating = Trusting::mutating(&serde_json::from_value(mutating).unwrap());
        assert_eq!(mutating.rival(), Some("cert-manager"));
    }
}
