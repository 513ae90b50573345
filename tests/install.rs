//! The manifests as a platform team applies them, and the operator with no more
//! than the permissions that they give it.

#![allow(clippy::unwrap_used, reason = "what fails here is a test that fails")]

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use support::webhooks::ask;
use support::{Operator, SOON, Space, condition, kubectl};
use test_cluster::audit::Mark;
use test_cluster::{Cluster, eventually};

const HOME: &str = "task-system";
const USER: &str = "system:serviceaccount:task-system:task-operator";

fn manifest(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests").join(name)
}

async fn run(cluster: &Cluster, arguments: &[&str], input: Option<&str>) -> String {
    let (ok, said) = kubectl(cluster, arguments, input).await;
    assert!(ok, "kubectl {}: {said}", arguments.join(" "));
    said
}

async fn read(cluster: &Cluster, arguments: &[&str]) -> Value {
    let said = run(cluster, &[&["get", "-o", "json"], arguments].concat(), None).await;
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// A kubeconfig of the ServiceAccount of the manifests.
async fn service_account(cluster: &Cluster) -> PathBuf {
    let token = run(cluster, &["-n", HOME, "create", "token", "task-operator"], None).await;
    cluster.kubeconfig_of_token("service-account", token.trim()).unwrap()
}

/// The operator with the flags of the manifest, as its ServiceAccount, outside of the cluster.
async fn operator(cluster: &Cluster, kubeconfig: &Path) -> Operator {
    let deployment = read(cluster, &["-n", HOME, "deployment", "task-operator"]).await;
    let arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"].clone();
    let arguments: Vec<String> = serde_json::from_value(arguments).unwrap();
    assert_eq!(arguments[0], "run");
    // The tests read the log, as text.
    let flags = arguments[1..].iter().map(String::as_str).filter(|flag| !flag.starts_with("--log-format"));
    let flags: Vec<&str> = flags.chain(["--webhook-bind-address=127.0.0.1:0"]).collect();
    let operator = Operator::start_with(kubeconfig, &flags, &[("POD_NAMESPACE", HOME)]);
    operator.wait_for_log("all watches are synced").await;
    operator
}

/// Leads the Service of the webhooks to the operator, which is no Pod here. The names that the API
/// server asks for, and that the certificate is made for, stay those of the manifests.
async fn lead_to(operator: &Operator, cluster: &Cluster) {
    run(cluster, &["-n", HOME, "delete", "service", "task-operator-webhook", "--ignore-not-found"], None)
        .await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "task-operator-webhook", "namespace": HOME},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    });
    run(cluster, &["apply", "-f", "-"], Some(&service.to_string())).await;
    let address = operator.address("webhooks");
    let port: u16 = address.rsplit(':').next().unwrap().parse().unwrap();
    for (object, paths) in [
        ("mutatingwebhookconfiguration/task-operator-mutating-webhook", vec!["/webhooks/0"]),
        (
            "validatingwebhookconfiguration/task-operator-validating-webhook",
            vec!["/webhooks/0", "/webhooks/1"],
        ),
        ("customresourcedefinition/tasks.task.example.io", vec!["/spec/conversion/webhook"]),
    ] {
        let replace = |path| json!({"op": "replace", "path": format!("{path}/clientConfig/service/port"), "value": port});
        let patch = Value::from(paths.into_iter().map(replace).collect::<Vec<_>>()).to_string();
        run(cluster, &["patch", object, "--type=json", "-p", &patch], None).await;
    }
    eventually(SOON, "the webhooks are asked", async || ask(cluster).await).await;
}

