//! From what a watch saw to the supervisor it is for; and the lives of the supervisors.

use std::time::Duration;

use actix::{Actor, ActorFutureExt, AsyncContext, Context, WrapFuture};

use crate::api::{TaskKey, Uid};
use crate::cluster::observe::{ObservedChild, ObservedTask};
use crate::cluster::watches::{Batch, Sighting, WatchId};
use crate::queue::actor::Forget;
use crate::supervisor::actor::{Supervisor, Tell};
use crate::supervisor::backoff;
use crate::supervisor::event::{Failure, Source, TaskView};
use crate::supervisor::state::Presence;
use crate::supervisor::time::Instant;

use super::Dispatcher;
use super::table::Entry;

/// Without a panic for this long, the earlier ones of a supervisor are forgotten.
const PANICS_FORGOTTEN: Duration = Duration::from_secs(600);

impl Dispatcher {
    pub(super) fn route(&mut self, Batch { watch, sightings }: Batch) {
        for sighting in sightings {
            let began = self.watches.get(&watch).map(|state| state.list_began).unwrap_or_default();
            let source = |listed| if listed { Source::List(began) } else { Source::Change };
            match sighting {
                Sighting::ListBegan(at) => self.list_began(&watch, at),
                Sighting::ListDone => self.list_done(&watch, began),
                Sighting::Task(task, listed) => self.task(*task, source(listed)),
                Sighting::TaskGone(task) => self.task_gone(&task),
                Sighting::Child(child, listed) => self.child(child, source(listed)),
                Sighting::ChildGone(child) => self.child_gone(&child),
                Sighting::Broke => {}
                Sighting::Restored => self.tell_all(watch.namespace.as_deref(), || Tell::ConnectionRestored),
            }
        }
    }

    fn list_began(&mut self, watch: &WatchId, at: std::time::Instant) {
        let began = self.clock.read(at);
        if let Some(state) = self.watches.get_mut(watch) {
            state.list_began = began;
        }
    }

    fn list_done(&mut self, watch: &WatchId, began: Instant) {
        match watch.kind {
            Some(kind) => {
                self.tell_all(watch.namespace.as_deref(), || Tell::ChildrenListed(kind, began));
            }
            None => {
                let missing: Vec<TaskKey> = self
                    .table
                    .within(watch.namespace.as_deref())
                    .filter(|entry| entry.seen < began)
                    .map(|entry| entry.key.clone())
                    .collect();
                for key in missing {
                    self.retire(&key);
                }
            }
        }
        if let Some(state) = self.watches.get_mut(watch) {
            state.listed = true;
        }
        let of_kind = |id: &WatchId| id.kind == watch.kind;
        let kind_listed = self.watches.iter().filter(|(id, _)| of_kind(id)).all(|(_, state)| state.listed);
        self.metrics.watch_synced(watch.kind_name(), kind_listed);
        if watch.kind.is_none() && kind_listed {
            self.tasks_listed.send_replace(true);
        }
        self.gate();
    }

    fn tell_all(&self, namespace: Option<&str>, tell: impl Fn() -> Tell) {
        for supervisor in self.table.within(namespace).filter_map(|entry| entry.supervisor.as_ref()) {
            supervisor.do_send(tell());
        }
    }

    fn task(&mut self, task: ObservedTask, source: Source) {
        let now = self.now();
        let (namespace, name) = (&task.metadata.namespace, &task.metadata.name);
        let Some(entry) = self.table.get_mut(namespace, name) else {
            let key = self.table.key(namespace, name);
            let view = task.into_view(None);
            return self.supervise(key, view, source, Presence::Absent, 0);
        };
        entry.seen = now;
        let same = entry.uid == task.metadata.uid;
        if !same {
            // The earlier Task of this name is gone, whether its deletion was seen or not.
            self.metrics.task_deleted(&entry.key);
            let before = std::mem::replace(&mut entry.uid, task.metadata.uid.clone());
            if entry.supervisor.is_none() {
                return self.forget_offers(before);
            }
        }
        if let Some(supervisor) = &entry.supervisor {
            supervisor.do_send(Tell::Task(Box::new(task), source));
        }
    }

    /// The Task of this uid went while its supervisor was down, which would have withdrawn them.
    fn forget_offers(&self, uid: Uid) {
        if let Some(notify) = &self.notify {
            notify.queue.do_send(Forget(uid));
        }
    }

