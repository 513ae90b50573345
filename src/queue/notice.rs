//! What happened to a Task, as the sink is told of it.

use std::fmt;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::v1::Phase;
use crate::api::{TaskKey, Uid};

/// A change of a Task's phase.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transition {
    /// The phase before.
    pub from: Phase,
    /// The phase since.
    pub to: Phase,
    /// When, in seconds since 1970.
    pub at: i64,
    /// `metadata.generation` of the spec that it was judged by.
    pub generation: i64,
    /// Why, for machines: the reason of the condition Ready.
    pub reason: Box<str>,
    /// Why, for people: the message of the condition Ready, shortened.
    pub message: Box<str>,
    /// Changes of the phase between the two that are not told one by one.
    pub skipped: u32,
}

/// The end of a Task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Deletion {
    /// The last phase.
    pub phase: Phase,
    /// `metadata.deletionTimestamp`, in seconds since 1970.
    pub at: i64,
    /// `metadata.generation` of the spec that the last phase was judged by, 0 for none.
    pub generation: i64,
}

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// The phase changed. The number counts the changes of a Task from 1.
    Phase(u64, Transition),
    /// The Task is deleted: the last of its notices.
    Deleted(Deletion),
}

/// Something that happened to a Task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Notice {
    /// The name of the Task.
    pub key: TaskKey,
    /// Which Task of that name.
    pub uid: Uid,
    /// What happened.
    pub what: What,
}

/// The kinds of notices, which are types of CloudEvents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The phase changed to another one than Failed.
    PhaseChanged,
    /// The phase changed to Failed.
    Failed,
    /// The Task is deleted.
    Deleted,
}

impl Kind {
    /// The type of the CloudEvent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PhaseChanged => "io.example.task.phase.changed",
            Self::Failed => "io.example.task.failed",
            Self::Deleted => "io.example.task.deleted",
        }
    }
}

impl Notice {
    /// The number of the notice of a deletion: nothing comes after it.
    pub const DELETION: u64 = u64::MAX;

    /// Which kind it is of.
    pub fn kind(&self) -> Kind {
        match &self.what {
            What::Phase(_, Transition { to: Phase::Failed, .. }) => Kind::Failed,
            What::Phase(..) => Kind::PhaseChanged,
            What::Deleted(_) => Kind::Deleted,
        }
    }

    /// What it is called: the same each time it is told, also by another process,
    /// and different from every other notice, so that a receiver can drop repeats.
    ///
    /// The time is part of it because numbers come back where etcd is restored
    /// from a copy.
    pub fn id(&self) -> String {
        match &self.what {
            What::Phase(number, transition) => format!("{}.{number}.{}", self.uid, transition.at),
            What::Deleted(deletion) => format!("{}.deleted.{}", self.uid, deletion.at),
        }
    }

    /// When it happened.
    pub fn time(&self) -> Timestamp {
        let seconds = match &self.what {
            What::Phase(_, transition) => transition.at,
            What::Deleted(deletion) => deletion.at,
        };
        Timestamp::from_second(seconds).unwrap_or_default()
    }

    /// Which of its Task's notices it is: from 1, and [`Notice::DELETION`] for the last.
    pub fn number(&self) -> u64 {
        match &self.what {
            What::Phase(number, _) => *number,
            What::Deleted(_) => Self::DELETION,
        }
    }

    /// Text that is greater for a later notice of the same Task.
    pub fn sequence(&self) -> String {
        format!("{:020}", self.number())
    }

    /// The payload, as the schema in the documentation has it.
    pub fn data(&self) -> Value {
        let mut data = json!({
            "namespace": &*self.key.namespace,
            "name": &*self.key.name,
            "uid": self.uid.as_str(),
            "time": self.time().to_string(),
        });
        let own = match &self.what {
            What::Phase(number, transition) => json!({
                "number": number,
                "phase": transition.to.as_str(),
                "previousPhase": transition.from.as_str(),
                "generation": transition.generation,
                "reason": &*transition.reason,
                "message": &*transition.message,
                "skipped": transition.skipped,
            }),
            What::Deleted(deletion) => json!({
                "phase": deletion.phase.as_str(),
                "generation": deletion.generation,
            }),
        };
        if let (Some(data), Value::Object(own)) = (data.as_object_mut(), own) {
            data.extend(own);
        }
        data
    }
}

/// For people: what is told, and its number.
impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Phase(number, Transition { from, to, .. }) => {
                write!(f, "notification {number}, phase {from} to {to}")
            }
            What::Deleted(_) => f.write_str("notification of the deletion"),
        }
    }
}

/// Notices for the tests of the files beside this one.
#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(in super::super) fn changed(number: u64, from: Phase, to: Phase) -> Notice {
        let transition = Transition {
            from,
            to,
            at: 1_700_000_000,
            generation: 2,
            reason: "Available".into(),
            message: "all 3 replicas are ready".into(),
            skipped: 0,
        };
        Notice {
            key: TaskKey::new("default", "web"),
            uid: "8f1c".into(),
            what: What::Phase(number, transition),
        }
    }

    pub(in super::super) fn deleted() -> Notice {
        let deletion = Deletion { phase: Phase::Succeeded, at: 1_700_000_100, generation: 2 };
        Notice { what: What::Deleted(deletion), ..changed(1, Phase::Pending, Phase::Running) }
    }

    pub(in super::super) fn any_notice() -> impl Strategy<Value = Notice> {
        let phase = || {
            prop_oneof![
                Just(Phase::Pending),
                Just(Phase::Running),
                Just(Phase::Succeeded),
                Just(Phase::Failed)
            ]
        };
        let times = 0_i64..4_000_000_000;
        (1_u64..1000, phase(), phase(), times, any::<bool>(), "\\PC{0,80}", "[0-9a-f]{8}-[0-9a-f]{4}")
            .prop_map(|(number, from, to, at, deleted, message, uid)| {
                let what = if deleted {
                    What::Deleted(Deletion { phase: to, at, generation: 1 })
                } else {
                    let reason = "RollingOut".into();
                    let message = message.into();
                    What::Phase(
                        number,
                        Transition { from, to, at, generation: 1, reason, message, skipped: 0 },
                    )
                };
                Notice { key: TaskKey::new("team-a", "web"), uid: uid.as_str().into(), what }
            })
    }

    #[test]
    fn a_failure_has_a_type_of_its_own() {
        let kind = |from, to| changed(1, from, to).kind().as_str();
        assert_eq!(kind(Phase::Running, Phase::Failed), "io.example.task.failed");
        assert_eq!(kind(Phase::Failed, Phase::Running), "io.example.task.phase.changed");
        assert_eq!(deleted().kind().as_str(), "io.example.task.deleted");
    }

    #[test]
    fn what_is_told_later_is_greater() {
        let one = changed(9, Phase::Pending, Phase::Running);
        let two = changed(10, Phase::Running, Phase::Succeeded);
        assert!(one.sequence() < two.sequence() && two.sequence() < deleted().sequence());
    }

    #[test]
    fn a_number_that_comes_back_is_another_notice() {
        let before = changed(3, Phase::Pending, Phase::Running);
        let mut after = before.clone();
        let What::Phase(_, transition) = &mut after.what else { unreachable!() };
        transition.at += 60;
        assert_ne!(before.id(), after.id());
    }

    proptest! {
        #[test]
        fn different_notices_have_different_ids(one in any_notice(), two in any_notice()) {
            let same = one.id() == two.id();
            let is_same_event = one.uid == two.uid && one.sequence() == two.sequence() && one.time() == two.time();
            prop_assert_eq!(same, is_same_event);
        }
    }
}
