//! An operator that makes its certificate itself, asked by a real API server.

#![allow(clippy::unwrap_used, reason = "what fails here is a test that fails")]

mod support;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use support::webhooks::ask;
use support::{Operator, SOON, crds, kubectl};
use test_cluster::{Cluster, eventually};

const FLAGS: [&str; 3] =
    ["--webhook-bind-address=127.0.0.1:0", "--webhook-self-signed", "--webhook-dns-name=127.0.0.1"];
const SECRET: &str = "task-operator-cert";
const CONFIGURATIONS: [(&str, &str); 3] = [
    ("MutatingWebhookConfiguration", "task-operator-mutating-webhook"),
    ("ValidatingWebhookConfiguration", "task-operator-validating-webhook"),
    ("CustomResourceDefinition", "tasks.task.example.io"),
];

async fn cluster() -> Cluster {
    Cluster::builder().crds(&crds()).start().await.unwrap()
}

async fn operator(cluster: &Cluster, flags: &[&str]) -> Operator {
    let flags: Vec<&str> = FLAGS.iter().chain(flags).copied().collect();
    Operator::started(&cluster.kubeconfig("operator").unwrap(), &flags).await
}

/// Asks until it is answered, then through the old version too, which is converted.
async fn until_asked(cluster: &Cluster) {
    eventually(SOON, "the webhooks are asked", async || ask(cluster).await).await;
    eventually(SOON, "the old version is served", async || {
        let (ok, said) = kubectl(cluster, &["get", "tasks.v1alpha1.task.example.io", "-A"], None).await;
        if ok { Ok(()) } else { Err(said) }
    })
    .await;
}

async fn api(cluster: &Cluster, kind: &str) -> Api<DynamicObject> {
    let client = cluster.client("admin").await.unwrap();
    let gvk = match kind {
        "Secret" => GroupVersionKind::gvk("", "v1", kind),
        "CustomResourceDefinition" => GroupVersionKind::gvk("apiextensions.k8s.io", "v1", kind),
        _ => GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind),
    };
    let resource = ApiResource::from_gvk(&gvk);
    match kind {
        "Secret" => Api::namespaced_with(client, "default", &resource),
        _ => Api::all_with(client, &resource),
    }
}

/// The data of the Secret.
async fn secret(cluster: &Cluster) -> Option<Value> {
    api(cluster, "Secret").await.get_opt(SECRET).await.unwrap().map(|secret| secret.data["data"].clone())
}

/// All bundles that the API server trusts for the operator.
async fn bundles(cluster: &Cluster) -> Vec<Value> {
    let mut bundles = Vec::new();
    for (kind, name) in CONFIGURATIONS {
        let object = api(cluster, kind).await.get(name).await.unwrap();
        match object.data["webhooks"].as_array() {
            Some(webhooks) => {
                bundles.extend(webhooks.iter().map(|entry| entry["clientConfig"]["caBundle"].clone()))
            }
            None => {
                bundles.push(object.data["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"].clone())
            }
        }
    }
    bundles
}

async fn until_trusted(cluster: &Cluster) {
    eventually(SOON, "every bundle is the authorities of the Secret", async || {
        let authorities = secret(cluster).await.map(|data| data["ca.crt"].clone());
        let bundles = bundles(cluster).await;
        let all = bundles.iter().all(|bundle| Some(bundle) == authorities.as_ref());
        if all { Ok(()) } else { Err(format!("{} bundles, not all of them", bundles.len())) }
    })
    .await;
}

#[tokio::test]
async fn it_serves_and_is_trusted_with_nothing_prepared_and_two_replicas_agree() {
    let cluster = cluster().await;
    // Both begin at once, with no Secret there.
    let (a, b) = tokio::join!(operator(&cluster, &[]), operator(&cluster, &[]));
    a.install(&cluster, None).await;
    until_asked(&cluster).await;
    until_trusted(&cluster).await;
    // The other one serves with the same authority.
    b.install(&cluster, None).await;
    until_asked(&cluster).await;
    until_trusted(&cluster).await;
    let begun =
        [&a, &b].map(|operator| operator.log().matches("certificate of the webhooks changed").count());
    assert_eq!(begun.iter().sum::<usize>(), 1, "{}\n{}", a.log_tail(), b.log_tail());
    for operator in [&a, &b] {
        let (code, page) = operator.get("probes", "/readyz?verbose").await;
        assert!(code == 200 && page.contains("[+]webhook-trust ok"), "{page}");
        operator.assert_healthy();
    }
}

#[tokio::test]
async fn what_others_change_is_put_right_and_a_lost_secret_comes_back_as_it_was() {
    let cluster = cluster().await;
    let operator = operator(&cluster, &[]).await;
    operator.install(&cluster, None).await;
    until_asked(&cluster).await;
    until_trusted(&cluster).await;
    let before = secret(&cluster).await.unwrap();

    let manager = PatchParams::default();
    for (kind, name) in CONFIGURATIONS {
        let api = api(&cluster, kind).await;
        let path = if kind.starts_with("Custom") { "/spec/conversion/webhook" } else { "/webhooks/0" };
        let path = format!("{path}/clientConfig/caBundle");
        for change in [json!({"op": "remove", "path": path}), json!({"op": "add", "path": path, "value": ""})]
        {
            let patch: Patch<Value> = Patch::Json(serde_json::from_value(json!([change])).unwrap());
            api.patch(name, &manager, &patch).await.unwrap();
            let began = Instant::now();
            until_trusted(&cluster).await;
            println!("{kind}: put right after {:?}", began.elapsed());
        }
    }

    let secrets = api(&cluster, "Secret").await;
    secrets.delete(SECRET, &Default::default()).await.unwrap();
    eventually(SOON, "the Secret is back as it was", async || match secret(&cluster).await {
        Some(data) if data == before => Ok(()),
        other => Err(format!("it is there: {}", other.is_some())),
    })
    .await;
    let garbage = Patch::Merge(json!({"data": {"tls.key": "AAAA", "ca.key": null}}));
    secrets.patch(SECRET, &manager, &garbage).await.unwrap();
    eventually(SOON, "the damage is gone", async || match secret(&cluster).await {
        Some(data) if data == before => Ok(()),
        other => Err(format!("it is there: {}", other.is_some())),
    })
    .await;
    assert!(!operator.log().contains("PRIVATE KEY"));
    operator.assert_healthy();
}

