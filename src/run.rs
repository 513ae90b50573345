//! Starts and stops everything, in this order.
//!
//! Start: telemetry, the connection, the servers for probes and metrics, the
//! event recorder, the task queue, the dispatcher, the watches, and the leader election.
//!
//! Stop, on SIGTERM or SIGINT: readiness drops, no new pass begins, the running
//! ones end, the task queue sends what it has, the supervisors go, the events that
//! wait are written, the lease is given back, the servers end. All of it within `--shutdown-timeout`; the exit code is 0. A second
//! signal ends the process at once.

use std::time::Duration;

use actix::{Actor, Addr};
use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::cli::RunArgs;
use crate::cluster::events::Recorder;
use crate::cluster::lease::{Elector, Fence, Release};
use crate::cluster::writer::Writer;
use crate::cluster::{client, watches};
use crate::dispatcher::{Dispatcher, Drain, Parts, Stop, ToDispatcher};
use crate::election;
use crate::queue::{self, actor::Queue};
use crate::servers::Servers;
use crate::supervisor::actor::Notify;
use crate::supervisor::clock::Clock;
use crate::telemetry::{Metrics, logging};
use crate::web::health::Health;

/// How often the event loop shows that it turns.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// The part of the time for a stop that the task queue may take: one in so many.
const DRAIN_PART: u32 = 3;

/// Runs the operator until it is told to stop. Needs an actix system.
///
/// # Errors
/// If it cannot start: no cluster, a wrong configuration, an address in use.
pub async fn run(args: RunArgs) -> anyhow::Result<()> {
    logging::init(&args.log.level, args.log.format)?;
    args.election.check().map_err(anyhow::Error::msg)?;
    args.webhooks.check().map_err(anyhow::Error::msg)?;
    args.notify.check().map_err(anyhow::Error::msg)?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "starting");
    let metrics = Metrics::new(args.serve.metrics_per_task);
    let configuration = client::configuration(args.cluster.kubeconfig.as_deref()).await?;
    let terms = election::terms(&args.election, &configuration);
    let namespace = election::own_namespace(&configuration);
    let client = client::connect(configuration, metrics.clone())?;
    let clock = Clock::default();
    let fence = if args.election.leader_elect { Fence::closed(clock) } else { Fence::open(clock) };

    let health = Health::default();
    let (synced, is_synced) = watch::channel(false);
    let sync = is_synced.clone();
    health.add_information("watches-synced", move || match *sync.borrow() {
        true => Ok(()),
        false => Err("not all watches have listed what there is".to_owned()),
    });
    let servers = Servers::start(&args, &namespace, &client, &health, &metrics)?;

    let (recorder, recorders) = Recorder::start(&client, &fence, &metrics, &election::instance());
    let (tasks_listed, are_tasks_listed) = watch::channel(false);
    let ids = watches::ids(&args.cluster.namespaces());
    let notify = start_queue(&args, &fence, &metrics, clock)?;
    if let Some(notify) = &notify {
        show_that_the_queue_lives(&health, notify.queue.clone());
    }
    let dispatcher = Dispatcher::new(Parts {
        writer: Writer::new(client.clone(), fence.clone()),
        recorder,
        metrics: metrics.clone(),
        clock,
        notify: notify.clone(),
        slots: args.reconcile.max_concurrent_reconciles,
        watches: ids.clone(),
        leading: !args.election.leader_elect,
        tasks_listed,
        synced,
    })
    .start();
    watches::start(
        &client,
        ids,
        &are_tasks_listed,
        &metrics,
        &ToDispatcher { dispatcher: dispatcher.clone(), metrics: metrics.clone() },
    );
    show_that_the_loop_turns(&health);
    announce_sync(is_synced);
    let release = args.election.leader_elect.then(|| {
        let (leads, release) = Elector::start(&client, terms, fence, &metrics);
        election::follow(leads, dispatcher.clone());
        release
    });

    wait_for_signal().await?;
    let queue = notify.map(|notify| (notify.queue, args.reconcile.shutdown_timeout / DRAIN_PART));
    let stop = stop(dispatcher, queue, recorders, release, servers, health);
    if tokio::time::timeout(args.reconcile.shutdown_timeout, stop).await.is_err() {
        tracing::warn!(
            timeout_s = args.reconcile.shutdown_timeout.as_secs(),
            "stopped before all was done: the next start finishes what is left"
        );
    }
    tracing::info!("stopped");
    Ok(())
}

