//! A cluster as tests see it: one that was started for them, or an existing one.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::audit::Mark;
use crate::builder::Builder;
use crate::control_plane::ControlPlane;
use crate::existing::{Existing, refuse};
use crate::programs::Program;

/// A cluster that runs. Dropped, one that was started here ends and leaves nothing behind.
#[derive(Debug)]
pub struct Cluster(Kind);

#[derive(Debug)]
enum Kind {
    Local(ControlPlane),
    Existing(Existing),
}

impl Cluster {
    /// The API server and etcd alone, unless the builder is told otherwise.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn local(control_plane: ControlPlane) -> Self {
        Self(Kind::Local(control_plane))
    }

    pub(crate) fn existing(existing: Existing) -> Self {
        Self(Kind::Existing(existing))
    }

    /// Ends it, as dropping it does, and tells whether something of it stays.
    ///
    /// # Errors
    /// If its directory cannot be removed.
    pub fn stop(self) -> anyhow::Result<()> {
        match self.0 {
            Kind::Local(control_plane) => control_plane.close(),
            Kind::Existing(existing) => existing.close(),
        }
    }

    /// The address of the API server.
    pub fn url(&self) -> &str {
        match &self.0 {
            Kind::Local(control_plane) => control_plane.url(),
            Kind::Existing(existing) => existing.url(),
        }
    }

    /// Where its files and logs are; they go with it.
    pub fn directory(&self) -> &Path {
        match &self.0 {
            Kind::Local(control_plane) => control_plane.directory(),
            Kind::Existing(existing) => existing.directory(),
        }
    }

    /// The kubeconfig of this user. On an existing cluster every user who may do
    /// anything is the one of KUBECONFIG.
    ///
    /// # Errors
    /// If there is no such user.
    pub fn kubeconfig(&self, user: &str) -> anyhow::Result<PathBuf> {
        match &self.0 {
            Kind::Local(control_plane) => control_plane.kubeconfig(user),
            Kind::Existing(existing) => existing.kubeconfig(user),
        }
    }

    /// A kubeconfig of whoever bears this token, such as a service account's; `name` names the file.
    ///
    /// # Errors
    /// If it cannot be written, or would replace that of a user; on an existing cluster.
    pub fn kubeconfig_of_token(&self, name: &str, token: &str) -> anyhow::Result<PathBuf> {
        let Kind::Local(control_plane) = &self.0 else { return refuse("a kubeconfig of a token") };
        ensure!(control_plane.kubeconfig(name).is_err(), "there is a user {name}");
        control_plane.kubeconfig_of_token(name, token)
    }

    /// A client of this user.
    ///
    /// # Errors
    /// If there is no such user.
    pub async fn client(&self, user: &str) -> anyhow::Result<Client> {
        client_of(&self.kubeconfig(user)?, true).await
    }

    /// kubectl as `admin`.
    ///
    /// # Errors
    /// Never on a control plane that was started here.
    pub fn kubectl(&self) -> anyhow::Result<tokio::process::Command> {
        self.kubectl_as("admin")
    }

    /// kubectl as this user.
    ///
    /// # Errors
    /// If there is no such user.
    pub fn kubectl_as(&self, user: &str) -> anyhow::Result<tokio::process::Command> {
        let kubectl = match &self.0 {
            Kind::Local(control_plane) => control_plane.kubectl(user)?,
            Kind::Existing(existing) => existing.kubectl(user)?,
        };
        Ok(kubectl.command())
    }

    /// The directory of the control plane's programs and kubectl.
    ///
    /// # Errors
    /// On an existing cluster.
    pub fn programs(&self) -> anyhow::Result<&Path> {
        let Kind::Local(control_plane) = &self.0 else { return refuse("a program of the control plane") };
        Ok(control_plane.assets.directory())
    }

    /// The audit log, which [`Mark`] reads.
    ///
    /// # Errors
    /// On a cluster without one, and on an existing one.
    pub fn audit_log(&self) -> anyhow::Result<PathBuf> {
        let Kind::Local(control_plane) = &self.0 else { return refuse("the audit log") };
        control_plane.audit_log()
    }

    /// The end of the audit log now: what is asked from here on can be read from it.
    ///
    /// # Errors
    /// As [`Cluster::audit_log`].
    pub fn audit_mark(&self) -> anyhow::Result<Mark> {
        Mark::now(&self.audit_log()?)
    }

    /// The process id of a program, for measurements.
    ///
    /// # Errors
    /// If it does not run here.
    pub fn id(&mut self, program: Program) -> anyhow::Result<u32> {
        let process = self.control_plane()?.process(program)?;
        ensure!(process.ended().is_none(), "{} does not run", program.name());
        Ok(process.id())
    }

    /// Ends a program at once, as a crash would.
    ///
    /// # Errors
    /// If this control plane has no such program.
    pub fn kill(&mut self, program: Program) -> anyhow::Result<()> {
        self.control_plane()?.process(program)?.kill();
        Ok(())
    }

    /// Starts a program again, on the same port and data, and waits until the API
    /// is ready, unless the API server is down.
    ///
    /// # Errors
    /// If it does not get ready, with the end of its log.
    pub async fn start(&mut self, program: Program) -> anyhow::Result<()> {
        self.control_plane()?.start_again(program).await
    }

    /// Freezes a program until [`Cluster::resume`].
    ///
    /// # Errors
    /// If it does not run here.
    pub fn pause(&mut self, program: Program) -> anyhow::Result<()> {
        self.control_plane()?.process(program)?.signal("STOP")
    }

    /// Lets a frozen program go on.
    ///
    /// # Errors
    /// If it does not run here.
    pub fn resume(&mut self, program: Program) -> anyhow::Result<()> {
        self.control_plane()?.process(program)?.signal("CONT")
    }

    fn control_plane(&mut self) -> anyhow::Result<&mut ControlPlane> {
        match &mut self.0 {
            Kind::Local(control_plane) => Ok(control_plane),
            Kind::Existing(_) => refuse("to see to its programs"),
        }
    }
}

/// A client; `retries` says whether it repeats what the API server was too busy for.
pub(crate) async fn client_of(kubeconfig: &Path, retries: bool) -> anyhow::Result<Client> {
    let file = Kubeconfig::read_from(kubeconfig)?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    config.default_retry = retries;
    Ok(Client::try_from(config)?)
}
