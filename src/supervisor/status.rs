//! The status of a Task as the core holds it, and when two of them say the same.

use std::borrow::Cow;

use crate::api::v1::Phase;
use crate::queue::notice::Transition;

/// Whether a condition holds, as `metav1.Condition` writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody can say.
    Unknown,
}

impl Truth {
    /// The word in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// Reads the word of the API; what is no such word is unknown.
    pub fn parse(word: &str) -> Self {
        match word {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}

/// A CamelCase word that machines read. Those that the operator itself gives
/// cost no allocation.
pub type Reason = Cow<'static, str>;

/// One condition of the status.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Condition {
    /// Whether it holds.
    pub truth: Truth,
    /// Why, for machines.
    pub reason: Reason,
    /// Why, for people.
    pub message: Cow<'static, str>,
    /// The generation it was judged at.
    pub generation: i64,
    /// Since when, in seconds since 1970; set by [`Status::dated`].
    pub since: i64,
}

impl Condition {
    fn says_the_same(&self, other: &Self) -> bool {
        self.truth == other.truth
            && self.reason == other.reason
            && self.message == other.message
            && self.generation == other.generation
    }
}

/// What a sink was told of the changes of a Task's phase, and what it still has to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Notifications {
    /// The number of the last change that was delivered or given up, with all before it.
    pub settled: u64,
    /// The changes after it by their numbers, oldest first. A time of 0 stands for the moment
    /// at which the status is written.
    pub pending: Vec<(u64, Transition)>,
}

/// The status of a Task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Status {
    /// In one word.
    pub phase: Phase,
    /// Pods that are available.
    pub available: i32,
    /// Pods that exist, for the scale subresource.
    pub replicas: i32,
    /// The generation this status is about; -1 before the first pass.
    pub observed_generation: i64,
    /// `selector` selects the Pods of the Task: an autoscaler goes by it.
    pub selects: bool,
    /// Always there after the first pass.
    pub ready: Option<Condition>,
    /// There only while the operator or the Deployment works.
    pub reconciling: Option<Condition>,
    /// There only while the phase is Failed.
    pub stalled: Option<Condition>,
    /// There only while the last notification that was due could not be delivered.
    pub notified: Option<Condition>,
    /// What a sink was told and still has to be; none without one.
    pub notifications: Option<Box<Notifications>>,
    /// Conditions of other types, which are not ours: kept as they are, as JSON.
    pub foreign: Vec<Box<str>>,
    /// `lastUpdateTime` in seconds since 1970, 0 for none.
    pub updated: i64,
}

impl Default for Status {
    /// What the CRD's schema gives a new Task.
    fn default() -> Self {
        Self {
            phase: Phase::Pending,
            available: 0,
            replicas: 0,
            observed_generation: -1,
            selects: false,
            ready: None,
            reconciling: None,
            stalled: None,
            notified: None,
            notifications: None,
            foreign: Vec::new(),
            updated: 0,
        }
    }
}

impl Status {
    /// Whether a reader learns the same of the Task from both. Times do not count, and
    /// neither does what a sink was told.
    pub fn says_the_same(&self, other: &Self) -> bool {
        let same = |a: &Option<Condition>, b: &Option<Condition>| match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => a.says_the_same(b),
            _ => false,
        };
        self.phase == other.phase
            && self.available == other.available
            && self.replicas == other.replicas
            && self.observed_generation == other.observed_generation
            && self.selects == other.selects
            && same(&self.ready, &other.ready)
            && same(&self.reconciling, &other.reconciling)
            && same(&self.stalled, &other.stalled)
    }

    /// This status with its times set: a condition whose truth is the same as
    /// in `before` keeps its time, all else that has none yet is of `now` (seconds since 1970).
    pub fn dated(mut self, before: &Self, now: i64) -> Self {
        let date = |new: &mut Option<Condition>, old: &Option<Condition>| {
            if let Some(new) = new {
                new.since = old.as_ref().filter(|old| old.truth == new.truth).map_or(now, |old| old.since);
            }
        };
        date(&mut self.ready, &before.ready);
        date(&mut self.reconciling, &before.reconciling);
        date(&mut self.stalled, &before.stalled);
        date(&mut self.notified, &before.notified);
        if let Some(notifications) = &mut self.notifications {
            for (_, transition) in notifications.pending.iter_mut().filter(|(_, known)| known.at == 0) {
                transition.at = now;
            }
        }
        self.foreign.clone_from(&before.foreign);
        self.updated = now;
        self
    }
}

/// The beginning of `text` in at most so many bytes.
pub fn shortened(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
