//! The `task-operator` binary: arguments, then one of the subcommands.

use std::process::ExitCode;

use clap::Parser;
use task_operator::cli::{Cli, Command};
use task_operator::{api, run};

fn main() -> ExitCode {
    let result = match Cli::parse().into_command() {
        Command::Run(args) => actix_web::rt::System::new().block_on(run::run(*args)),
        Command::Crd => print_crd(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("task-operator: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn print_crd() -> anyhow::Result<()> {
    use std::io::Write;
    Ok(std::io::stdout().write_all(api::crd::yaml(&api::crd::crd())?.as_bytes())?)
}
