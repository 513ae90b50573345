//! The programs of a control plane and how each is started.

use std::path::Path;

use crate::credentials::User;

/// A program of the control plane, in the order in which they start; they end in the reverse order.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Program {
    /// Where the API server keeps everything.
    Etcd,
    /// The API server.
    ApiServer,
    /// Deployments, ReplicaSets, garbage collection, …
    ControllerManager,
    /// Gives Pods to nodes.
    Scheduler,
    /// The nodes: makes Pods Running.
    Kwok,
}

impl Program {
    /// Those that a control plane of the API alone has.
    pub(crate) const API: [Self; 2] = [Self::Etcd, Self::ApiServer];
    /// Those that a whole one has beside them.
    pub(crate) const CONTROLLERS: [Self; 3] = [Self::ControllerManager, Self::Scheduler, Self::Kwok];

    /// The name of its file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kwok => "kwok",
        }
    }

    /// The user that it is to the API server, if it is a client of it.
    pub(crate) fn user(self) -> Option<User> {
        match self {
            Self::Etcd | Self::ApiServer => None,
            Self::ControllerManager | Self::Scheduler | Self::Kwok => Some(User::admin(self.name())),
        }
    }
}

/// The ports of a control plane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub(crate) etcd: u16,
    pub(crate) etcd_peer: u16,
    pub(crate) api_server: u16,
}

/// What decides about the flags.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) ports: Ports,
    pub(crate) audit: bool,
    pub(crate) api_server_flags: Vec<String>,
    pub(crate) slow_pods: bool,
}

/// The files that the flags name, in the directory in which all programs run.
pub(crate) mod file {
    /// `--token-auth-file`.
    pub(crate) const TOKENS: &str = "tokens.csv";
    /// Signs service account tokens.
    pub(crate) const KEY: &str = "service-accounts.key";
    /// What is logged.
    pub(crate) const AUDIT_POLICY: &str = "audit-policy.yaml";
    /// What makes kwok's Pods slow.
    pub(crate) const SLOW_PODS: &str = "slow-pods.yaml";
    /// The audit log.
    pub(crate) const AUDIT_LOG: &str = "audit.log";
    /// The API server's certificate, which it makes by itself for 127.0.0.1.
    pub(crate) const CERTIFICATE: &str = "pki/apiserver.crt";
}

/// The flags of a program. `kubeconfig` is its own, where it has a user.
pub(crate) fn flags(program: Program, setup: &Setup, kubeconfig: &Path) -> Vec<String> {
    let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
    let client = [kubeconfig.as_str(), "--kube-api-qps=5000", "--kube-api-burst=10000"];
    // No second one that could lead, and no port of their own that could be taken.
    let alone = ["--leader-elect=false", "--secure-port=0"];
    let stages = format!("--config={}", file::SLOW_PODS);
    let slow_pods = [stages.as_str()];
    match program {
        Program::Etcd => etcd(setup.ports),
        Program::ApiServer => api_server(setup),
        Program::ControllerManager => owned(&[
            &client[..],
            &alone,
            // kwok sees to the nodes; this one would taint them whenever the machine is slow.
            &["--controllers=*,-node-lifecycle-controller", "--use-service-account-credentials=false"],
            &[&format!("--service-account-private-key-file={}", file::KEY)],
        ]),
        Program::Scheduler => owned(&[&client, &alone]),
        Program::Kwok => owned(&[
            &client[..1],
            &["--manage-all-nodes", "--cidr=10.128.0.1/12", "--node-ip=127.0.0.1"],
            if setup.slow_pods { &slow_pods } else { &[] },
        ]),
    }
}

fn etcd(ports: Ports) -> Vec<String> {
    let client = format!("http://127.0.0.1:{}", ports.etcd);
    let peer = format!("http://127.0.0.1:{}", ports.etcd_peer);
    owned(&[
        &["--data-dir=etcd", "--log-level=warn"],
        &[&format!("--listen-client-urls={client}"), &format!("--advertise-client-urls={client}")],
        &[&format!("--listen-peer-urls={peer}"), &format!("--initial-advertise-peer-urls={peer}")],
        &[&format!("--initial-cluster=default={peer}")],
        // Nothing has to survive a crash of the machine.
        &["--unsafe-no-fsync"],
    ])
}

fn api_server(setup: &Setup) -> Vec<String> {
    let Ports { etcd, api_server, .. } = setup.ports;
    let mut flags = owned(&[
        &[&format!("--etcd-servers=http://127.0.0.1:{etcd}"), &format!("--secure-port={api_server}")],
        &["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none"],
        &["--cert-dir=pki", &format!("--token-auth-file={}", file::TOKENS), "--authorization-mode=RBAC"],
        &["--service-account-issuer=https://kubernetes.default.svc"],
        &[&format!("--service-account-key-file={}", file::KEY)],
        &[&format!("--service-account-signing-key-file={}", file::KEY)],
        &["--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"],
        &["--service-cluster-ip-range=10.0.0.0/12", "--profiling=false"],
    ]);
    if setup.audit {
        flags.extend(owned(&[
            &[&format!("--audit-policy-file={}", file::AUDIT_POLICY)],
            // Each line is written when its request is over, and the log stays one file (the size is in MB).
            &[&format!("--audit-log-path={}", file::AUDIT_LOG)],
            &["--audit-log-mode=blocking", "--audit-log-maxsize=1000000"],
        ]));
    }
    flags.extend(setup.api_server_flags.iter().cloned());
    flags
}

fn owned(groups: &[&[&str]]) -> Vec<String> {
    groups.concat().into_iter().map(str::to_owned).collect()
}
