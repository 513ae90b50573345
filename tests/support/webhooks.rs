//! An operator whose webhooks a real API server asks.

use std::path::Path;
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
        for command in ["crd", "webhooks"] {
            let (ok, said) = kubectl(&bed.cluster, &["apply", "-f", "-"], Some(&bed.printed(command))).await;
            assert!(ok, "{said}");
        }
        // The configurations take a moment to be in force.
        let probe = task("probe", json!({})).to_string();
        eventually(SOON, "the webhooks are asked", async || {
            let create = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
            let (_, said) = kubectl(&bed.cluster, &create, Some(&probe)).await;
            if said.contains("task.example.io/finalizer") { Ok(()) } else { Err(said) }
        })
        .await;
        bed
    }

    /// What the binary prints for this operator.
    pub fn printed(&self, command: &str) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_task-operator"))
            .args([command, "--url", &format!("https://{}", self.operator.address("webhooks")), "--ca"])
            .arg(self.certificates.path().join("tls.crt"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// A namespace of one test.
    pub async fn space(&self, name: &str) -> Space<'_> {
        Space::new(&self.cluster, self.cluster.client("admin").await.unwrap(), name).await
    }
}
