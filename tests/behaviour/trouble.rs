//! What cannot come up is told, and recovers.

use std::time::Duration;

use serde_json::json;

use crate::Bed;
use crate::support::{SOON, Space, condition};

pub(super) async fn a_quota_on_deployments_fails_the_task_until_it_goes(_: &Bed, space: &Space<'_>) {
    space.create(json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"count/deployments.apps": "0"}}})).await;
    space.until(SOON, "ResourceQuota", "q", "in force", |quota| !quota["status"]["hard"].is_null()).await;
    space.task("web", json!({})).await;
    let failed = space.until_phase("web", "Failed").await;
    assert_eq!(condition(&failed, "Ready")["reason"], "QuotaExceeded", "{failed:#}");
    let message = condition(&failed, "Ready")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("cannot create Deployment") && message.contains("exceeded quota"), "{message}");
    space.until_event("web", "ReconcileFailed", "exceeded quota").await;
    space.delete("ResourceQuota", "q").await;
    space.until_phase("web", "Succeeded").await;
}

pub(super) async fn a_quota_on_pods_fails_the_task_until_it_goes(_: &Bed, space: &Space<'_>) {
    space.create(json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}})).await;
    space.until(SOON, "ResourceQuota", "q", "in force", |quota| !quota["status"]["hard"].is_null()).await;
    space.task("web", json!({})).await;
    let failed = space.until_phase("web", "Failed").await;
    assert_eq!(condition(&failed, "Ready")["reason"], "FailedCreate", "{failed:#}");
    assert!(condition(&failed, "Ready")["message"].as_str().unwrap().contains("exceeded quota"), "{failed:#}");
    space.until_event("web", "ReconcileFailed", "exceeded quota").await;
    space.delete("ResourceQuota", "q").await;
    // The ReplicaSet's controller backs off by itself; deleting its ReplicaSet has it try at once.
    let (ok, said) = space.kubectl(&["delete", "replicaset", "--all"]).await;
    assert!(ok, "{said}");
    space.until_phase("web", "Succeeded").await;
}

pub(super) async fn a_policy_that_refuses_the_deployment_is_named(_: &Bed, space: &Space<'_>) {
    let name = space.namespace.as_str();
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}]},
            "validations": [{"expression": "false", "message": "no new deployments on a Friday"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"], "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}},
    });
    let (ok, said) = space.apply(&json!({"apiVersion": "v1", "kind": "List", "items": [policy, binding]}).to_string()).await;
    assert!(ok, "{said}");
    // A policy takes a moment to be in force: until then a Deployment by hand is let in.
    test_cluster::eventually(SOON, "the policy is in force", async || {
        let (ok, said) = space.kubectl(&["create", "deployment", "probe", "--image=x", "--dry-run=server"]).await;
        if !ok && said.contains("Friday") { Ok(()) } else { Err(said) }
    })
    .await;
    space.task("web", json!({})).await;
    let failed = space.until_phase("web", "Failed").await;
    let message = condition(&failed, "Ready")["message"].as_str().unwrap();
    assert!(message.contains("no new deployments on a Friday"), "{message}");
    space.until_event("web", "ReconcileFailed", "Friday").await;
    let (ok, said) = space.kubectl(&["delete", "validatingadmissionpolicybinding", name]).await;
    assert!(ok, "{said}");
    space.until_phase("web", "Succeeded").await;
}

pub(super) async fn pods_that_cannot_be_scheduled_are_named(_: &Bed, space: &Space<'_>) {
    // Every Pod of the namespace asks for more than any node has.
    space
        .create(json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "huge"},
            "spec": {"limits": [{"type": "Container", "default": {"cpu": "5000"}, "defaultRequest": {"cpu": "5000"}}]}}))
        .await;
    space.task("web", json!({})).await;
    let told = space
        .until(Duration::from_secs(40), "Task", "web", "the reason is named", |task| {
            condition(task, "Ready")["reason"] == "Unschedulable"
        })
        .await;
    assert_eq!(told["status"]["phase"], "Pending");
    assert_eq!(condition(&told, "Reconciling")["status"], "True");
    let message = condition(&told, "Ready")["message"].as_str().unwrap();
    assert!(message.contains("Pod web-") && message.contains("Insufficient cpu"), "{message}");
}

pub(super) async fn a_terminating_child_is_waited_for(_: &Bed, space: &Space<'_>) {
    space.task("web", json!({})).await;
    space.until_phase("web", "Succeeded").await;
    space.patch("ConfigMap", "web-config", json!({"metadata": {"finalizers": ["example.io/held"]}})).await;
    let before = space.get("ConfigMap", "web-config").await.unwrap();
    space.delete("ConfigMap", "web-config").await;
    let told = space
        .until(SOON, "Task", "web", "the wait is told", |task| condition(task, "Ready")["reason"] == "ChildTerminating")
        .await;
    assert!(condition(&told, "Ready")["message"].as_str().unwrap().contains("web-config"), "{told:#}");
    space.patch("ConfigMap", "web-config", json!({"metadata": {"finalizers": null}})).await;
    space.until(SOON, "ConfigMap", "web-config", "a new one", |new| new["metadata"]["uid"] != before["metadata"]["uid"]).await;
    space.until_phase("web", "Succeeded").await;
}
