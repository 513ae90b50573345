//! What can be seen of the Tasks and their children, and since when, by watches of the bench's own.

use std::cell::RefCell;
use std::collections::HashMap;
use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::bail;
use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::api::{ApiResource, DynamicObject, ObjectMeta};
use kube::core::{GroupVersionKind, PartialObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use task_operator::desired::{ChildKind, task_name_of};
use tokio::task::JoinHandle;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// What is waited for of each Task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// All children are there.
    Children,
    /// Its phase is Succeeded.
    Succeeded,
    /// The Deployment has a new spec and the ConfigMap a new text.
    Changed,
    /// It is gone.
    Gone,
}

/// A Task by its name, which is unique over all namespaces here.
#[derive(Debug, Default)]
struct Item {
    there: bool,
    succeeded: bool,
    /// Generation and version of each child.
    children: [Option<(i64, String)>; 3],
    /// The same when the change was asked for.
    before: [Option<(i64, String)>; 3],
    asked: Option<Instant>,
    done: Option<Instant>,
}

impl Item {
    fn meets(&self, goal: Goal) -> bool {
        let [config_map, service, deployment] = &self.children;
        match goal {
            Goal::Children => config_map.is_some() && service.is_some() && deployment.is_some(),
            Goal::Succeeded => self.succeeded,
            Goal::Gone => !self.there,
            Goal::Changed => {
                let generation = |child: &Option<(i64, String)>| child.as_ref().map(|(number, _)| *number);
                generation(deployment) > generation(&self.before[2])
                    && config_map.as_ref().map(|(_, version)| version)
                        != self.before[0].as_ref().map(|(_, version)| version)
            }
        }
    }
}

#[derive(Debug)]
struct Seen {
    goal: Goal,
    items: HashMap<String, Item>,
    done: usize,
    synced: usize,
}

impl Seen {
    fn change(&mut self, name: &str, change: impl FnOnce(&mut Item)) {
        let item = self.items.entry(name.to_owned()).or_default();
        change(item);
        if item.asked.is_some() && item.done.is_none() && item.meets(self.goal) {
            item.done = Some(Instant::now());
            self.done += 1;
        }
    }
}

/// Watches of everything.
pub(crate) struct Sight {
    seen: Rc<RefCell<Seen>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Sight {
    /// Starts to watch, on a `LocalSet`, and waits until all is listed.
    pub(crate) async fn start(client: &Client) -> Self {
        let seen = Seen { goal: Goal::Children, items: HashMap::new(), done: 0, synced: 0 };
        let mut sight = Self { seen: Rc::new(RefCell::new(seen)), tasks: Vec::new() };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("task.example.io", "v1", "Task"));
        let tasks: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        sight.follow(watcher(tasks, watcher::Config::default()), |seen, event| match event {
            Event::Apply(task) | Event::InitApply(task) => {
                let succeeded = task.data["status"]["phase"] == "Succeeded";
                seen.change(&name(&task.metadata), |item| {
                    item.there = true;
                    item.succeeded = succeeded;
                });
            }
            Event::Delete(task) => seen.change(&name(&task.metadata), |item| item.there = false),
            Event::Init | Event::InitDone => {}
        });
        sight.follow_children::<ConfigMap>(client, ChildKind::ConfigMap);
        sight.follow_children::<Service>(client, ChildKind::Service);
        sight.follow_children::<Deployment>(client, ChildKind::Deployment);
        while sight.seen.borrow().synced < 4 {
            tokio::time::sleep(PAUSE).await;
        }
        sight
    }

    fn follow_children<K>(&mut self, client: &Client, kind: ChildKind)
    where
        K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + 'static,
    {
        let api: Api<PartialObjectMeta<K>> = Api::all(client.clone());
        let set = move |seen: &mut Seen, metadata: &ObjectMeta, there: bool| {
            let of = name(metadata);
            let Some(task) = task_name_of(kind, &of) else { return };
            let version = metadata.resource_version.clone().unwrap_or_default();
            let child = there.then(|| (metadata.generation.unwrap_or_default(), version));
            seen.change(task, |item| item.children[kind.index()] = child);
        };
        self.follow(watcher(api, watcher::Config::default()), move |seen, event| match event {
            Event::Apply(child) | Event::InitApply(child) => set(seen, &child.metadata, true),
            Event::Delete(child) => set(seen, &child.metadata, false),
            Event::Init | Event::InitDone => {}
        });
    }

    fn follow<T: 'static>(
        &mut self,
        events: impl futures::Stream<Item = watcher::Result<Event<T>>> + 'static,
        take: impl Fn(&mut Seen, Event<T>) + 'static,
    ) {
        let seen = self.seen.clone();
        self.tasks.push(tokio::task::spawn_local(async move {
            let mut events = pin!(events.default_backoff());
            while let Some(event) = events.next().await {
                // A watch that breaks is started again by itself.
                let Ok(event) = event else { continue };
                if matches!(event, Event::InitDone) {
                    seen.borrow_mut().synced += 1;
                }
                take(&mut seen.borrow_mut(), event);
            }
        }));
    }

    /// From here on Tasks are asked for `goal`.
    pub(crate) fn expect(&self, goal: Goal) {
        let mut seen = self.seen.borrow_mut();
        seen.goal = goal;
        seen.done = 0;
        for item in seen.items.values_mut() {
            (item.asked, item.done) = (None, None);
        }
    }

    /// This Task is asked for it now.
    pub(crate) fn ask(&self, task: &str) {
        let mut seen = self.seen.borrow_mut();
        let item = seen.items.entry(task.to_owned()).or_default();
        item.before = item.children.clone();
        item.asked = Some(Instant::now());
    }

    /// Waits until `count` Tasks have what they were asked for; how long each took, in seconds, in order.
    ///
    /// # Errors
    /// If that takes longer than `limit`.
    pub(crate) async fn wait(&self, count: usize, limit: Duration) -> anyhow::Result<Vec<f64>> {
        let began = Instant::now();
        while self.seen.borrow().done < count {
            if began.elapsed() > limit {
                let seen = self.seen.borrow();
                bail!("{} of {count} Tasks are {:?} after {limit:?}", seen.done, seen.goal);
            }
            tokio::time::sleep(PAUSE).await;
        }
        let seen = self.seen.borrow();
        let took = |item: &Item| Some(item.done?.duration_since(item.asked?).as_secs_f64());
        let mut all: Vec<f64> = seen.items.values().filter_map(took).collect();
        all.sort_by(f64::total_cmp);
        Ok(all)
    }
}

impl Drop for Sight {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

fn name(metadata: &ObjectMeta) -> String {
    metadata.name.clone().unwrap_or_default()
}

/// The value that this part of `sorted` does not exceed; 0 of nothing.
pub(crate) fn quantile(sorted: &[f64], part: f64) -> f64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of the length is an index"
    )]
    let index = (part * sorted.len() as f64) as usize;
    sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}
