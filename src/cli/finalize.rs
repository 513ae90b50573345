//! The flags of `finalize`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values;

/// Of which Tasks, and what is to end before.
#[derive(Clone, Debug, Args)]
pub struct FinalizeArgs {
    /// The Tasks of all namespaces.
    #[arg(long, required_unless_present = "namespace", conflicts_with = "namespace")]
    all: bool,

    /// The Tasks of this namespace. May be repeated, or be a list with commas.
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',', value_parser = values::namespace)]
    namespace: Vec<String>,

    /// First scale this Deployment, NAMESPACE/NAME, to 0: an operator that runs would put the finalizers
    /// back. It is no error if it is gone already.
    #[arg(long, value_name = "DEPLOYMENT", value_parser = values::deployment)]
    pub stop: Option<(String, String)>,

    /// How long it may take.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = values::duration)]
    pub timeout: Duration,

    /// The kubeconfig file of the cluster. Without it KUBECONFIG is read, then the Pod's service account.
    #[arg(long, env = "TASK_OPERATOR_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

impl FinalizeArgs {
    /// The namespaces, each once; none stands for all.
    pub fn namespaces(&self) -> Vec<String> {
        values::distinct(&self.namespace)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::{Cli, Command};
    use super::*;

    fn parsed(flags: &[&str]) -> Result<FinalizeArgs, String> {
        let words = ["task-operator", "finalize"].iter().chain(flags);
        match Cli::try_parse_from(words).map_err(|error| error.to_string())?.into_command() {
            Command::Finalize(args) => Ok(args),
            _ => Err("another command".to_owned()),
        }
    }

    #[test]
    fn which_tasks_has_to_be_said() {
        assert!(parsed(&[]).unwrap_err().contains("--all"));
        assert!(parsed(&["--all", "--namespace=a"]).unwrap_err().contains("--namespace"));
        assert_eq!(parsed(&["--all"]).unwrap().namespaces(), Vec::<String>::new());
        assert_eq!(parsed(&["--namespace=b,a", "--namespace=b"]).unwrap().namespaces(), ["a", "b"]);
        let stop = parsed(&["--all", "--stop=task-system/task-operator"]).unwrap().stop;
        assert_eq!(stop, Some(("task-system".to_owned(), "task-operator".to_owned())));
        for wrong in ["task-operator", "a/", "/b", "a/b/c", "a/B"] {
            assert!(parsed(&["--all", "--stop", wrong]).unwrap_err().contains("--stop"), "{wrong}");
        }
    }
}
