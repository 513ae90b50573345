//! The flags of `rbac`.

use clap::Args;

use super::values;
use crate::api::rbac::Scope;

/// For whom and for where the roles are.
#[derive(Clone, Debug, Args)]
pub struct RbacArgs {
    /// A namespace of Tasks: the operator gets a Role there. May be repeated, or be a list with commas.
    /// Without it there is a ClusterRole for all namespaces, and roles for users.
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',', value_parser = values::namespace)]
    namespace: Vec<String>,

    /// The namespace of the operator, of its ServiceAccount and its Lease.
    #[arg(long, value_name = "NAMESPACE", default_value = "task-system", value_parser = values::namespace)]
    operator_namespace: String,

    /// Whether the operator runs with --webhook-self-signed. It then has a ClusterRole in any case: the
    /// configurations of the webhooks are in no namespace.
    #[arg(long)]
    webhook_self_signed: bool,
}

impl RbacArgs {
    /// What the flags ask for; a namespace that is named twice is meant once.
    pub fn scope(self) -> Scope {
        Scope {
            namespaces: values::distinct(&self.namespace),
            home: self.operator_namespace,
            self_signed: self.webhook_self_signed,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::{Cli, Command};
    use super::*;

    fn scope(flags: &[&str]) -> Result<Scope, String> {
        let words = ["task-operator", "rbac"].iter().chain(flags);
        match Cli::try_parse_from(words).map_err(|error| error.to_string())?.into_command() {
            Command::Rbac(args) => Ok(args.scope()),
            _ => Err("another command".to_owned()),
        }
    }

    #[test]
    fn roles_are_for_the_cluster_or_for_each_namespace_once() {
        let all = scope(&[]).unwrap();
        assert_eq!(all, Scope { namespaces: vec![], home: "task-system".to_owned(), self_signed: false });
        let some = scope(&[
            "--namespace",
            "b, a",
            "--namespace=b",
            "--operator-namespace=ops",
            "--webhook-self-signed",
        ]);
        let namespaces = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(some, Ok(Scope { namespaces, home: "ops".to_owned(), self_signed: true }));
        assert!(scope(&["--namespace", "A"]).unwrap_err().contains("--namespace"));
    }
}
