//! Round trips through either version, and what happens to edits in between.

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::json;

use super::super::rules;
use super::Version::{V1, V1Alpha1};
use super::*;

/// What all annotations of an object may have together.
const ANNOTATIONS: usize = 256 * 1024;

fn through(object: &Value, version: Version) -> (Value, Value) {
    let there = convert(object.clone(), version).unwrap();
    let home: Version = object["apiVersion"].as_str().unwrap().parse().unwrap();
    (there.clone(), convert(there, home).unwrap())
}

fn old(env: Value) -> Value {
    json!({
        "apiVersion": "task.example.io/v1alpha1", "kind": "Task", "metadata": {"name": "web"},
        "spec": {"containerPort": 80, "env": env},
    })
}

fn new(status: Value) -> Value {
    json!({
        "apiVersion": "task.example.io/v1", "kind": "Task", "metadata": {"name": "web"},
        "spec": {"port": 80, "env": {"B": "2", "A": "1"}}, "status": status,
    })
}

fn names(task: &Value) -> Vec<&str> {
    task["spec"]["env"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect()
}

#[test]
fn an_old_task_is_translated_and_its_order_remembered() {
    let env = json!([{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]);
    let (there, back) = through(&old(env.clone()), V1);
    assert_eq!(there["apiVersion"], "task.example.io/v1");
    assert_eq!(there["spec"], json!({"port": 80, "env": {"A": "1", "B": "2"}}));
    assert!(there["metadata"]["annotations"][ENV_ORDER].is_string());
    assert_eq!(back, old(env));
}

#[test]
fn a_sorted_list_and_a_small_status_need_no_annotation() {
    let sorted = old(json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]));
    let (there, back) = through(&sorted, V1);
    assert_eq!((there["metadata"].clone(), back), (json!({"name": "web"}), sorted));
    let (there, _) = through(&new(json!({"phase": "Running", "availableReplicas": 1})), V1Alpha1);
    assert_eq!(there["metadata"], json!({"name": "web"}));
}

#[test]
fn the_rest_of_a_status_is_remembered() {
    let status = json!({
        "phase": "Running", "availableReplicas": 1, "replicas": 2, "selector": "a=b", "observedGeneration": 3,
        "lastUpdateTime": "2026-01-01T00:00:00Z", "conditions": [{"type": "Ready", "status": "False"}],
    });
    let (there, back) = through(&new(status.clone()), V1Alpha1);
    assert_eq!(there["status"], json!({"phase": "Running", "availableReplicas": 1}));
    assert_eq!(names(&there), ["A", "B"]);
    assert_eq!(back, new(status));
}

