//! What a real API server makes of the CRD, where nothing else runs.

use std::fmt::Write;
use std::time::Duration;

use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};
use task_operator::api::crd::crd;
use task_operator::api::v1::{Task, TaskSpec, TaskStatus};
use test_cluster::{Cluster, eventually};

use crate::corpus::cases;

const CRDS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// An API server that serves a CRD.
struct Served {
    cluster: Cluster,
    tasks: Api<DynamicObject>,
    resource: ApiResource,
    client: Client,
}

impl Served {
    async fn with(definition: &Value) -> Self {
        let cluster = Cluster::builder().start().await.unwrap();
        let client = cluster.client("admin").await.unwrap();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("task.example.io", "v1", "Task"));
        let tasks = Api::default_namespaced_with(client.clone(), &resource);
        let served = Self { cluster, tasks, resource, client };
        served.definitions().create(&PostParams::default(), &object(definition)).await.unwrap();
        eventually(Duration::from_secs(20), "the kind Task is served", || async {
            served.tasks.list(&Default::default()).await.map_err(|error| error.to_string())
        })
        .await;
        served
    }

    fn definitions(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        Api::all_with(self.client.clone(), &ApiResource::from_gvk(&kind))
    }

    async fn merge(&self, name: &str, patch: Value) -> kube::Result<DynamicObject> {
        self.tasks.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await
    }

    /// What kubectl says, on both streams.
    async fn kubectl(&self, arguments: &str) -> String {
        let output = self.cluster.kubectl().unwrap().args(arguments.split(' ')).output().await.unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }
}

fn object(value: &Value) -> DynamicObject {
    serde_json::from_value(value.clone()).unwrap()
}

fn definition() -> Value {
    serde_json::to_value(crd()).unwrap()
}

/// The CRD as it might have been before there were rules.
fn definition_without_rules() -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(strip),
            Value::Object(fields) => {
                for rule in ["x-kubernetes-validations", "minimum", "maximum", "maxLength", "maxProperties"] {
                    fields.remove(rule);
                }
                fields.values_mut().for_each(strip);
            }
            _ => {}
        }
    }
    let mut definition = definition();
    strip(&mut definition["spec"]["versions"][0]["schema"]);
    definition
}

#[tokio::test]
async fn the_corpus_is_refused_by_the_schema_alone_and_the_field_is_named() {
    let served = Served::with(&definition()).await;
    let only_judge = PostParams { dry_run: true, ..PostParams::default() };
    let mut wrong = String::new();
    for case in cases().unwrap() {
        let expected: &[String] = if case.schema_refuses { &case.refused } else { &[] };
        let (right, seen) = match served.tasks.create(&only_judge, &object(&case.manifest())).await {
            Ok(_) => (expected.is_empty(), "accepted".to_owned()),
            Err(kube::Error::Api(status)) => {
                let is_named = |field: &String| {
                    status.message.contains(field.split_once('[').map_or(field.as_str(), |(map, _)| map))
                };
                let is_invalid = status.code == 422 && status.reason == "Invalid";
                (!expected.is_empty() && is_invalid && expected.iter().all(is_named), status.message)
            }
            Err(error) => (false, error.to_string()),
        };
        if !right {
            writeln!(wrong, "- {}: expected {expected:?}, seen: {seen}", case.title).unwrap();
        }
    }
    assert!(wrong.is_empty(), "judged wrongly:\n{wrong}");
}

#[tokio::test]
async fn an_empty_task_has_every_default_and_a_status_at_once() {
    let served = Served::with(&definition()).await;
    let empty = DynamicObject::new("empty", &served.resource);
    let created = served.tasks.create(&PostParams::default(), &empty).await.unwrap();
    for task in [created, served.tasks.get("empty").await.unwrap()] {
        assert_eq!(task.data["spec"], json!({"replicas": 1, "image": "nginx:alpine", "port": 8080}));
        assert_eq!(task.data["status"]["phase"], "Pending");
        assert_eq!(task.data["status"]["observedGeneration"], -1);
    }
    let typed: Api<Task> = Api::default_namespaced(served.client.clone());
    let read = typed.get("empty").await.unwrap();
    assert_eq!((read.spec, read.status), (TaskSpec::default(), Some(TaskStatus::default())));

    let nulls = json!({
        "apiVersion": "task.example.io/v1", "kind": "Task", "metadata": {"name": "nulls"},
        "spec": {"replicas": null, "image": null, "port": null, "env": null}, "status": null,
    });
    served.tasks.create(&PostParams::default(), &object(&nulls)).await.unwrap();
    let read = typed.get("nulls").await.unwrap();
    assert_eq!((read.spec, read.status), (TaskSpec::default(), Some(TaskStatus::default())));
}

