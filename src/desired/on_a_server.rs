//! What a real API server makes of the children and of their corrections: nothing
//! else runs there, so what is seen is its defaulting, its validation and its
//! managedFields.

use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use test_cluster::Cluster;

use crate::api::v1::TaskSpec;
use crate::api::{TaskKey, Uid};
use crate::cluster::FIELD_MANAGER;

use super::shape::{ConfigMapShape, DeploymentShape, ServiceShape};
use super::{ChildKind, Correction, Covers, body, contender, correction, name_of};

const UID: &str = "0b7d4f0a-6a5d-4a35-b7b7-1cf7e9f1d5ac";

/// One Task's children on a server.
struct Children {
    client: Client,
    key: TaskKey,
    spec: TaskSpec,
}

impl Children {
    async fn created(client: &Client, name: &str, spec: TaskSpec) -> Self {
        let children = Self { client: client.clone(), key: TaskKey::new("default", name), spec };
        for kind in ChildKind::ALL {
            children.create(kind).await;
        }
        children
    }

    async fn create(&self, kind: ChildKind) {
        let object: DynamicObject = serde_json::from_value(self.wanted(kind)).unwrap();
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        self.api(kind).create(&params, &object).await.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
    }

    fn api(&self, kind: ChildKind) -> Api<DynamicObject> {
        let (group, version) = kind.api_version().split_once('/').unwrap_or(("", kind.api_version()));
        let resource = ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk(group, version, kind.as_str()),
            kind.plural(),
        );
        Api::namespaced_with(self.client.clone(), &self.key.namespace, &resource)
    }

    fn name(&self, kind: ChildKind) -> String {
        name_of(kind, &self.key.name).into_owned()
    }

    fn wanted(&self, kind: ChildKind) -> Value {
        body(kind, &self.key, &Uid::from(UID), &self.spec)
    }

    async fn live(&self, kind: ChildKind) -> Value {
        serde_json::to_value(self.api(kind).get(&self.name(kind)).await.unwrap()).unwrap()
    }

    fn covers(&self, kind: ChildKind, live: &Value) -> bool {
        fn read<T: DeserializeOwned>(value: &Value) -> T {
            serde_json::from_str(&value.to_string()).unwrap()
        }
        fn one<T: Covers + DeserializeOwned>(live: &Value, wanted: &Value) -> bool {
            read::<T>(live).covers(&read(wanted))
        }
        let wanted = self.wanted(kind);
        match kind {
            ChildKind::ConfigMap => one::<ConfigMapShape>(live, &wanted),
            ChildKind::Service => one::<ServiceShape>(live, &wanted),
            ChildKind::Deployment => one::<DeploymentShape>(live, &wanted),
        }
    }

    fn correction(&self, kind: ChildKind, live: &Value) -> Correction {
        correction(live, &self.wanted(kind), kind)
    }

    async fn patched(&self, kind: ChildKind, manager: &str, patch: &Patch<Value>) -> kube::Result<Value> {
        let params = PatchParams {
            field_manager: Some(manager.to_owned()),
            force: matches!(patch, Patch::Apply(_)),
            ..PatchParams::default()
        };
        let patched = self.api(kind).patch(&self.name(kind), &params, patch).await?;
        Ok(serde_json::to_value(patched).unwrap())
    }

    /// As somebody else changes it.
    async fn changed(&self, kind: ChildKind, manager: &str, patch: Patch<Value>) -> Value {
        let changed = self.patched(kind, manager, &patch).await;
        changed.unwrap_or_else(|error| panic!("{patch:?}: {error}"))
    }

    /// Corrects it, and sees to it that it is right then.
    async fn corrected(&self, kind: ChildKind, what: &str) -> Value {
        let live = self.live(kind).await;
        let Correction::Patch(patch) = self.correction(kind, &live) else {
            panic!("{what}: no patch for {live:#}");
        };
        let patched = self.patched(kind, FIELD_MANAGER, &Patch::Merge(patch.clone())).await;
        let patched = patched.unwrap_or_else(|error| panic!("{what}: {error}, by {patch:#}"));
        assert!(self.covers(kind, &patched), "{what}: {patch:#} left {patched:#}");
        assert_eq!(self.correction(kind, &patched), Correction::None, "{what}");
        patched
    }
}

fn spec(env: &[(&str, &str)]) -> TaskSpec {
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    TaskSpec { replicas: 2, image: "nginx:alpine".to_owned(), port: 80, env }
}

fn usual() -> TaskSpec {
    spec(&[("ENV", "prod"), ("URL", "http://$(HOST)/"), ("HOST", "db")])
}

/// A patch of fields of the Task's container.
fn container(fields: Value) -> Value {
    let mut container = json!({"name": "task"});
    container.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    pod(json!({"containers": [container]}))
}

fn pod(fields: Value) -> Value {
    json!({"spec": {"template": {"spec": fields}}})
}

