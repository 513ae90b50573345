//! How long nobody works when a leader ends, and when it crashes.

use std::time::{Duration, Instant};

use anyhow::Context;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::ListParams;

use crate::bed::{Bed, USER};
use crate::load::create;
use crate::results::Run;
use crate::sight::quantile;
use crate::subject::{Running, Subject};

const NAMESPACE: &str = "load-0";
/// How often each kind of end is tried.
const TRIES: usize = 3;
/// What a replica gets to be warm before the leader goes.
const WARM: Duration = Duration::from_secs(3);

/// Ends leaders; the medians count. The other replica waits, ready, each time.
///
/// # Errors
/// If nobody takes over.
pub(crate) async fn run(bed: &Bed, subject: &Subject, run: &mut Run) -> anyhow::Result<()> {
    let flags = ["--leader-elect", "--leader-election-namespace=load-0"];
    let start = async || {
        let mut operator = subject.start(&bed.cluster.kubeconfig(USER)?, &flags, None)?;
        operator.ready().await?;
        anyhow::Ok(operator)
    };
    let mut leader = start().await?;
    works(bed, "first", &mut leader).await?;
    let (mut graceful, mut crash) = (Vec::new(), Vec::new());
    for number in 0..TRIES {
        let mut next = start().await?;
        tokio::time::sleep(WARM).await;
        let began = Instant::now();
        leader.signal("TERM")?;
        works(bed, &format!("after-end-{number}"), &mut next).await?;
        graceful.push(began.elapsed().as_secs_f64());
        leader.stop();
        leader = next;
    }
    for number in 0..TRIES {
        let mut next = start().await?;
        tokio::time::sleep(WARM).await;
        leader.kill();
        let expires = expiry(bed).await?;
        works(bed, &format!("after-crash-{number}"), &mut next).await?;
        crash.push(Timestamp::now().duration_since(expires).as_secs_f64());
        leader = next;
    }
    for (figure, mut values) in [("graceful_s", graceful), ("crash_beyond_lease_s", crash)] {
        values.sort_by(f64::total_cmp);
        run.set("failover", figure, quantile(&values, 0.5));
    }
    Ok(())
}

async fn works(bed: &Bed, name: &str, operator: &mut Running) -> anyhow::Result<()> {
    create(&bed.admin, NAMESPACE, name).await?;
    bed.until_worked_on(NAMESPACE, name, operator).await
}

/// When the lease of the leader that is gone runs out.
async fn expiry(bed: &Bed) -> anyhow::Result<Timestamp> {
    let leases = Api::<Lease>::namespaced(bed.admin.clone(), NAMESPACE).list(&ListParams::default()).await?;
    let spec = leases.items.into_iter().next().and_then(|lease| lease.spec).context("there is no lease")?;
    let renewed = spec.renew_time.context("the lease has no time")?.0;
    let lasts = u64::try_from(spec.lease_duration_seconds.unwrap_or_default())?;
    Ok(renewed.checked_add(Duration::from_secs(lasts))?)
}
