//! A fresh control plane on which one operator is measured.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;
use test_cluster::audit::{Mark, Request, summary};
use test_cluster::{Cluster, Program};

use crate::load::Load;
use crate::results::Run;
use crate::subject::{Running, Subject};
use crate::usage::{cpu_seconds, memory};

/// Who the operator is to the API server.
pub(crate) const USER: &str = "operator";
/// An operator that sends nothing for this long has settled: longer than any wait before a status.
const QUIET: Duration = Duration::from_secs(7);
/// For one Task to be worked on.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest wait for an operator to settle.
const SETTLE: Duration = Duration::from_secs(120);

/// A control plane, and what was asked of it.
pub(crate) struct Bed {
    /// The control plane.
    pub(crate) cluster: Cluster,
    /// Who makes the Tasks.
    pub(crate) admin: Client,
    /// The Tasks to be.
    pub(crate) load: Load,
    servers: [u32; 2],
}

/// What had been used when something began.
pub(crate) struct Since {
    began: Instant,
    operator: Option<u32>,
    operator_cpu: f64,
    servers_cpu: f64,
    mark: Mark,
}

impl Since {
    /// The operator that was started meanwhile; all that it used counts.
    pub(crate) fn follow(&mut self, operator: &Running) {
        self.operator = Some(operator.id());
    }
}

impl Bed {
    /// Starts it, with the definition in `crd` and the namespaces for the Tasks.
    ///
    /// # Errors
    /// If it does not start.
    pub(crate) async fn start(load: Load, whole: bool, crd: &Path) -> anyhow::Result<Self> {
        let builder = Cluster::builder().crds(crd);
        let builder = if whole { builder.whole() } else { builder };
        let mut cluster = builder.start().await.context("the control plane")?;
        let servers = [cluster.id(Program::Etcd)?, cluster.id(Program::ApiServer)?];
        let admin = cluster.client("admin").await?;
        let api: Api<Namespace> = Api::all(admin.clone());
        for name in load.namespaces() {
            let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
            api.create(&PostParams::default(), &namespace).await?;
        }
        Ok(Self { cluster, admin, load, servers })
    }

    /// Starts the operator, if there is one, and waits until it is ready.
    ///
    /// # Errors
    /// If it does not get ready.
    pub(crate) async fn operator(&self, subject: &Subject) -> anyhow::Result<Option<Running>> {
        if subject.program.is_none() {
            return Ok(None);
        }
        let mut running = subject.start(&self.cluster.kubeconfig(USER)?, &[], None)?;
        running.ready().await?;
        Ok(Some(running))
    }

    /// From here on everything is counted.
    ///
    /// # Errors
    /// If there is no audit log.
    pub(crate) fn since(&self, operator: Option<&Running>) -> anyhow::Result<Since> {
        let operator = operator.map(Running::id);
        Ok(Since {
            began: Instant::now(),
            operator,
            operator_cpu: operator.map_or(0.0, cpu_seconds),
            servers_cpu: self.servers_cpu(),
            mark: self.cluster.audit_mark()?,
        })
    }

    /// Waits until this Task has a Deployment: the operator works.
    ///
    /// # Errors
    /// If it has none after a minute, or the operator has ended.
    pub(crate) async fn until_worked_on(
        &self,
        namespace: &str,
        task: &str,
        operator: &mut Running,
    ) -> anyhow::Result<()> {
        let deployments: Api<Deployment> = Api::namespaced(self.admin.clone(), namespace);
        let began = Instant::now();
        while deployments.get_metadata_opt(task).await?.is_none() {
            operator.check()?;
            ensure!(began.elapsed() < PATIENCE, "Task {task} has no Deployment after {PATIENCE:?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }

    fn servers_cpu(&self) -> f64 {
        self.servers.iter().map(|&id| cpu_seconds(id)).sum()
    }

    /// Waits until the operator has sent nothing but its part in an election for some seconds.
    ///
    /// # Errors
    /// If the audit log cannot be read.
    pub(crate) async fn settle(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        let mut last = Instant::now();
        let mut mark = self.cluster.audit_mark()?;
        while last.elapsed() < QUIET && began.elapsed() < SETTLE {
            tokio::time::sleep(Duration::from_millis(250)).await;
            let next = self.cluster.audit_mark()?;
            if mark.requests_of(USER)?.iter().any(is_work) {
                last = Instant::now();
            }
            mark = next;
        }
        Ok(())
    }

    /// Writes down what was used since then, each figure under the name of the scenario, per Task where that says more.
    ///
    /// # Errors
    /// If the audit log cannot be read.
    pub(crate) fn note(&self, scenario: &str, since: &Since, run: &mut Run) -> anyhow::Result<()> {
        let tasks = self.load.tasks as f64;
        let requests: Vec<Request> = since.mark.requests_of(USER)?.into_iter().filter(is_work).collect();
        let writes = requests.iter().filter(|request| request.is_write()).count();
        if let Some(id) = since.operator {
            let memory = memory(id);
            run.set(scenario, "cpu_ms_per_task", (cpu_seconds(id) - since.operator_cpu) * 1000.0 / tasks);
            run.set(scenario, "resident_mib", memory.resident / 1024.0);
            run.set(scenario, "peak_mib", memory.peak / 1024.0);
        }
        run.set(
            scenario,
            "servers_cpu_ms_per_task",
            (self.servers_cpu() - since.servers_cpu) * 1000.0 / tasks,
        );
        run.set(scenario, "requests_per_task", requests.len() as f64 / tasks);
        run.set(scenario, "writes", writes as f64);
        run.set(scenario, "lasted_s", since.began.elapsed().as_secs_f64());
        run.requests.insert(scenario.to_owned(), summary(&requests));
        Ok(())
    }
}

/// Watches are opened whatever there is to do, and the lease is renewed.
fn is_work(request: &Request) -> bool {
    request.verb != "watch" && request.resource() != "leases"
}