fn variables(live: &Value) -> Vec<&str> {
    let env = &live["spec"]["template"]["spec"]["containers"][0]["env"];
    env.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect()
}

async fn what_is_created_needs_no_correction(client: &Client) {
    let odd: String = ('\u{1}'..'\u{180}').chain("\u{2028}\u{feff}\u{ffff}🦀\"\\".chars()).collect();
    let many = (0..1000).map(|number| (format!("V{number:04}"), format!("$(V{:04}) {number}", number + 1)));
    let cases = [
        ("a", spec(&[])),
        ("usual", usual()),
        ("odd", spec(&[("ODD", &odd), ("a b<>{}:\"\\'#%,;", "x"), ("EMPTY", "")])),
        ("many", TaskSpec { env: many.collect(), ..spec(&[]) }),
        ("none", TaskSpec { replicas: 0, port: 65535, ..spec(&[]) }),
        ("long-name-of-sixty-three-characters-that-is-as-long-as-may-be-x", usual()),
    ];
    for (name, spec) in cases {
        let children = Children::created(client, name, spec).await;
        for kind in ChildKind::ALL {
            let live = children.live(kind).await;
            assert!(children.covers(kind, &live), "{name}: {live:#}");
            assert_eq!(children.correction(kind, &live), Correction::None, "{name}");
            assert_eq!(contender(&live), None);
        }
    }
}

