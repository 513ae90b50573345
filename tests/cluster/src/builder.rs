//! What a control plane is to be like.

use std::path::{Path, PathBuf};

use crate::assets::Assets;
use crate::cluster::Cluster;
use crate::control_plane::ControlPlane;
use crate::credentials::User;
use crate::existing::{self, Existing};

/// How often a start is tried when somebody else takes a port first.
const ATTEMPTS: usize = 3;

/// A control plane to be started.
#[derive(Clone, Debug)]
pub struct Builder {
    pub(crate) whole: bool,
    pub(crate) audit: bool,
    pub(crate) nodes: usize,
    pub(crate) users: Vec<User>,
    pub(crate) api_server_flags: Vec<String>,
    pub(crate) crds: Vec<PathBuf>,
    pub(crate) slow_pods: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            whole: false,
            audit: true,
            nodes: 3,
            users: vec![User::admin("admin"), User::admin("operator")],
            api_server_flags: Vec::new(),
            crds: Vec::new(),
            slow_pods: false,
        }
    }
}

impl Builder {
    /// With kube-controller-manager, kube-scheduler and kwok too.
    #[must_use]
    pub fn whole(mut self) -> Self {
        self.whole = true;
        self
    }

    /// etcd and kube-apiserver alone, as it is without [`Builder::whole`].
    #[must_use]
    pub fn api_only(mut self) -> Self {
        self.whole = false;
        self
    }

    /// With this many fake nodes instead of 3; a control plane of the API alone has none.
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// With Pods that need 1 to 4 seconds to be ready, so that a rollout can be seen.
    #[must_use]
    pub fn slow_pods(mut self) -> Self {
        self.slow_pods = true;
        self
    }

    /// With the CustomResourceDefinitions in this file or directory, before the
    /// controllers start: the garbage collector looks for new kinds every 30 s only.
    #[must_use]
    pub fn crds(mut self, path: &Path) -> Self {
        self.crds.push(path.to_owned());
        self
    }

    /// Without the audit log, which costs the API server a little per request.
    #[must_use]
    pub fn without_audit(mut self) -> Self {
        self.audit = false;
        self
    }

    /// With one more user, or another one of that name: `admin` and `operator` are
    /// there already and may do anything.
    #[must_use]
    pub fn user(mut self, user: User) -> Self {
        self.users.retain(|known| known.name != user.name);
        self.users.push(user);
        self
    }

    /// With one more flag for kube-apiserver, as `--name=value`.
    #[must_use]
    pub fn api_server_flag(mut self, flag: &str) -> Self {
        self.api_server_flags.push(flag.to_owned());
        self
    }

    /// With these admission plugins beside the usual ones, separated by commas.
    #[must_use]
    pub fn admission_plugins(self, names: &str) -> Self {
        self.api_server_flag(&format!("--enable-admission-plugins={names}"))
    }

    /// Starts it and waits until it is ready: seconds, once its programs are
    /// built. With `USE_EXISTING_CLUSTER=true` it is the cluster of KUBECONFIG.
    /// Dropping the future ends what it started.
    ///
    /// # Errors
    /// If a program does not start, with the end of its log.
    pub async fn start(self) -> anyhow::Result<Cluster> {
        if existing::is_requested() {
            return Ok(Cluster::existing(Existing::find(&self).await?));
        }
        let assets = Assets::find().await?;
        let mut attempt = 1;
        loop {
            match ControlPlane::start(assets.clone(), self.clone()).await {
                Ok(control_plane) => return Ok(Cluster::local(control_plane)),
                // Between the search for a free port and its use somebody may take it.
                Err(error) if attempt < ATTEMPTS && is_taken_port(&error) => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

fn is_taken_port(error: &anyhow::Error) -> bool {
    format!("{error:#}").contains("address already in use")
}