#[tokio::test]
async fn certificates_and_authorities_are_renewed_without_a_failed_call() {
    let cluster = cluster().await;
    let flags = ["--webhook-cert-validity=15s"];
    let (a, b) = (operator(&cluster, &flags).await, operator(&cluster, &flags).await);
    a.install(&cluster, None).await;
    until_asked(&cluster).await;
    until_trusted(&cluster).await;
    let (mut pairs, mut authorities, mut calls) = (BTreeSet::new(), BTreeSet::new(), 0);
    let began = Instant::now();
    // The first authority signs for half a minute; then both are trusted for as long again.
    while pairs.len() < 6 || authorities.len() < 3 {
        if let Err(said) = ask(&cluster).await {
            panic!("after {calls} calls: {said}\n{}\n{}", a.log_tail(), b.log_tail());
        }
        calls += 1;
        let data = secret(&cluster).await.unwrap();
        pairs.insert(data["tls.crt"].to_string());
        authorities.insert(data["ca.crt"].to_string());
        assert!(
            began.elapsed() < Duration::from_secs(180),
            "{} pairs, {} sets of authorities\n{}",
            pairs.len(),
            authorities.len(),
            a.log_tail()
        );
    }
    assert_none_signs_before_it_is_trusted(&[&a, &b]);
    println!("{calls} calls, {} pairs, {} sets of authorities", pairs.len(), authorities.len());
    a.assert_healthy();
    b.assert_healthy();
}

/// Between a new authority and the first pair that it signs there is a tenth of
/// the validity, whichever replica makes them.
fn assert_none_signs_before_it_is_trusted(operators: &[&Operator]) {
    let logs: Vec<String> = operators.iter().map(|operator| operator.log()).collect();
    let mut changes: Vec<&str> = logs
        .iter()
        .flat_map(|log| log.lines())
        .filter(|line| line.contains("the certificate of the webhooks changed"))
        .collect();
    // Each line begins with its time.
    changes.sort_unstable();
    let at = |line: &str| line.split(' ').next().unwrap().parse::<jiff::Timestamp>().unwrap();
    let mut authorities = 0;
    for two in changes.windows(2).filter(|two| two[0].contains("Authority")) {
        authorities += 1;
        let waited = at(two[1]).duration_since(at(two[0]));
        assert!(two[1].contains("Pair") && waited.as_millis() >= 1500, "{waited:?}: {changes:#?}");
    }
    assert!(authorities > 0, "{changes:#?}");
}

#[tokio::test]
async fn what_is_somebody_elses_is_left_alone_and_said_to_be() {
    let cluster = cluster().await;
    let secrets = api(&cluster, "Secret").await;
    let theirs = json!({
        "apiVersion": "v1", "kind": "Secret", "data": {"tls.crt": "eA==", "tls.key": "eA=="},
        "metadata": {"name": SECRET, "annotations": {"cert-manager.io/certificate-name": SECRET}},
    });
    let made = secrets.create(&Default::default(), &serde_json::from_value(theirs).unwrap()).await.unwrap();
    let operator = operator(&cluster, &[]).await;
    operator.wait_for_log("is somebody else's: it has an annotation of cert-manager").await;
    let (code, page) = operator.get("probes", "/readyz?verbose").await;
    assert!(code != 200 && page.contains("[-]webhook-certificate failed"), "{page}");
    let now = secrets.get(SECRET).await.unwrap();
    assert_eq!(now.metadata.resource_version, made.metadata.resource_version);

    // Where the Secret goes, the operator goes on by itself; a bundle that cert-manager fills in stays.
    secrets.delete(SECRET, &Default::default()).await.unwrap();
    operator.install(&cluster, None).await;
    until_asked(&cluster).await;
    let (kind, name) = CONFIGURATIONS[0];
    let configurations = api(&cluster, kind).await;
    let injected = json!({
        "metadata": {"annotations": {"cert-manager.io/inject-ca-from": "a/b"}},
    });
    configurations.patch(name, &PatchParams::default(), &Patch::Merge(injected)).await.unwrap();
    let removed = json!([{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]);
    let removed: Patch<Value> = Patch::Json(serde_json::from_value(removed).unwrap());
    configurations.patch(name, &PatchParams::default(), &removed).await.unwrap();
    operator.wait_for_log("cert-manager fills in its caBundle").await;
    let left = configurations.get(name).await.unwrap();
    assert_eq!(left.data["webhooks"][0]["clientConfig"]["caBundle"], Value::Null);
    operator.assert_healthy();
}
