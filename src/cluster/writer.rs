//! Sends prepared requests and reads their answers.

use std::future::Future;
use std::time::Duration;

use kube::Client;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::{TaskKey, Uid};
use crate::desired::shape::{ConfigMapShape, DeploymentShape, Metadata, ServiceShape};
use crate::desired::{self, ChildKind, Ownership};
use crate::supervisor::event::Failure;
use crate::supervisor::state::PodFault;

use super::failure::{Attempt, RequestError, classify};
use super::lease::Fence;
use super::observe::{ObservedChild, ObservedTask, Watched};
use super::pods;
use super::requests::{Correction, Exchange, HttpRequest, Prepared, patch_child};

/// A request without an answer after this long counts as failed. etcd itself gives up after 7 s.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the API server answered, before it is compared with what is wanted.
#[derive(Debug)]
pub enum Response {
    /// The Task, if there is one.
    Task(Option<Box<ObservedTask>>),
    /// The child, if there is one.
    Child(ChildKind, Option<ObservedChild>),
    /// The child after a correction, and who had changed it.
    Corrected(ObservedChild, Option<String>),
    /// What the Pods say.
    Pods(Option<Box<PodFault>>),
}

/// Sends requests to the API server. Cheap to clone.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    fence: Fence,
}

impl Writer {
    /// A writer on this connection that writes only while the fence is open.
    pub fn new(client: Client, fence: Fence) -> Self {
        Self { client, fence }
    }

    /// Sends `prepared` and reads the answer.
    ///
    /// # Errors
    /// With what the failure means for the next step. An object that a read
    /// does not find is an answer, not a failure.
    pub fn send(&self, prepared: Prepared) -> impl Future<Output = Result<Response, Failure>> + use<> {
        let client = self.clone();
        async move {
            let Prepared { attempt, exchange } = prepared;
            let response = match exchange {
                Exchange::Task(http) => task(&client, http).await,
                Exchange::Child(kind, http) => child(&client, kind, http).await,
                Exchange::Correct(correction) => correct(&client, correction).await,
                Exchange::Pods(http) => {
                    request(&client, http).await.map(|list| Response::Pods(pods::worst_fault(&list)))
                }
            };
            response.map_err(|error| classify(&attempt, &error))
        }
    }

    /// Reads a Task, if there is one.
    ///
    /// # Errors
    /// As [`Writer::send`].
    pub fn read_task(
        &self,
        key: &TaskKey,
    ) -> impl Future<Output = Result<Option<ObservedTask>, Failure>> + use<> {
        let client = self.clone();
        let key = key.clone();
        async move {
            let path = <Watched<ObservedTask> as kube::Resource>::url_path(&(), Some(&key.namespace));
            let get = kube::core::Request::new(path).get(&key.name, &kube::api::GetParams::default());
            let answer = match get {
                Ok(http) => found(&client, http).await,
                Err(error) => Err(kube::Error::BuildRequest(error).into()),
            };
            let attempt = || Attempt {
                verb: "get",
                resource: "tasks.task.example.io",
                kind: "Task",
                object: key.to_string(),
            };
            answer.map_err(|error| classify(&attempt(), &error))
        }
    }
}

async fn request<T: DeserializeOwned>(client: &Writer, http: HttpRequest) -> Result<T, RequestError> {
    // As late as can be: whatever held this task up is in the past now.
    if http.method() != http::Method::GET && !client.fence.may_write() {
        return Err(RequestError::Fenced);
    }
    match tokio::time::timeout(PATIENCE, client.client.request(http)).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(RequestError::TimedOut(PATIENCE)),
    }
}

/// A missing object as none. A create that finds no namespace stays an error.
async fn found<T: DeserializeOwned>(client: &Writer, http: HttpRequest) -> Result<Option<T>, RequestError> {
    let is_create = http.method() == http::Method::POST;
    match request(client, http).await {
        Err(RequestError::Kube(kube::Error::Api(status))) if status.is_not_found() && !is_create => Ok(None),
        answer => answer.map(Some),
    }
}

