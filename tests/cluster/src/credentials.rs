//! The users of a control plane, their tokens and kubeconfigs.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use k8s_openapi::ByteString;

/// The group that may do anything.
const MASTERS: &str = "system:masters";

/// A user with a static token.
#[derive(Clone, Debug)]
pub struct User {
    /// The name, as the audit log and RBAC see it.
    pub name: String,
    /// The groups.
    pub groups: Vec<String>,
}

impl User {
    /// A user without groups: may do what RBAC objects allow.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), groups: Vec::new() }
    }

    /// A user who may do anything.
    pub fn admin(name: &str) -> Self {
        Self { name: name.to_owned(), groups: vec![MASTERS.to_owned()] }
    }

    /// Whether it may do anything.
    pub(crate) fn is_admin(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
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
        .stdin(Stdio::null())
        .output()
        .context("openssl cannot be run")?;
    ensure!(made.status.success(), "openssl: {}", String::from_utf8_lossy(&made.stderr));
    Ok(())
}

/// Writes a kubeconfig for a bearer of `token`, which holds the certificate that
/// stands in `ca`: it is whole by itself and may be copied.
pub(crate) fn write_kubeconfig(file: &Path, url: &str, ca: &Path, token: &str) -> anyhow::Result<PathBuf> {
    let ca = ByteString(fs::read(ca).with_context(|| format!("{}", ca.display()))?);
    let config = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority-data": ca}}],
        "users": [{"name": "test", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": "default"}}],
    });
    replace(file, &config.to_string())?;
    Ok(file.to_owned())
}

/// Writes a file that only its owner may read, in one step: whoever reads it sees it whole.
pub(crate) fn replace(file: &Path, text: &str) -> anyhow::Result<()> {
    let directory = file.parent().context("a file without a directory")?;
    let mut new = tempfile::NamedTempFile::new_in(directory)?;
    new.write_all(text.as_bytes())?;
    new.as_file().set_permissions(fs::Permissions::from_mode(0o600))?;
    new.persist(file).with_context(|| format!("{}", file.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn groups_of_a_user_are_one_quoted_column() {
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("tokens.csv");
        let mut two = User::new("two");
        two.groups = vec!["a".to_owned(), "b".to_owned()];
        write_tokens(&[User::admin("admin"), two], &file).unwrap();
        let text = fs::read_to_string(file).unwrap();
        assert_eq!(text, "token-of-admin,admin,admin,\"system:masters\"\ntoken-of-two,two,two,\"a,b\"\n");
    }

    #[test]
    fn a_kubeconfig_holds_its_certificate_and_is_private() {
        let directory = TempDir::new().unwrap();
        let (ca, file) = (directory.path().join("ca"), directory.path().join("config"));
        fs::write(&ca, "PEM").unwrap();
        write_kubeconfig(&file, "https://127.0.0.1:1", &ca, "t").unwrap();
        let config: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        assert_eq!(config["clusters"][0]["cluster"]["certificate-authority-data"], "UEVN");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
