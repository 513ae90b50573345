//! From exec to ready, and to the first thing done, on an empty cluster.

use std::time::Duration;

use crate::bed::{Bed, USER};
use crate::load::create;
use crate::results::Run;
use crate::sight::quantile;
use crate::subject::Subject;
use crate::usage::memory;

/// How often it is started.
const STARTS: usize = 5;
/// For what it allocates behind its start.
const PAUSE: Duration = Duration::from_secs(3);

/// Starts it some times; the medians count.
///
/// # Errors
/// If it does not start.
pub(crate) async fn run(bed: &Bed, subject: &Subject, run: &mut Run) -> anyhow::Result<()> {
    let (mut ready, mut working, mut resident) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..STARTS {
        let name = format!("waiting-{number}");
        create(&bed.admin, "load-0", &name).await?;
        let mut operator = subject.start(&bed.cluster.kubeconfig(USER)?, &[], None)?;
        ready.push(operator.ready().await?.as_secs_f64() * 1000.0);
        bed.until_worked_on("load-0", &name, &mut operator).await?;
        working.push(operator.began.elapsed().as_secs_f64() * 1000.0);
        tokio::time::sleep(PAUSE).await;
        resident.push(memory(operator.id()).resident / 1024.0);
        operator.stop();
    }
    for (figure, mut values) in [("ready_ms", ready), ("first_child_ms", working), ("resident_mib", resident)]
    {
        values.sort_by(f64::total_cmp);
        run.set("start", figure, quantile(&values, 0.5));
    }
    Ok(())
}