/// What the roles of the operator allow, as `patch tasks/status`.
async fn allowed(cluster: &Cluster) -> BTreeSet<String> {
    let label = "app.kubernetes.io/name=task-operator";
    let roles = read(cluster, &["clusterroles,roles", "-A", "-l", label]).await;
    let for_users = ["task-operator-view", "task-operator-edit"].map(Value::from);
    let rules = roles["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|role| !for_users.contains(&role["metadata"]["name"]))
        .flat_map(|role| role["rules"].as_array().unwrap());
    let words = |value: &Value| -> Vec<String> { serde_json::from_value(value.clone()).unwrap() };
    rules
        .flat_map(|rule| {
            let verbs = words(&rule["verbs"]);
            words(&rule["resources"]).into_iter().flat_map(move |resource| {
                verbs.iter().map(|verb| format!("{verb} {resource}")).collect::<Vec<_>>()
            })
        })
        .collect()
}

/// What the operator asked for since then; fails if something was refused to it.
fn asked(mark: &Mark) -> BTreeSet<String> {
    let requests = mark.requests_of(USER).unwrap();
    let forbidden: Vec<_> = requests.iter().filter(|request| request.code() == 403).collect();
    assert!(forbidden.is_empty(), "{forbidden:#?}");
    let resources = requests.iter().filter(|request| !request.resource().is_empty());
    resources.map(|request| format!("{} {}", request.verb, request.resource())).collect()
}

#[tokio::test]
async fn what_is_installed_is_enough_and_every_permission_is_needed() {
    let cluster = Cluster::builder()
        .whole()
        .admission_plugins("OwnerReferencesPermissionEnforcement")
        .start()
        .await
        .unwrap();
    run(&cluster, &["apply", "-f", manifest("install-self-signed.yaml").to_str().unwrap()], None).await;
    // The namespace enforces the restricted Pod Security Standard: Pods that violate it would not be made.
    run(&cluster, &["-n", HOME, "rollout", "status", "deployment/task-operator", "--timeout=60s"], None)
        .await;
    let account = service_account(&cluster).await;
    let mark = cluster.audit_mark().unwrap();
    let mut first = operator(&cluster, &account).await;
    lead_to(&first, &cluster).await;
    let space = Space::new(&cluster, cluster.client("admin").await.unwrap(), "team").await;

    space.task("web", json!({"replicas": 2})).await;
    space.until_phase("web", "Succeeded").await;
    drift(&space).await;
    a_repeated_event(&space).await;
    foreign_objects(&space).await;
    a_rollout_that_makes_no_progress(&space).await;
    a_conflict(&space, &mark).await;
    a_damaged_certificate(&cluster).await;

    // Nothing is refused to a follower, nor to the leader after it, which finds events of an earlier one.
    let mut follower = operator(&cluster, &account).await;
    for operator in [&mut first, &mut follower] {
        operator.signal("TERM");
        assert!(operator.ended(SOON).await.success(), "{}", operator.log_tail());
    }
    another_selector(&space).await;
    let second = operator(&cluster, &account).await;
    lead_to(&second, &cluster).await;
    space.until_phase("web", "Succeeded").await;
    space.delete("Task", "web").await;
    space.until_gone("Task", "web").await;
    space.until_gone("Deployment", "web").await;
    second.assert_healthy();
    for operator in [&first, &follower, &second] {
        assert!(!operator.log().contains("forbidden"), "{}", operator.log());
    }

    let (allowed, asked) = (allowed(&cluster).await, asked(&mark));
    // Judged by the admission of children, and so never asked for by itself.
    let allowed: BTreeSet<_> =
        allowed.into_iter().filter(|permission| permission != "update tasks/finalizers").collect();
    assert_eq!(
        allowed.difference(&asked).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "may be done, and never is"
    );
    assert_eq!(
        asked.difference(&allowed).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "is done, and no role says so"
    );

    // Without the last one no child can be made.
    let drop = json!([{"op": "test", "path": "/rules/2/resources/0", "value": "tasks/finalizers"}, {"op": "remove", "path": "/rules/2"}]);
    run(
        &cluster,
        &["patch", "clusterrole", "task-operator-role", "--type=json", "-p", &drop.to_string()],
        None,
    )
    .await;
    space.task("late", json!({})).await;
    let failed = space.until_phase("late", "Failed").await;
    assert_eq!(condition(&failed, "Ready")["reason"], "Forbidden", "{failed:#}");
}

/// Each child is changed by somebody and put right.
async fn drift(space: &Space<'_>) {
    for (kind, name, change, pointer) in [
        ("Deployment", "web", json!({"spec": {"replicas": 7}}), "/spec/replicas"),
        (
            "Service",
            "web",
            json!({"spec": {"selector": {"app.kubernetes.io/instance": "x"}}}),
            "/spec/selector",
        ),
        ("ConfigMap", "web-config", json!({"data": {"app.conf": "x"}}), "/data"),
    ] {
        let before = space.get(kind, name).await.unwrap();
        space.patch(kind, name, change).await;
        space
            .until(SOON, kind, name, "put right", |now| now.pointer(pointer) == before.pointer(pointer))
            .await;
    }
}

/// Names that are taken are looked at, and told of.
async fn foreign_objects(space: &Space<'_>) {
    space.create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a-config"}})).await;
    space
        .create(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "b"}, "spec": {"ports": [{"port": 1}]}}))
        .await;
    let labels = json!({"a": "b"});
    space
        .create(json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "c"},
            "spec": {
                "replicas": 0, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "x", "image": "y"}]}},
            },
        }))
        .await;
    for name in ["a", "b", "c"] {
        space.task(name, json!({})).await;
        let failed = space.until_phase(name, "Failed").await;
        assert_eq!(condition(&failed, "Ready")["reason"], "NameConflict");
    }
}

