//! What is measured. Each scenario writes its figures into the run.

mod failover;
mod life;
mod start;
mod webhook;

use std::time::Duration;

use clap::ValueEnum;

use crate::bed::Bed;
use crate::load::Load;
use crate::results::Run;
use crate::subject::Subject;

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// From exec to ready, and to the first child, on an empty cluster.
    Start,
    /// All Tasks are created.
    Create,
    /// The metrics are read while the Tasks are there.
    Scrape,
    /// Nothing happens for a minute.
    Quiet,
    /// The operator is started again.
    Restart,
    /// All Tasks get another variable.
    Change,
    /// All Tasks are deleted.
    Delete,
    /// The webhooks are called, over TLS.
    Webhook,
    /// A leader ends, and a leader crashes, beside a replica that waits.
    Failover,
}

impl Scenario {
    /// Those that need Tasks, and so begin with their creation.
    const LIFE: [Self; 6] =
        [Self::Create, Self::Scrape, Self::Quiet, Self::Restart, Self::Change, Self::Delete];
}

/// What is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Which scenarios.
    pub(crate) scenarios: Vec<Scenario>,
    /// With all controllers rather than the API server alone.
    pub(crate) whole: bool,
    /// How long the quiet minute is.
    pub(crate) quiet: Duration,
    /// How long webhooks are called.
    pub(crate) calls: Duration,
}

impl Options {
    fn wants(&self, scenario: Scenario) -> bool {
        self.scenarios.contains(&scenario)
    }
}

/// Measures one subject, each part on a control plane of its own.
///
/// # Errors
/// If something does not start or does not do its work.
pub(crate) async fn run(subject: &Subject, load: Load, options: &Options) -> anyhow::Result<Run> {
    let mut run =
        Run { subject: subject.name.clone(), tasks: load.tasks, whole: options.whole, ..Run::default() };
    if Scenario::LIFE.iter().any(|&scenario| options.wants(scenario)) {
        let bed = Bed::start(load, options.whole, &subject.crd).await?;
        life::run(&bed, subject, options, &mut run).await?;
        bed.cluster.stop()?;
    }
    if subject.program.is_none() {
        return Ok(run);
    }
    for scenario in [Scenario::Start, Scenario::Webhook, Scenario::Failover] {
        if !options.wants(scenario) {
            continue;
        }
        let bed = Bed::start(load, false, &subject.crd).await?;
        match scenario {
            Scenario::Start => start::run(&bed, subject, &mut run).await?,
            Scenario::Webhook => webhook::run(&bed, subject, options.calls, &mut run).await?,
            _ => failover::run(&bed, subject, &mut run).await?,
        }
        bed.cluster.stop()?;
    }
    Ok(run)
}
