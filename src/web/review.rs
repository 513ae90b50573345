//! A `ConversionReview` (apiextensions.k8s.io/v1) and its answer. Pure.
//!
//! Objects are read, converted and written one after the other, so that a list
//! needs little more memory than its text. One that cannot be converted fails the
//! review, as the API has it: the answer names the object, its field and what
//! is wrong, and holds no object at all.

use std::fmt;

use serde::de::{DeserializeSeed, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use thiserror::Error;

use crate::api::convert::{Version, convert};

const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "ConversionReview";
/// The longest object, in bytes: well beyond what the API server takes and etcd
/// stores. As a tree an object may need ten times the memory of its text.
const MAX_OBJECT: usize = 8 << 20;

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

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// The review with its response, as JSON.
    pub body: Vec<u8>,
    /// Why the conversion failed, if it did.
    pub failure: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    api_version: String,
    kind: String,
    #[serde(borrow)]
    request: Request<'a>,
}

#[derive(Deserialize)]
struct Request<'a> {
    uid: String,
    #[serde(rename = "desiredAPIVersion")]
    desired_api_version: String,
    #[serde(borrow)]
    objects: &'a RawValue,
}

/// Converts the objects of a review.
///
/// # Errors
/// If the body is no review. That an object cannot be converted is an answer.
pub fn review(body: &[u8]) -> Result<Answer, NotAReview> {
    let Review { api_version, kind, request } = serde_json::from_slice(body)?;
    if (api_version.as_str(), kind.as_str()) != (API_VERSION, KIND) {
        return Err(NotAReview::OtherKind);
    }
    let converted = match request.desired_api_version.parse() {
        Ok(version) => convert_all(request.objects, version),
        Err(error) => Err(format!("desiredAPIVersion: {error}")),
    };
    Ok(match converted {
        Ok(objects) => {
            let body = answer(request.uid, &json!({"status": "Success"}), &objects);
            Answer { body, failure: None }
        }
        Err(failure) => {
            let result = json!({"status": "Failure", "reason": "Invalid", "message": failure});
            Answer { body: answer(request.uid, &result, b"[]"), failure: Some(failure) }
        }
    })
}

/// The review with this response. The objects are JSON already and may be many, so it is put together by hand.
fn answer(uid: String, result: &Value, objects: &[u8]) -> Vec<u8> {
    let uid = Value::from(uid);
    let before = format!(
        r#"{{"apiVersion":"{API_VERSION}","kind":"{KIND}","response":{{"uid":{uid},"result":{result},"convertedObjects":"#
    );
    [before.as_bytes(), objects, b"}}"].concat()
}

/// The objects as the text of a list, in the order they came in; or what is wrong with one.
fn convert_all(objects: &RawValue, to: Version) -> Result<Vec<u8>, String> {
    let mut converting = Converting { to, text: Vec::with_capacity(objects.get().len()), failure: None };
    let read = (&mut converting).deserialize(&mut serde_json::Deserializer::from_str(objects.get()));
    match (converting.failure, read) {
        (Some(failure), _) => Err(failure),
        (None, Err(error)) => Err(format!("objects: {error}")),
        (None, Ok(())) => Ok(converting.text),
    }
}

struct Converting {
    to: Version,
    text: Vec<u8>,
    failure: Option<String>,
}

impl<'de> DeserializeSeed<'de> for &mut Converting {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for &mut Converting {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut objects: A) -> Result<(), A::Error> {
        let mut index = 0_usize;
        self.text.push(b'[');
        while let Some(object) = objects.next_element::<&RawValue>()? {
            if index > 0 {
                self.text.push(b',');
            }
            if let Err(failure) = convert_one(object, index, self.to, &mut self.text) {
                self.failure = Some(failure);
                // Ends the reading; the text of it is not shown.
                return Err(A::Error::custom("an object cannot be converted"));
            }
            index += 1;
        }
        self.text.push(b']');
        Ok(())
    }
}

fn convert_one(object: &RawValue, index: usize, to: Version, text: &mut Vec<u8>) -> Result<(), String> {
    let unnamed = |wrong: &dyn fmt::Display| format!("objects[{index}]: {wrong}");
    if object.get().len() > MAX_OBJECT {
        return Err(unnamed(&format_args!("Too long: must be at most {MAX_OBJECT} bytes")));
    }
    let object: Value = serde_json::from_str(object.get()).map_err(|error| unnamed(&error))?;
    let name = name(&object);
    let converted = convert(object, to).map_err(|error| match &name {
        Some(name) => format!("Task {name:?}: {error}"),
        None => unnamed(&error),
    })?;
    serde_json::to_writer(text, &converted).map_err(|error| unnamed(&error))
}