#[tokio::test]
async fn a_task_from_before_the_rules_stays_writable_until_its_spec_changes() {
    let served = Served::with(&definition_without_rules()).await;
    let old = json!({
        "apiVersion": "task.example.io/v1", "kind": "Task", "metadata": {"name": "0.old"},
        "spec": {"replicas": 101, "image": "Nginx", "port": 70_000, "env": {"A=B": "x".repeat(5000)}},
    });
    served.tasks.create(&PostParams::default(), &object(&old)).await.unwrap();
    let rules = json!({"spec": {"versions": definition()["spec"]["versions"]}});
    served
        .definitions()
        .patch(crd().metadata.name.as_deref().unwrap(), &PatchParams::default(), &Patch::Merge(rules))
        .await
        .unwrap();
    eventually(Duration::from_secs(20), "the rules hold", || async {
        match served.merge("0.old", json!({"spec": {"port": 70_001}})).await {
            Err(kube::Error::Api(status)) if status.message.contains("spec.port") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;

    served.merge("0.old", json!({"metadata": {"labels": {"a": "b"}}})).await.unwrap();
    served.merge("0.old", json!({"metadata": {"finalizers": ["task.example.io/finalizer"]}})).await.unwrap();
    let status = Patch::Merge(json!({"status": {"phase": "Failed", "observedGeneration": 1}}));
    served.tasks.patch_status("0.old", &PatchParams::default(), &status).await.unwrap();
    served.merge("0.old", json!({"spec": {"image": "Apache"}})).await.unwrap_err();
    served.merge("0.old", json!({"spec": {"port": 80}})).await.unwrap();
    served.merge("0.old", json!({"metadata": {"finalizers": null}})).await.unwrap();
    served.tasks.delete("0.old", &Default::default()).await.unwrap();
}

#[tokio::test]
async fn kubectl_shows_explains_scales_and_selects() {
    let served = Served::with(&definition()).await;
    let web = json!({
        "apiVersion": "task.example.io/v1", "kind": "Task", "metadata": {"name": "web"},
        "spec": {"replicas": 3, "image": "nginx:1.27", "port": 80},
    });
    served.tasks.create(&PostParams::default(), &object(&web)).await.unwrap();
    let condition = json!({
        "type": "Ready", "status": "False", "reason": "RollingOut", "message": "1 of 3 Pods are ready",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
    });
    let status = json!({"status": {
        "phase": "Running", "availableReplicas": 1, "replicas": 3, "selector": "a=b", "observedGeneration": 1,
        "lastUpdateTime": "2026-01-01T00:00:00.123456789Z", "conditions": [condition],
    }});
    served.tasks.patch_status("web", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();

    for (arguments, expected) in [
        (
            "get tsk web",
            &["NAME", "PHASE", "DESIRED", "AVAILABLE", "IMAGE", "AGE", "Running", "nginx:1.27"][..],
        ),
        (
            "get tasks.task.example.io -o wide",
            &["PORT", "REASON", "MESSAGE", "80", "RollingOut", "1 of 3 Pods are ready"],
        ),
        ("get all", &["task.task.example.io/web"]),
        ("get tsk --field-selector status.phase=Running,spec.image=nginx:1.27", &["web"]),
        ("get tsk --field-selector status.phase=Failed", &["No resources found"]),
        ("scale tsk/web --replicas 5", &["scaled"]),
        ("scale tsk/web --replicas 101", &["spec.replicas", "100"]),
        (
            "get --raw /apis/task.example.io/v1/namespaces/default/tasks/web/scale",
            &[r#""spec":{"replicas":5},"status":{"replicas":3,"selector":"a=b"}"#],
        ),
        (
            "explain task.spec",
            &["replicas\t<integer>", "image\t<string>", "port\t<integer>", "env\t<map[string]string>"],
        ),
        ("explain task.status.conditions", &["observedGeneration"]),
        ("wait --for=jsonpath={.status.phase}=Running tsk/web --timeout=5s", &["condition met"]),
        (&format!("get {CRDS} -o name"), &["tasks.task.example.io"]),
    ] {
        let said = served.kubectl(arguments).await;
        for words in expected {
            assert!(said.contains(words), "kubectl {arguments} does not say {words:?}:\n{said}");
        }
    }
    assert!(!served.kubectl("get tsk").await.contains("PORT"), "the port is for -o wide");
}
