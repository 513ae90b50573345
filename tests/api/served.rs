//! An API server that serves a CRD, and nothing else.

use std::process::Stdio;
use std::time::Duration;

use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::Value;
use task_operator::api::crd::crd;
use test_cluster::{Cluster, eventually};
use tokio::io::AsyncWriteExt;

/// An API server that serves a CRD.
pub(crate) struct Served {
    pub(crate) cluster: Cluster,
    pub(crate) tasks: Api<DynamicObject>,
    pub(crate) resource: ApiResource,
    pub(crate) client: Client,
}

impl Served {
    pub(crate) async fn with(definition: &Value) -> Self {
        let cluster = Cluster::builder().start().await.unwrap();
        let client = cluster.client("admin").await.unwrap();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("task.example.io", "v1", "Task"));
        let tasks = Api::default_namespaced_with(client.clone(), &resource);
        let served = Self { cluster, tasks, resource, client };
        served.definitions().create(&PostParams::default(), &object(definition)).await.unwrap();
        eventually(Duration::from_secs(20), "the kind Task is served", || async {
            served.tasks.list(&Default::default()).await.map_err(|error| error.to_string())
        })
        .await;
        served
    }

    pub(crate) fn definitions(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        Api::all_with(self.client.clone(), &ApiResource::from_gvk(&kind))
    }

    pub(crate) async fn merge(&self, name: &str, patch: Value) -> kube::Result<DynamicObject> {
        self.tasks.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await
    }

    /// What kubectl says, on both streams.
    pub(crate) async fn kubectl(&self, arguments: &str) -> String {
        self.kubectl_with(arguments, "").await
    }

    /// What kubectl says, on both streams, where it reads `input`.
    pub(crate) async fn kubectl_with(&self, arguments: &str, input: &str) -> String {
        let mut command = self.cluster.kubectl().unwrap();
        command.args(arguments.split(' ')).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).await.unwrap();
        drop(stdin);
        let output = child.wait_with_output().await.unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }

    /// Applies manifests.
    pub(crate) async fn apply(&self, manifests: &str) {
        let said = self.kubectl_with("apply -f -", manifests).await;
        let is_done = said.lines().all(|line| line.ends_with("created") || line.ends_with("configured"));
        assert!(is_done, "{said}");
    }
}

pub(crate) fn object(value: &Value) -> DynamicObject {
    serde_json::from_value(value.clone()).unwrap()
}

pub(crate) fn definition() -> Value {
    serde_json::to_value(crd()).unwrap()
}

/// The CRD as it might have been before there were rules.
pub(crate) fn definition_without_rules() -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(strip),
            Value::Object(fields) => {
                for rule in ["x-kubernetes-validations", "minimum", "maximum", "maxLength", "maxProperties"] {
                    fields.remove(rule);
                }
                fields.values_mut().for_each(strip);
            }
            _ => {}
        }
    }
    let mut definition = definition();
    strip(&mut definition["spec"]["versions"][0]["schema"]);
    definition
}