/// Namespace and name, for messages.
fn name(object: &Value) -> Option<String> {
    let part =
        |field| object["metadata"][field].as_str().map(|text| text.chars().take(253).collect::<String>());
    let name = part("name")?;
    Some(part("namespace").map_or_else(|| name.clone(), |namespace| format!("{namespace}/{name}")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn asked(objects: &Value) -> Vec<u8> {
        json!({
            "apiVersion": API_VERSION, "kind": KIND,
            "request": {"uid": "u\"1", "desiredAPIVersion": "task.example.io/v1", "objects": objects},
        })
        .to_string()
        .into_bytes()
    }

    fn answered(body: &[u8]) -> Value {
        let answer = review(body).unwrap();
        let read: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((&read["apiVersion"], &read["kind"]), (&json!(API_VERSION), &json!(KIND)));
        assert_eq!(answer.failure.as_deref(), read["response"]["result"]["message"].as_str());
        read["response"].clone()
    }

    fn task(name: &str, version: &str, spec: Value) -> Value {
        let metadata = json!({"name": name, "namespace": "default"});
        json!({"apiVersion": format!("task.example.io/{version}"), "kind": "Task", "metadata": metadata, "spec": spec})
    }

    #[test]
    fn all_objects_are_converted_in_their_order_whatever_their_version() {
        let objects = json!([
            task("a", "v1alpha1", json!({"containerPort": 80})),
            task("b", "v1", json!({"port": 81})),
            task("c", "v1alpha1", json!({"env": [{"name": "A", "value": "é"}]})),
        ]);
        let expected = json!([
            task("a", "v1", json!({"port": 80})),
            task("b", "v1", json!({"port": 81})),
            task("c", "v1", json!({"env": {"A": "é"}})),
        ]);
        let response = json!({"uid": "u\"1", "result": {"status": "Success"}, "convertedObjects": expected});
        assert_eq!(answered(&asked(&objects)), response);
        assert_eq!(answered(&asked(&json!([])))["convertedObjects"], json!([]));
    }

    #[test]
    fn one_broken_object_among_good_ones_fails_the_review_with_its_name() {
        let broken = task("bad", "v1alpha1", json!({"env": [{"name": "A"}, {"name": "A"}]}));
        let good = task("good", "v1alpha1", json!({}));
        let response = answered(&asked(&json!([good, broken, good])));
        assert_eq!(response["result"]["status"], "Failure");
        let message = "Task \"default/bad\": spec.env[1].name: Duplicate value: \"A\"";
        assert_eq!(response["result"]["message"], message);
        assert_eq!((&response["uid"], &response["convertedObjects"]), (&json!("u\"1"), &json!([])));
    }

    #[test]
    fn what_is_wrong_with_a_request_is_an_answer() {
        for (objects, expected) in [
            (json!([7]), "objects[0]: "),
            (json!([{}, {}]), "objects[0]: apiVersion: "),
            (json!({}), "objects: "),
            (json!(null), "objects: "),
            (
                json!([task("a", "v2", json!({}))]),
                "Task \"default/a\": apiVersion: Unsupported value: \"task.example.io/v2\"",
            ),
            (json!(["x".repeat(MAX_OBJECT)]), "objects[0]: Too long"),
        ] {
            let response = answered(&asked(&objects));
            let message = response["result"]["message"].as_str().unwrap();
            assert!(message.starts_with(expected), "{message}");
        }
        let other = String::from_utf8(asked(&json!([]))).unwrap().replace("io/v1\",\"obj", "io/v9\",\"obj");
        assert!(other.contains("v9"), "{other}");
        assert_eq!(answered(other.as_bytes())["result"]["status"], "Failure");
    }

    #[test]
    fn deep_nesting_is_an_answer_too() {
        let deep = format!("[{}{}]", "[".repeat(100_000), "]".repeat(100_000));
        let body = String::from_utf8(asked(&json!([]))).unwrap().replace("[]", &deep);
        assert_eq!(answered(body.as_bytes())["result"]["status"], "Failure");
    }

    #[test]
    fn what_is_no_review_has_no_answer() {
        let review_of = |kind: &str| json!({"apiVersion": API_VERSION, "kind": kind, "request": {}});
        for body in ["", "{", "[]", "null", "7", &review_of(KIND).to_string(), &review_of("Pod").to_string()]
        {
            review(body.as_bytes()).unwrap_err();
        }
        let other = String::from_utf8(asked(&json!([]))).unwrap().replace(KIND, "AdmissionReview");
        assert!(matches!(review(other.as_bytes()), Err(NotAReview::OtherKind)));
        review(&[0xff, 0xfe]).unwrap_err();
    }

    proptest! {
        #[test]
        fn a_mangled_review_never_panics(position in 0_usize..400, byte: u8, end in 0_usize..400) {
            let env = json!([{"name": "B", "value": "2"}, {"name": "A"}]);
            let mut body = asked(&json!([task("a", "v1alpha1", json!({"env": env}))]));
            let position = position % body.len();
            body[position] = byte;
            let _ = review(&body);
            body.truncate(end);
            let _ = review(&body);
        }
    }
}
