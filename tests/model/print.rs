//! The fingerprint by which a state is known again: made once per state, of
//! what tells states apart. A build for tests spends most of its time here, so
//! it is a plain hash, as wyhash folds its products.

use std::hash::{Hash, Hasher};

use task_operator::supervisor::State;
use task_operator::supervisor::state::TaskRecord;

use crate::supervised::Supervised;

/// Folds what it is given into 64 bits.
#[derive(Default)]
pub(crate) struct Print(u64);

const SALT: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for Print {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let product =
            u128::from(self.0 ^ word ^ SALT) * u128::from(word.rotate_left(32) ^ 0xe703_7ed1_a0b4_28db);
        self.0 = (product as u64) ^ ((product >> 64) as u64) ^ self.0.rotate_left(23);
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(word.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }

    fn write_i32(&mut self, word: i32) {
        self.write_u64(word as u64);
    }

    fn write_i64(&mut self, word: i64) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(SALT);
        mixed ^ (mixed >> 29)
    }
}

/// The fingerprint of a value.
pub(crate) fn print(value: &impl Hash) -> u64 {
    let mut print = Print::default();
    value.hash(&mut print);
    print.finish()
}

/// All but what follows from the rest: the key from the site, the spec from the digests of what it asks for.
impl Hash for Supervised {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { state: record, wire, reply, timer, said, offered, farewell } = self;
        let State {
            key: _,
            task,
            children,
            rollout,
            pass,
            trouble,
            status_trouble,
            diagnosis,
            requeue_at,
            wake_at,
            status_since,
            announced,
            parting,
            passes: _,
            outbox,
        } = record;
        let TaskRecord {
            uid,
            version,
            touched,
            generation,
            deleting,
            deleted_at: _,
            finalizer,
            other_finalizers,
            spec: _,
            fault: _,
            wanted,
            status,
            gone,
        } = task;
        (
            uid,
            version,
            touched,
            generation,
            deleting,
            finalizer,
            other_finalizers.len(),
            wanted,
            status,
            gone,
        )
            .hash(state);
        (children, rollout, pass, trouble, status_trouble, diagnosis).hash(state);
        (requeue_at, wake_at, status_since, announced, parting, outbox).hash(state);
        (wire, reply, timer, said, offered, farewell).hash(state);
    }
}