/// What happens again is the same event, counted.
async fn a_repeated_event(space: &Space<'_>) {
    for (replicas, phase) in [(0, "Pending"), (1, "Succeeded"), (0, "Pending"), (1, "Succeeded")] {
        space.patch("Task", "web", json!({"spec": {"replicas": replicas}})).await;
        space.until_phase("web", phase).await;
    }
    eventually(SOON, "a repeated event is counted", async || {
        let events = space.events("web").await;
        let counts = events.iter().map(|event| (&event["note"], &event["series"]["count"]));
        let counts: Vec<_> = counts.collect();
        if counts.iter().any(|(_, count)| count.as_i64() > Some(1)) {
            Ok(())
        } else {
            Err(format!("{counts:?}"))
        }
    })
    .await;
}

/// Pods that no node takes are found and named.
async fn a_rollout_that_makes_no_progress(space: &Space<'_>) {
    let nodes = run(space.cluster, &["get", "nodes", "-o", "name"], None).await;
    for node in nodes.lines() {
        run(space.cluster, &["cordon", node], None).await;
    }
    space.task("stuck", json!({})).await;
    space
        .until(SOON, "Task", "stuck", "named as unschedulable", |task| {
            condition(task, "Ready")["message"].to_string().contains("unschedulable")
        })
        .await;
    for node in nodes.lines() {
        run(space.cluster, &["uncordon", node], None).await;
    }
    space.until_phase("stuck", "Succeeded").await;
}

/// A Task that changes while its status is written has to be read again.
async fn a_conflict(space: &Space<'_>, mark: &Mark) {
    let changes = std::cell::Cell::new(0);
    eventually(SOON, "a Task is read again", async || {
        for _ in 0..10 {
            changes.set(changes.get() + 1);
            let n = changes.get().to_string();
            space.patch("Task", "web", json!({"spec": {"env": {"N": n}}})).await;
            space.patch("Task", "web", json!({"metadata": {"annotations": {"n": n}}})).await;
        }
        if asked(mark).contains("get tasks") {
            Ok(())
        } else {
            Err(format!("after {} changes", changes.get()))
        }
    })
    .await;
    space.until_phase("web", "Succeeded").await;
}

/// The Secret of the certificate is written again.
async fn a_damaged_certificate(cluster: &Cluster) {
    let read_pair =
        async || read(cluster, &["-n", HOME, "secret", "task-operator-cert"]).await["data"].clone();
    let before = read_pair().await;
    let damage = json!({"data": {"ca.key": null}}).to_string();
    run(cluster, &["-n", HOME, "patch", "secret", "task-operator-cert", "-p", &damage], None).await;
    eventually(SOON, "the Secret is whole again", async || {
        if read_pair().await == before { Ok(()) } else { Err("it is not".to_owned()) }
    })
    .await;
}

/// Somebody makes the Deployment anew with a selector that cannot be changed.
async fn another_selector(space: &Space<'_>) {
    let mut deployment = space.get("Deployment", "web").await.unwrap();
    space.delete("Deployment", "web").await;
    space.until_gone("Deployment", "web").await;
    deployment["spec"]["selector"]["matchLabels"] = json!({"app.kubernetes.io/instance": "web"});
    for field in ["uid", "resourceVersion", "managedFields", "creationTimestamp"] {
        deployment["metadata"].as_object_mut().unwrap().remove(field);
    }
    space.create(deployment).await;
}

