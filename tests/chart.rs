//! The Helm chart: it renders what kustomize does, and a release comes and goes.

#![allow(clippy::unwrap_used, reason = "what fails here is a test that fails")]

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use support::{Space, kubectl};
use test_cluster::Cluster;
use test_cluster::assets::Assets;

const HOME: &str = "task-system";

fn manifests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests")
}

async fn helm(arguments: &[&str]) -> (bool, String) {
    let assets = Assets::find().await.unwrap();
    let output = Command::new(assets.program("helm"))
        .args(arguments)
        .current_dir(manifests())
        .env("HELM_DRIVER", "secret")
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

async fn rendered(values: &[&str]) -> Vec<Value> {
    let release = ["template", "task-operator", "chart", "--namespace", HOME];
    let sets = values.iter().flat_map(|value| ["--set", value]);
    let (ok, said) = helm(&release.into_iter().chain(sets).collect::<Vec<_>>()).await;
    assert!(ok, "{said}");
    objects(&said)
}

fn objects(yaml: &str) -> Vec<Value> {
    let documents = yaml.split("\n---\n").filter(|text| text.lines().any(|line| line.starts_with("kind:")));
    documents
        .map(|text| serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}")))
        .collect()
}

/// By kind, namespace and name, without what a release adds to each: labels, and the annotation that keeps
/// the definition.
fn by_name(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let keyed = objects.into_iter().map(|mut object| {
        let metadata = object["metadata"].as_object_mut().unwrap();
        let labels = metadata.remove("labels");
        let is_for_users = labels.is_some_and(|labels| labels.to_string().contains("aggregate-to-view"));
        metadata.insert("aggregates".to_owned(), is_for_users.into());
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove("helm.sh/resource-policy");
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let key = format!(
            "{} {}/{}",
            text(&object["kind"]),
            text(&object["metadata"]["namespace"]),
            text(&object["metadata"]["name"])
        );
        (key, object)
    });
    keyed.collect()
}

#[tokio::test]
async fn it_renders_what_kustomize_does() {
    for (file, certificate) in [("install-self-signed.yaml", "self-signed"), ("install.yaml", "cert-manager")]
    {
        let mut kustomize = by_name(objects(&std::fs::read_to_string(manifests().join(file)).unwrap()));
        // Helm makes it where it is told to, with the labels that the user wants.
        assert!(kustomize.remove("Namespace /task-system").is_some());
        let values = [format!("webhooks.certificate={certificate}"), "finalizeOnUninstall=false".to_owned()];
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let mut chart = by_name(rendered(&values).await);
        for (key, object) in kustomize {
            let rendered = chart.remove(&key).unwrap_or_else(|| panic!("the chart lacks {key}"));
            assert_eq!(rendered, object, "{file}: {key}");
        }
        assert!(chart.is_empty(), "only in the chart: {:?}", chart.keys());
    }
}

#[tokio::test]
async fn named_namespaces_get_roles_and_no_role_for_the_cluster() {
    let values =
        ["watchNamespaces={a,b}", "webhooks.enabled=false", "userRoles=false", "finalizeOnUninstall=false"];
    let all = by_name(rendered(&values).await);
    let names: Vec<&str> = all.keys().map(String::as_str).filter(|key| key.contains("Role")).collect();
    assert_eq!(
        names,
        [
            "Role a/task-operator-role",
            "Role b/task-operator-role",
            "Role task-system/task-operator-leader-election-role",
            "RoleBinding a/task-operator-rolebinding",
            "RoleBinding b/task-operator-rolebinding",
            "RoleBinding task-system/task-operator-leader-election-rolebinding",
        ]
    );
    assert_eq!(all["RoleBinding a/task-operator-rolebinding"]["roleRef"]["kind"], "Role");
    let container = &all["Deployment task-system/task-operator"]["spec"]["template"]["spec"]["containers"][0];
    let arguments: Vec<String> = serde_json::from_value(container["args"].clone()).unwrap();
    assert!(
        arguments.contains(&"--watch-namespace=a".to_owned())
            && arguments.contains(&"--watch-namespace=b".to_owned())
    );
    assert!(!arguments.iter().any(|argument| argument.contains("webhook")), "{arguments:?}");
    let definition = &all["CustomResourceDefinition /tasks.task.example.io"]["spec"];
    assert_eq!(definition["versions"].as_array().unwrap().len(), 1);
    // The same as the program itself prints, but for its order.
    let printed =
        Command::new(env!("CARGO_BIN_EXE_task-operator")).args(["rbac", "--namespace=a,b"]).output().unwrap();
    for (key, object) in by_name(objects(&String::from_utf8(printed.stdout).unwrap())) {
        assert_eq!(all.get(&key), Some(&object), "{key}");
    }
}

#[tokio::test]
async fn every_flag_that_it_sets_is_one() {
    let values = [
        "log.level=debug",
        "maxConcurrentReconciles=20",
        "shutdownTimeoutSeconds=60",
        "metrics.perTask=false",
        "watchNamespaces={a}",
        "metrics.serviceMonitor.enabled=true",
        "image.digest=sha256:0000000000000000000000000000000000000000000000000000000000000000",
    ];
    let all = by_name(rendered(&values).await);
    let pod = &all["Deployment task-system/task-operator"]["spec"]["template"]["spec"];
    assert_eq!(pod["terminationGracePeriodSeconds"], 70);
    assert!(pod["containers"][0]["image"].as_str().unwrap().starts_with("task-operator@sha256:"));
    let monitor = &all["ServiceMonitor task-system/task-operator"]["spec"];
    assert_eq!(monitor["endpoints"][0]["honorLabels"], true);
    for arguments in [
        &pod["containers"][0]["args"],
        &all["Job task-system/task-operator-finalize"]["spec"]["template"]["spec"]["containers"][0]["args"],
    ] {
        let arguments: Vec<String> = serde_json::from_value(arguments.clone()).unwrap();
        // The help is printed only if the flags before it are right.
        let output = Command::new(env!("CARGO_BIN_EXE_task-operator"))
            .args(&arguments)
            .arg("--help")
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn every_value_is_in_the_schema_and_in_the_readme() {
    let read = |file: &str| std::fs::read_to_string(manifests().join("chart").join(file)).unwrap();
    let values: BTreeMap<String, Value> = serde_saphyr::from_str(&read("values.yaml")).unwrap();
    let schema: Value = serde_json::from_str(&read("values.schema.json")).unwrap();
    let readme = read("README.md");
    for value in values.keys() {
        assert!(!schema["properties"][value].is_null(), "the schema lacks {value}");
        let is_told = readme.contains(&format!("| `{value}")) || readme.contains(&format!("`, `{value}`"));
        assert!(is_told, "the README lacks {value}");
    }
}

#[tokio::test]
async fn wrong_values_are_refused_with_their_name() {
    for (value, named) in [
        ("webhooks.certificate=none", "/webhooks/certificate"),
        ("replicas=many", "/replicas"),
        ("watchNamespaces={A}", "/watchNamespaces/0"),
        ("maxConcurrentReconciles=0", "/maxConcurrentReconciles"),
        ("priorityClass.name=", "/priorityClass"),
        ("image.tagg=1", "tagg"),
    ] {
        let (ok, said) = helm(&["template", "chart", "--set", value]).await;
        assert!(!ok && said.contains(named), "{value}: {said}");
    }
    let (ok, said) = helm(&["lint", "--strict", "chart"]).await;
    assert!(ok, "{said}");
}

#[tokio::test]
async fn a_release_comes_and_goes_and_the_tasks_stay() {
    let cluster = Cluster::builder().whole().start().await.unwrap();
    let kubeconfig = cluster.kubeconfig("admin").unwrap();
    let config = ["--kubeconfig", kubeconfig.to_str().unwrap(), "--namespace", HOME];
    let (ok, said) = kubectl(&cluster, &["create", "namespace", HOME], None).await;
    assert!(ok, "{said}");
    let label = ["label", "namespace", HOME, "pod-security.kubernetes.io/enforce=restricted"];
    let (ok, said) = kubectl(&cluster, &label, None).await;
    assert!(ok, "{said}");
    // No webhook is behind the Service here: it must not stand in the way of the Task below.
    let install =
        ["install", "task-operator", "chart", "--set", "webhooks.enabled=false", "--wait", "--timeout=60s"];
    let (ok, said) = helm(&[&config[..], &install].concat()).await;
    assert!(ok, "{said}");
    let upgrade = [
        "upgrade",
        "task-operator",
        "chart",
        "--set",
        "webhooks.enabled=false,replicas=3",
        "--wait",
        "--timeout=60s",
    ];
    let (ok, said) = helm(&[&config[..], &upgrade].concat()).await;
    assert!(ok, "{said}");

    let space = Space::new(&cluster, cluster.client("admin").await.unwrap(), "team").await;
    space.create(json!({"apiVersion": "task.example.io/v1", "kind": "Task", "metadata": {"name": "web", "finalizers": ["task.example.io/finalizer"]}})).await;
    // The Pod of the hook is a fake here. What it runs, with the permissions that it has:
    let hook = rendered(&["webhooks.enabled=false"]).await;
    let hook = hook.into_iter().filter(|object| object["metadata"]["name"] == "task-operator-finalize");
    let mut arguments = Value::Null;
    for object in hook {
        match object["kind"].as_str() {
            Some("Job") => arguments = object["spec"]["template"]["spec"]["containers"][0]["args"].clone(),
            _ => {
                let (ok, said) = kubectl(&cluster, &["apply", "-f", "-"], Some(&object.to_string())).await;
                assert!(ok, "{said}");
            }
        }
    }
    let (ok, token) =
        kubectl(&cluster, &["-n", HOME, "create", "token", "task-operator-finalize"], None).await;
    assert!(ok, "{token}");
    let account = cluster.kubeconfig_of_token("finalize", token.trim()).unwrap();
    let arguments: Vec<String> = serde_json::from_value(arguments).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_task-operator"))
        .args(&arguments)
        .env("KUBECONFIG", &account)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(space.get("Task", "web").await.unwrap()["metadata"]["finalizers"].is_null());

    let (ok, said) =
        helm(&[&config[..], &["uninstall", "task-operator", "--wait", "--timeout=60s"]].concat()).await;
    assert!(ok, "{said}");
    let (ok, left) = kubectl(
        &cluster,
        &["-n", HOME, "get", "deployments,services,serviceaccounts", "-l", "helm.sh/chart", "-o", "name"],
        None,
    )
    .await;
    assert!(ok && left.trim().is_empty(), "{left}");
    assert!(space.get("Task", "web").await.is_some(), "the definition was to stay");
    space.delete("Task", "web").await;
    space.until_gone("Task", "web").await;
}