async fn task(client: &Writer, http: HttpRequest) -> Result<Response, RequestError> {
    Ok(Response::Task(found(client, http).await?.map(Box::new)))
}

async fn child(client: &Writer, kind: ChildKind, http: HttpRequest) -> Result<Response, RequestError> {
    let child = match kind {
        ChildKind::ConfigMap => found::<ConfigMapShape>(client, http).await?.map(ObservedChild::from),
        ChildKind::Service => found::<ServiceShape>(client, http).await?.map(ObservedChild::from),
        ChildKind::Deployment => found::<DeploymentShape>(client, http).await?.map(ObservedChild::from),
    };
    Ok(Response::Child(kind, child))
}

/// Reads the live object and patches what differs. An object that is not ours,
/// or is right already, is answered as it is.
async fn correct(client: &Writer, correction: Correction) -> Result<Response, RequestError> {
    let kind = correction.kind;
    let get = kube::core::Request::new(correction.path.as_str())
        .get(&correction.name, &kube::api::GetParams::default())
        .map_err(kube::Error::BuildRequest)?;
    let Some(live) = found::<Value>(client, get).await? else {
        return Ok(Response::Child(kind, None));
    };
    let contender = desired::contender(&live);
    if !is_ours(&live, &correction.task_name, &correction.task_uid) {
        return Ok(Response::Child(kind, Some(decode(kind, live)?)));
    }
    let http = match desired::correction(&live, &correction.wanted, kind) {
        desired::Correction::None => return Ok(Response::Child(kind, Some(decode(kind, live)?))),
        desired::Correction::Patch(body) => {
            patch_child(&correction, body).map_err(kube::Error::BuildRequest)?
        }
        desired::Correction::Recreate => return recreate(client, &correction, &live).await,
    };
    match found::<Value>(client, http).await? {
        Some(patched) => Ok(Response::Corrected(decode(kind, patched)?, contender)),
        None => Ok(Response::Child(kind, None)),
    }
}

/// Deletes an object whose immutable fields are wrong; the next step creates it anew.
async fn recreate(client: &Writer, correction: &Correction, live: &Value) -> Result<Response, RequestError> {
    let text = |field: &str| live["metadata"][field].as_str().map(str::to_owned);
    let params = kube::api::DeleteParams::background().preconditions(kube::api::Preconditions {
        uid: text("uid"),
        resource_version: text("resourceVersion"),
    });
    let http = kube::core::Request::new(correction.path.as_str())
        .delete(&correction.name, &params)
        .map_err(kube::Error::BuildRequest)?;
    found::<Value>(client, http).await?;
    tracing::warn!(
        kind = correction.kind.as_str(),
        object = correction.name,
        "deleted to be made anew: a field that cannot be changed was not as the Task declares it"
    );
    Ok(Response::Child(correction.kind, None))
}

fn is_ours(live: &Value, task_name: &str, task_uid: &Uid) -> bool {
    #[derive(serde::Deserialize)]
    struct Meta {
        metadata: Metadata,
    }
    serde::Deserialize::deserialize(live)
        .is_ok_and(|Meta { metadata }| desired::ownership(&metadata, task_name, task_uid) == Ownership::Ours)
}

fn decode(kind: ChildKind, value: Value) -> Result<ObservedChild, RequestError> {
    let child = match kind {
        ChildKind::ConfigMap => serde_json::from_value::<ConfigMapShape>(value).map(ObservedChild::from),
        ChildKind::Service => serde_json::from_value::<ServiceShape>(value).map(ObservedChild::from),
        ChildKind::Deployment => serde_json::from_value::<DeploymentShape>(value).map(ObservedChild::from),
    };
    Ok(child.map_err(kube::Error::SerdeError)?)
}
