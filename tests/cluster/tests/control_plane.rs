//! A control plane as a test uses it.

mod support;

use std::net::TcpListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;
use support::{SOON, kubectl, kubectl_as, processes_of, until_nothing_is_left};
use tempfile::TempDir;
use test_cluster::audit::summary;
use test_cluster::{Cluster, Program, User, eventually};

#[tokio::test]
async fn two_run_side_by_side_and_leave_nothing_behind() {
    let began = Instant::now();
    let builder = || Cluster::builder().whole().nodes(2);
    let (one, two) = tokio::join!(builder().start(), builder().start());
    let (one, two) = (one.unwrap(), two.unwrap());
    println!("two whole control planes were ready after {:?}", began.elapsed());
    assert_ne!(one.url(), two.url());
    kubectl(&one, &["create", "namespace", "only-here"]).await;
    let (ok, said) = kubectl_as(&two, "admin", &["get", "namespace", "only-here"]).await;
    assert!(!ok && said.contains("NotFound"), "{said}");

    let (first, second) = (one.directory().to_owned(), two.directory().to_owned());
    // Five programs and the guard of the directory.
    assert_eq!(processes_of(&first).len(), 6, "{:#?}", processes_of(&first));
    one.stop().unwrap();
    assert!(processes_of(&first).is_empty() && !first.exists());
    kubectl(&two, &["get", "--raw", "/readyz"]).await;
    drop(two);
    assert!(processes_of(&second).is_empty() && !second.exists());
}

#[tokio::test]
async fn definitions_are_served_from_the_start_and_slow_pods_become_ready() {
    let crd = TempDir::new().unwrap();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "toys.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "toys", "kind": "Toy"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    std::fs::write(crd.path().join("toys.json"), definition.to_string()).unwrap();
    let cluster = Cluster::builder().whole().slow_pods().crds(crd.path()).start().await.unwrap();
    kubectl(&cluster, &["get", "toys.example.com"]).await;
    kubectl(&cluster, &["create", "deployment", "web", "--image=nginx:alpine", "--replicas=2"]).await;
    let began = Instant::now();
    kubectl(&cluster, &["wait", "--for=condition=Available", "--timeout=30s", "deployment/web"]).await;
    assert!(began.elapsed() > Duration::from_millis(500), "{:?}", began.elapsed());
    kubectl(&cluster, &["delete", "deployment", "web"]).await;
    kubectl(&cluster, &["wait", "--for=delete", "--timeout=30s", "pod", "-l=app=web"]).await;
}

#[tokio::test]
async fn a_deployment_becomes_available_on_the_fake_nodes() {
    let cluster = Cluster::builder().whole().start().await.unwrap();
    kubectl(&cluster, &["create", "deployment", "web", "--image=nginx:alpine", "--replicas=2"]).await;
    kubectl(&cluster, &["wait", "--for=condition=Available", "--timeout=30s", "deployment/web"]).await;
    let count =
        kubectl(&cluster, &["get", "deployment", "web", "-o=jsonpath={.status.availableReplicas}"]).await;
    assert_eq!(count, "2");
    // Garbage collection works too.
    kubectl(&cluster, &["delete", "deployment", "web", "--wait"]).await;
    eventually(SOON, "the Pods are gone", async || {
        let pods = kubectl(&cluster, &["get", "pods", "-o=name"]).await;
        if pods.is_empty() { Ok(()) } else { Err(pods) }
    })
    .await;
}

#[tokio::test]
async fn a_killed_server_comes_back_with_its_data_on_the_same_port() {
    let mut cluster = Cluster::builder().api_only().start().await.unwrap();
    kubectl(&cluster, &["create", "configmap", "kept", "--from-literal=a=b"]).await;
    let url = cluster.url().to_owned();

    cluster.kill(Program::ApiServer).unwrap();
    assert!(cluster.id(Program::ApiServer).is_err());
    let (ok, said) = kubectl_as(&cluster, "admin", &["get", "configmap", "kept"]).await;
    assert!(!ok, "{said}");
    cluster.start(Program::ApiServer).await.unwrap();
    assert_eq!(cluster.url(), url);
    kubectl(&cluster, &["get", "configmap", "kept"]).await;

    cluster.kill(Program::Etcd).unwrap();
    cluster.start(Program::Etcd).await.unwrap();
    kubectl(&cluster, &["get", "configmap", "kept"]).await;
    assert_ne!(cluster.id(Program::Etcd).unwrap(), cluster.id(Program::ApiServer).unwrap());
    assert!(cluster.kill(Program::Kwok).is_err(), "a control plane of the API alone has no kwok");
}

#[tokio::test]
async fn a_paused_api_server_answers_once_it_goes_on() {
    let mut cluster = Cluster::builder().api_only().start().await.unwrap();
    cluster.pause(Program::ApiServer).unwrap();
    let (ok, said) =
        kubectl_as(&cluster, "admin", &["get", "--raw", "/readyz", "--request-timeout=1s"]).await;
    assert!(!ok, "{said}");
    cluster.resume(Program::ApiServer).unwrap();
    assert_eq!(kubectl(&cluster, &["get", "--raw", "/readyz"]).await, "ok");
    // A paused program can be killed, too.
    cluster.pause(Program::ApiServer).unwrap();
    let directory = cluster.directory().to_owned();
    cluster.stop().unwrap();
    until_nothing_is_left(&directory).await;
}