/// Runs `task-operator finalize` as `admin`.
fn finalize(cluster: &Cluster, flags: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_task-operator"))
        .arg("finalize")
        .args(flags)
        .env("KUBECONFIG", cluster.kubeconfig("admin").unwrap())
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

#[tokio::test]
async fn uninstalling_keeps_what_runs_and_never_hangs() {
    let cluster = Cluster::builder().whole().crds(&support::crds()).start().await.unwrap();
    let installed = manifest("install-self-signed.yaml");
    run(&cluster, &["apply", "-f", installed.to_str().unwrap()], None).await;
    let account = service_account(&cluster).await;
    let mut operator = operator(&cluster, &account).await;
    lead_to(&operator, &cluster).await;
    let space = Space::new(&cluster, cluster.client("admin").await.unwrap(), "team").await;
    let names = ["a", "b", "c"];
    for name in names {
        space.task(name, json!({})).await;
    }
    for name in names {
        space.until_phase(name, "Succeeded").await;
    }
    space
        .patch("Task", "b", json!({"metadata": {"finalizers": ["task.example.io/finalizer", "x.y/z"]}}))
        .await;

    // Against an operator that runs it cannot win, and says what to do.
    let (ok, said) = finalize(&cluster, &["--all", "--timeout=5s"]);
    assert!(!ok && said.contains("stop the operator first"), "{said}");

    // The program outside goes as the Pods do that are scaled away.
    operator.kill();
    let (ok, said) = finalize(&cluster, &["--all", "--stop=task-system/task-operator"]);
    assert!(ok && said.contains("was taken from 3 Tasks"), "{said}");
    let deployment = read(&cluster, &["-n", HOME, "deployment", "task-operator"]).await;
    assert_eq!(deployment["spec"]["replicas"], 0);
    for name in names {
        let task = space.get("Task", name).await.unwrap();
        let left = if name == "b" { json!(["x.y/z"]) } else { Value::Null };
        assert_eq!(task["metadata"]["finalizers"], left);
        let child = space.get("Deployment", name).await.unwrap();
        assert_eq!(child["status"]["availableReplicas"], 1, "{child:#}");
    }
    let (ok, said) = finalize(&cluster, &["--namespace=team", "--stop=task-system/gone"]);
    assert!(ok && said.contains("was taken from 0 Tasks"), "{said}");

    // With the definition go the Tasks, and with them what they own.
    space.patch("Task", "b", json!({"metadata": {"finalizers": null}})).await;
    run(&cluster, &["delete", "--timeout=60s", "-f", installed.to_str().unwrap()], None).await;
    for name in names {
        space.until_gone("Deployment", name).await;
    }
}

#[tokio::test]
async fn one_namespace_needs_roles_only() {
    let cluster = Cluster::builder().whole().crds(&support::crds()).start().await.unwrap();
    let printed = Command::new(env!("CARGO_BIN_EXE_task-operator"))
        .args(["rbac", "--namespace=team"])
        .output()
        .unwrap();
    assert!(printed.status.success(), "{printed:?}");
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert!(!printed.contains("kind: ClusterRole"), "{printed}");
    let space = Space::new(&cluster, cluster.client("admin").await.unwrap(), "team").await;
    run(&cluster, &["create", "namespace", HOME], None).await;
    run(&cluster, &["apply", "-f", "-"], Some(&printed)).await;

    let mark = cluster.audit_mark().unwrap();
    let account = service_account(&cluster).await;
    let flags = ["--watch-namespace=team", "--leader-elect"];
    let operator = Operator::start_with(&account, &flags, &[("POD_NAMESPACE", HOME)]);
    operator.wait_for_log("all watches are synced").await;
    space.task("web", json!({})).await;
    space.until_phase("web", "Succeeded").await;
    space.delete("Task", "web").await;
    space.until_gone("Task", "web").await;
    asked(&mark);
    operator.assert_healthy();
    assert!(!operator.log().contains("forbidden"), "{}", operator.log());
}