    fn supervise(&mut self, key: TaskKey, view: TaskView, source: Source, children: Presence, restarts: u32) {
        let Some(links) = self.links.clone() else { return };
        self.supervisors += 1;
        let (number, uid, seen) = (self.supervisors, view.uid.clone(), self.now());
        let supervisor = Supervisor::new(key.clone(), view, source, children, number, links).start();
        self.table.insert(Entry { key, uid, seen, number, supervisor: Some(supervisor), restarts });
        self.metrics.supervisors(self.table.len());
    }

    fn task_gone(&mut self, task: &ObservedTask) {
        let entry = self.table.get(&task.metadata.namespace, &task.metadata.name);
        if let Some(entry) = entry.filter(|entry| entry.uid == task.metadata.uid) {
            let key = entry.key.clone();
            self.retire(&key);
        }
    }

    /// Ends the supervisor of a Task that is gone.
    fn retire(&mut self, key: &TaskKey) {
        let Some(entry) = self.table.remove(key) else { return };
        match entry.supervisor {
            Some(supervisor) => supervisor.do_send(Tell::Gone),
            None => self.forget_offers(entry.uid),
        }
        if self.slots.forget(key) {
            self.metrics.pass_abandoned();
        }
        self.timers.forget(key);
        self.metrics.task_deleted(key);
        self.metrics.supervisors(self.table.len());
        tracing::info!(namespace = &*key.namespace, name = &*key.name, "the Task is gone");
        self.grant_slots();
        self.answer_drain();
    }

    fn child(&mut self, child: ObservedChild, source: Source) {
        let entry = child.task().and_then(|(namespace, name)| self.table.get(namespace, name));
        if let Some(supervisor) = entry.and_then(|entry| entry.supervisor.as_ref()) {
            supervisor.do_send(Tell::Child(Box::new(child), source));
        }
    }

    fn child_gone(&mut self, child: &ObservedChild) {
        let entry = child.task().and_then(|(namespace, name)| self.table.get(namespace, name));
        if let Some(supervisor) = entry.and_then(|entry| entry.supervisor.as_ref()) {
            supervisor.do_send(Tell::ChildGone(child.kind(), child.uid(), child.version()));
        }
    }

    /// A supervisor is gone. One that panicked is started again, after a wait
    /// that grows with each panic; the others do not notice.
    pub(super) fn ended(&mut self, key: &TaskKey, current: bool, panicked: bool) {
        if !current {
            return;
        }
        if self.slots.forget(key) {
            self.metrics.pass_abandoned();
        }
        if panicked && !self.stopping {
            self.metrics.supervisor_restarted();
            let now = self.now();
            if let Some(entry) = self.table.get_mut(&key.namespace, &key.name) {
                if now.since(entry.seen) > PANICS_FORGOTTEN {
                    entry.restarts = 0;
                }
                entry.restarts += 1;
                entry.supervisor = None;
                let wait = backoff::after_failures(entry.restarts, entry.number);
                tracing::error!(
                    namespace = &*key.namespace,
                    name = &*key.name,
                    restarts = entry.restarts,
                    wait_s = wait.as_secs_f32(),
                    "a supervisor panicked and is started again"
                );
                self.timers.set(key.clone(), now.after(wait));
            }
        }
        self.grant_slots();
        self.answer_drain();
    }

    /// Starts a supervisor again that panicked: with the Task as it is now, and
    /// with children that have to be looked at, since their events passed by.
    pub(super) fn restart(&mut self, key: &TaskKey, ctx: &mut Context<Self>) {
        let Some(links) = &self.links else { return };
        let read = links.writer.read_task(key);
        let key = key.clone();
        ctx.spawn(read.into_actor(self).map(move |task, dispatcher, ctx| {
            dispatcher.restart_with(key, task);
            dispatcher.set_alarm(ctx);
        }));
    }

    fn restart_with(&mut self, key: TaskKey, task: Result<Option<ObservedTask>, Failure>) {
        let entry = self.table.get(&key.namespace, &key.name);
        let Some(restarts) = entry.filter(|e| e.supervisor.is_none()).map(|e| e.restarts) else { return };
        match task {
            Ok(Some(task)) => {
                self.supervise(key, task.into_view(None), Source::Change, Presence::Unknown, restarts);
            }
            Ok(None) => self.retire(&key),
            Err(failure) => {
                tracing::warn!(task = %key, "{}", failure.message);
                self.timers.set(key, self.now().after(backoff::after_failures(restarts, 0)));
            }
        }
    }
}
