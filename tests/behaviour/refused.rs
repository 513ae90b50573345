//! What the API server refuses by the schema alone, and what it says.

use serde_json::{Value, json};

use crate::Bed;
use crate::support::{Space, kubectl, task};

pub(super) async fn bad_tasks_are_refused_with_the_name_of_the_field(_: &Bed, space: &Space<'_>) {
    let long_key = "K".repeat(65);
    let many: serde_json::Map<String, Value> = (0..1001).map(|i| (format!("V{i}"), json!("x"))).collect();
    let large: serde_json::Map<String, Value> = (0..280).map(|i| (format!("V{i}"), json!("x".repeat(4000)))).collect();
    let cases = [
        ("web", json!({"replicas": -1}), "spec.replicas"),
        ("web", json!({"replicas": 101}), "spec.replicas"),
        ("web", json!({"replicas": "three"}), "spec.replicas"),
        ("web", json!({"replicas": 1.5}), "spec.replicas"),
        ("web", json!({"port": -1}), "spec.port"),
        ("web", json!({"port": 65536}), "spec.port"),
        ("web", json!({"port": "http"}), "spec.port"),
        ("web", json!({"image": "no spaces"}), "spec.image"),
        ("web", json!({"image": "a:b:c"}), "spec.image"),
        ("web", json!({"image": "Upper/Case"}), "spec.image"),
        ("web", json!({"image": "nginx@sha256:short"}), "spec.image"),
        ("web", json!({"image": "x".repeat(513)}), "spec.image"),
        ("web", json!({"image": 7}), "spec.image"),
        ("web", json!({"env": {"": "x"}}), "spec.env"),
        ("web", json!({"env": {"A=B": "x"}}), "spec.env"),
        ("web", json!({"env": {"UMLAUT-Ä": "x"}}), "spec.env"),
        ("web", json!({"env": {long_key: "x"}}), "spec.env"),
        ("web", json!({"env": {"A": "x".repeat(4097)}}), "spec.env.A"),
        ("web", json!({"env": {"A": "ä".repeat(2049)}}), "spec.env"),
        ("web", json!({"env": many}), "spec.env"),
        ("web", json!({"env": large}), "spec.env"),
        ("web", json!({"env": ["A"]}), "spec.env"),
        ("web", json!({"env": {"A": 1}}), "spec.env.A"),
        ("web", json!("text"), "spec"),
        ("1web", json!({}), "metadata.name"),
        ("web.dots", json!({}), "metadata.name"),
        (&"w".repeat(64), json!({}), "metadata.name"),
    ];
    for (name, spec, field) in cases {
        // Not apply: its annotation could not hold the largest ones.
        let text = task(name, spec.clone()).to_string();
        let (ok, said) = kubectl(space.cluster, &["-n", &space.namespace, "create", "-f", "-"], Some(&text)).await;
        let said: String = said.chars().take(2000).collect();
        assert!(!ok, "accepted: {name} {spec}");
        assert!(said.contains("is invalid") && said.contains(field), "{name} {field}: {said}");
    }
    for image in ["nginx", "registry.example:5000/team/app:v1", "app@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"] {
        let (ok, said) = space.apply(&task("good", json!({"image": image, "replicas": 0})).to_string()).await;
        assert!(ok, "{image}: {said}");
    }
}
