//! The life of many Tasks under one operator: created, looked at, left alone,
//! met again after a restart, changed, deleted.

use std::time::{Duration, Instant};

use super::{Options, Scenario};
use crate::bed::{Bed, USER};
use crate::results::Run;
use crate::sight::{Goal, Sight, quantile};
use crate::subject::{Running, Subject, get};
use crate::usage::{cpu_seconds, memory};

/// For all Tasks to be as they should be, and for each one of them on top.
const LIMIT: Duration = Duration::from_secs(120);
const LIMIT_PER_TASK: Duration = Duration::from_millis(200);
/// What an operator gets to be at rest without a Task.
const IDLE: Duration = Duration::from_secs(2);
/// How often the metrics are scraped.
const SCRAPES: u32 = 20;

/// What happens to all Tasks at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Create,
    Change,
    Delete,
}

/// One life on one control plane. A floor only creates.
///
/// # Errors
/// If the operator does not do its work.
pub(crate) async fn run(
    bed: &Bed,
    subject: &Subject,
    options: &Options,
    run: &mut Run,
) -> anyhow::Result<()> {
    let sight = Sight::start(&bed.admin).await;
    let Some(mut operator) = bed.operator(subject).await? else {
        return deed(Deed::Create, Goal::Children, bed, &sight, None, run).await;
    };
    tokio::time::sleep(IDLE).await;
    let empty = memory(operator.id()).resident;
    let created = if options.whole { Goal::Succeeded } else { Goal::Children };
    deed(Deed::Create, created, bed, &sight, Some(&mut operator), run).await?;
    if options.wants(Scenario::Scrape) {
        scrape(&operator, run).await?;
    }
    if options.wants(Scenario::Quiet) {
        let since = bed.since(Some(&operator))?;
        tokio::time::sleep(options.quiet).await;
        bed.note("quiet", &since, run)?;
    }
    if options.wants(Scenario::Restart) {
        operator.stop();
        operator = restart(bed, subject, run).await?;
        let grown = memory(operator.id()).resident - empty;
        run.set("restart", "kib_per_task", grown / bed.load.tasks as f64);
    }
    if options.wants(Scenario::Change) {
        deed(Deed::Change, Goal::Changed, bed, &sight, Some(&mut operator), run).await?;
    }
    if options.wants(Scenario::Delete) {
        deed(Deed::Delete, Goal::Gone, bed, &sight, Some(&mut operator), run).await?;
    }
    Ok(())
}

async fn deed(
    deed: Deed,
    goal: Goal,
    bed: &Bed,
    sight: &Sight,
    operator: Option<&mut Running>,
    run: &mut Run,
) -> anyhow::Result<()> {
    let (load, admin) = (bed.load, &bed.admin);
    let since = bed.since(operator.as_deref())?;
    let began = Instant::now();
    sight.expect(goal);
    let name = match deed {
        Deed::Create if operator.is_none() => {
            load.create_with_children(admin, &bed.cluster.client(USER).await?, sight).await?;
            "create"
        }
        Deed::Create => {
            load.create(admin, sight).await?;
            "create"
        }
        Deed::Change => {
            load.change(admin, sight).await?;
            "change"
        }
        Deed::Delete => {
            load.delete(admin, sight).await?;
            "delete"
        }
    };
    let limit = LIMIT + LIMIT_PER_TASK * u32::try_from(load.tasks).unwrap_or(u32::MAX);
    let took = sight.wait(load.tasks, limit).await?;
    run.set(name, "wall_s", began.elapsed().as_secs_f64());
    run.set(name, "wall_ms_per_task", began.elapsed().as_secs_f64() * 1000.0 / load.tasks as f64);
    run.set(name, "p50_s", quantile(&took, 0.5));
    run.set(name, "p99_s", quantile(&took, 0.99));
    if let Some(operator) = operator {
        operator.check()?;
        bed.settle().await?;
    }
    bed.note(name, &since, run)
}

/// Starts it again, with everything there and as it should be.
async fn restart(bed: &Bed, subject: &Subject, run: &mut Run) -> anyhow::Result<Running> {
    let mut since = bed.since(None)?;
    let mut operator = subject.start(&bed.cluster.kubeconfig(USER)?, &[], None)?;
    since.follow(&operator);
    run.set("restart", "ready_ms", operator.ready().await?.as_secs_f64() * 1000.0);
    bed.settle().await?;
    operator.check()?;
    bed.note("restart", &since, run)?;
    Ok(operator)
}

/// What a look at the metrics costs while the Tasks are there.
async fn scrape(operator: &Running, run: &mut Run) -> anyhow::Result<()> {
    let cpu = cpu_seconds(operator.id());
    let mut took = Vec::new();
    let mut size = 0;
    for _ in 0..SCRAPES {
        let began = Instant::now();
        size = get(operator.metrics, "/metrics").await?.len();
        took.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    took.sort_by(f64::total_cmp);
    run.set("scrape", "p50_ms", quantile(&took, 0.5));
    run.set("scrape", "cpu_ms", (cpu_seconds(operator.id()) - cpu) * 1000.0 / f64::from(SCRAPES));
    run.set("scrape", "size_kib", size as f64 / 1024.0);
    Ok(())
}
