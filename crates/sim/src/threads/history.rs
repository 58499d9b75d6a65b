//! What writers have begun to write, and what was acknowledged.
//!
//! **Invariant:** a batch is in the history before it is written; `acknowledged` never runs ahead of the engine.

use std::sync::atomic::{AtomicU64, Ordering};

use forebay_env::sync::Mutex;

use super::{Contents, World};

/// Threads that write.
pub(super) const WRITERS: usize = 3;
/// Keys of each.
pub(super) const KEYS: usize = 150;

/// A value, and the batch that left it.
type Version = (u64, Option<Vec<u8>>);

pub(super) struct History {
    /// By table, writer and key, in the order of batches.
    versions: Vec<Vec<Mutex<Vec<Vec<Version>>>>>,
    begun: Vec<AtomicU64>,
    acknowledged: Vec<AtomicU64>,
}

impl History {
    pub(super) fn new(tables: usize) -> Self {
        let keys = || Mutex::new(vec![Vec::new(); KEYS]);
        let numbers = || (0..WRITERS).map(|_| AtomicU64::new(0)).collect();
        Self {
            versions: (0..tables).map(|_| (0..WRITERS).map(|_| keys()).collect()).collect(),
            begun: numbers(),
            acknowledged: numbers(),
        }
    }

    /// A batch is about to be written.
    pub(super) fn begin(&self, writer: usize, number: u64, changes: Vec<(usize, usize, Option<Vec<u8>>)>) {
        for (table, key, value) in changes {
            self.versions[table][writer].lock()[key].push((number, value));
        }
        self.begun[writer].store(number, Ordering::SeqCst);
    }

    pub(super) fn acknowledge(&self, writer: usize, number: u64) {
        self.acknowledged[writer].store(number, Ordering::SeqCst);
    }

    pub(super) fn acknowledged(&self, writer: usize) -> u64 {
        self.acknowledged[writer].load(Ordering::SeqCst)
    }

    pub(super) fn all_acknowledged(&self) -> Vec<u64> {
        (0..WRITERS).map(|writer| self.acknowledged(writer)).collect()
    }

    pub(super) fn all_begun(&self) -> Vec<u64> {
        self.begun.iter().map(|begun| begun.load(Ordering::SeqCst)).collect()
    }

    /// What a key has after a batch.
    pub(super) fn state(&self, table: usize, writer: usize, key: usize, number: u64) -> Option<Vec<u8>> {
        state_of(&self.versions[table][writer].lock()[key], number)
    }

    /// What a key may have that is read after this batch was acknowledged.
    pub(super) fn states(&self, table: usize, writer: usize, key: usize, from: u64) -> Vec<Option<Vec<u8>>> {
        let versions = &self.versions[table][writer].lock()[key];
        let later = versions.iter().filter(|(number, _)| *number > from).map(|(_, value)| value.clone());
        std::iter::once(state_of(versions, from)).chain(later).collect()
    }

    /// What tables have must be, for each writer, the states after one of its batches within these bounds.
    pub(super) fn check(&self, tables: &[Contents], before: &[u64], begun: &[u64], what: &str) {
        for writer in 0..WRITERS {
            let possible = before[writer]..=begun[writer].max(before[writer]);
            let fits = |number: u64| self.difference(tables, writer, number).is_none();
            if !possible.clone().any(fits) {
                let difference = self.difference(tables, writer, before[writer]).unwrap_or_default();
                panic!(
                    "{what}: no batch of writer {writer} from {possible:?} fits; of the first {difference}"
                );
            }
        }
        let known: usize = tables.iter().map(Contents::len).sum();
        let own =
            |key: &&Vec<u8>| (0..WRITERS).any(|writer| key.starts_with(format!("{writer}-").as_bytes()));
        assert_eq!(known, tables.iter().flat_map(Contents::keys).filter(own).count(), "keys of nobody");
    }

    fn difference(&self, tables: &[Contents], writer: usize, number: u64) -> Option<String> {
        for (table, contents) in tables.iter().enumerate() {
            let versions = self.versions[table][writer].lock();
            for (key, versions) in versions.iter().enumerate() {
                let (got, wanted) = (contents.get(&World::key(writer, key)), state_of(versions, number));
                if got != wanted.as_ref() {
                    let (got, wanted) = (super::show(&got.cloned()), super::show(&wanted));
                    return Some(format!("key {key} in table {table} is {got}, was {wanted}"));
                }
            }
        }
        None
    }

    /// Everything as it is, while nobody writes.
    pub(super) fn kept(&self) -> Vec<Vec<Vec<Option<Vec<u8>>>>> {
        let keys = |keys: &Mutex<Vec<Vec<Version>>>| -> Vec<_> {
            keys.lock().iter().map(|versions| state_of(versions, u64::MAX)).collect()
        };
        self.versions.iter().map(|writers| writers.iter().map(keys).collect()).collect()
    }

    /// Everything becomes as it was, while nobody writes.
    pub(super) fn restore(&self, kept: &[Vec<Vec<Option<Vec<u8>>>>]) {
        for (writers, then) in self.versions.iter().zip(kept) {
            for ((keys, then), begun) in writers.iter().zip(then).zip(&self.begun) {
                let number = begun.load(Ordering::SeqCst);
                for (versions, then) in keys.lock().iter_mut().zip(then) {
                    versions.push((number, then.clone()));
                }
            }
        }
    }
}

fn state_of(versions: &[Version], number: u64) -> Option<Vec<u8>> {
    versions.iter().rev().find(|(at, _)| *at <= number).and_then(|(_, value)| value.clone())
}

/// The batch that wrote a value.
pub(super) fn number_of(value: &[u8]) -> u64 {
    value.first_chunk().map_or(0, |number| u64::from_le_bytes(*number))
}
