//! The JSON schema of notifications: what the operator sends and what the documentation shows keep to it.

#![allow(clippy::unwrap_used, reason = "what fails here is a test that fails")]

use serde_json::{Value, json};
use task_operator::api::TaskKey;
use task_operator::api::v1::Phase;
use task_operator::queue::cloud_event::{DATA_SCHEMA, Mode, message};
use task_operator::queue::notice::{Deletion, Notice, Transition, What};

fn read(path: &str) -> String {
    let path = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn schema() -> Value {
    serde_json::from_str(&read("docs/schemas/notification-v1.json")).unwrap()
}

/// What is wrong with `value`, by the keywords that the schema uses. Another keyword is an error
/// of this test: nothing of the schema goes unchecked.
fn faults(schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let mut must = |holds: bool, what: &str| {
        if !holds {
            found.push(format!("{at}: {what}"));
        }
    };
    let length = || value.as_str().map(|text| text.chars().count() as u64);
    let has = |name: &Value| value.get(name.as_str().unwrap()).is_some();
    for (keyword, rule) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "$schema" | "$id" | "title" | "description" => {}
            "type" => must(
                match rule.as_str().unwrap() {
                    "object" => value.is_object(),
                    "string" => value.is_string(),
                    "integer" => value.is_i64() || value.is_u64(),
                    other => panic!("type {other}"),
                },
                &format!("must be of type {rule}"),
            ),
            "enum" => must(rule.as_array().unwrap().contains(value), &format!("must be one of {rule}")),
            "minimum" => must(value.as_i64() >= rule.as_i64(), &format!("must be at least {rule}")),
            "minLength" => must(length() >= rule.as_u64(), "is too short"),
            "maxLength" => must(length() <= rule.as_u64(), "is too long"),
            "format" => {
                assert_eq!(rule, "date-time");
                let is_time = value.as_str().is_some_and(|text| text.parse::<jiff::Timestamp>().is_ok());
                must(is_time, "must be a time");
            }
            "required" => {
                for name in rule.as_array().unwrap() {
                    must(has(name), &format!("{name} is missing"));
                }
            }
            "dependentRequired" => {
                for (name, others) in rule.as_object().unwrap() {
                    let is_there = value.get(name).is_some();
                    let complete = others.as_array().unwrap().iter().all(has);
                    must(!is_there || complete, &format!("{name} needs {others}"));
                }
            }
            "properties" => {}
            other => panic!("the keyword {other} is not known to this test"),
        }
    }
    for (name, rule) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(value) = value.get(name) {
            faults(rule, value, &format!("{at}/{name}"), found);
        }
    }
}

fn faults_of(data: &Value) -> Vec<String> {
    let mut found = Vec::new();
    faults(&schema(), data, "", &mut found);
    found
}

fn notice(what: What) -> Notice {
    let uid = "0c6d2c1f-6d0f-4a86-9a53-8d3a8f0a4c11".into();
    Notice { key: TaskKey::new("default", "web"), uid, what }
}

fn changed() -> Notice {
    let transition = Transition {
        from: Phase::Running,
        to: Phase::Failed,
        at: 1_796_119_200,
        generation: 2,
        reason: "ProgressDeadlineExceeded".into(),
        message: "ReplicaSet \"web-5d8f\" has timed out progressing.".into(),
        skipped: 0,
    };
    notice(What::Phase(3, transition))
}

fn deleted() -> Notice {
    notice(What::Deleted(Deletion { phase: Phase::Failed, at: 1_796_122_800, generation: 2 }))
}

fn sent(notice: &Notice) -> Value {
    serde_json::from_str(&message(notice, Mode::Structured).body).unwrap()
}

#[test]
fn what_is_sent_keeps_to_the_schema() {
    assert_eq!(schema()["$id"], DATA_SCHEMA);
    for notice in [changed(), deleted()] {
        let event = sent(&notice);
        assert_eq!(faults_of(&event["data"]), Vec::<String>::new());
        let known = schema()["properties"].as_object().unwrap().clone();
        for name in event["data"].as_object().unwrap().keys() {
            assert!(known.contains_key(name), "the schema does not tell of {name}");
        }
    }
}

#[test]
fn the_examples_of_the_documentation_are_what_is_sent() {
    let page = read("docs/notifications.md");
    let blocks = page.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut examples: Vec<Value> = blocks.map(|text| serde_json::from_str(text).unwrap()).collect();
    assert_eq!(examples.len(), 2);
    for (example, notice) in examples.iter_mut().zip([changed(), deleted()]) {
        assert_eq!(faults_of(&example["data"]), Vec::<String>::new());
        let mut sent = sent(&notice);
        // The trace is made of the id; in the documentation it is any.
        example["traceparent"] = Value::Null;
        sent["traceparent"] = Value::Null;
        assert_eq!(*example, sent);
    }
}

#[test]
fn the_schema_refuses_what_is_never_sent() {
    let good = sent(&changed())["data"].clone();
    for (field, value) in [
        ("phase", json!("Lost")),
        ("number", json!(0)),
        ("number", json!("3")),
        ("time", json!("yesterday")),
        ("name", json!("")),
        ("message", json!("x".repeat(257))),
        ("generation", json!(-1)),
        ("skipped", json!(1.5)),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        assert!(!faults_of(&bad).is_empty(), "{bad}");
    }
    for field in ["namespace", "name", "uid", "time", "phase", "generation", "previousPhase", "reason"] {
        let mut bad = good.clone();
        bad.as_object_mut().unwrap().remove(field);
        assert!(!faults_of(&bad).is_empty(), "without {field}");
    }
}
