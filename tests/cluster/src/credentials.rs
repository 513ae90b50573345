//! The users of a control plane and their kubeconfigs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// A user with a static token.
#[derive(Clone, Debug)]
pub struct User {
    /// The name, as the audit log and RBAC see it.
    pub name: String,
    /// The groups.
    pub groups: Vec<String>,
}

impl User {
    /// A user without groups.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), groups: Vec::new() }
    }

    /// A user who may do anything.
    pub fn admin(name: &str) -> Self {
        Self { name: name.to_owned(), groups: vec!["system:masters".to_owned()] }
    }

    /// The token: known, since everything is on this machine's loopback and short-lived.
    pub fn token(&self) -> String {
        format!("token-of-{}", self.name)
    }
}

/// Writes the file that `--token-auth-file` takes.
pub(crate) fn write_tokens(users: &[User], file: &Path) -> anyhow::Result<()> {
    let lines: String = users
        .iter()
        .map(|user| format!("{},{},{},\"{}\"\n", user.token(), user.name, user.name, user.groups.join(",")))
        .collect();
    fs::write(file, lines).with_context(|| format!("{}", file.display()))
}

/// Makes the key that signs service account tokens.
pub(crate) fn write_key(file: &Path) -> anyhow::Result<()> {
    let made = Command::new("openssl")
        .args(["genrsa", "-out"])
        .arg(file)
        .arg("2048")
        .output()
        .context("openssl cannot be run")?;
    ensure!(made.status.success(), "openssl: {}", String::from_utf8_lossy(&made.stderr));
    Ok(())
}

/// Writes a kubeconfig for a bearer of `token`.
pub(crate) fn write_kubeconfig(file: &Path, url: &str, ca: &Path, token: &str) -> anyhow::Result<PathBuf> {
    let config = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority": ca}}],
        "users": [{"name": "test", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": "default"}}],
    });
    fs::write(file, config.to_string()).with_context(|| format!("{}", file.display()))?;
    Ok(file.to_owned())
}
