//! The supervisors by namespace and name: looked up by what a watch shows,
//! without an allocation.

use std::collections::HashMap;
use std::sync::Arc;

use actix::Addr;

use crate::api::{TaskKey, Uid};
use crate::supervisor::actor::Supervisor;
use crate::supervisor::time::Instant;

/// What the dispatcher knows of a Task.
pub(super) struct Entry {
    pub(super) key: TaskKey,
    pub(super) uid: Uid,
    /// When a watch last told of it.
    pub(super) seen: Instant,
    /// Tells this supervisor from others that had the same Task.
    pub(super) number: u64,
    /// None while a supervisor that panicked waits to be started again.
    pub(super) supervisor: Option<Addr<Supervisor>>,
    /// Panics in a row.
    pub(super) restarts: u32,
}

/// All Tasks.
#[derive(Default)]
pub(super) struct Table {
    namespaces: HashMap<Arc<str>, HashMap<Arc<str>, Entry>>,
    len: usize,
}

impl Table {
    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<&Entry> {
        self.namespaces.get(namespace)?.get(name)
    }

    pub(super) fn get_mut(&mut self, namespace: &str, name: &str) -> Option<&mut Entry> {
        self.namespaces.get_mut(namespace)?.get_mut(name)
    }

    pub(super) fn insert(&mut self, entry: Entry) {
        let TaskKey { namespace, name } = entry.key.clone();
        if self.namespaces.entry(namespace).or_default().insert(name, entry).is_none() {
            self.len += 1;
        }
    }

    pub(super) fn remove(&mut self, key: &TaskKey) -> Option<Entry> {
        let tasks = self.namespaces.get_mut(&key.namespace)?;
        let entry = tasks.remove(&key.name)?;
        self.len -= 1;
        if tasks.is_empty() {
            self.namespaces.remove(&key.namespace);
        }
        Some(entry)
    }

    /// The key of a Task, sharing the namespace's text with the others in it.
    pub(super) fn key(&self, namespace: &str, name: &str) -> TaskKey {
        match self.namespaces.get_key_value(namespace) {
            Some((shared, _)) => TaskKey::new(shared.clone(), name),
            None => TaskKey::new(namespace, name),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The Tasks of one namespace, or all.
    pub(super) fn within<'a>(&'a self, namespace: Option<&'a str>) -> impl Iterator<Item = &'a Entry> {
        self.namespaces
            .iter()
            .filter(move |(name, _)| namespace.is_none_or(|wanted| wanted == &***name))
            .flat_map(|(_, tasks)| tasks.values())
    }
}
