//! The control plane.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use k8s_openapi::api::core::v1::{Namespace, Node, ServiceAccount};
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::json;
use tempfile::TempDir;

use crate::assets::Assets;
use crate::audit;
use crate::credentials::{User, write_key, write_kubeconfig, write_tokens};
use crate::process::Process;

/// For each program to be ready.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a control plane is to be like.
#[derive(Clone, Debug)]
pub struct Builder {
    whole: bool,
    nodes: usize,
    users: Vec<User>,
    api_server_flags: Vec<String>,
    crds: Vec<PathBuf>,
}

impl Builder {
    /// With kube-controller-manager, kube-scheduler and kwok too.
    #[must_use]
    pub fn whole(mut self) -> Self {
        self.whole = true;
        self
    }

    /// With this many fake nodes, of a whole control plane.
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// With one more user.
    #[must_use]
    pub fn user(mut self, user: User) -> Self {
        self.users.push(user);
        self
    }

    /// With one more flag for kube-apiserver.
    #[must_use]
    pub fn api_server_flag(mut self, flag: &str) -> Self {
        self.api_server_flags.push(flag.to_owned());
        self
    }

    /// With the definitions in this file or directory, before the controllers
    /// start: the garbage collector looks for new kinds every 30 s only.
    #[must_use]
    pub fn crds(mut self, path: &Path) -> Self {
        self.crds.push(path.to_owned());
        self
    }

    /// Starts it and waits until it is ready: seconds, once its programs are built.
    ///
    /// # Errors
    /// If a program does not start, with the end of its log.
    pub async fn start(self) -> anyhow::Result<Cluster> {
        let assets = tokio::task::spawn_blocking(Assets::find).await??;
        // A free port can be lost to somebody else before it is used.
        let mut attempts = 0;
        loop {
            attempts += 1;
            match Cluster::start(assets.clone(), self.clone()).await {
                Err(error) if attempts < 3 && format!("{error:#}").contains("address already in use") => {}
                result => return result,
            }
        }
    }
}

/// A control plane that runs. Dropped, it ends and its directory goes.
#[derive(Debug)]
pub struct Cluster {
    // In the order in which they have to end.
    kwok: Option<Process>,
    scheduler: Option<Process>,
    controller_manager: Option<Process>,
    api_server: Process,
    etcd: Process,
    assets: Assets,
    builder: Builder,
    ports: Ports,
    directory: TempDir,
}

#[derive(Clone, Copy, Debug)]
struct Ports {
    etcd: u16,
    etcd_peer: u16,
    api_server: u16,
}

impl Cluster {
    /// The API server and etcd alone, with the users `admin` and `operator`, who may do anything.
    pub fn builder() -> Builder {
        Builder {
            whole: false,
            nodes: 3,
            users: vec![User::admin("admin"), User::admin("operator")],
            api_server_flags: Vec::new(),
            crds: Vec::new(),
        }
    }

    async fn start(assets: Assets, builder: Builder) -> anyhow::Result<Self> {
        let directory = TempDir::with_prefix("task-operator-cluster-")?;
        let ports = Ports { etcd: free_port()?, etcd_peer: free_port()?, api_server: free_port()? };
        let root = directory.path();
        write_tokens(&builder.users, &root.join("tokens.csv"))?;
        write_key(&root.join("service-accounts.key"))?;
        fs::write(root.join("audit-policy.yaml"), audit::POLICY)?;
        let etcd = start_etcd(&assets, ports, root)?;
        let api_server = start_api_server(&assets, &builder, ports, root)?;
        let mut cluster = Self {
            kwok: None,
            scheduler: None,
            controller_manager: None,
            api_server,
            etcd,
            assets,
            builder,
            ports,
            directory,
        };
        cluster.wait_until_ready().await?;
        cluster.install_crds().await?;
        if cluster.builder.whole {
            cluster.start_controllers()?;
            cluster.add_nodes().await?;
            cluster.wait_for_controllers().await?;
        }
        Ok(cluster)
    }

