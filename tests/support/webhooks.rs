//! An operator whose webhooks a real API server asks.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;
use test_cluster::{Builder, Cluster, eventually};

use super::{Operator, SOON, Space, crds, kubectl, task};

/// A directory with a certificate for 127.0.0.1, as a Secret is mounted.
pub struct Certificates(TempDir);

impl Certificates {
    /// A new one, that nobody trusts yet.
    pub fn new() -> Self {
        let directory = TempDir::with_prefix("task-operator-certificates-").unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        std::fs::write(directory.path().join("tls.crt"), made.cert.pem()).unwrap();
        std::fs::write(directory.path().join("tls.key"), made.signing_key.serialize_pem()).unwrap();
        Self(directory)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// An API server that asks a running operator, as the printed manifests have it.
pub struct Bed {
    pub cluster: Cluster,
    pub operator: Operator,
    pub certificates: Certificates,
}

impl Bed {
    /// Starts both, installs what the binary prints, and waits until it is in force.
    pub async fn start(cluster: Builder) -> Self {
        let cluster = cluster.crds(&crds()).start().await.unwrap();
        let certificates = Certificates::new();
        let directory = format!("--webhook-cert-dir={}", certificates.path().display());
        let flags = ["--webhook-bind-address=127.0.0.1:0", &directory];
        let operator = Operator::started(&cluster.kubeconfig("operator").unwrap(), &flags).await;
        let bed = Self { cluster, operator, certificates };
        bed.operator.install(&bed.cluster, Some(&bed.authority())).await;
        // The configurations take a moment to be in force.
        eventually(SOON, "the webhooks are asked", async || ask(&bed.cluster).await).await;
        bed
    }

    /// What the binary prints for this operator.
    pub fn printed(&self, command: &str) -> String {
        self.operator.printed(command, Some(&self.authority()))
    }

    fn authority(&self) -> PathBuf {
        self.certificates.path().join("tls.crt")
    }

    /// A namespace of one test.
    pub async fn space(&self, name: &str) -> Space<'_> {
        Space::new(&self.cluster, self.cluster.client("admin").await.unwrap(), name).await
    }
}

impl Operator {
    /// What the binary prints for the webhooks of this operator, which are trusted by `ca` if there is one.
    pub fn printed(&self, command: &str, ca: Option<&Path>) -> String {
        let mut program = Command::new(env!("CARGO_BIN_EXE_task-operator"));
        program.args([command, "--url", &format!("https://{}", self.address("webhooks"))]);
        if let Some(ca) = ca {
            program.arg("--ca").arg(ca);
        }
        let output = program.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Installs the definition with both versions and the configurations of the webhooks.
    pub async fn install(&self, cluster: &Cluster, ca: Option<&Path>) {
        for command in ["crd", "webhooks"] {
            let (ok, said) = kubectl(cluster, &["apply", "-f", "-"], Some(&self.printed(command, ca))).await;
            assert!(ok, "{said}");
        }
    }
}

/// Asks the mutating and the validating webhook by a dry run.
pub async fn ask(cluster: &Cluster) -> Result<(), String> {
    let create = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
    let (ok, said) = kubectl(cluster, &create, Some(&task("probe", json!({})).to_string())).await;
    if ok && said.contains("task.example.io/finalizer") { Ok(()) } else { Err(said) }
}
