//! An `AdmissionReview` (admission.k8s.io/v1) of a Task and its answer. Pure.
//!
//! A refusal is a Status with reason Invalid and one cause per fault, which
//! kubectl prints as it does for built-in kinds.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::api::defaults::effective;
use crate::api::fault::Fault;
use crate::api::rules::{self, protection};
use crate::api::v1::TaskSpec;
use crate::api::validate::validate;
use crate::api::{FINALIZER, GROUP};

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// A body that is no review, so that there is no uid to answer to.
#[derive(Debug, Error)]
pub enum NotAReview {
    /// It is not JSON, or lacks what a review has.
    #[error("the body must be a {KIND} with a request: {0}")]
    Malformed(#[from] serde_json::Error),
    /// It is something else.
    #[error("the body must be a {API_VERSION} {KIND}")]
    OtherKind,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    api_version: String,
    kind: String,
    request: Request,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    uid: String,
    kind: Kind,
    operation: String,
    #[serde(default)]
    object: Option<Value>,
    #[serde(default)]
    old_object: Option<Value>,
}

#[derive(Deserialize)]
struct Kind {
    group: String,
    version: String,
    kind: String,
}

/// What is decided.
enum Verdict {
    Allowed { patch: Vec<Value>, warnings: Vec<String> },
    Denied(Value),
}

/// Answers the mutating webhook: defaults, and the finalizer of a new Task.
///
/// # Errors
/// If the body is no review.
pub fn mutate(body: &[u8]) -> Result<Vec<u8>, NotAReview> {
    answer(body, |request| match (request.operation.as_str(), &request.object) {
        ("CREATE" | "UPDATE", Some(object)) => {
            Verdict::Allowed { patch: patch(object, request.operation == "CREATE"), warnings: Vec::new() }
        }
        _ => allowed(),
    })
}

/// Answers the validating webhook: every fault of a new spec, and the protection from deletion.
///
/// # Errors
/// If the body is no review.
pub fn judge(body: &[u8]) -> Result<Vec<u8>, NotAReview> {
    answer(body, |request| match (request.operation.as_str(), &request.object, &request.old_object) {
        ("CREATE", Some(object), _) => judge_object(object),
        ("UPDATE", Some(object), Some(old)) => {
            // An old fault must not keep anybody from labelling, finishing or deleting a Task.
            let is_untouched = object["spec"] == old["spec"];
            let is_deleting = !object["metadata"]["deletionTimestamp"].is_null();
            if is_untouched || is_deleting { allowed() } else { judge_object(object) }
        }
        ("DELETE", _, Some(old)) if old["metadata"]["annotations"][protection::ANNOTATION] == "true" => {
            Verdict::Denied(protected(name(old)))
        }
        _ => allowed(),
    })
}

fn answer(body: &[u8], decide: impl Fn(&Request) -> Verdict) -> Result<Vec<u8>, NotAReview> {
    let Review { api_version, kind, request } = serde_json::from_slice(body)?;
    if (api_version.as_str(), kind.as_str()) != (API_VERSION, KIND) {
        return Err(NotAReview::OtherKind);
    }
    let Kind { group, version, kind } = &request.kind;
    let verdict = if (group.as_str(), version.as_str(), kind.as_str()) == (GROUP, "v1", "Task") {
        decide(&request)
    } else {
        let message = format!("this webhook judges {GROUP}/v1 Task only, not {group}/{version} {kind}");
        Verdict::Denied(json!({"status": "Failure", "reason": "BadRequest", "code": 400, "message": message}))
    };
    let mut response = Map::new();
    response.insert("uid".into(), request.uid.into());
    response.insert("allowed".into(), matches!(verdict, Verdict::Allowed { .. }).into());
    match verdict {
        Verdict::Denied(status) => {
            response.insert("status".into(), status);
        }
        Verdict::Allowed { patch, warnings } => {
            if !patch.is_empty() {
                response.insert("patchType".into(), "JSONPatch".into());
                response
                    .insert("patch".into(), BASE64_STANDARD.encode(Value::Array(patch).to_string()).into());
            }
            if !warnings.is_empty() {
                response.insert("warnings".into(), warnings.into());
            }
        }
    }
    Ok(json!({"apiVersion": API_VERSION, "kind": KIND, "response": response}).to_string().into_bytes())
}

fn allowed() -> Verdict {
    Verdict::Allowed { patch: Vec::new(), warnings: Vec::new() }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Only what the schema's defaults leave open, and the finalizer of a new Task.
fn patch(object: &Value, is_new: bool) -> Vec<Value> {
    let mut patch = Vec::new();
    // A spec that cannot be read is refused by the schema or by the validation.
    if let Ok(given) = serde_json::from_value::<TaskSpec>(object["spec"].clone()) {
        let spec = effective(given.clone());
        if spec.port != given.port {
            patch.push(json!({"op": "replace", "path": "/spec/port", "value": spec.port}));
        }
        if spec.image != given.image {
            patch.push(json!({"op": "replace", "path": "/spec/image", "value": spec.image}));
        }
    }
    if is_new {
        match object["metadata"]["finalizers"].as_array() {
            None => patch.push(json!({"op": "add", "path": "/metadata/finalizers", "value": [FINALIZER]})),
            Some(there) if there.iter().any(|name| name == FINALIZER) => {}
            Some(_) => patch.push(json!({"op": "add", "path": "/metadata/finalizers/-", "value": FINALIZER})),
        }
    }
    patch
}

fn judge_object(object: &Value) -> Verdict {
    let spec = match &object["spec"] {
        Value::Null => Ok(TaskSpec::default()),
        spec => serde_json::from_value::<TaskSpec>(spec.clone()),
    };
    let spec = match spec {
        Ok(spec) => spec,
        Err(error) => {
            let cause = json!({"reason": "FieldValueInvalid", "field": "spec", "message": error.to_string()});
            return Verdict::Denied(invalid(name(object), &format!("spec: {error}"), vec![cause]));
        }
    };
    let faults = validate(name(object), &spec);
    if faults.is_empty() {
        return Verdict::Allowed { patch: Vec::new(), warnings: warnings(&spec) };
    }
    let text: Vec<String> = faults.iter().map(ToString::to_string).collect();
    Verdict::Denied(invalid(name(object), &text.join(", "), faults.iter().map(cause).collect()))
}

fn cause(fault: &Fault) -> Value {
    json!({"reason": fault.kind.reason(), "message": fault.body(), "field": fault.field})
}

fn invalid(name: &str, text: &str, causes: Vec<Value>) -> Value {
    json!({
        "status": "Failure",
        "reason": "Invalid",
        "code": 422,
        "message": format!("Task.{GROUP} \"{name}\" is invalid: {text}"),
        "details": {"name": name, "group": GROUP, "kind": "Task", "causes": causes},
    })
}

fn protected(name: &str) -> Value {
    json!({
        "status": "Failure",
        "reason": "Forbidden",
        "code": 403,
        "message": format!("the Task '{name}' {}", protection::refusal()),
    })
}

/// What is allowed but unwise, each at most 120 characters.
fn warnings(spec: &TaskSpec) -> Vec<String> {
    let image = effective(spec.clone()).image;
    let after_registry = image.rsplit('/').next().unwrap_or_default();
    let tag = after_registry.split_once(':').map(|(_, tag)| tag);
    let moves = !image.contains('@') && tag.is_none_or(|tag| tag == "latest");
    if moves { vec![format!("spec.image: {}", rules::image::MOVING_SHOULD)] } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review(operation: &str, object: Value, old: Value) -> Vec<u8> {
        json!({
            "apiVersion": API_VERSION, "kind": KIND,
            "request": {
                "uid": "u-1", "operation": operation, "object": object, "oldObject": old,
                "kind": {"group": GROUP, "version": "v1", "kind": "Task"},
            },
        })
        .to_string()
        .into_bytes()
    }

    fn response(answer: Result<Vec<u8>, NotAReview>) -> Value {
        let answer: Value = serde_json::from_slice(&answer.unwrap()).unwrap();
        assert_eq!(answer["response"]["uid"], "u-1");
        answer["response"].clone()
    }

    fn patch_of(response: &Value) -> Value {
        let patch = BASE64_STANDARD.decode(response["patch"].as_str().unwrap()).unwrap();
        serde_json::from_slice(&patch).unwrap()
    }

    fn task(spec: Value) -> Value {
        json!({"metadata": {"name": "web"}, "spec": spec})
    }

    #[test]
    fn a_new_task_gets_the_finalizer_and_nothing_needless() {
        let answer = response(mutate(&review(
            "CREATE",
            task(json!({"replicas": 0, "image": "a:1", "port": 1})),
            Value::Null,
        )));
        assert_eq!(
            patch_of(&answer),
            json!([{"op": "add", "path": "/metadata/finalizers", "value": [FINALIZER]}])
        );
        let mut finished = task(json!({"image": "a:1", "port": 1}));
        finished["metadata"]["finalizers"] = json!([FINALIZER]);
        assert!(response(mutate(&review("CREATE", finished, Value::Null)))["patch"].is_null());
    }

    #[test]
    fn zero_port_and_empty_image_become_the_defaults_also_in_an_update() {
        let object = task(json!({"port": 0, "image": ""}));
        let answer = response(mutate(&review("UPDATE", object, task(json!({})))));
        assert_eq!(
            patch_of(&answer),
            json!([
                {"op": "replace", "path": "/spec/port", "value": 8080},
                {"op": "replace", "path": "/spec/image", "value": "nginx:alpine"},
            ])
        );
    }

    #[test]
    fn all_faults_are_named_at_once_as_for_built_in_kinds() {
        let object = task(json!({"replicas": 101, "port": 70000, "image": "no spaces", "env": {"A=B": "x"}}));
        let answer = response(judge(&review("CREATE", object, Value::Null)));
        assert_eq!(answer["allowed"], false);
        let status = &answer["status"];
        assert_eq!((&status["reason"], &status["code"]), (&json!("Invalid"), &json!(422)));
        let fields: Vec<&Value> =
            status["details"]["causes"].as_array().unwrap().iter().map(|cause| &cause["field"]).collect();
        assert_eq!(fields, ["spec.replicas", "spec.image", "spec.port", "spec.env[A=B]"]);
    }

    #[test]
    fn an_old_fault_keeps_nobody_from_anything_else() {
        let bad = task(json!({"replicas": 101}));
        let mut labelled = bad.clone();
        labelled["metadata"]["labels"] = json!({"a": "b"});
        assert_eq!(response(judge(&review("UPDATE", labelled, bad.clone())))["allowed"], true);
        let mut deleting = task(json!({"replicas": 102}));
        deleting["metadata"]["deletionTimestamp"] = json!("2026-12-01T00:00:00Z");
        assert_eq!(response(judge(&review("UPDATE", deleting, bad.clone())))["allowed"], true);
        assert_eq!(response(judge(&review("UPDATE", task(json!({"replicas": 102})), bad)))["allowed"], false);
    }

    #[test]
    fn a_protected_task_is_not_deleted() {
        let mut object = task(json!({}));
        assert_eq!(response(judge(&review("DELETE", Value::Null, object.clone())))["allowed"], true);
        object["metadata"]["annotations"] = json!({protection::ANNOTATION: "true"});
        let answer = response(judge(&review("DELETE", Value::Null, object)));
        assert_eq!((&answer["allowed"], &answer["status"]["code"]), (&json!(false), &json!(403)));
    }

    const PINNED: &str =
        "r:5000/a/b:latest@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_moving_tag_is_warned_of() {
        // The admission policy finds them by a pattern.
        let moving = regex::Regex::new(rules::image::MOVING_PATTERN).unwrap();
        for (image, warned) in [
            ("nginx", true),
            ("r:5000/a/b:latest", true),
            ("r:5000/a/b", true),
            ("a:1", false),
            (PINNED, false),
        ] {
            let answer = response(judge(&review("CREATE", task(json!({"image": image})), Value::Null)));
            assert_eq!(answer["warnings"].is_array(), warned, "{image}: {answer}");
            assert_eq!(moving.is_match(image), warned, "{image}");
        }
    }

    #[test]
    fn what_is_no_review_has_no_answer_and_another_version_is_denied() {
        for body in [&b""[..], b"{}", b"[1]", b"{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}", &[b'['; 100_000]] {
            assert!(judge(body).is_err() && mutate(body).is_err());
        }
        let other = String::from_utf8(review("CREATE", task(json!({})), Value::Null)).unwrap();
        let other = other.replace("\"version\":\"v1\"", "\"version\":\"v9\"");
        let answer = response(judge(other.as_bytes()));
        assert!(answer["status"]["message"].as_str().unwrap().contains("v9"), "{answer}");
    }
}
