//! A sorted map as an engine, which can be told to lie.

use std::collections::BTreeMap;
use std::path::Path;

use ::forebay_env::sync::{Arc, Mutex};

use crate::{Adds, Batch, Change, Engine, Failure, Kind, Setup, Transactor};

/// What the map does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lie {
    None,
    /// Loses one put in a thousand.
    Loses,
    /// Keeps the first value of a key.
    Stale,
    /// Turns a bit of one value in a thousand.
    Damages,
    /// Answers absent keys with an empty value.
    Invents,
    /// Does not delete.
    KeepsDeleted,
    /// Leaves the second entry of each scan out.
    Skips,
    /// Swaps the answers to the first two keys of a multi_get.
    Swaps,
}

type Entries = Arc<Mutex<BTreeMap<Vec<u8>, Vec<u8>>>>;

/// The kind; what was written outlives its engine.
pub(super) struct Map {
    lie: Lie,
    entries: Entries,
}

impl Map {
    pub(super) fn new(lie: Lie) -> Self {
        Self { lie, entries: Entries::default() }
    }
}

impl Kind for Map {
    fn name(&self) -> &'static str {
        "map"
    }

    fn version(&self) -> String {
        "1".into()
    }

    fn adds(&self) -> Adds {
        Adds::Too
    }

    fn transacts(&self) -> bool {
        true
    }

    fn options(&self, _: &Setup) -> String {
        "none".into()
    }

    fn open(&self, _: &Path, _: &Setup) -> Result<Box<dyn Engine>, Failure> {
        Ok(Box::new(Open { lie: self.lie, entries: Arc::clone(&self.entries), puts: 0, gets: 0 }))
    }
}

struct Open {
    lie: Lie,
    entries: Entries,
    puts: u64,
    gets: u64,
}

/// One at a time; or the map lies, and loses what comes second.
struct OneTransactor<'a>(&'a Open);

impl Transactor for OneTransactor<'_> {
    fn transact(&mut self, keys: &[u8], key_bytes: usize, change: &mut Change<'_>) -> Result<u64, Failure> {
        let mut entries = self.0.entries.lock();
        for (number, key) in keys.chunks_exact(key_bytes).enumerate() {
            let mut new = Vec::new();
            change(entries.get(key).map(|old| &old[..]), &mut new);
            if self.0.lie != Lie::Loses || number == 0 {
                entries.insert(key.to_vec(), new);
            }
        }
        Ok(1)
    }
}

impl Engine for Open {
    fn transactor(&self) -> Option<Box<dyn Transactor + '_>> {
        Some(Box::new(OneTransactor(self)))
    }

    fn put(&mut self, batch: Batch<'_>) -> Result<(), Failure> {
        let mut entries = self.entries.lock();
        for (key, value) in batch.iter() {
            self.puts += 1;
            match self.lie {
                Lie::Loses if self.puts.is_multiple_of(1000) => {}
                Lie::Stale => drop(entries.entry(key.to_vec()).or_insert_with(|| value.to_vec())),
                _ => drop(entries.insert(key.to_vec(), value.to_vec())),
            }
        }
        Ok(())
    }

    fn add(&mut self, batch: Batch<'_>) -> Result<(), Failure> {
        let mut entries = self.entries.lock();
        for (key, count) in batch.iter() {
            self.puts += 1;
            if self.lie == Lie::Loses && self.puts.is_multiple_of(1000) {
                continue;
            }
            let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
            let sum = entries.entry(key.to_vec()).or_insert_with(|| vec![0; 8]);
            *sum = (number(sum) + number(count)).to_le_bytes().to_vec();
        }
        Ok(())
    }

    fn for_each(&mut self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let entries = self.entries.lock();
        let left_out = |number: usize| self.lie == Lie::Skips && number == 1;
        let shown = entries.iter().enumerate().filter(|(number, _)| !left_out(*number));
        shown.for_each(|(_, (key, value))| each(key, value));
        Ok(())
    }

    fn delete(&mut self, keys: &[u8], key_bytes: usize) -> Result<(), Failure> {
        if self.lie != Lie::KeepsDeleted {
            let mut entries = self.entries.lock();
            keys.chunks_exact(key_bytes).for_each(|key| drop(entries.remove(key)));
        }
        Ok(())
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Failure> {
        self.gets += 1;
        let entries = self.entries.lock();
        let Some(found) = entries.get(key) else { return Ok(self.lie == Lie::Invents) };
        value.extend_from_slice(found);
        if self.lie == Lie::Damages
            && self.gets.is_multiple_of(1000)
            && let Some(last) = value.last_mut()
        {
            *last ^= 1;
        }
        Ok(true)
    }

    fn multi_get(
        &mut self,
        keys: &[u8],
        key_bytes: usize,
        each: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Failure> {
        // Backwards, as any order has to do.
        for (number, key) in keys.chunks_exact(key_bytes).enumerate().rev() {
            let mut value = Vec::new();
            let found = self.get(key, &mut value)?;
            let number = if self.lie == Lie::Swaps && number < 2 { 1 - number } else { number };
            each(number, found.then_some(&value[..]));
        }
        Ok(())
    }

    fn scan(&mut self, from: &[u8], limit: usize, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let entries = self.entries.lock();
        let from = entries.range(from.to_vec()..).enumerate();
        let left_out = |number: usize| self.lie == Lie::Skips && number == 1;
        from.filter(|(number, _)| !left_out(*number))
            .take(limit)
            .for_each(|(_, (key, value))| each(key, value));
        Ok(())
    }

    fn drain(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}
