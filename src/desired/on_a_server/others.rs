//! What others add to a child, and apply over it.

use kube::Client;
use kube::api::Patch;
use serde_json::json;

use crate::api::v1::TaskSpec;
use crate::desired::{ChildKind, Correction, contender};

use super::{Children, pod, spec, usual, variables};

pub(super) async fn what_others_added_stays_and_stays_theirs(client: &Client) {
    let mut children = Children::created(client, "shared", usual()).await;
    let kind = ChildKind::Deployment;
    let mut theirs = pod(json!({
        "hostNetwork": true,
        "containers": [
            {"name": "task", "env": [{"name": "FOREIGN", "value": "$(HOST)"}], "ports": [{"name": "admin", "containerPort": 9000}], "resources": {"limits": {"cpu": "1"}}},
            {"name": "proxy", "image": "envoy"},
        ],
        "initContainers": [{"name": "early", "image": "busybox"}],
        "volumes": [{"name": "cache", "emptyDir": {}}],
    }));
    theirs["metadata"] = json!({"labels": {"team": "blue"}, "annotations": {"note": "x"}});
    theirs["spec"]["template"]["metadata"] =
        json!({"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}});
    let changed = children.changed(kind, "injector", Patch::Strategic(theirs)).await;
    assert!(children.covers(kind, &changed), "what others add does not count: {changed:#}");
    assert_eq!(children.correction(kind, &changed), Correction::None);
    assert_eq!(contender(&changed), None, "{changed:#}");

    // The Task changes: one variable leaves, one comes, the port and the image are others.
    let env = [("ENV", "test"), ("HOST", "$(NEW)"), ("NEW", "1")];
    children.spec = TaskSpec { port: 8080, image: "nginx:1".to_owned(), ..spec(&env) };
    let right = children.corrected(kind, "the Task changed").await;
    // A strategic merge put theirs first, and there it stays.
    assert_eq!(variables(&right), ["FOREIGN", "ENV", "NEW", "HOST"]);
    let pod = &right["spec"]["template"]["spec"];
    let ports = pod["containers"][0]["ports"].as_array().unwrap();
    assert!(ports.iter().any(|port| port["name"] == "admin" && port["containerPort"] == 9000), "{ports:?}");
    assert_eq!(ports.len(), 2, "{ports:?}");
    assert_eq!(pod["containers"][0]["resources"]["limits"]["cpu"], "1");
    assert_eq!(pod["containers"][1]["image"], "envoy");
    assert_eq!(pod["initContainers"][0]["name"], "early");
    assert!(pod["volumes"].as_array().unwrap().iter().any(|volume| volume["name"] == "cache"));
    assert_eq!(right["metadata"]["labels"]["team"], "blue");
    assert_eq!(
        right["spec"]["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"],
        "now"
    );

    // Written along with ours, the foreign variable still is not ours: it outlives ours.
    children.spec = spec(&[]);
    let right = children.corrected(kind, "no variables any more").await;
    assert_eq!(variables(&right), ["FOREIGN"]);
}

pub(super) async fn what_others_apply_over_ours_is_made_right(client: &Client) {
    let children = Children::created(client, "applied", usual()).await;
    let kind = ChildKind::Deployment;
    let mut theirs = pod(json!({"containers": [{
        "name": "task", "image": "evil",
        "env": [{"name": "ENV", "value": "evil"}, {"name": "FOREIGN", "value": "x"}],
        "ports": [{"name": "web", "containerPort": 80, "protocol": "TCP"}],
    }]}));
    theirs["apiVersion"] = json!("apps/v1");
    theirs["kind"] = json!("Deployment");
    let changed = children.changed(kind, "gitops", Patch::Apply(theirs.clone())).await;
    assert_eq!(contender(&changed).as_deref(), Some("gitops"));
    let right = children.corrected(kind, "applied over ours").await;
    assert_eq!(variables(&right), ["ENV", "HOST", "URL", "FOREIGN"]);
    // They can go on to apply: no entry is there twice.
    children.changed(kind, "gitops", Patch::Apply(theirs)).await;
    children.corrected(kind, "applied again").await;
}
