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
