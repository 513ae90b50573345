//! What the operator survives. Each test has a control plane of its own, since it breaks it.

#![allow(clippy::unwrap_used, reason = "what fails here is a test that fails")]

mod support;

use std::time::Duration;

use kube::api::DeleteParams;
use serde_json::json;
use support::{Operator, SOON, Space, condition, crds};
use test_cluster::audit::summary;
use test_cluster::{Cluster, Program, User, eventually};

/// For many Tasks at once, or after an outage.
const PATIENCE: Duration = Duration::from_secs(120);

async fn whole() -> Cluster {
    Cluster::builder().whole().crds(&crds()).start().await.unwrap()
}

async fn space<'a>(cluster: &'a Cluster, name: &str) -> Space<'a> {
    Space::new(cluster, cluster.client("admin").await.unwrap(), name).await
}

async fn operator(cluster: &Cluster) -> Operator {
    Operator::started(&cluster.kubeconfig("operator").unwrap(), &[]).await
}

/// Creates Tasks `PREFIX-0` to `PREFIX-(count-1)` from `clients` clients at once.
async fn create(space: &Space<'_>, prefix: &str, count: usize, clients: usize) {
    let numbers: Vec<usize> = (0..count).collect();
    let each = numbers.chunks(count.div_ceil(clients)).map(async |numbers| {
        for number in numbers {
            space
                .task(&format!("{prefix}-{number}"), json!({"replicas": 1, "env": {"N": number.to_string()}}))
                .await;
        }
    });
    futures::future::join_all(each).await;
}

/// Waits until all Tasks of the namespace are Succeeded, `count` of them.
async fn all_succeed(space: &Space<'_>, count: usize) {
    eventually(PATIENCE, &format!("{count} Tasks are Succeeded"), async || {
        let tasks =
            space.api("Task").list(&Default::default()).await.map_err(|error| error.to_string())?.items;
        let right = tasks.iter().filter(|task| {
            task.data["status"]["phase"] == "Succeeded"
                && task.data["status"]["observedGeneration"] == json!(task.metadata.generation)
        });
        let right = right.count();
        if right == count && tasks.len() == count {
            Ok(())
        } else {
            Err(format!("{right} of {}", tasks.len()))
        }
    })
    .await;
}

/// The versions of all children, to see that nothing was written.
async fn versions(space: &Space<'_>) -> Vec<(String, Option<String>)> {
    let mut all = Vec::new();
    for kind in ["Task", "Deployment", "Service", "ConfigMap"] {
        for object in space.api(kind).list(&Default::default()).await.unwrap() {
            all.push((format!("{kind} {}", object.metadata.name.unwrap()), object.metadata.resource_version));
        }
    }
    all
}