    /// The address of the API server.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports.api_server)
    }

    /// Where its files are; they go with it.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A kubeconfig of this user.
    ///
    /// # Errors
    /// If there is no such user.
    pub fn kubeconfig(&self, user: &str) -> anyhow::Result<PathBuf> {
        let known = self.builder.users.iter().find(|known| known.name == user);
        let user = known.with_context(|| format!("no user {user}"))?;
        self.kubeconfig_of_token(&user.name, &user.token())
    }

    /// A kubeconfig of whoever bears this token; `name` names the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn kubeconfig_of_token(&self, name: &str, token: &str) -> anyhow::Result<PathBuf> {
        let root = self.directory.path();
        write_kubeconfig(
            &root.join(format!("{name}.kubeconfig")),
            &self.url(),
            &root.join("pki/apiserver.crt"),
            token,
        )
    }

    /// A client of this user.
    ///
    /// # Errors
    /// If there is no such user.
    pub async fn client(&self, user: &str) -> anyhow::Result<Client> {
        let file = Kubeconfig::read_from(self.kubeconfig(user)?)?;
        Ok(Client::try_from(Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?)?)
    }

    /// kubectl as `admin`.
    ///
    /// # Errors
    /// If the kubeconfig cannot be written.
    pub fn kubectl(&self) -> anyhow::Result<tokio::process::Command> {
        let mut command = tokio::process::Command::new(self.assets.program("kubectl"));
        command
            .env("KUBECONFIG", self.kubeconfig("admin")?)
            // kubectl keeps what it discovered; another cluster may have had the same port.
            .env("KUBECACHEDIR", self.directory.path().join("kubectl-cache"))
            .stdin(std::process::Stdio::null())
            .kill_on_drop(true);
        Ok(command)
    }

    /// The audit log.
    pub fn audit_log(&self) -> PathBuf {
        self.directory.path().join("audit.log")
    }

    /// The programs.
    pub fn assets(&self) -> &Assets {
        &self.assets
    }

    /// The process ids of kube-apiserver and etcd, for measurements.
    pub fn server_ids(&self) -> [u32; 2] {
        [self.api_server.id(), self.etcd.id()]
    }

    /// Ends the API server at once, as a crash would.
    pub fn kill_api_server(&mut self) {
        self.api_server.kill();
    }

    /// Starts it again on the same port and data.
    ///
    /// # Errors
    /// If it does not get ready.
    pub async fn start_api_server(&mut self) -> anyhow::Result<()> {
        self.api_server.kill();
        self.api_server = start_api_server(&self.assets, &self.builder, self.ports, self.directory.path())?;
        self.wait_until_ready().await
    }

    /// Freezes (`STOP`) or continues (`CONT`) the API server.
    ///
    /// # Errors
    /// If it does not run.
    pub fn signal_api_server(&self, signal: &str) -> anyhow::Result<()> {
        self.api_server.signal(signal)
    }

    async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        let certificate = self.directory.path().join("pki/apiserver.crt");
        loop {
            for process in [&mut self.etcd, &mut self.api_server] {
                if let Some(status) = process.ended() {
                    bail!("a program of the control plane ended ({status}):\n{}", process.log_tail());
                }
            }
            // The API server makes its certificate when it starts.
            if certificate.exists() && self.is_ready().await {
                return Ok(());
            }
            ensure!(
                began.elapsed() < PATIENCE,
                "the API server is not ready:\n{}",
                self.api_server.log_tail()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn is_ready(&self) -> bool {
        let ready = async {
            let client = self.client("admin").await?;
            let request = http::Request::get("/readyz").body(Vec::new())?;
            client.request_text(request).await.context("readyz")?;
            Api::<Namespace>::all(client).get("default").await.context("namespace default")?;
            anyhow::Ok(())
        };
        matches!(tokio::time::timeout(Duration::from_secs(2), ready).await, Ok(Ok(())))
    }

    async fn install_crds(&self) -> anyhow::Result<()> {
        for path in &self.builder.crds {
            for step in
                [&["apply", "-f"][..], &["wait", "--for=condition=Established", "--timeout=30s", "-f"]]
            {
                let output = self.kubectl()?.args(step).arg(path).output().await?;
                let said = String::from_utf8_lossy(&output.stderr);
                ensure!(output.status.success(), "kubectl {} {}: {said}", step.join(" "), path.display());
            }
        }
        Ok(())
    }

    fn start_controllers(&mut self) -> anyhow::Result<()> {
        let root = self.directory.path();
        let kubeconfig = self.kubeconfig("admin")?.display().to_string();
        let rates = ["--kube-api-qps=5000".to_owned(), "--kube-api-burst=10000".to_owned()];
        let start = |name: &str, flags: &[String]| {
            let mut arguments = vec![format!("--kubeconfig={kubeconfig}")];
            arguments.extend_from_slice(flags);
            Process::start(name, &self.assets.program(name), &arguments, &[], root)
        };
        let mut flags = vec![
            "--leader-elect=false".to_owned(),
            "--controllers=*,-node-lifecycle-controller".to_owned(),
            format!("--service-account-private-key-file={}", root.join("service-accounts.key").display()),
            "--secure-port=0".to_owned(),
            "--use-service-account-credentials=false".to_owned(),
        ];
        flags.extend_from_slice(&rates);
        let controller_manager = start("kube-controller-manager", &flags)?;
        let mut flags = vec!["--leader-elect=false".to_owned(), "--secure-port=0".to_owned()];
        flags.extend_from_slice(&rates);
        let scheduler = start("kube-scheduler", &flags)?;
        let kwok = start(
            "kwok",
            &[
                "--manage-all-nodes".to_owned(),
                "--cidr=10.128.0.1/12".to_owned(),
                "--node-ip=127.0.0.1".to_owned(),
            ],
        )?;
        self.controller_manager = Some(controller_manager);
        self.scheduler = Some(scheduler);
        self.kwok = Some(kwok);
        Ok(())
    }

    async fn add_nodes(&self) -> anyhow::Result<()> {
        let nodes: Api<Node> = Api::all(self.client("admin").await?);
        for number in 1..=self.builder.nodes {
            let room = json!({"cpu": "1000", "memory": "4Ti", "pods": "20000"});
            let node = serde_json::from_value(json!({
                "metadata": {
                    "name": format!("node-{number}"),
                    "annotations": {"kwok.x-k8s.io/node": "fake"},
                    "labels": {"kubernetes.io/hostname": format!("node-{number}"), "kubernetes.io/os": "linux"},
                },
                "status": {"allocatable": room, "capacity": room},
            }))?;
            nodes.create(&PostParams::default(), &node).await.context("a node")?;
        }
        Ok(())
    }

    /// Ready nodes, and the service account that shows that the controllers work.
    async fn wait_for_controllers(&mut self) -> anyhow::Result<()> {
        let client = self.client("admin").await?;
        let began = Instant::now();
        loop {
            let nodes = Api::<Node>::all(client.clone()).list(&kube::api::ListParams::default()).await?;
            let ready = nodes.items.iter().filter(|node| is_ready(node)).count();
            let account =
                Api::<ServiceAccount>::default_namespaced(client.clone()).get_opt("default").await?;
            if ready == self.builder.nodes && account.is_some() {
                return Ok(());
            }
            for process in
                [&mut self.kwok, &mut self.scheduler, &mut self.controller_manager].into_iter().flatten()
            {
                if let Some(status) = process.ended() {
                    bail!("a program of the control plane ended ({status}):\n{}", process.log_tail());
                }
                ensure!(began.elapsed() < PATIENCE, "{ready} nodes are ready:\n{}", process.log_tail());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Those that write first; the API server next, which etcd outlives.
        for process in
            [&mut self.kwok, &mut self.scheduler, &mut self.controller_manager].into_iter().flatten()
        {
            process.kill();
        }
        self.api_server.kill();
        self.etcd.kill();
    }
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"))
}

/// A port that nobody uses now.
fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

fn start_etcd(assets: &Assets, ports: Ports, root: &Path) -> anyhow::Result<Process> {
    let (client, peer) =
        (format!("http://127.0.0.1:{}", ports.etcd), format!("http://127.0.0.1:{}", ports.etcd_peer));
    let arguments = [
        "--data-dir=etcd".to_owned(),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        // Nothing has to survive a crash of the machine.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ];
    Process::start("etcd", &assets.program("etcd"), &arguments, &[], root)
}

fn start_api_server(
    assets: &Assets,
    builder: &Builder,
    ports: Ports,
    root: &Path,
) -> anyhow::Result<Process> {
    let key = root.join("service-accounts.key");
    let mut arguments = vec![
        format!("--etcd-servers=http://127.0.0.1:{}", ports.etcd),
        format!("--secure-port={}", ports.api_server),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        "--cert-dir=pki".to_owned(),
        "--token-auth-file=tokens.csv".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", key.display()),
        format!("--service-account-signing-key-file={}", key.display()),
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/12".to_owned(),
        "--audit-policy-file=audit-policy.yaml".to_owned(),
        "--audit-log-path=audit.log".to_owned(),
        "--audit-log-mode=blocking".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        "--profiling=false".to_owned(),
    ];
    arguments.extend(builder.api_server_flags.iter().cloned());
    Process::start("kube-apiserver", &assets.program("kube-apiserver"), &arguments, &[], root)
}
