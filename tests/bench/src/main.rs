//! Measures an operator for Tasks, beside another one and beside none.
//!
//! Each run has a fresh control plane. With another operator (`PEER`) the runs
//! are in turn A-B-B-A, so that a machine that gets slower or faster meanwhile
//! favours neither; only ratios within such a turn say something.
//!
//! - [`subject`]: what is measured; [`bed`]: on what; [`load`]: with which Tasks
//! - [`sight`]: what can be seen of them; [`usage`]: what a process used
//! - [`scenarios`]: what happens
//! - [`results`], [`report`]: what came out

mod bed;
mod load;
mod report;
mod results;
mod scenarios;
mod sight;
mod subject;
mod usage;

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use load::Load;
use results::Run;
use scenarios::{Options, Scenario};
use subject::Subject;

/// Measures an operator for Tasks on a control plane that it starts itself.
#[derive(Debug, Parser)]
struct Args {
    /// The operator.
    #[arg(long, env = "OPERATOR", default_value = "target/release/task-operator")]
    operator: PathBuf,
    /// Another operator to measure beside it.
    #[arg(long, env = "PEER")]
    peer: Option<PathBuf>,
    /// What the other one is started with.
    #[arg(long, env = "PEER_FLAGS", default_value = "", allow_hyphen_values = true)]
    peer_flags: String,
    /// The other one's flag for the port of its webhooks.
    #[arg(
        long,
        env = "PEER_WEBHOOK_FLAG",
        default_value = "--webhook-port={port}",
        allow_hyphen_values = true
    )]
    peer_webhook_flag: String,
    /// The other one's own definition of Tasks, if it is not to work on that of the operator.
    #[arg(long, env = "PEER_CRD")]
    peer_crd: Option<PathBuf>,
    /// How many Tasks; several numbers are measured one after the other.
    #[arg(long, env = "TASKS", value_delimiter = ',', default_value = "1000")]
    tasks: Vec<usize>,
    /// Over how many namespaces.
    #[arg(long, env = "NAMESPACES", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    namespaces: u16,
    /// With the controllers, the scheduler and nodes too, so that Pods get ready.
    #[arg(long, env = "WHOLE", num_args = 0..=1, default_missing_value = "true", default_value_t = false)]
    whole: bool,
    /// How often the turn is made.
    #[arg(long, env = "ROUNDS", default_value_t = 1)]
    rounds: usize,
    /// What is measured.
    #[arg(
        long,
        env = "SCENARIOS",
        value_delimiter = ',',
        value_enum,
        default_value = "start,create,scrape,quiet,restart,change,delete,webhook,failover"
    )]
    scenarios: Vec<Scenario>,
    /// How many seconds nothing happens in the quiet minute.
    #[arg(long, env = "QUIET", default_value_t = 60)]
    quiet: u64,
    /// For how many seconds each webhook is called.
    #[arg(long, env = "CALLS", default_value_t = 10)]
    calls: u64,
    /// Where to write all values as JSON.
    #[arg(long, env = "JSON")]
    json: Option<PathBuf>,
    /// Where to write a picture.
    #[arg(long, env = "SVG")]
    svg: Option<PathBuf>,
    /// Show these JSON files, and measure nothing.
    #[arg(long, env = "FROM", value_delimiter = ',')]
    from: Vec<PathBuf>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let everything = tokio::task::LocalSet::new();
    everything.run_until(measure_or_read(args)).await
}

async fn measure_or_read(args: Args) -> anyhow::Result<()> {
    let runs = if args.from.is_empty() {
        measure(&args).await?
    } else {
        let read: Result<Vec<_>, _> = args.from.iter().map(|file| report::read_json(file)).collect();
        read?.concat()
    };
    report::print(&runs)?;
    if let Some(file) = &args.json {
        report::write_json(file, &runs)?;
    }
    if let Some(file) = &args.svg {
        report::write_svg(file, &runs)?;
    }
    Ok(())
}

async fn measure(args: &Args) -> anyhow::Result<Vec<Run>> {
    let options = Options {
        scenarios: args.scenarios.clone(),
        whole: args.whole,
        quiet: Duration::from_secs(args.quiet),
        calls: Duration::from_secs(args.calls),
    };
    let mut runs = Vec::new();
    for &tasks in &args.tasks {
        for subject in turns(args) {
            eprintln!("{tasks} Tasks: {}", subject.name);
            let load = Load { tasks, namespaces: args.namespaces.into() };
            runs.push(scenarios::run(&subject, load, &options).await?);
            if let Some(file) = &args.json {
                // What was measured stays, whatever comes.
                report::write_json(file, &runs)?;
            }
        }
    }
    Ok(runs)
}

/// Who is measured, in this order: the floor once, then A-B-B-A.
fn turns(args: &Args) -> Vec<Subject> {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    let crd = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../config/crd");
    let own = Subject {
        name: "task-operator".to_owned(),
        program: Some(args.operator.clone()),
        flags: Vec::new(),
        crd: crd.clone(),
        webhook_flag: "--webhook-bind-address=127.0.0.1:{port}".to_owned(),
    };
    let floor = Subject {
        name: "floor".to_owned(),
        program: None,
        flags: Vec::new(),
        crd: crd.clone(),
        webhook_flag: String::new(),
    };
    let Some(peer) = &args.peer else { return vec![own, floor] };
    let peer = Subject {
        name: "peer".to_owned(),
        program: Some(peer.clone()),
        flags: words(&args.peer_flags),
        crd: args.peer_crd.clone().unwrap_or(crd),
        webhook_flag: args.peer_webhook_flag.clone(),
    };
    let mut turns = Vec::new();
    for _ in 0..args.rounds {
        turns.extend([own.clone(), peer.clone(), peer.clone(), own.clone()]);
    }
    turns.push(floor);
    turns
}
