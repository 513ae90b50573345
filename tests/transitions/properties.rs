//! The table that is walked: every property of a Task in both versions, with a
//! value of each class.

use serde_json::{Map, Value, json};

/// The version that is stored.
pub(crate) const V1: &str = "v1";
/// The old one.
pub(crate) const V1ALPHA1: &str = "v1alpha1";

/// A property and the values it is given.
pub(crate) struct Property {
    /// The version it is written in.
    pub(crate) version: &'static str,
    /// Where it stands, as a JSON pointer.
    pub(crate) pointer: &'static str,
    /// What a refusal may call it: one of these has to be in the message.
    pub(crate) names: &'static [&'static str],
    /// The values by class. None: the property is removed.
    pub(crate) values: Vec<(&'static str, Option<Value>)>,
}

impl Property {
    /// Whether it is written through the subresource.
    pub(crate) fn is_status(&self) -> bool {
        self.pointer.starts_with("/status")
    }
}

/// All of them.
pub(crate) fn all() -> Vec<Property> {
    let of = |version, pointer, names, values| Property { version, pointer, names, values };
    let mut all = Vec::new();
    for version in [V1, V1ALPHA1] {
        let port = if version == V1 { "/spec/port" } else { "/spec/containerPort" };
        all.extend([
            of(version, "/spec/replicas", &["spec.replicas"], numbers(100)),
            of(version, port, &["spec.port", "spec.containerPort"], numbers(65_535)),
            of(version, "/spec/image", &["spec.image"], images()),
            of(version, "/spec", &["spec"], wrong_types(Shape::Map)),
            of(version, "/spec/unknown", &["spec"], anything()),
            of(version, "/metadata/labels/example.org~1team", &["labels"], label_values()),
            of(version, "/metadata/annotations/example.org~1note", &["annotations"], texts()),
            of(version, "/metadata/finalizers", &["finalizers"], finalizers()),
            of(version, "/status/phase", &["phase"], phases()),
            of(version, "/status/availableReplicas", &["availableReplicas"], numbers(100)),
        ]);
    }
    all.extend([
        of(V1, "/spec/env", &["spec.env"], maps()),
        of(V1, "/spec/env/KEY", &["spec.env"], texts()),
        of(V1ALPHA1, "/spec/env", &["spec.env"], lists()),
        of(V1ALPHA1, "/spec/env/0/value", &["spec.env"], texts()),
        of(V1ALPHA1, "/spec/env/0/name", &["spec.env"], keys()),
        of(V1, "/metadata/labels", &["labels"], wrong_types(Shape::Map)),
        of(V1, "/metadata/annotations", &["annotations"], wrong_types(Shape::Map)),
        of(V1, "/metadata/annotations/task.example.io~1protected", &["annotations"], texts()),
        of(V1, "/metadata/ownerReferences", &["ownerReferences"], owners()),
        of(V1, "/status", &["status"], wrong_types(Shape::Map)),
        of(V1, "/status/replicas", &["replicas"], numbers(100)),
        of(V1, "/status/observedGeneration", &["observedGeneration"], numbers(100)),
        of(V1, "/status/selector", &["selector"], texts()),
        of(V1, "/status/lastUpdateTime", &["lastUpdateTime"], times()),
        of(V1, "/status/conditions", &["conditions"], conditions()),
        of(V1, "/status/conditions/0/message", &["conditions"], texts()),
        of(V1, "/status/notifications", &["notifications"], wrong_types(Shape::Map)),
        of(V1, "/status/notifications/settled", &["notifications"], numbers(100)),
    ]);
    all
}

#[derive(PartialEq)]
enum Shape {
    Map,
    List,
    Number,
    Text,
}

