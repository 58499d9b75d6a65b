//! What is added to windows at one go: merged in memory first, window by window of the finest tier.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use forebay_aggregate::{Aggregate, Aggregator as _, HashAggregator};
use forebay_base::{Error, Result};
use forebay_store::log::Durability;

use super::Windows;
use super::marks::Marks;
use crate::api::batch::Amid;
use crate::context::refuse_guests;
use crate::{Aggregator, Batch};

/// The most memory that the groups of a window take: no longer batch can be committed.
const GROUPS_BYTES_MAX: usize = 1 << 30;

/// Values for [`Windows`], all of which are written or none.
pub struct WindowsBatch<A: Aggregate> {
    windows: Windows<A>,
    /// By where windows of the finest tier begin.
    groups: BTreeMap<u64, HashAggregator<Arc<A>>>,
    amid: Amid,
}

impl<A: Aggregate> fmt::Debug for WindowsBatch<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WindowsBatch({} groups of {:?})", self.len(), self.windows)
    }
}

impl<A: Aggregate> WindowsBatch<A> {
    pub(super) fn new(windows: &Windows<A>) -> Self {
        Self { windows: windows.clone(), groups: BTreeMap::new(), amid: Amid::default() }
    }

    /// Adds a value to a key at a time. A value that the function refuses is an error, and is not added; so is one at
    /// `u64::MAX`, which no range of time reaches.
    pub fn add(&mut self, time: u64, key: impl AsRef<[u8]>, value: A::Input<'_>) -> Result<()> {
        self.add_by(time, |groups| groups.add(key.as_ref(), value))
    }

    /// Merges a state into that of a key at a time.
    pub fn add_state(&mut self, time: u64, key: impl AsRef<[u8]>, state: impl AsRef<[u8]>) -> Result<()> {
        self.add_by(time, |groups| groups.add_state(key.as_ref(), state.as_ref()))
    }

    #[inline]
    fn add_by(
        &mut self,
        time: u64,
        add: impl FnOnce(&mut HashAggregator<Arc<A>>) -> Result<()>,
    ) -> Result<()> {
        if time == u64::MAX {
            return Err(Error::invalid(format!("no window has time {time}: none ends behind it")));
        }
        let parts = &self.windows.parts;
        let start = parts.tiers.period(0).start(time);
        let new = || HashAggregator::new(Arc::clone(&parts.function), GROUPS_BYTES_MAX);
        self.amid.guard(|| add(self.groups.entry(start).or_insert_with(new)))
    }

    /// How many groups it has, of all windows together.
    pub fn len(&self) -> usize {
        self.groups.values().map(HashAggregator::len).sum()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory of its groups.
    pub fn memory_bytes(&self) -> usize {
        self.groups.values().map(|groups| groups.memory_bytes()).sum()
    }

    /// Forgets the values of windows of the finest tier that end before a time, or at it, and returns how many groups
    /// that were: with [`Windows::kept_from`], those that would be refused.
    pub fn forget_before(&mut self, time: u64) -> usize {
        let before = self.len();
        let period = self.windows.parts.tiers.period(0);
        self.groups.retain(|start, _| period.end(*start) > time);
        before - self.len()
    }

    /// Writes all of it, together with bytes of the caller's, such as how far a stream was read: see
    /// [`Windows::metadata`]. Returns the number of the last record. A batch that is committed again is added again.
    pub fn commit(&self, durability: Durability, metadata: impl AsRef<[u8]>) -> Result<u64> {
        self.commit_as(Batch::new(), durability, Some(metadata.as_ref()))
    }

    /// The same together with a batch of other tables of the database.
    pub fn commit_with(
        &self,
        batch: Batch,
        durability: Durability,
        metadata: impl AsRef<[u8]>,
    ) -> Result<u64> {
        self.commit_as(batch, durability, Some(metadata.as_ref()))
    }

    /// The same without metadata: those of before stay.
    pub fn write(&self, batch: Batch, durability: Durability) -> Result<u64> {
        self.commit_as(batch, durability, None)
    }

    pub(super) fn commit_as(
        &self,
        mut batch: Batch,
        durability: Durability,
        metadata: Option<&[u8]>,
    ) -> Result<u64> {
        let parts = &*self.windows.parts;
        refuse_guests()?;
        self.amid.refuse("begin another")?;
        // Nothing is rolled up between the look at the marks and the write.
        let _shared = parts.engine.declared.read();
        let marks = parts.marks_now()?;
        // A window whose only values were refused has none.
        for (start, groups) in self.groups.iter().filter(|(_, groups)| !groups.is_empty()) {
            self.append(&marks, *start, groups, &mut batch)?;
        }
        metadata.iter().for_each(|metadata| parts.declared.put_metadata(&mut batch, metadata));
        parts.engine.writer.write(batch.payload(parts.declared.table().database_id())?, durability)
    }

    /// Appends a window's values, to every window that is to have them.
    fn append(
        &self,
        marks: &Marks,
        start: u64,
        groups: &HashAggregator<Arc<A>>,
        batch: &mut Batch,
    ) -> Result<()> {
        let tiers = &self.windows.parts.tiers;
        let (passed, others) = marks.of_keys(tiers);
        let (passed, others) = (self.targets(&passed, start)?, self.targets(&others, start)?);
        let rolled_key = marks.rolling.as_ref().map(|rolling| &rolling.key[..]);
        groups.for_each(&mut |key, state| {
            let is_passed = rolled_key.is_some_and(|rolled| key <= rolled);
            let targets = if is_passed { &passed } else { &others };
            targets.iter().for_each(|table| batch.add_state(table, key, state));
            Ok(())
        })
    }

    fn targets(&self, marks: &Marks, start: u64) -> Result<Vec<Aggregator<Arc<A>>>> {
        let parts = &*self.windows.parts;
        let targets = marks.targets(&parts.tiers, start);
        if targets.is_empty() {
            let kept_from = marks.floors.last().copied().unwrap_or_default();
            return Err(Error::invalid(format!(
                "windows `{}` keep nothing from before {kept_from}, and a value is of the window from {start} on; leave \
                 it out (WindowsBatch::forget_before)",
                parts.name
            )));
        }
        targets.into_iter().map(|(tier, start)| parts.table(tier, start)).collect()
    }
}
