//! One number for a wanted child, to tell whether what was seen still is what is wanted.

use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::num::NonZeroU64;

use serde::Serialize;

use crate::api::v1::TaskSpec;
use crate::api::{TaskKey, Uid};

use super::kind::ChildKind;
use super::render;

/// A digest of a wanted child. Good within one process; never written anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(NonZeroU64);

impl From<NonZeroU64> for Digest {
    fn from(number: NonZeroU64) -> Self {
        Self(number)
    }
}

/// The digest of the child of this kind that `spec` asks for.
pub fn digest(kind: ChildKind, key: &TaskKey, uid: &Uid, spec: &TaskSpec) -> Digest {
    match kind {
        ChildKind::ConfigMap => of(&render::config_map(key, uid, spec)),
        ChildKind::Service => of(&render::service(key, uid, spec)),
        ChildKind::Deployment => of(&render::deployment(key, uid, spec)),
    }
}

fn of(wanted: &impl Serialize) -> Digest {
    struct Hashing(DefaultHasher);
    impl io::Write for Hashing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut hashing = Hashing(DefaultHasher::new());
    // Plain structs with text keys, into a sink that takes everything: this cannot fail.
    let written = serde_json::to_writer(&mut hashing, wanted);
    debug_assert!(written.is_ok());
    Digest(NonZeroU64::new(hashing.0.finish()).unwrap_or(NonZeroU64::MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_changes_with_its_child_only() {
        let usual = TaskSpec { replicas: 1, port: 80, ..TaskSpec::default() };
        let digests = |uid: &str, spec: &TaskSpec| {
            ChildKind::ALL.map(|kind| digest(kind, &TaskKey::new("default", "web"), &uid.into(), spec))
        };
        let env = [("A".to_owned(), "1".to_owned())].into();
        let cases = [
            ("nothing", "u", usual.clone(), [false, false, false]),
            ("replicas", "u", TaskSpec { replicas: 2, ..usual.clone() }, [false, false, true]),
            ("image", "u", TaskSpec { image: "x".to_owned(), ..usual.clone() }, [false, false, true]),
            ("port", "u", TaskSpec { port: 81, ..usual.clone() }, [true, true, true]),
            ("env", "u", TaskSpec { env, ..usual.clone() }, [true, false, true]),
            ("owner", "another", usual.clone(), [true, true, true]),
        ];
        for (what, uid, spec, changed) in cases {
            let (before, after) = (digests("u", &usual), digests(uid, &spec));
            assert_eq!([0, 1, 2].map(|kind| before[kind] != after[kind]), changed, "{what}");
        }
    }
}
