//! The cluster of KUBECONFIG, used only on request: tests delete things.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use kube::config::Kubeconfig;

use crate::assets::Assets;
use crate::builder::Builder;
use crate::credentials::{User, replace};
use crate::kubectl::Kubectl;
use crate::scratch::Scratch;

/// The request, as envtest reads it.
const REQUEST: &str = "USE_EXISTING_CLUSTER";

/// Whether the cluster of KUBECONFIG is to be used: `USE_EXISTING_CLUSTER=true`.
pub fn is_requested() -> bool {
    std::env::var(REQUEST).is_ok_and(|value| value.eq_ignore_ascii_case("true"))
}

/// A cluster that somebody else runs.
#[derive(Debug)]
pub(crate) struct Existing {
    users: Vec<User>,
    url: String,
    program: PathBuf,
    scratch: Scratch,
}

impl Existing {
    /// Finds the current context of KUBECONFIG, or of `~/.kube/config`.
    pub(crate) async fn find(builder: &Builder) -> anyhow::Result<Self> {
        ensure!(
            builder.api_server_flags.is_empty(),
            "{REQUEST}: an existing API server does not take the flags {:?}",
            builder.api_server_flags
        );
        let program = kubectl().await?;
        // One file with everything in it, whatever KUBECONFIG lists and refers to.
        let flat = Command::new(&program)
            .args(["config", "view", "--raw", "--flatten", "--minify", "--output=json"])
            .output()
            .with_context(|| format!("{} cannot be run", program.display()))?;
        let said = String::from_utf8_lossy(&flat.stderr);
        ensure!(flat.status.success(), "{REQUEST}: KUBECONFIG names no cluster to use: {}", said.trim());
        let config: Kubeconfig = serde_json::from_slice(&flat.stdout).context("KUBECONFIG")?;
        let cluster = config.clusters.first().and_then(|named| named.cluster.as_ref());
        let url = cluster.and_then(|cluster| cluster.server.clone()).context("KUBECONFIG has no server")?;
        let scratch = Scratch::new()?;
        let existing = Self { users: builder.users.clone(), url, program, scratch };
        replace(&existing.file(), std::str::from_utf8(&flat.stdout)?)?;
        existing.kubectl("admin")?.install_crds(&builder.crds).await?;
        Ok(existing)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// Everybody who may do anything is who KUBECONFIG says; others cannot be had.
    pub(crate) fn kubeconfig(&self, user: &str) -> anyhow::Result<PathBuf> {
        match self.users.iter().find(|known| known.name == user) {
            Some(user) if user.is_admin() => Ok(self.file()),
            Some(_) => bail!("{REQUEST}: an existing cluster does not know the user {user}"),
            None => bail!("no user {user}"),
        }
    }

    pub(crate) fn kubectl(&self, user: &str) -> anyhow::Result<Kubectl> {
        Ok(Kubectl {
            program: self.program.clone(),
            kubeconfig: self.kubeconfig(user)?,
            directory: self.directory().to_owned(),
        })
    }

    fn file(&self) -> PathBuf {
        self.scratch.path().join("kubeconfig")
    }

    pub(crate) fn close(&self) -> anyhow::Result<()> {
        self.scratch.remove()
    }
}

/// What an existing cluster cannot do.
pub(crate) fn refuse<T>(what: &str) -> anyhow::Result<T> {
    bail!("{REQUEST}: {what} needs a control plane that was started here")
}

/// The one on the PATH, since it fits the cluster; else ours.
async fn kubectl() -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|directory| directory.join("kubectl")).find(|file| file.is_file());
    match found {
        Some(file) => Ok(file),
        None => Ok(Assets::find().await?.program("kubectl")),
    }
}
