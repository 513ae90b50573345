//! A control plane that runs on this machine: its programs, their start, readiness and end.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::{Namespace, Node, ServiceAccount};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use crate::assets::Assets;
use crate::audit;
use crate::builder::Builder;
use crate::cluster::client_of;
use crate::credentials::{User, write_key, write_kubeconfig, write_tokens};
use crate::kubectl::Kubectl;
use crate::ports;
use crate::process::Process;
use crate::programs::{Ports, Program, Setup, file, flags};
use crate::scratch::Scratch;

/// For everything to be ready, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(90);
/// For one question about it.
const QUESTION: Duration = Duration::from_secs(2);
/// A Pod that takes its time.
const SLOW_PODS: &str = include_str!("slow-pods.yaml");
/// Between two questions.
const PAUSE: Duration = Duration::from_millis(25);

/// A control plane that runs. Dropped, it ends and its directory goes.
#[derive(Debug)]
pub(crate) struct ControlPlane {
    /// Ordered as they start.
    processes: BTreeMap<Program, Process>,
    pub(crate) assets: Assets,
    users: Vec<User>,
    setup: Setup,
    url: String,
    // After the processes that write into it.
    scratch: Scratch,
}

impl ControlPlane {
    /// Starts it and waits until it is ready.
    pub(crate) async fn start(assets: Assets, builder: Builder) -> anyhow::Result<Self> {
        let scratch = Scratch::new()?;
        let [etcd, etcd_peer, api_server] = ports::free()?;
        let mut users = builder.users;
        users.extend(Program::CONTROLLERS.iter().filter_map(|program| program.user()));
        write_tokens(&users, &scratch.path().join(file::TOKENS))?;
        write_key(&scratch.path().join(file::KEY))?;
        fs::write(scratch.path().join(file::AUDIT_POLICY), audit::POLICY)?;
        fs::write(scratch.path().join(file::SLOW_PODS), SLOW_PODS)?;
        let mut control_plane = Self {
            processes: BTreeMap::new(),
            assets,
            users,
            setup: Setup {
                ports: Ports { etcd, etcd_peer, api_server },
                audit: builder.audit,
                api_server_flags: builder.api_server_flags,
                slow_pods: builder.slow_pods,
            },
            url: format!("https://127.0.0.1:{api_server}"),
            scratch,
        };
        for program in Program::API {
            control_plane.spawn(program)?;
        }
        control_plane.wait_for_api().await?;
        control_plane.kubectl("admin")?.install_crds(&builder.crds).await?;
        if builder.whole {
            for program in Program::CONTROLLERS {
                control_plane.spawn(program)?;
            }
            control_plane.add_nodes(builder.nodes).await?;
            control_plane.wait_for_controllers(builder.nodes).await?;
        }
        Ok(control_plane)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn directory(&self) -> &Path {
        self.scratch.path()
    }

    pub(crate) fn audit_log(&self) -> anyhow::Result<PathBuf> {
        anyhow::ensure!(self.setup.audit, "this control plane was started without an audit log");
        Ok(self.directory().join(file::AUDIT_LOG))
    }

    /// The kubeconfig of this user, which was written when the API server had its certificate.
    pub(crate) fn kubeconfig(&self, user: &str) -> anyhow::Result<PathBuf> {
        anyhow::ensure!(self.users.iter().any(|known| known.name == user), "no user {user}");
        Ok(self.kubeconfig_path(user))
    }

    /// Writes a kubeconfig of whoever bears this token.
    pub(crate) fn kubeconfig_of_token(&self, name: &str, token: &str) -> anyhow::Result<PathBuf> {
        let ca = self.directory().join(file::CERTIFICATE);
        write_kubeconfig(&self.kubeconfig_path(name), &self.url, &ca, token)
    }

    /// kubectl as this user.
    pub(crate) fn kubectl(&self, user: &str) -> anyhow::Result<Kubectl> {
        Ok(Kubectl {
            program: self.assets.program("kubectl"),
            kubeconfig: self.kubeconfig(user)?,
            directory: self.directory().to_owned(),
        })
    }

    /// The process of a program, running or killed.
    pub(crate) fn process(&mut self, program: Program) -> anyhow::Result<&mut Process> {
        let process = self.processes.get_mut(&program);
        process.with_context(|| format!("this control plane has no {}", program.name()))
    }

    /// Starts a program again, on the same port and data, and waits until the API is ready.
    pub(crate) async fn start_again(&mut self, program: Program) -> anyhow::Result<()> {
        self.process(program)?.kill();
        self.spawn(program)?;
        // Without its API server etcd alone cannot show that it is ready; whoever starts both starts it first.
        if self.process(Program::ApiServer)?.ended().is_some() {
            return Ok(());
        }
        self.wait_for_api().await
    }

    /// Ends everything, and says if something of it stays.
    pub(crate) fn close(mut self) -> anyhow::Result<()> {
        self.end();
        self.scratch.remove()
    }

    fn end(&mut self) {
        // Those that write first; etcd, on which the API server stands, last.
        for process in self.processes.values_mut().rev() {
            process.kill();
        }
    }

    fn kubeconfig_path(&self, name: &str) -> PathBuf {
        self.directory().join(format!("{name}.kubeconfig"))
    }

    fn spawn(&mut self, program: Program) -> anyhow::Result<()> {
        let name = program.name();
        let kubeconfig = self.kubeconfig_path(name);
        let arguments = flags(program, &self.setup, &kubeconfig);
        let process = Process::start(name, &self.assets.program(name), &arguments, &[], self.directory())?;
        self.processes.insert(program, process);
        Ok(())
    }

    /// Waits for the API server's certificate, readiness and the namespace `default`.
    async fn wait_for_api(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        let mut client = None;
        loop {
            let seen = match &client {
                Some(client) => answer(api_is_ready(client)).await,
                None => match self.connect().await {
                    Ok(connected) => {
                        client = Some(connected);
                        continue;
                    }
                    Err(error) => Err(error),
                },
            };
            let Err(error) = seen else { return Ok(()) };
            self.check(began, &Program::API, &error)?;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Writes everybody's kubeconfig once the API server has made its certificate.
    async fn connect(&self) -> anyhow::Result<Client> {
        let certificate = self.directory().join(file::CERTIFICATE);
        let text = fs::read_to_string(&certificate).context("the API server has no certificate yet")?;
        anyhow::ensure!(
            text.trim_end().ends_with("-----END CERTIFICATE-----"),
            "its certificate is half written"
        );
        for user in &self.users {
            self.kubeconfig_of_token(&user.name, &user.token())?;
        }
        client_of(&self.kubeconfig("admin")?, false).await
    }

    async fn add_nodes(&self, count: usize) -> anyhow::Result<()> {
        let nodes: Api<Node> = Api::all(client_of(&self.kubeconfig("admin")?, true).await?);
        for number in 1..=count {
            let name = format!("node-{number}");
            let room = json!({"cpu": "1000", "memory": "4Ti", "pods": "20000"});
            let node = serde_json::from_value(json!({
                "metadata": {
                    "name": name,
                    "annotations": {"kwok.x-k8s.io/node": "fake"},
                    "labels": {
                        "kubernetes.io/hostname": name,
                        "kubernetes.io/os": "linux",
                        "kubernetes.io/arch": "amd64",
                    },
                },
                "status": {"allocatable": room, "capacity": room},
            }))?;
            nodes.create(&PostParams::default(), &node).await.with_context(|| format!("node {name}"))?;
        }
        Ok(())
    }

    /// Waits for ready nodes, and the service account that shows that the controllers work.
    async fn wait_for_controllers(&mut self, nodes: usize) -> anyhow::Result<()> {
        let client = client_of(&self.kubeconfig("admin")?, false).await?;
        let began = Instant::now();
        while let Err(error) = answer(controllers_work(&client, nodes)).await {
            self.check(began, &Program::CONTROLLERS, &error)?;
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Gives up if a program has ended or the time is over.
    fn check(&mut self, began: Instant, programs: &[Program], seen: &anyhow::Error) -> anyhow::Result<()> {
        for (program, process) in &mut self.processes {
            if let Some(status) = process.ended() {
                bail!("{} ended ({status}):\n{}", program.name(), process.log_tail());
            }
        }
        if began.elapsed() < PATIENCE {
            return Ok(());
        }
        let logs: Vec<String> = programs
            .iter()
            .filter_map(|program| self.processes.get(program))
            .map(|process| format!("{}:\n{}", process.name(), process.log_tail()))
            .collect();
        bail!("not ready after {PATIENCE:?}: {seen:#}\n{}", logs.join("\n"))
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.end();
    }
}

/// A question that hangs is answered with no.
async fn answer(question: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    tokio::time::timeout(QUESTION, question).await.context("no answer")?
}

async fn api_is_ready(client: &Client) -> anyhow::Result<()> {
    let request = http::Request::get("/readyz").body(Vec::new())?;
    client.request_text(request).await.context("readyz")?;
    Api::<Namespace>::all(client.clone()).get("default").await.context("namespace default")?;
    Ok(())
}

async fn controllers_work(client: &Client, nodes: usize) -> anyhow::Result<()> {
    let all = Api::<Node>::all(client.clone()).list(&ListParams::default()).await?;
    let ready = all.items.iter().filter(|node| is_ready(node)).count();
    anyhow::ensure!(ready >= nodes, "{ready} of {nodes} nodes are ready");
    Api::<ServiceAccount>::namespaced(client.clone(), "default").get("default").await?;
    Ok(())
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"))
}
