//! The Tasks of a run, and what is done to them.

use std::future::Future;

use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{GroupVersionKind, Request};
use serde_json::json;
use task_operator::api::v1::TaskSpec;
use task_operator::api::{TaskKey, Uid, effective};
use task_operator::desired::{self, ChildKind};

use crate::sight::Sight;

/// Requests about Tasks at once.
const AT_ONCE: usize = 20;
/// Tasks whose children are made at once where no operator does it: as many as an operator takes on at once.
const FLOOR_AT_ONCE: usize = 10;

/// How many Tasks, over how many namespaces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Tasks.
    pub(crate) tasks: usize,
    /// Namespaces.
    pub(crate) namespaces: usize,
}

impl Load {
    /// The names of the namespaces.
    pub(crate) fn namespaces(self) -> impl Iterator<Item = String> {
        (0..self.namespaces).map(namespace)
    }

    fn all(self) -> impl Iterator<Item = (String, String)> {
        (0..self.tasks).map(move |number| (namespace(number % self.namespaces), format!("task-{number:05}")))
    }

    /// Creates all Tasks.
    ///
    /// # Errors
    /// If one is refused.
    pub(crate) async fn create(self, client: &Client, sight: &Sight) -> anyhow::Result<()> {
        self.each(AT_ONCE, async |namespace, name| {
            sight.ask(&name);
            create(client, &namespace, &name).await.map(|_| ())
        })
        .await
    }

    /// Creates all Tasks and, as `operator`, their children: what no operator can do with less.
    ///
    /// # Errors
    /// If something is refused.
    pub(crate) async fn create_with_children(
        self,
        client: &Client,
        operator: &Client,
        sight: &Sight,
    ) -> anyhow::Result<()> {
        let created = stream::iter(self.all()).map(async |(namespace, name)| {
            sight.ask(&name);
            create(client, &namespace, &name).await
        });
        created
            .buffer_unordered(AT_ONCE)
            .try_for_each_concurrent(FLOOR_AT_ONCE, async |task| children_of(operator, &task).await)
            .await
    }

    /// Gives all Tasks another value of a variable.
    ///
    /// # Errors
    /// If one is refused.
    pub(crate) async fn change(self, client: &Client, sight: &Sight) -> anyhow::Result<()> {
        let patch = json!({"spec": {"env": {"ENV": "changed"}}});
        self.each(AT_ONCE, async |namespace, name| {
            sight.ask(&name);
            tasks(client, &namespace).patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
            Ok(())
        })
        .await
    }

    /// Deletes all Tasks.
    ///
    /// # Errors
    /// If one cannot be deleted.
    pub(crate) async fn delete(self, client: &Client, sight: &Sight) -> anyhow::Result<()> {
        self.each(AT_ONCE, async |namespace, name| {
            sight.ask(&name);
            tasks(client, &namespace).delete(&name, &DeleteParams::background()).await?;
            Ok(())
        })
        .await
    }

    async fn each<F>(self, at_once: usize, act: impl Fn(String, String) -> F) -> anyhow::Result<()>
    where
        F: Future<Output = anyhow::Result<()>>,
    {
        stream::iter(self.all())
            .map(|(namespace, name)| act(namespace, name))
            .buffer_unordered(at_once)
            .try_for_each(|()| async { Ok(()) })
            .await
    }
}

fn namespace(number: usize) -> String {
    format!("load-{number}")
}

/// The Tasks of a namespace.
pub(crate) fn tasks(client: &Client, namespace: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("task.example.io", "v1", "Task"));
    Api::namespaced_with(client.clone(), namespace, &resource)
}

/// Creates a Task as people write them.
///
/// # Errors
/// If it is refused.
pub(crate) async fn create(client: &Client, namespace: &str, name: &str) -> anyhow::Result<DynamicObject> {
    let task = serde_json::from_value(json!({
        "apiVersion": "task.example.io/v1", "kind": "Task", "metadata": {"name": name},
        "spec": {"replicas": 1, "image": "nginx:alpine", "port": 8080, "env": {"ENV": "prod", "NAME": name}},
    }))?;
    Ok(tasks(client, namespace).create(&PostParams::default(), &task).await?)
}

async fn children_of(client: &Client, task: &DynamicObject) -> anyhow::Result<()> {
    let metadata = &task.metadata;
    let key = TaskKey::new(
        metadata.namespace.clone().unwrap_or_default(),
        metadata.name.clone().unwrap_or_default(),
    );
    let uid: Uid = metadata.uid.as_deref().unwrap_or_default().into();
    let spec: TaskSpec = effective(serde_json::from_value(task.data["spec"].clone())?);
    for kind in ChildKind::ALL {
        let body = desired::body(kind, &key, &uid, &spec);
        let path = match kind {
            ChildKind::Deployment => format!("/apis/apps/v1/namespaces/{}/deployments", key.namespace),
            ChildKind::Service => format!("/api/v1/namespaces/{}/services", key.namespace),
            ChildKind::ConfigMap => format!("/api/v1/namespaces/{}/configmaps", key.namespace),
        };
        let post = Request::new(path).create(&PostParams::default(), serde_json::to_vec(&body)?)?;
        client.request::<serde_json::Value>(post).await?;
    }
    Ok(())
}
