//! What a correction does not reach: another version, and a field that cannot be changed.

use kube::Client;
use kube::api::{DynamicObject, Patch, PostParams};
use serde_json::json;

use crate::cluster::FIELD_MANAGER;
use crate::desired::{ChildKind, Correction};

use super::{Children, usual};

pub(super) async fn what_changed_meanwhile_is_not_patched(client: &Client) {
    let children = Children::created(client, "meanwhile", usual()).await;
    for kind in ChildKind::ALL {
        let label = json!({"metadata": {"labels": {"app.kubernetes.io/name": "evil"}}});
        let live = children.changed(kind, "someone", Patch::Merge(label)).await;
        let Correction::Patch(patch) = children.correction(kind, &live) else {
            panic!("no patch for {live:#}");
        };
        // Made anew under the same name, both are others.
        for (code, stale) in
            [(409, vec!["resourceVersion"]), (409, vec!["uid", "resourceVersion"]), (422, vec!["uid"])]
        {
            let mut patch = patch.clone();
            for precondition in &stale {
                patch["metadata"][precondition] = json!("1");
            }
            match children.patched(kind, FIELD_MANAGER, &Patch::Merge(patch)).await {
                Err(kube::Error::Api(status)) => {
                    assert_eq!(status.code, code, "{kind:?}, {stale:?}: {status}")
                }
                other => panic!("{kind:?}, {stale:?}: {other:?}"),
            }
        }
        children.corrected(kind, "the newest version").await;
    }
}

pub(super) async fn another_selector_needs_a_new_deployment(client: &Client) {
    let children = Children::created(client, "selector", usual()).await;
    let kind = ChildKind::Deployment;
    for wrong in [
        json!({"matchLabels": {"app.kubernetes.io/instance": "selector"}}),
        json!({
            "matchLabels": children.wanted(kind)["spec"]["selector"]["matchLabels"],
            "matchExpressions": [{"key": "app.kubernetes.io/name", "operator": "Exists"}],
        }),
    ] {
        children.api(kind).delete(&children.name(kind), &Default::default()).await.unwrap();
        let mut other = children.wanted(kind);
        other["spec"]["selector"] = wrong;
        let other: DynamicObject = serde_json::from_value(other).unwrap();
        children.api(kind).create(&PostParams::default(), &other).await.unwrap();
        let live = children.live(kind).await;
        assert!(!children.covers(kind, &live), "{live:#}");
        assert_eq!(children.correction(kind, &live), Correction::Recreate);
    }
}