#[tokio::test]
async fn the_audit_log_tells_who_asked_for_what() {
    let cluster = Cluster::builder().user(User::new("guest")).start().await.unwrap();
    let mark = cluster.audit_mark().unwrap();
    kubectl_as(&cluster, "operator", &["create", "configmap", "mine", "-n", "kube-system"]).await;
    let (ok, said) =
        kubectl_as(&cluster, "guest", &["delete", "configmap", "mine", "-n", "kube-system"]).await;
    assert!(!ok && said.contains("Forbidden"), "{said}");
    let mut watch = cluster.kubectl_as("operator").unwrap();
    let watch = watch
        .args(["get", "namespaces", "--watch-only"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();

    // The line of a request is written after its answer; a watch that is still open is there as well.
    let own = eventually(SOON, "the operator's requests are in the log", async || {
        let own = mark.requests_of("operator").unwrap();
        let resources = summary(&own);
        if resources.contains_key("create configmaps") && resources.contains_key("watch namespaces") {
            return Ok(own);
        }
        Err(format!("{resources:?}"))
    })
    .await;
    let create = own.iter().find(|request| request.is_write()).unwrap();
    assert_eq!((create.verb.as_str(), create.namespace(), create.code()), ("create", "kube-system", 201));
    let refused = mark.requests_of("guest").unwrap();
    let refused = refused.iter().find(|request| request.verb == "delete").unwrap();
    assert_eq!((refused.object().as_str(), refused.code()), ("kube-system/mine", 403));
    assert!(create.time <= refused.time);
    drop(watch);
}

#[tokio::test]
async fn a_service_account_s_token_makes_a_kubeconfig() {
    let cluster = Cluster::builder().without_audit().start().await.unwrap();
    assert!(cluster.audit_log().is_err(), "there is none");
    kubectl(&cluster, &["create", "serviceaccount", "robot"]).await;
    let token = kubectl(&cluster, &["create", "token", "robot"]).await;
    let kubeconfig = cluster.kubeconfig_of_token("robot", token.trim()).unwrap();
    let arguments = ["auth", "whoami", "-o=jsonpath={.status.userInfo.username}"];
    let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
    let name = kubectl(&cluster, &[&arguments[..], &[&kubeconfig]].concat()).await;
    assert_eq!(name, "system:serviceaccount:default:robot");
    assert!(cluster.kubeconfig_of_token("admin", "x").is_err(), "it would replace that of the user");
}

#[tokio::test]
async fn webhooks_on_the_loopback_are_reached() {
    let cluster = Cluster::builder().start().await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let file = cluster.directory().join("webhook.json");
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "loopback"},
        "webhooks": [{
            "name": "loopback.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Ignore", "timeoutSeconds": 1,
            "clientConfig": {"url": format!("https://{}/", listener.local_addr().unwrap())},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        }],
    });
    std::fs::write(&file, configuration.to_string()).unwrap();
    kubectl(&cluster, &["apply", "-f", file.to_str().unwrap()]).await;
    // A webhook takes a moment to be in force.
    eventually(SOON, "the API server calls the webhook", async || {
        kubectl(&cluster, &["create", "configmap", "x", "--dry-run=server"]).await;
        listener.accept().map(drop).map_err(|error| error.to_string())
    })
    .await;
}

#[tokio::test]
async fn a_server_that_cannot_start_shows_its_log() {
    let error = Cluster::builder().api_server_flag("--no-such-flag=1").start().await.unwrap_err();
    let error = format!("{error:#}");
    assert!(error.contains("kube-apiserver ended") && error.contains("no-such-flag"), "{error}");
}

#[tokio::test]
async fn a_test_that_panics_leaves_nothing_behind() {
    let cluster = Cluster::builder().start().await.unwrap();
    let directory = cluster.directory().to_owned();
    let test = tokio::spawn(async move {
        let _held = cluster;
        panic!("as a failed assertion does");
    });
    assert!(test.await.unwrap_err().is_panic());
    until_nothing_is_left(&directory).await;
}

/// Runs `in_an_existing_cluster` below with the environment of somebody who asks for one.
#[tokio::test]
async fn an_existing_cluster_is_used_on_request() {
    let cluster = Cluster::builder().start().await.unwrap();
    let inner = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "in_an_existing_cluster", "--nocapture"])
        .env("USE_EXISTING_CLUSTER", "true")
        .env("KUBECONFIG", cluster.kubeconfig("admin").unwrap())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(Duration::from_secs(60), inner).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // It was used, and it was left alone.
    kubectl(&cluster, &["get", "configmap", "made-by-the-inner-test"]).await;
}

#[tokio::test]
#[ignore = "run by an_existing_cluster_is_used_on_request"]
async fn in_an_existing_cluster() {
    let mut cluster = Cluster::builder().whole().user(User::new("guest")).start().await.unwrap();
    let directory: PathBuf = cluster.directory().to_owned();
    kubectl_as(&cluster, "operator", &["create", "configmap", "made-by-the-inner-test"]).await;
    cluster.client("admin").await.unwrap().apiserver_version().await.unwrap();
    for error in [
        cluster.kill(Program::ApiServer).unwrap_err(),
        cluster.audit_log().unwrap_err(),
        cluster.kubeconfig("guest").unwrap_err(),
        cluster.kubeconfig_of_token("x", "y").unwrap_err(),
        Cluster::builder().api_server_flag("--v=1").start().await.unwrap_err(),
    ] {
        assert!(error.to_string().contains("USE_EXISTING_CLUSTER"), "{error}");
    }
    drop(cluster);
    assert!(!directory.exists());
}