async fn what_somebody_changed_is_made_right(client: &Client) {
    use ChildKind::{ConfigMap, Deployment, Service};
    let wrong_label = json!({"metadata": {"labels": {"app.kubernetes.io/part-of": "evil"}}});
    let volume = |fields: Value| pod(json!({"volumes": [fields]}));
    let port = |fields: Value| container(json!({"ports": [{"$patch": "replace"}, fields]}));
    let service = |ports: Value| {
        let mut list = vec![json!({"$patch": "replace"})];
        list.extend(ports.as_array().unwrap().iter().cloned());
        json!({"spec": {"ports": list}})
    };
    let cases = [
        ("replicas", Deployment, json!({"spec": {"replicas": 5}})),
        ("image", Deployment, container(json!({"image": "evil"}))),
        ("value", Deployment, container(json!({"env": [{"name": "ENV", "value": "evil"}]}))),
        (
            "value from elsewhere",
            Deployment,
            container(
                json!({"env": [{"name": "ENV", "value": null, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}),
            ),
        ),
        ("number of the port", Deployment, port(json!({"name": "http", "containerPort": 81}))),
        ("name of the port", Deployment, port(json!({"name": "web", "containerPort": 80}))),
        (
            "protocol of the port",
            Deployment,
            port(json!({"name": "http", "containerPort": 80, "protocol": "UDP"})),
        ),
        (
            "the other's number",
            Deployment,
            container(
                json!({"ports": [{"$patch": "replace"}, {"name": "http", "containerPort": 81}, {"name": "web", "containerPort": 80}]}),
            ),
        ),
        (
            "another mount",
            Deployment,
            pod(json!({
                "containers": [{"name": "task", "volumeMounts": [{"mountPath": "/etc/task", "name": "other", "subPath": "x"}]}],
                "volumes": [{"name": "other", "emptyDir": {}}],
            })),
        ),
        (
            "volume of another kind",
            Deployment,
            volume(json!({"name": "task-config", "$retainKeys": ["name", "emptyDir"], "emptyDir": {}})),
        ),
        (
            "volume of another map",
            Deployment,
            volume(
                json!({"name": "task-config", "configMap": {"name": "other", "items": [{"key": "x", "path": "x"}]}}),
            ),
        ),
        ("token", Deployment, pod(json!({"automountServiceAccountToken": true}))),
        (
            "seccomp by file",
            Deployment,
            pod(
                json!({"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "x.json"}}}),
            ),
        ),
        (
            "seccomp off",
            Deployment,
            pod(json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}})),
        ),
        ("label", Deployment, wrong_label.clone()),
        (
            "label of the Pods",
            Deployment,
            json!({"spec": {"template": {"metadata": {"labels": {"app.kubernetes.io/part-of": "evil"}}}}}),
        ),
        ("names", Deployment, json!({"metadata": {"annotations": {"task.example.io/env-names": "x"}}})),
        (
            "owner",
            Deployment,
            json!({"metadata": {"ownerReferences": [{"uid": UID, "blockOwnerDeletion": false}]}}),
        ),
        ("label", Service, wrong_label.clone()),
        ("selector", Service, json!({"spec": {"selector": {"app.kubernetes.io/name": "evil"}}})),
        ("more selector", Service, json!({"spec": {"selector": {"more": "evil"}}})),
        ("target", Service, json!({"spec": {"ports": [{"port": 80, "targetPort": 1}]}})),
        ("number", Service, service(json!([{"name": "http", "port": 81}]))),
        ("name", Service, service(json!([{"name": "web", "port": 80}]))),
        (
            "the other's number",
            Service,
            service(json!([{"name": "http", "port": 81}, {"name": "web", "port": 80}])),
        ),
        ("label", ConfigMap, wrong_label),
        ("text", ConfigMap, json!({"data": {"app.conf": "port: 1"}})),
    ];
    for (number, (what, kind, patch)) in cases.into_iter().enumerate() {
        let children = Children::created(client, &format!("changed-{number}"), usual()).await;
        let changed = children.changed(kind, "someone", Patch::Strategic(patch)).await;
        assert!(!children.covers(kind, &changed), "{kind:?}, {what}: not seen in {changed:#}");
        assert_eq!(contender(&changed).as_deref(), Some("someone"), "{kind:?}, {what}: {changed:#}");
        let right = children.corrected(kind, &format!("{kind:?}, {what}")).await;
        assert_eq!(contender(&right), None, "{kind:?}, {what}: {right:#}");
    }
}

async fn what_somebody_removed_comes_back(client: &Client) {
    use ChildKind::{ConfigMap, Deployment, Service};
    let none = Value::Null;
    let cases = [
        ("env", Deployment, container(json!({"env": [{"$patch": "replace"}]}))),
        ("a variable", Deployment, container(json!({"env": [{"$patch": "delete", "name": "HOST"}]}))),
        ("ports", Deployment, container(json!({"ports": [{"$patch": "replace"}]}))),
        (
            "read-only",
            Deployment,
            container(json!({"volumeMounts": [{"mountPath": "/etc/task", "readOnly": false}]})),
        ),
        ("mounts", Deployment, container(json!({"volumeMounts": [{"$patch": "replace"}]}))),
        (
            "volumes",
            Deployment,
            pod(json!({
                "containers": [{"name": "task", "volumeMounts": [{"$patch": "replace"}]}],
                "volumes": [{"$patch": "replace"}],
            })),
        ),
        ("name of the port", Deployment, container(json!({"ports": [{"containerPort": 80, "name": none}]}))),
        (
            "our container",
            Deployment,
            pod(json!({"containers": [{"$patch": "replace"}, {"name": "other", "image": "x"}]})),
        ),
        ("security", Deployment, pod(json!({"securityContext": none}))),
        ("token", Deployment, pod(json!({"automountServiceAccountToken": none}))),
        ("labels", Deployment, json!({"metadata": {"labels": none, "annotations": none}})),
        ("ports", Service, json!({"spec": {"clusterIP": "None", "clusterIPs": ["None"], "ports": none}})),
        ("name", Service, json!({"spec": {"ports": [{"$patch": "replace"}, {"port": 80}]}})),
        ("name and number", Service, json!({"spec": {"ports": [{"$patch": "replace"}, {"port": 81}]}})),
        ("selector", Service, json!({"spec": {"selector": none}})),
        ("data", ConfigMap, json!({"data": none})),
        ("labels", ConfigMap, json!({"metadata": {"labels": none}})),
    ];
    for (number, (what, kind, patch)) in cases.into_iter().enumerate() {
        let children = Children::created(client, &format!("removed-{number}"), usual()).await;
        if what == "ports" && kind == Service {
            // An IP cannot be given up; a Service without one may have no ports.
            children.api(kind).delete(&children.name(kind), &Default::default()).await.unwrap();
            let mut headless = children.wanted(kind);
            headless["spec"]["clusterIP"] = json!("None");
            let headless: DynamicObject = serde_json::from_value(headless).unwrap();
            children.api(kind).create(&PostParams::default(), &headless).await.unwrap();
        }
        let changed = children.changed(kind, "someone", Patch::Strategic(patch)).await;
        assert!(!children.covers(kind, &changed), "{kind:?}, {what}: not seen in {changed:#}");
        children.corrected(kind, &format!("{kind:?}, {what}")).await;
    }
}

async fn what_others_added_stays_and_stays_theirs(client: &Client) {
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

async fn what_others_apply_over_ours_is_made_right(client: &Client) {
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

async fn what_changed_meanwhile_is_not_patched(client: &Client) {
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

async fn another_selector_needs_a_new_deployment(client: &Client) {
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

/// All on one server: its start takes longer than they do.
#[tokio::test]
async fn a_real_server_takes_the_children_and_their_corrections() {
    let cluster = Cluster::builder().without_audit().start().await.unwrap();
    let client = cluster.client("admin").await.unwrap();
    what_is_created_needs_no_correction(&client).await;
    what_somebody_changed_is_made_right(&client).await;
    what_somebody_removed_comes_back(&client).await;
    what_others_added_stays_and_stays_theirs(&client).await;
    what_others_apply_over_ours_is_made_right(&client).await;
    what_changed_meanwhile_is_not_patched(&client).await;
    another_selector_needs_a_new_deployment(&client).await;
}