#[test]
fn an_edit_in_between_wins() {
    let env = json!([{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]);
    let mut task = convert(old(env), V1).unwrap();
    task["spec"]["env"]["A"] = "changed".into();
    let back = convert(task.clone(), V1Alpha1).unwrap();
    assert_eq!(back["spec"]["env"], json!([{"name": "B", "value": "2"}, {"name": "A", "value": "changed"}]));

    task["spec"]["env"]["AA"] = "added".into();
    let back = convert(task, V1Alpha1).unwrap();
    assert_eq!((names(&back), &back["metadata"]), (vec!["A", "AA", "B"], &json!({"name": "web"})));

    let status = json!({"phase": "Running", "availableReplicas": 1, "observedGeneration": 3});
    let mut task = convert(new(status), V1Alpha1).unwrap();
    task["status"]["phase"] = "Failed".into();
    let back = convert(task.clone(), V1).unwrap();
    assert_eq!(back["status"], json!({"phase": "Failed", "availableReplicas": 1, "observedGeneration": 3}));

    task.as_object_mut().unwrap().remove("status");
    let back = convert(task, V1).unwrap();
    assert_eq!((back.get("status"), &back["metadata"]), (None, &json!({"name": "web"})));
}

#[test]
fn a_memory_that_is_no_memory_is_ignored_and_goes() {
    for wrong in [json!("garbage"), json!(""), json!("[]"), json!("{"), json!(7), json!(null)] {
        let mut task = new(json!({"phase": "Running"}));
        task["metadata"]["annotations"] = json!({ENV_ORDER: wrong, STATUS: wrong, "other": "stays"});
        let there = convert(task, V1Alpha1).unwrap();
        assert_eq!(there["metadata"]["annotations"], json!({"other": "stays"}), "{wrong}");

        let mut task = old(json!([]));
        task["status"] = json!({"phase": "Running"});
        task["metadata"]["annotations"] = json!({ENV_ORDER: wrong, STATUS: wrong});
        let there = convert(task, V1).unwrap();
        assert_eq!(
            (&there["metadata"], &there["status"]),
            (&json!({"name": "web"}), &json!({"phase": "Running"}))
        );
    }
    // Nor can a memory change what the version itself has.
    let mut task = old(json!([]));
    task["status"] = json!({});
    task["metadata"]["annotations"] = json!({STATUS: r#"{"phase":"Failed","replicas":2}"#});
    assert_eq!(convert(task, V1).unwrap()["status"], json!({"replicas": 2}));
}

#[test]
fn the_largest_legal_task_converts_with_small_annotations() {
    let count = rules::env::MAX_ENTRIES;
    let (key, value) = ("K".repeat(rules::env::KEY_MAX_LENGTH - 4), "x".repeat(970));
    let entry = |n: usize| json!({"name": format!("{n:04}{key}"), "value": value});
    let env: Vec<Value> = (0..count).map(|n| entry(n * 7 % count)).collect();
    let mut largest = old(env.into());
    largest["metadata"]["annotations"] = json!({"mine": "x".repeat(ANNOTATIONS - 4096)});
    let (there, back) = through(&largest, V1);
    assert_eq!(there["spec"]["env"].as_object().unwrap().len(), count);
    assert_eq!(there["metadata"]["annotations"][ENV_ORDER].as_str().unwrap().len(), 17 + 2 * count);
    assert!(back == largest);
    let bytes = |annotations: &Value| -> usize {
        annotations.as_object().unwrap().iter().map(|(k, v)| k.len() + v.as_str().unwrap().len()).sum()
    };
    assert!(bytes(&there["metadata"]["annotations"]) < ANNOTATIONS);
}

#[test]
fn what_cannot_be_translated_is_told_with_its_field_and_without_its_value() {
    let told = |object: Value, to| convert(object, to).unwrap_err().to_string();
    let secret = "hunter2";
    for (env, expected) in [
        (json!([{"name": "A"}, {"name": "A"}]), "spec.env[1].name: Duplicate value: \"A\""),
        (json!([{"value": secret}]), "spec.env[0].name: Invalid value: must be a string"),
        (json!([secret]), "spec.env[0]: Invalid value: must be an object"),
        (json!({"A": secret}), "spec.env: Invalid value: must be a list of names and values"),
    ] {
        assert_eq!(told(old(env), V1), expected);
    }
    let mut task = new(json!({}));
    task["spec"]["env"] = json!([secret]);
    assert_eq!(told(task, V1Alpha1), "spec.env: Invalid value: must be a map of names to values");
    for (field, value) in [("spec", json!(7)), ("status", json!("x")), ("metadata", json!(null))] {
        let mut task = new(json!({}));
        task[field] = value;
        assert_eq!(told(task, V1Alpha1), format!("{field}: Invalid value: must be an object"));
    }
    for object in
        [json!(null), json!([]), json!({}), json!({"apiVersion": "task.example.io/v2", "kind": "Task"})]
    {
        convert(object, V1).unwrap_err();
    }
    let pod = json!({"apiVersion": "task.example.io/v1", "kind": "Pod", "metadata": {}});
    assert_eq!(told(pod, V1Alpha1), "kind: Unsupported value: \"Pod\": supported values: \"Task\"");
}

/// Any value; as text most often.
fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => ".{0,12}".prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => Just(json!(null)),
        1 => vec(any::<bool>(), 0..3).prop_map(Value::from),
    ]
}

/// Fields by these names, each there or not, and fields nobody knows.
fn fields(names: &'static [&'static str]) -> impl Strategy<Value = Map<String, Value>> {
    let known = names.iter().map(|&name| option::of(value()).prop_map(move |value| (name.to_owned(), value)));
    (known.collect::<Vec<_>>(), btree_map("x-[a-z]{1,3}", value(), 0..3)).prop_map(|(known, unknown)| {
        let known = known.into_iter().filter_map(|(name, value)| Some((name, value?)));
        known.chain(unknown).collect()
    })
}

