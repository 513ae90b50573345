//! What kstatus says, by which Flux, Helm and others judge objects: right at
//! every moment, from the first read after creation.

use std::process::Stdio;

use futures::StreamExt;
use kube::api::{WatchEvent, WatchParams};
use mlua::LuaSerdeExt;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::Bed;
use crate::support::Space;

pub(super) async fn it_says_in_progress_then_current_from_the_first_read_on(_: &Bed, space: &Space<'_>) {
    let first = space.task("web", json!({"replicas": 2})).await;
    let version = first["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    space.until_phase("web", "Succeeded").await;
    space.patch("Task", "web", json!({"spec": {"env": {"A": "1"}}})).await;
    space.until_phase("web", "Succeeded").await;
    space.patch("Task", "web", json!({"spec": {"replicas": 0}})).await;
    space
        .until(crate::support::SOON, "Task", "web", "scaled to zero", |task| {
            crate::support::condition(task, "Ready")["reason"] == "ScaledToZero"
        })
        .await;
    let seen = history(space, &version, first).await;
    let verdicts = kstatus(space, &seen).await;
    let told: Vec<String> = seen.iter().zip(&verdicts).map(|(task, verdict)| {
        let status = &task["status"];
        format!("generation {} of {}, {}: {verdict}", status["observedGeneration"], task["metadata"]["generation"], status["phase"])
    }).collect();
    let told = format!("{told:#?}");
    assert!(verdicts.iter().all(|verdict| verdict == "InProgress" || verdict == "Current"), "{told}");
    let mut changes = verdicts.clone();
    changes.dedup();
    assert_eq!(changes, ["InProgress", "Current", "InProgress", "Current", "InProgress", "Current"], "{told}");
    // Each generation begins in progress: nobody takes the old verdict for one on the new spec.
    for generation in 1..=3 {
        let first = seen.iter().position(|task| task["metadata"]["generation"] == generation).unwrap();
        assert_eq!(verdicts[first], "InProgress", "generation {generation}: {told}");
    }
}

pub(super) async fn it_says_failed_then_terminating(_: &Bed, space: &Space<'_>) {
    space.create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web-config"}})).await;
    let mut task = crate::support::task("web", json!({}));
    task["metadata"]["finalizers"] = json!(["example.io/held"]);
    space.create(task).await;
    let failed = space.until_phase("web", "Failed").await;
    assert_eq!(kstatus(space, &[failed]).await, ["Failed"]);
    space.delete("Task", "web").await;
    let held = space
        .until(crate::support::SOON, "Task", "web", "only the other finalizer is left", |task| {
            task["metadata"]["finalizers"] == json!(["example.io/held"])
        })
        .await;
    assert_eq!(kstatus(space, &[held]).await, ["Terminating"]);
    space.patch("Task", "web", json!({"metadata": {"finalizers": null}})).await;
    space.until_gone("Task", "web").await;
}

/// What Argo CD says by the script that is shipped for it. Its Lua is of version 5.1 too.
fn argo(object: &Value) -> String {
    let lua = mlua::Lua::new();
    let options = mlua::prelude::LuaSerializeOptions::new().serialize_unit_to_null(false);
    let globals = lua.globals();
    globals.set("obj", lua.to_value_with(object, options).unwrap()).unwrap();
    let health: mlua::Table = lua.load(include_str!("../../manifests/argocd/health.lua")).eval().unwrap();
    assert!(!health.get::<String>("message").unwrap().is_empty(), "{object:#}");
    health.get("status").unwrap()
}

/// Every state of the Task since this version, the first one included.
async fn history(space: &Space<'_>, version: &str, first: Value) -> Vec<Value> {
    let last = space.get("Task", "web").await.unwrap();
    let params = WatchParams::default().fields("metadata.name=web");
    let mut events = Box::pin(space.api("Task").watch(&params, version).await.unwrap());
    let mut seen = vec![first];
    while seen.last().unwrap()["metadata"]["resourceVersion"] != last["metadata"]["resourceVersion"] {
        match events.next().await.unwrap().unwrap() {
            WatchEvent::Modified(task) => seen.push(serde_json::to_value(task).unwrap()),
            WatchEvent::Bookmark(_) => {}
            other => panic!("{other:?}"),
        }
    }
    seen
}

/// What kstatus says of each; Argo CD says the same.
async fn kstatus(space: &Space<'_>, objects: &[Value]) -> Vec<String> {
    let mut child = tokio::process::Command::new(space.cluster.programs().unwrap().join("kstatus"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for object in objects {
        stdin.write_all(format!("{object}\n").as_bytes()).await.unwrap();
    }
    drop(stdin);
    let output = child.wait_with_output().await.unwrap();
    assert!(output.status.success());
    let verdicts: Vec<String> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    for (object, verdict) in objects.iter().zip(&verdicts) {
        let expected = match verdict.as_str() {
            "Current" => "Healthy",
            "Failed" => "Degraded",
            _ => "Progressing",
        };
        assert_eq!(argo(object), expected, "kstatus says {verdict} of {object:#}");
    }
    verdicts
}