/// A value of each JSON type but for the right one, and none.
fn wrong_types(right: Shape) -> Vec<(&'static str, Option<Value>)> {
    let mut values = vec![
        ("removed", None),
        ("null", Some(Value::Null)),
        ("a truth", Some(json!(true))),
        ("a fraction", Some(json!(1.5))),
    ];
    let more = [
        (Shape::Map, "a map", json!({"a": "b"})),
        (Shape::Map, "an empty map", json!({})),
        (Shape::List, "a list", json!(["a"])),
        (Shape::List, "an empty list", json!([])),
        (Shape::Number, "a number", json!(7)),
        (Shape::Text, "a text", json!("text")),
    ];
    for (shape, class, value) in more {
        // An empty one of the right type is a class that counts; what stands in a full one is the callers' matter.
        if shape != right || class.contains("empty") {
            values.push((class, Some(value)));
        }
    }
    values
}

fn with(right: Shape, more: Vec<(&'static str, Value)>) -> Vec<(&'static str, Option<Value>)> {
    let mut values = wrong_types(right);
    values.extend(more.into_iter().map(|(class, value)| (class, Some(value))));
    values
}

fn numbers(most: i64) -> Vec<(&'static str, Option<Value>)> {
    with(
        Shape::Number,
        vec![
            ("below", json!(-1)),
            ("none", json!(0)),
            ("one", json!(1)),
            ("some", json!(7)),
            ("the most", json!(most)),
            ("one too many", json!(most + 1)),
            ("beyond 32 bits", json!(1_i64 << 31)),
            ("beyond 64 bits", json!(1e19)),
            ("far below", json!(i64::MIN)),
        ],
    )
}

fn texts() -> Vec<(&'static str, Option<Value>)> {
    with(
        Shape::Text,
        vec![
            ("empty", json!("")),
            ("a word", json!("other")),
            ("true", json!("true")),
            ("unicode", json!("ü🙂\u{202e}\u{feff}")),
            ("control characters", json!("\u{1}\u{7f}")),
            ("lines and quotes", json!("a\n\"b\"\t'c': \\ #d")),
            ("a reference", json!("$(KEY) $$(KEY) $(")),
            ("long", json!("x".repeat(4096))),
            ("too long", json!("é".repeat(4096))),
        ],
    )
}

fn label_values() -> Vec<(&'static str, Option<Value>)> {
    let mut values = texts();
    values.extend([
        ("the longest label", Some(json!("x".repeat(63)))),
        ("a label too long", Some(json!("x".repeat(64)))),
    ]);
    values
}

fn keys() -> Vec<(&'static str, Option<Value>)> {
    let mut values = texts();
    values.extend([
        ("the longest key", Some(json!("K".repeat(64)))),
        ("a key too long", Some(json!("K".repeat(65)))),
        ("a key with an equals sign", Some(json!("A=B"))),
        ("a key with blanks", Some(json!("a b.c-d"))),
    ]);
    values
}

fn images() -> Vec<(&'static str, Option<Value>)> {
    with(
        Shape::Text,
        vec![
            ("empty", json!("")),
            ("a name", json!("busybox")),
            ("a tag", json!("nginx:1.27")),
            ("a registry with a port", json!("registry.example:5000/team/app:v1")),
            ("a digest", json!(format!("nginx@sha256:{}", "a".repeat(64)))),
            ("half a digest", json!("nginx@sha256:abc")),
            ("a long name", json!("n".repeat(255))),
            ("a name too long", json!("n".repeat(256))),
            ("too long at all", json!("n".repeat(70_000))),
            ("an id", json!("a".repeat(64))),
            ("capitals", json!("NGINX")),
            ("blanks", json!("nginx alpine")),
            ("a newline", json!("nginx\n")),
            ("unicode", json!("nginx🙂")),
        ],
    )
}

fn entries(count: usize, value: &str) -> Value {
    (0..count).map(|n| (format!("K{n}"), json!(value))).collect::<Map<_, _>>().into()
}

fn maps() -> Vec<(&'static str, Option<Value>)> {
    with(
        Shape::Map,
        vec![
            ("one entry", json!({"A": "b"})),
            ("an empty value", json!({"A": ""})),
            ("a number as a value", json!({"A": 1})),
            ("null as a value", json!({"A": null})),
            ("an empty key", json!({"": "x"})),
            ("an odd key", json!({"a b.c-d/e": "x"})),
            ("a key outside of ASCII", json!({"é": "x"})),
            ("references in a ring", json!({"A": "$(B)", "B": "$(A)"})),
            ("many", entries(1000, "x")),
            ("too many", entries(1001, "x")),
            ("much", entries(100, &"x".repeat(4096))),
            ("too much", entries(300, &"x".repeat(4096))),
        ],
    )
}

fn lists() -> Vec<(&'static str, Option<Value>)> {
    let list = |map: Value| -> Value {
        let map = map.as_object().cloned().unwrap_or_default();
        map.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
    };
    with(
        Shape::List,
        vec![
            ("one entry", list(json!({"A": "b"}))),
            ("not sorted", json!([{"name": "B", "value": "1"}, {"name": "A", "value": "2"}])),
            ("no value", json!([{"name": "A"}])),
            ("no name", json!([{"value": "a"}])),
            ("a name twice", json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}])),
            ("a number as a value", json!([{"name": "A", "value": 1}])),
            ("numbers as entries", json!([1])),
            ("an unknown field", json!([{"name": "A", "value": "1", "valueFrom": {}}])),
            ("many", list(entries(1000, "x"))),
            ("too many", list(entries(1001, "x"))),
            ("too much", list(entries(300, &"x".repeat(4096)))),
        ],
    )
}

