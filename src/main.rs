//! The `task-operator` binary: arguments, then one of the subcommands.

use std::process::ExitCode;

use clap::Parser;
use task_operator::cli::finalize::FinalizeArgs;
use task_operator::cli::{Cli, Command, CrdArgs};
use task_operator::{api, finalize, run};

fn main() -> ExitCode {
    let result = match Cli::parse().into_command() {
        Command::Run(args) => actix_web::rt::System::new().block_on(run::run(*args)),
        Command::Finalize(args) => finalize(args),
        Command::Crd(args) => print_crd(&args),
        Command::Webhooks(args) => print_webhooks(&args),
        Command::Policies => api::policy::yaml().and_then(|yaml| print(&yaml)),
        Command::Rbac(args) => api::rbac::yaml(&args.scope()).and_then(|yaml| print(&yaml)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("task-operator: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn finalize(args: FinalizeArgs) -> anyhow::Result<()> {
    let taken = actix_web::rt::System::new().block_on(finalize::finalize(args))?;
    print(&format!("the finalizer {} was taken from {taken} Tasks\n", api::FINALIZER))
}

fn print_crd(args: &CrdArgs) -> anyhow::Result<()> {
    let ca = args.ca()?;
    let crd = match args.webhook() {
        Some(webhook) => api::crd::with_conversion(&webhook, ca.as_deref()),
        None => api::crd::crd(),
    };
    print(&api::crd::yaml(&crd)?)
}

fn print_webhooks(args: &CrdArgs) -> anyhow::Result<()> {
    let webhook = args.webhook().unwrap_or_else(api::webhooks::Webhook::in_cluster);
    print(&api::webhooks::yaml(&webhook, args.ca()?.as_deref())?)
}

fn print(text: &str) -> anyhow::Result<()> {
    use std::io::Write;
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}