fn metadata_of_somebody() -> impl Strategy<Value = Map<String, Value>> {
    let annotations = option::of(btree_map("[a-z./-]{1,20}", ".{0,20}", 1..4));
    (fields(&["name", "uid", "labels", "managedFields", "finalizers"]), annotations).prop_map(
        |(mut metadata, annotations)| {
            if let Some(annotations) = annotations {
                metadata.insert("annotations".to_owned(), json!(annotations));
            }
            metadata
        },
    )
}

fn task(
    version: Version,
    env: impl Strategy<Value = Value>,
    spec: &'static [&'static str],
) -> impl Strategy<Value = Value> {
    const STATUS_FIELDS: &[&str] = &[
        "phase",
        "availableReplicas",
        "replicas",
        "selector",
        "observedGeneration",
        "conditions",
        "lastUpdateTime",
    ];
    // A field that the status of v1alpha1 lacks is one of v1, known or not.
    let status = match version {
        V1 => fields(STATUS_FIELDS).boxed(),
        V1Alpha1 => fields(&STATUS_FIELDS[..2]).prop_map(of_v1alpha1).boxed(),
    };
    let top = (metadata_of_somebody(), option::of(fields(spec)), option::of(env), option::of(status));
    (top, fields(&[])).prop_map(move |((metadata, spec, env, status), mut task)| {
        task.insert("apiVersion".to_owned(), version.api_version().into());
        task.insert("kind".to_owned(), "Task".into());
        task.insert("metadata".to_owned(), metadata.into());
        if let Some(mut spec) = spec {
            spec.extend(env.map(|env| ("env".to_owned(), env)));
            task.insert("spec".to_owned(), spec.into());
        }
        task.extend(status.map(|status| ("status".to_owned(), status.into())));
        task.into()
    })
}

fn of_v1alpha1(mut status: Map<String, Value>) -> Map<String, Value> {
    status.retain(|name, _| STATUS_OF_V1ALPHA1.contains(&name.as_str()));
    status
}

fn new_task() -> impl Strategy<Value = Value> {
    let env = btree_map("[ -<>-~]{1,4}|.{0,3}", value(), 0..40).prop_map(|map| json!(map));
    task(V1, env, &["replicas", "image", "port", "containerPort"])
}

fn old_task() -> impl Strategy<Value = Value> {
    let named = btree_map("[ -<>-~]{1,4}|.{0,3}", value(), 0..40);
    let shuffled = named.prop_map(|map| map.into_iter().collect::<Vec<_>>()).prop_shuffle();
    let env = shuffled.prop_map(|list| {
        list.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
    });
    task(V1Alpha1, env, &["replicas", "image", "containerPort", "port"])
}

proptest! {
    #[test]
    fn a_round_trip_of_v1_changes_nothing(task in new_task()) {
        let (there, back) = through(&task, V1Alpha1);
        prop_assert_eq!(&there["apiVersion"], "task.example.io/v1alpha1");
        prop_assert_eq!(back, task);
    }

    #[test]
    fn a_round_trip_of_v1alpha1_changes_nothing(task in old_task()) {
        let (there, back) = through(&task, V1);
        prop_assert_eq!(&there["apiVersion"], "task.example.io/v1");
        prop_assert_eq!(back, task.clone());
        // Nor does one of what it became, memory and all.
        let (_, again) = through(&there, V1Alpha1);
        prop_assert_eq!(again, there);
    }

    #[test]
    fn nothing_makes_a_conversion_panic(
        mut task in prop_oneof![new_task(), old_task()],
        field in prop::sample::select(vec!["/metadata", "/metadata/annotations", "/spec", "/spec/env", "/status", "/kind"]),
        wrong in value(),
    ) {
        if let Some(place) = task.pointer_mut(field) {
            *place = wrong;
        }
        for version in [V1, V1Alpha1] {
            let _ = convert(task.clone(), version);
        }
    }
}