fn anything() -> Vec<(&'static str, Option<Value>)> {
    vec![
        ("a number", Some(json!(1))),
        ("a text", Some(json!("text"))),
        ("a map", Some(json!({"deep": {"deeper": [1, 2]}}))),
        ("null", Some(Value::Null)),
    ]
}

fn finalizers() -> Vec<(&'static str, Option<Value>)> {
    with(
        Shape::List,
        vec![
            ("another's beside ours", json!(["task.example.io/finalizer", "example.org/other"])),
            ("another's alone", json!(["example.org/other"])),
            ("ours twice", json!(["task.example.io/finalizer", "task.example.io/finalizer"])),
            ("an empty one", json!([""])),
            ("no qualified name", json!(["a b"])),
        ],
    )
}

/// An owner that does not exist would have the Task collected: those are not walked.
fn owners() -> Vec<(&'static str, Option<Value>)> {
    with(
        Shape::List,
        vec![
            ("an empty one", json!([{}])),
            ("one without a uid", json!([{"apiVersion": "v1", "kind": "Node", "name": "a"}])),
        ],
    )
}

fn phases() -> Vec<(&'static str, Option<Value>)> {
    with(
        Shape::Text,
        vec![
            ("Pending", json!("Pending")),
            ("Running", json!("Running")),
            ("Succeeded", json!("Succeeded")),
            ("Failed", json!("Failed")),
            ("an unknown one", json!("Ready")),
            ("empty", json!("")),
        ],
    )
}

fn times() -> Vec<(&'static str, Option<Value>)> {
    with(
        Shape::Text,
        vec![
            ("long ago", json!("1970-01-01T00:00:00Z")),
            ("far ahead", json!("9999-12-31T23:59:59Z")),
            ("with fractions and an offset", json!("2026-01-01T00:00:00.123456789+02:00")),
            ("no time", json!("yesterday")),
            ("empty", json!("")),
        ],
    )
}

fn conditions() -> Vec<(&'static str, Option<Value>)> {
    let of = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": "ByHand", "message": "m",
               "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let many = |count: usize| -> Value { (0..count).map(|n| of(&format!("T{n}"), "True")).collect() };
    with(
        Shape::List,
        vec![
            ("one of ours", json!([of("Ready", "False")])),
            ("all of ours", json!([of("Ready", "True"), of("Reconciling", "True"), of("Stalled", "True")])),
            ("another's", json!([of("Audited", "True")])),
            ("one twice", json!([of("Audited", "True"), of("Audited", "False")])),
            ("an unknown status", json!([of("Ready", "Maybe")])),
            ("no type", json!([{"status": "True"}])),
            ("as many as there may be", many(32)),
            ("too many", many(33)),
        ],
    )
}
