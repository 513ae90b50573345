//! What a real API server makes of the children and of their corrections: nothing
//! else runs there, so what is seen is its defaulting, its validation and its
//! managedFields.

mod drift;
mod others;
mod versions;

use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use test_cluster::Cluster;

use crate::api::v1::TaskSpec;
use crate::api::{TaskKey, Uid};
use crate::cluster::FIELD_MANAGER;

use super::shape::{ConfigMapShape, DeploymentShape, ServiceShape};
use super::{ChildKind, Correction, Covers, body, contender, correction, name_of};

const UID: &str = "0b7d4f0a-6a5d-4a35-b7b7-1cf7e9f1d5ac";

/// One Task's children on a server.
struct Children {
    client: Client,
    key: TaskKey,
    spec: TaskSpec,
}

impl Children {
    async fn created(client: &Client, name: &str, spec: TaskSpec) -> Self {
        let children = Self { client: client.clone(), key: TaskKey::new("default", name), spec };
        for kind in ChildKind::ALL {
            children.create(kind).await;
        }
        children
    }

    async fn create(&self, kind: ChildKind) {
        let object: DynamicObject = serde_json::from_value(self.wanted(kind)).unwrap();
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        self.api(kind).create(&params, &object).await.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
    }

    fn api(&self, kind: ChildKind) -> Api<DynamicObject> {
        let (group, version) = kind.api_version().split_once('/').unwrap_or(("", kind.api_version()));
        let resource = ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk(group, version, kind.as_str()),
            kind.plural(),
        );
        Api::namespaced_with(self.client.clone(), &self.key.namespace, &resource)
    }

    fn name(&self, kind: ChildKind) -> String {
        name_of(kind, &self.key.name).into_owned()
    }

    fn wanted(&self, kind: ChildKind) -> Value {
        body(kind, &self.key, &Uid::from(UID), &self.spec)
    }

    async fn live(&self, kind: ChildKind) -> Value {
        serde_json::to_value(self.api(kind).get(&self.name(kind)).await.unwrap()).unwrap()
    }

    fn covers(&self, kind: ChildKind, live: &Value) -> bool {
        fn read<T: DeserializeOwned>(value: &Value) -> T {
            serde_json::from_str(&value.to_string()).unwrap()
        }
        fn one<T: Covers + DeserializeOwned>(live: &Value, wanted: &Value) -> bool {
            read::<T>(live).covers(&read(wanted))
        }
        let wanted = self.wanted(kind);
        match kind {
            ChildKind::ConfigMap => one::<ConfigMapShape>(live, &wanted),
            ChildKind::Service => one::<ServiceShape>(live, &wanted),
            ChildKind::Deployment => one::<DeploymentShape>(live, &wanted),
        }
    }

    fn correction(&self, kind: ChildKind, live: &Value) -> Correction {
        correction(live, &self.wanted(kind), kind)
    }

    async fn patched(&self, kind: ChildKind, manager: &str, patch: &Patch<Value>) -> kube::Result<Value> {
        let params = PatchParams {
            field_manager: Some(manager.to_owned()),
            force: matches!(patch, Patch::Apply(_)),
            ..PatchParams::default()
        };
        let patched = self.api(kind).patch(&self.name(kind), &params, patch).await?;
        Ok(serde_json::to_value(patched).unwrap())
    }

    /// As somebody else changes it.
    async fn changed(&self, kind: ChildKind, manager: &str, patch: Patch<Value>) -> Value {
        let changed = self.patched(kind, manager, &patch).await;
        changed.unwrap_or_else(|error| panic!("{patch:?}: {error}"))
    }

    /// Corrects it, and sees to it that it is right then.
    async fn corrected(&self, kind: ChildKind, what: &str) -> Value {
        let live = self.live(kind).await;
        let Correction::Patch(patch) = self.correction(kind, &live) else {
            panic!("{what}: no patch for {live:#}");
        };
        let patched = self.patched(kind, FIELD_MANAGER, &Patch::Merge(patch.clone())).await;
        let patched = patched.unwrap_or_else(|error| panic!("{what}: {error}, by {patch:#}"));
        assert!(self.covers(kind, &patched), "{what}: {patch:#} left {patched:#}");
        assert_eq!(self.correction(kind, &patched), Correction::None, "{what}");
        patched
    }
}

fn spec(env: &[(&str, &str)]) -> TaskSpec {
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    TaskSpec { replicas: 2, image: "nginx:alpine".to_owned(), port: 80, env }
}

fn usual() -> TaskSpec {
    spec(&[("ENV", "prod"), ("URL", "http://$(HOST)/"), ("HOST", "db")])
}

/// A patch of fields of the Task's container.
fn container(fields: Value) -> Value {
    let mut container = json!({"name": "task"});
    container.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    pod(json!({"containers": [container]}))
}

fn pod(fields: Value) -> Value {
    json!({"spec": {"template": {"spec": fields}}})
}

fn variables(live: &Value) -> Vec<&str> {
    let env = &live["spec"]["template"]["spec"]["containers"][0]["env"];
    env.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect()
}

async fn what_is_created_needs_no_correction(client: &Client) {
    let odd: String = ('\u{1}'..'\u{180}').chain("\u{2028}\u{feff}\u{ffff}🦀\"\\".chars()).collect();
    let many = (0..1000).map(|number| (format!("V{number:04}"), format!("$(V{:04}) {number}", number + 1)));
    let cases = [
        ("a", spec(&[])),
        ("usual", usual()),
        ("odd", spec(&[("ODD", &odd), ("a b<>{}:\"\\'#%,;", "x"), ("EMPTY", "")])),
        ("many", TaskSpec { env: many.collect(), ..spec(&[]) }),
        ("none", TaskSpec { replicas: 0, port: 65535, ..spec(&[]) }),
        ("long-name-of-sixty-three-characters-that-is-as-long-as-may-be-x", usual()),
    ];
    for (name, spec) in cases {
        let children = Children::created(client, name, spec).await;
        for kind in ChildKind::ALL {
            let live = children.live(kind).await;
            assert!(children.covers(kind, &live), "{name}: {live:#}");
            assert_eq!(children.correction(kind, &live), Correction::None, "{name}");
            assert_eq!(contender(&live), None);
        }
    }
}

/// All on one server: its start takes longer than they do.
#[tokio::test]
async fn a_real_server_takes_the_children_and_their_corrections() {
    let cluster = Cluster::builder().without_audit().start().await.unwrap();
    let client = cluster.client("admin").await.unwrap();
    what_is_created_needs_no_correction(&client).await;
    drift::what_somebody_changed_is_made_right(&client).await;
    drift::what_somebody_removed_comes_back(&client).await;
    others::what_others_added_stays_and_stays_theirs(&client).await;
    others::what_others_apply_over_ours_is_made_right(&client).await;
    versions::what_changed_meanwhile_is_not_patched(&client).await;
    versions::another_selector_needs_a_new_deployment(&client).await;
}
