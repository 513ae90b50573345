//! `task-operator finalize`: takes the finalizer of the operator from Tasks, so that they can be
//! deleted once no operator runs that would do it.
//!
//! It deletes nothing: the Tasks and what they own stay as they are.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, ListParams, PartialObjectMeta, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::api::{FINALIZER, v1};
use crate::cli::finalize::FinalizeArgs;
use crate::cluster::{FIELD_MANAGER, client};

/// How many Tasks are changed at once: as many as are in flight over one operator.
const AT_ONCE: usize = 10;
/// How many Tasks are listed at once.
const PAGE: u32 = 500;
/// Between two looks at what does not depend on this program.
const PAUSE: Duration = Duration::from_millis(500);

/// Ends the operator if that is asked for, then takes the finalizers away until a whole list has none;
/// how many were taken.
///
/// # Errors
/// If the API server refuses it, or if there are finalizers left after the timeout.
pub async fn finalize(args: FinalizeArgs) -> anyhow::Result<usize> {
    let config = client::configuration(args.kubeconfig.as_deref()).await?;
    let client = Client::try_from(config).context("the configuration of the cluster cannot be used")?;
    let deadline = Instant::now() + args.timeout;
    let work = async {
        if let Some((namespace, name)) = &args.stop {
            stop(&Api::namespaced(client.clone(), namespace), name).await?;
        }
        let mut taken = 0;
        for tasks in scopes(&client, &args.namespaces()) {
            taken += release(&tasks, deadline).await?;
        }
        anyhow::Ok(taken)
    };
    tokio::time::timeout_at(deadline, work)
        .await
        .with_context(|| format!("not done after {:?}", args.timeout))?
}

fn scopes(client: &Client, namespaces: &[String]) -> Vec<Api<v1::Task>> {
    if namespaces.is_empty() {
        return vec![Api::all(client.clone())];
    }
    namespaces.iter().map(|namespace| Api::namespaced(client.clone(), namespace)).collect()
}

/// Scales the Deployment to 0 and waits until it has no Pod.
async fn stop(deployments: &Api<Deployment>, name: &str) -> anyhow::Result<()> {
    let none = Patch::Merge(json!({"spec": {"replicas": 0}}));
    match deployments.patch(name, &parameters(), &none).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(()),
        other => other.with_context(|| format!("Deployment {name} cannot be scaled to 0"))?,
    };
    loop {
        let Some(deployment) = deployments.get_opt(name).await? else { return Ok(()) };
        let status = deployment.status.unwrap_or_default();
        let has_pods = [status.replicas, status.terminating_replicas].into_iter().flatten().any(|n| n > 0);
        let is_observed = status.observed_generation >= deployment.metadata.generation;
        if is_observed && !has_pods {
            return Ok(());
        }
        sleep(PAUSE).await;
    }
}

/// Takes the finalizer from all of them; how often that was done.
async fn release(tasks: &Api<v1::Task>, deadline: Instant) -> anyhow::Result<usize> {
    let mut taken = 0;
    loop {
        let held = held(tasks).await?;
        if held.is_empty() {
            return Ok(taken);
        }
        // Leaves time to say why.
        ensure!(
            Instant::now() + PAUSE * 2 < deadline,
            "{} Tasks have the finalizer again, such as {}: stop the operator first, or say --stop",
            held.len(),
            name(&held[0])
        );
        taken += stream::iter(&held)
            .map(|task| take(tasks, task))
            .buffer_unordered(AT_ONCE)
            .try_fold(0, async |sum, taken| Ok(sum + usize::from(taken)))
            .await?;
        sleep(PAUSE).await;
    }
}

/// The Tasks that have it.
async fn held(tasks: &Api<v1::Task>) -> anyhow::Result<Vec<PartialObjectMeta<v1::Task>>> {
    let mut held = Vec::new();
    let mut parameters = ListParams::default().limit(PAGE);
    loop {
        let page = tasks.list_metadata(&parameters).await.context("the Tasks cannot be listed")?;
        held.extend(
            page.items.into_iter().filter(|task| task.finalizers().iter().any(|name| name == FINALIZER)),
        );
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters.continue_token = Some(token),
            None => return Ok(held),
        }
    }
}

/// Whether it was taken; not if the Task has changed or is gone since it was listed.
async fn take(all: &Api<v1::Task>, task: &PartialObjectMeta<v1::Task>) -> anyhow::Result<bool> {
    let others: Vec<&String> = task.finalizers().iter().filter(|name| *name != FINALIZER).collect();
    let patch: Patch<Value> = Patch::Merge(json!({
        "metadata": {"finalizers": others, "uid": task.uid(), "resourceVersion": task.resource_version()},
    }));
    let Some(namespace) = task.namespace() else { bail!("{} is in no namespace", task.name_any()) };
    let tasks: Api<v1::Task> = Api::namespaced(all.clone().into_client(), &namespace);
    match tasks.patch_metadata(&task.name_any(), &parameters(), &patch).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(false),
        Err(error) => Err(error).with_context(|| format!("Task {}", name(task))),
    }
}

fn name(task: &PartialObjectMeta<v1::Task>) -> String {
    format!("{}/{}", task.namespace().unwrap_or_default(), task.name_any())
}

fn parameters() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}