async fn stop(
    dispatcher: Addr<Dispatcher>,
    queue: Option<(Addr<Queue>, Duration)>,
    recorders: Vec<JoinHandle<()>>,
    release: Option<Release>,
    servers: Servers,
    health: Health,
) {
    health.drain();
    let (servers, ()) = tokio::join!(
        async {
            servers.linger().await;
            servers
        },
        stop_work(dispatcher, queue, recorders, release)
    );
    servers.stop().await;
}

async fn stop_work(
    dispatcher: Addr<Dispatcher>,
    queue: Option<(Addr<Queue>, Duration)>,
    recorders: Vec<JoinHandle<()>>,
    release: Option<Release>,
) {
    let drained = dispatcher.send(Drain).await;
    if let Some((queue, patience)) = queue {
        drain(&queue, patience).await;
    }
    if drained.is_err() || dispatcher.send(Stop).await.is_err() {
        tracing::error!("the dispatcher was gone before it was told to stop");
    }
    for recorder in recorders {
        if let Err(error) = recorder.await {
            tracing::error!(%error, "an event recorder ended before its time");
        }
    }
    if let Some(release) = release {
        release.release().await;
    }
}

/// Sends what the task queue has. A sink that is down or slow is not waited for: what it was not
/// told stands in the Tasks, and the next replica waits for the lease.
async fn drain(queue: &Addr<Queue>, patience: Duration) {
    match tokio::time::timeout(patience, queue.send(queue::actor::Drain)).await {
        Ok(Ok(())) => {}
        Ok(Err(_)) => tracing::error!("the task queue was gone before it was told to stop"),
        Err(_) => tracing::warn!("the sink is slow: what it was not told yet is told after the next start"),
    }
}

/// The task queue with its sink; none without a URL.
fn start_queue(
    args: &RunArgs,
    fence: &Fence,
    metrics: &Metrics,
    clock: Clock,
) -> anyhow::Result<Option<Notify>> {
    let Some(sink) = args.notify.sink()? else { return Ok(None) };
    let queue = Queue::new(queue::actor::Parts {
        sink,
        workers: args.notify.queue_workers,
        capacity: args.notify.queue_capacity,
        fence: fence.clone(),
        metrics: metrics.clone(),
        clock,
    });
    Ok(Some(Notify { queue: queue.start(), farewell_timeout: args.notify.farewell_timeout }))
}

/// Resolves at the first signal; a second one ends the process.
async fn wait_for_signal() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be listened to")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be listened to")?;
    let name = tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    };
    tracing::info!(signal = name, "stopping");
    tokio::task::spawn_local(async move {
        let code = tokio::select! {
            _ = terminate.recv() => 143,
            _ = interrupt.recv() => 130,
        };
        tracing::warn!("a second signal: ending at once");
        std::process::exit(code);
    });
    Ok(())
}

fn announce_sync(mut synced: watch::Receiver<bool>) {
    tokio::task::spawn_local(async move {
        // Without a sender the dispatcher is gone, and there is nothing to announce.
        if synced.wait_for(|&synced| synced).await.is_ok() {
            tracing::info!("all watches are synced: reconciling");
        }
    });
}

/// Should the task queue ever end by a panic, nobody would be told any more until the next start.
fn show_that_the_queue_lives(health: &Health, queue: Addr<Queue>) {
    let heartbeat = health.heartbeat("task-queue");
    tokio::task::spawn_local(async move {
        let mut ticks = tokio::time::interval(HEARTBEAT);
        while queue.connected() {
            ticks.tick().await;
            heartbeat.beat();
        }
    });
}

fn show_that_the_loop_turns(health: &Health) {
    let heartbeat = health.heartbeat("event-loop");
    tokio::task::spawn_local(async move {
        let mut ticks = tokio::time::interval(HEARTBEAT);
        loop {
            ticks.tick().await;
            heartbeat.beat();
        }
    });
}
