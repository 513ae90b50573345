//! A request of the core as HTTP.
//!
//! Every write carries preconditions: a create fails where the name is taken, a
//! patch names the uid and the version it was made for, so a view that was old
//! is answered with a conflict and changes nothing.

use kube::Resource;
use kube::api::{GetParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::Request as Builder;
use kube::core::request::Error;
use serde_json::{Value, json};

use crate::api::FINALIZER;
use crate::desired::shape::{ConfigMapShape, DeploymentShape, ServiceShape};
use crate::desired::{self, ChildKind};
use crate::supervisor::State;
use crate::supervisor::event::Request;
use crate::supervisor::state::Presence;

use super::failure::Attempt;
use super::observe::{ObservedTask, Watched};
use super::{FIELD_MANAGER, STATUS_MANAGER, task_status};

/// An HTTP request whose body is in memory.
pub type HttpRequest = http::Request<Vec<u8>>;

/// A request of the core, ready to be sent without its Task's record.
#[derive(Debug)]
pub struct Prepared {
    /// For messages.
    pub attempt: Attempt,
    /// What to send, and how to read the answer.
    pub exchange: Exchange,
}

/// What to send, and how to read the answer.
#[derive(Debug)]
pub enum Exchange {
    /// The answer is the Task.
    Task(HttpRequest),
    /// The answer is a child.
    Child(ChildKind, HttpRequest),
    /// Read the child, compare, and patch what differs.
    Correct(Correction),
    /// The answer is a list of Pods.
    Pods(HttpRequest),
}

/// A correction: first a read of the live object, then one patch of what differs.
#[derive(Debug)]
pub struct Correction {
    /// Which kind.
    pub kind: ChildKind,
    /// The name of the object.
    pub name: String,
    /// The path of its collection.
    pub path: String,
    /// The Task's name, by which ownership is judged.
    pub task_name: String,
    /// The Task's uid, likewise.
    pub task_uid: crate::api::Uid,
    /// What it should carry.
    pub wanted: Value,
}

/// Turns `request` about the Task of `state` into HTTP. `now` is in seconds since 1970.
///
/// # Errors
/// If kube cannot build it, which a name that the API server accepted never causes.
pub fn prepare(state: &State, request: &Request, now: i64) -> Result<Prepared, Error> {
    match request {
        Request::LookAtTask => {
            let http = tasks(state).get(&state.key.name, &GetParams::default())?;
            Ok(task(state, "get", TASKS, Exchange::Task(http)))
        }
        Request::AddFinalizer => finalizers(state, true),
        Request::RemoveFinalizer => finalizers(state, false),
        Request::WriteStatus(status) => {
            let status = status.as_ref().clone().dated(&state.task.status, now);
            let selector = desired::labels::selector_text(&state.key.name);
            let body = json!({
                "metadata": preconditions(state),
                "status": task_status::encode(&status, &selector),
            });
            let http = tasks(state).patch_subresource(
                "status",
                &state.key.name,
                &PatchParams { field_manager: Some(STATUS_MANAGER.to_owned()), ..PatchParams::default() },
                &Patch::Merge(body),
            )?;
            Ok(task(state, "patch", "tasks.task.example.io/status", Exchange::Task(http)))
        }
        Request::LookAtChild(kind) => {
            let name = desired::name_of(*kind, &state.key.name);
            let http = Builder::new(path(*kind, state)).get(&name, &GetParams::default())?;
            Ok(child(state, *kind, "get", Exchange::Child(*kind, http)))
        }
        Request::Create(kind) => {
            let body = desired::text(*kind, &state.key, &state.task.uid, &state.task.spec);
            let params =
                PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
            let http =
                Builder::new(path(*kind, state)).create(&params, body.map_err(Error::SerializeBody)?)?;
            Ok(child(state, *kind, "create", Exchange::Child(*kind, http)))
        }
        Request::Correct(kind) => {
            if *kind == ChildKind::ConfigMap
                && let Some(http) = new_text(state)?
            {
                return Ok(child(state, *kind, "patch", Exchange::Child(*kind, http)));
            }
            let correction = Correction {
                kind: *kind,
                name: desired::name_of(*kind, &state.key.name).into_owned(),
                path: path(*kind, state),
                task_name: state.key.name.to_string(),
                task_uid: state.task.uid.clone(),
                wanted: desired::body(*kind, &state.key, &state.task.uid, &state.task.spec),
            };
            Ok(child(state, *kind, "patch", Exchange::Correct(correction)))
        }
        Request::FindPodFault => {
            let selector = desired::labels::selector_text(&state.key.name);
            let params = ListParams::default().labels(&selector).limit(100);
            let path = k8s_openapi::api::core::v1::Pod::url_path(&(), Some(&state.key.namespace));
            let attempt =
                Attempt { verb: "list", resource: "pods", kind: "Pods", object: format!("of {}", state.key) };
            Ok(Prepared { attempt, exchange: Exchange::Pods(Builder::new(path).list(&params)?) })
        }
    }
}

/// The patch of a ConfigMap that was right until the Task changed: its text is
/// all that depends on the spec, so there is nothing to read before. None if
/// somebody else has changed it, which has to be looked at.
fn new_text(state: &State) -> Result<Option<HttpRequest>, Error> {
    let child = state.child(ChildKind::ConfigMap);
    let Presence::Ours { uid, carries: Some(_), terminating: false } = &child.presence else {
        return Ok(None);
    };
    let wanted = desired::config_map(&state.key, &state.task.uid, &state.task.spec);
    let body = json!({
        "metadata": {"uid": uid, "resourceVersion": child.version.to_string()},
        "data": wanted.data,
    });
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let name = desired::name_of(ChildKind::ConfigMap, &state.key.name);
    let path = path(ChildKind::ConfigMap, state);
    Builder::new(path).patch(&name, &params, &Patch::Merge(body)).map(Some)
}

/// The merge patch of a correction.
///
/// # Errors
/// As [`prepare`].
pub fn patch_child(correction: &Correction, body: Value) -> Result<HttpRequest, Error> {
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    Builder::new(correction.path.as_str()).patch(&correction.name, &params, &Patch::Merge(body))
}

const TASKS: &str = "tasks.task.example.io";

fn tasks(state: &State) -> Builder {
    Builder::new(Watched::<ObservedTask>::url_path(&(), Some(&state.key.namespace)))
}

fn path(kind: ChildKind, state: &State) -> String {
    let namespace = Some(&*state.key.namespace);
    match kind {
        ChildKind::ConfigMap => Watched::<ConfigMapShape>::url_path(&(), namespace),
        ChildKind::Service => Watched::<ServiceShape>::url_path(&(), namespace),
        ChildKind::Deployment => Watched::<DeploymentShape>::url_path(&(), namespace),
    }
}

fn preconditions(state: &State) -> Value {
    json!({"uid": state.task.uid, "resourceVersion": state.task.version.to_string()})
}

fn finalizers(state: &State, ours: bool) -> Result<Prepared, Error> {
    let others = state.task.other_finalizers.iter().map(|name| &**name);
    let list: Vec<&str> = others.chain(ours.then_some(FINALIZER)).collect();
    let mut metadata = preconditions(state);
    metadata["finalizers"] = list.into();
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let http = tasks(state).patch(&state.key.name, &params, &Patch::Merge(json!({"metadata": metadata})))?;
    Ok(task(state, "patch", TASKS, Exchange::Task(http)))
}

fn task(state: &State, verb: &'static str, resource: &'static str, exchange: Exchange) -> Prepared {
    let attempt = Attempt { verb, resource, kind: "Task", object: state.key.to_string() };
    Prepared { attempt, exchange }
}

fn child(state: &State, kind: ChildKind, verb: &'static str, exchange: Exchange) -> Prepared {
    let resource = match kind {
        ChildKind::ConfigMap => "configmaps",
        ChildKind::Service => "services",
        ChildKind::Deployment => "deployments.apps",
    };
    let object = format!("{}/{}", state.key.namespace, desired::name_of(kind, &state.key.name));
    Prepared { attempt: Attempt { verb, resource, kind: kind.as_str(), object }, exchange }
}
