//! What is on its way from leaves to files: parts, which are merged one after the other as they are written.

use forebay_base::merge::Cursor;
use forebay_base::{Record, Result};
use forebay_env::sync::{Arc, Mutex};

use super::base::Base;
use super::columns::Columns;
use super::leaves::Leaf;
use super::merge::Merger;
use super::stream::Pool;
use super::tail::{Lengths, Tail};
use super::worker::{Shared, recount};
use crate::aggregate::Aggregate;
use crate::broken::Broken;
use crate::spilled::ExpectedGroups;

/// What a leaf had when it was sealed.
pub(super) struct Part {
    pub(super) leaf: Leaf,
    pub(super) tail: Tail,
    pub(super) base: Base,
    /// Of the spill that it goes with.
    pub(super) number: u64,
    pub(super) pool: Arc<Pool>,
}

impl Drop for Part {
    fn drop(&mut self) {
        let mut free = Vec::new();
        std::mem::take(&mut self.tail).give_up(&mut free);
        std::mem::take(&mut self.base).give_up(&mut free);
        self.pool.give(&mut free);
    }
}

pub(super) fn expected<A: Aggregate>(shared: &Shared<A>, parts: &[Arc<Part>]) -> ExpectedGroups {
    let (mut lengths, mut bytes) = (Lengths::default(), 0);
    for part in parts {
        lengths.join(part.tail.lengths());
        lengths.join(part.base.lengths());
        bytes += part.tail.bytes() + part.base.bytes();
    }
    debug_assert!(lengths.records > 0 || bytes == 0, "what takes bytes is a record");
    let state_bytes = shared.function.state_bytes().map(|bytes| bytes as u32);
    let lengths_of_all = lengths.key_bytes().zip(state_bytes);
    let bytes = lengths_of_all.map_or(bytes as u64, |(key_bytes, state_bytes)| {
        lengths.records * u64::from(key_bytes + state_bytes)
    });
    ExpectedGroups { groups: lengths.records, bytes, lengths: lengths_of_all }
}

/// What is known of parts once they are merged.
#[derive(Default)]
pub(super) struct Told {
    pub(super) lost: Broken,
    pub(super) groups: u64,
}

/// Sealed leaves as they are merged, one after the other, and of each some chunks at a time.
pub(super) struct Parts<A: Aggregate> {
    shared: Arc<Shared<A>>,
    parts: std::vec::IntoIter<Arc<Part>>,
    /// What merges them, until all are.
    merger: Option<Merger>,
    /// It is in the midst of a part.
    is_amid: bool,
    here: Few,
    counted_bytes: usize,
    told: Arc<Mutex<Told>>,
}

impl<A: Aggregate> Parts<A> {
    pub(super) fn new(shared: &Arc<Shared<A>>, parts: &[Arc<Part>], told: Arc<Mutex<Told>>) -> Result<Self> {
        let records = Columns::new(shared.function.state_bytes());
        let (merger, counted_bytes) = shared.take_merger();
        let mut all = Self {
            shared: Arc::clone(shared),
            parts: Vec::from(parts).into_iter(),
            merger: Some(merger),
            is_amid: false,
            here: Few::new(records),
            counted_bytes,
            told,
        };
        all.enter()?;
        Ok(all)
    }

    /// Goes on to what is merged next, if that has a record.
    #[cold]
    fn enter(&mut self) -> Result<()> {
        while self.here.prefix().is_none() {
            let Self { shared, parts, merger: Some(merger), is_amid, here, told, .. } = self else {
                return Ok(());
            };
            if !*is_amid {
                let Some(part) = parts.next() else {
                    self.finish();
                    return Ok(());
                };
                merger.begin_loose(&part, shared.sizes.leaf_bytes)?;
            }
            here.at = 0;
            let lost = merger.go_on_loose(&*shared.function, &mut here.records)?;
            debug_assert!(here.records.is_whole() && here.records.hashes.is_sorted(), "a part is in order");
            *is_amid = lost.is_none();
            let mut told = told.lock();
            told.groups += here.records.len() as u64;
            told.lost.append(&mut lost.unwrap_or_default());
            drop(told);
            self.count();
        }
        Ok(())
    }

    /// Gives back what it merged with.
    fn finish(&mut self) {
        let merger = self.merger.take();
        self.count();
        merger.into_iter().for_each(|merger| self.shared.give_back(merger, 0));
    }

    fn count(&mut self) {
        let bytes = self.here.records.memory_bytes() + self.merger.as_ref().map_or(0, Merger::memory_bytes);
        let before = std::mem::replace(&mut self.counted_bytes, bytes);
        recount(&self.shared.room.scratch_bytes, before, bytes);
    }
}

impl<A: Aggregate> Drop for Parts<A> {
    /// In the midst of a part what it merges with is of no use to others.
    fn drop(&mut self) {
        recount(&self.shared.room.scratch_bytes, self.counted_bytes, 0);
    }
}

impl<A: Aggregate> Cursor for Parts<A> {
    #[inline]
    fn prefix(&self) -> Option<u64> {
        self.here.prefix()
    }

    #[inline]
    fn record(&self) -> Record<'_> {
        self.here.record()
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        self.here.advance()?;
        if self.here.prefix().is_none() { self.enter() } else { Ok(()) }
    }
}

/// Records in memory.
pub(super) struct Few {
    records: Columns,
    at: usize,
}

impl Few {
    pub(super) fn new(records: Columns) -> Self {
        Self { records, at: 0 }
    }
}

impl Cursor for Few {
    #[inline]
    fn prefix(&self) -> Option<u64> {
        self.records.hashes.get(self.at).copied()
    }

    #[inline]
    fn record(&self) -> Record<'_> {
        debug_assert!(self.at < self.records.len(), "no record stands at the end");
        Record::put(self.records.keys.get(self.at), self.records.states.get(self.at))
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        debug_assert!(self.at < self.records.len(), "nothing stands behind the end");
        self.at += 1;
        Ok(())
    }
}