#[tokio::test]
async fn a_hundred_tasks_succeed_then_it_is_quiet_and_a_restart_writes_nothing() {
    let cluster = whole().await;
    let mut operator = operator(&cluster).await;
    let space = space(&cluster, "many").await;
    let from_the_start = cluster.audit_mark().unwrap();
    create(&space, "web", 100, 20).await;
    all_succeed(&space, 100).await;
    // Events are written behind the passes: quiet begins when the last one is.
    let count = std::cell::Cell::new(0);
    eventually(PATIENCE, "no more requests for five seconds", async || {
        let now = from_the_start.requests_of("operator").unwrap().len();
        if count.replace(now) == now {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        Err(now.to_string())
    })
    .await;
    let requests = from_the_start.requests_of("operator").unwrap();
    let per_task = requests.iter().filter(|request| request.verb != "watch").count() as f64 / 100.0;
    println!("{per_task} requests per Task from create to Ready: {:?}", summary(&requests));
    assert!(per_task <= 8.0, "{per_task} requests per Task: {:?}", summary(&requests));

    let quiet = cluster.audit_mark().unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let requests = quiet.requests_of("operator").unwrap();
    assert!(
        requests.iter().all(|request| request.verb == "watch"),
        "in a quiet minute: {:?}",
        summary(&requests)
    );

    let before = versions(&space).await;
    operator.signal("TERM");
    assert!(operator.ended(SOON).await.success());
    let restart = cluster.audit_mark().unwrap();
    let again = self::operator(&cluster).await;
    eventually(SOON, "100 supervisors", async || {
        let (_, page) = again.get("metrics", "/metrics").await;
        if page.contains("task_operator_supervisors 100") { Ok(()) } else { Err(page) }
    })
    .await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let requests = restart.requests_of("operator").unwrap();
    let reads = ["list", "watch"];
    assert!(
        requests.iter().all(|request| reads.contains(&request.verb.as_str())),
        "{:?}",
        summary(&requests)
    );
    assert_eq!(versions(&space).await, before);
    operator.assert_healthy();
    again.assert_healthy();
}

#[tokio::test]
async fn the_api_server_may_be_gone_for_twenty_seconds_under_load() {
    let mut cluster = whole().await;
    let operator = operator(&cluster).await;
    {
        let space = space(&cluster, "outage").await;
        create(&space, "before", 20, 4).await;
    }
    // Passes, events and rollouts of the twenty are under way now.
    cluster.kill(Program::ApiServer).unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    let lines = operator.log().lines().filter(|line| line.contains(" WARN ")).count();
    assert!(lines < 400, "{lines} warnings in an outage of 20 s");
    cluster.start(Program::ApiServer).await.unwrap();
    let space = Space {
        cluster: &cluster,
        client: cluster.client("admin").await.unwrap(),
        namespace: "outage".to_owned(),
    };
    create(&space, "after", 10, 2).await;
    all_succeed(&space, 30).await;
    let (code, page) = operator.get("probes", "/readyz?verbose").await;
    assert_eq!(code, 200, "{page}");
}

#[tokio::test]
async fn the_crd_may_be_deleted_and_installed_again_under_load() {
    let cluster = whole().await;
    let operator = operator(&cluster).await;
    let space = space(&cluster, "crd").await;
    create(&space, "old", 20, 4).await;
    let crd = crds().join("tasks.task.example.io.yaml");
    let (ok, said) = space.kubectl(&["delete", "crd", "tasks.task.example.io", "--timeout=60s"]).await;
    assert!(ok, "{said}");
    let (ok, said) = space.kubectl(&["apply", "-f", crd.to_str().unwrap()]).await;
    assert!(ok, "{said}");
    let (ok, said) = space
        .kubectl(&["wait", "--for=condition=Established", "--timeout=30s", "crd/tasks.task.example.io"])
        .await;
    assert!(ok, "{said}");
    eventually(SOON, "Tasks are taken again", async || {
        let (ok, said) = space.apply(&support::task("new-0", json!({"replicas": 1})).to_string()).await;
        if ok { Ok(()) } else { Err(said) }
    })
    .await;
    for number in 1..10 {
        space.task(&format!("new-{number}"), json!({"replicas": 1})).await;
    }
    all_succeed(&space, 10).await;
    operator.assert_healthy();
}

#[tokio::test]
async fn a_stop_under_load_is_clean_and_the_next_start_finishes_what_is_left() {
    let cluster = whole().await;
    let space = space(&cluster, "stop").await;
    let mut operator = operator(&cluster).await;
    create(&space, "web", 60, 20).await;
    // In the middle of it: some Tasks have children, not all have all of them.
    operator.signal("TERM");
    let status = operator.ended(Duration::from_secs(30)).await;
    assert!(status.success(), "{status}\n{}", operator.log());
    assert!(operator.log().contains("stopped"), "{}", operator.log());
    let again = self::operator(&cluster).await;
    all_succeed(&space, 60).await;
    for kind in ["Deployment", "Service"] {
        assert_eq!(space.api(kind).list(&Default::default()).await.unwrap().items.len(), 60, "{kind}");
    }
    again.assert_healthy();
}

#[tokio::test]
async fn a_crash_under_load_is_made_good_by_the_next_start() {
    let cluster = whole().await;
    let space = space(&cluster, "crash").await;
    let mut operator = operator(&cluster).await;
    create(&space, "web", 40, 10).await;
    operator.kill();
    // While nobody looks: one changes, one goes, a child is broken, another is made by hand.
    space.patch("Task", "web-1", json!({"spec": {"env": {"N": null, "M": "1"}}})).await;
    let deletion = DeleteParams::background();
    space.api("Task").delete("web-2", &deletion).await.unwrap();
    let again = self::operator(&cluster).await;
    all_succeed(&space, 39).await;
    let deployment = space.get("Deployment", "web-1").await.unwrap();
    assert_eq!(support::container(&deployment)["env"], json!([{"name": "M", "value": "1"}]));
    space.until_gone("Deployment", "web-2").await;
    again.assert_healthy();
}

#[tokio::test]
async fn a_deployment_of_another_selector_is_made_anew() {
    let cluster = whole().await;
    let space = space(&cluster, "selector").await;
    let mut operator = operator(&cluster).await;
    space.task("web", json!({})).await;
    let task = space.until_phase("web", "Succeeded").await;
    operator.kill();
    let mut other = space.get("Deployment", "web").await.unwrap();
    for field in ["resourceVersion", "uid", "managedFields", "creationTimestamp", "generation"] {
        other["metadata"].as_object_mut().unwrap().remove(field);
    }
    other["spec"]["selector"]["matchLabels"]["extra"] = json!("x");
    other["spec"]["template"]["metadata"]["labels"]["extra"] = json!("x");
    let text = other.to_string();
    let (ok, said) = support::kubectl(&cluster, &["replace", "--force", "-f", "-"], Some(&text)).await;
    assert!(ok, "{said}");
    let again = self::operator(&cluster).await;
    let repaired = space
        .until(SOON, "Deployment", "web", "the right selector", |deployment| {
            deployment["spec"]["selector"]["matchLabels"]["extra"].is_null()
        })
        .await;
    assert_eq!(repaired["metadata"]["ownerReferences"][0]["uid"], task["metadata"]["uid"]);
    space.until_phase("web", "Succeeded").await;
    again.assert_healthy();
}

#[tokio::test]
async fn a_missing_permission_is_named_and_other_tasks_go_on() {
    let cluster = Cluster::builder().whole().crds(&crds()).user(User::new("limited")).start().await.unwrap();
    let space = space(&cluster, "limited").await;
    let rules = json!([
        {"apiGroups": ["task.example.io"], "resources": ["tasks", "tasks/status", "tasks/finalizers"], "verbs": ["*"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list", "watch", "patch"]},
        {"apiGroups": [""], "resources": ["services", "configmaps", "pods"], "verbs": ["*"]},
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["*"]},
    ]);
    grant(&space, rules).await;
    let operator = Operator::started(&cluster.kubeconfig("limited").unwrap(), &[]).await;
    space.task("web", json!({})).await;
    let failed = space.until_phase("web", "Failed").await;
    assert_eq!(condition(&failed, "Ready")["reason"], "Forbidden");
    let message = condition(&failed, "Ready")["message"].as_str().unwrap();
    assert!(message.contains("permission to create deployments.apps"), "{message}");
    space.until_event("web", "ReconcileFailed", "permission to create deployments.apps").await;
    operator.wait_for_log("permission to create deployments.apps").await;
    let more = json!([{"op": "add", "path": "/rules/1/verbs/-", "value": "create"}]).to_string();
    let (ok, said) = space.kubectl(&["patch", "clusterrole", "limited", "--type=json", "-p", &more]).await;
    assert!(ok, "{said}");
    space.until_phase("web", "Succeeded").await;
}

#[tokio::test]
async fn a_kind_that_may_not_be_listed_is_said_once_and_asked_for_slowly() {
    let builder = Cluster::builder().crds(&crds()).user(User::new("limited"));
    let cluster = builder.start().await.unwrap();
    let space = space(&cluster, "unlisted").await;
    let rules = json!([
        {"apiGroups": ["task.example.io"], "resources": ["tasks"], "verbs": ["*"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["services"], "verbs": ["*"]},
    ]);
    grant(&space, rules).await;
    let mark = cluster.audit_mark().unwrap();
    let operator = Operator::start(&cluster.kubeconfig("limited").unwrap(), &[]);
    operator.wait_for_log("cannot list resource").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let requests = mark.requests_of("limited").unwrap();
    let asked = requests.iter().filter(|request| request.resource() == "configmaps").count();
    assert!((2..=12).contains(&asked), "asked {asked} times in ten seconds");
    let said: Vec<String> =
        operator.log().lines().filter(|l| l.contains("configmaps")).map(str::to_owned).collect();
    assert_eq!(said.len(), 1, "{said:#?}");
    let (_, page) = operator.get("probes", "/readyz?verbose").await;
    assert!(page.contains("[-]watches-synced"), "{page}");

    grant(&space, json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])).await;
    operator.wait_for_log("all watches are synced").await;
}

/// Gives the user `limited` a ClusterRole of these rules.
async fn grant(space: &Space<'_>, rules: serde_json::Value) {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "limited"},
        "rules": rules,
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "limited"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "limited"},
        "subjects": [{"kind": "User", "name": "limited", "apiGroup": "rbac.authorization.k8s.io"}],
    });
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [role, binding]});
    let (ok, said) = space.apply(&list.to_string()).await;
    assert!(ok, "{said}");
}
