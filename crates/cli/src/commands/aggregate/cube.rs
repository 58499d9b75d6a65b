//! Coarser groupings out of the finest one: every group's state is merged under its key with some columns
//! left out. The input is read once, however many groupings there are.
//!
//! 1. Groupings come in levels, by how many columns they leave out. The first follow from the finest groups.
//! 2. Each further one follows from one of the level before, which leaves out one column less: from that with the
//!    fewest groups. So most groups are merged out of few.
//!
//! A key of these groups begins with its *grouping*: two bytes, in which the bit of each column that is left
//! out is set, the last column's lowest, as by `GROUPING` in SQL.

use std::collections::BTreeMap;

use forebay::Error;
use forebay_aggregate::{Aggregate, Aggregator as _, HashAggregator};
use std::sync::Arc;

use super::gathering::Gatherer;
use super::groups::{Groups, Held};
use super::keys;
use super::means::Means;

/// The most columns of a cube.
pub(super) const COLUMNS_MAX: usize = 12;

/// Which columns are left out in each grouping.
#[derive(Debug)]
pub(super) struct Cube {
    groupings: Vec<u16>,
}

impl Cube {
    /// Every choice of this many columns.
    pub(super) fn full(columns: usize) -> Self {
        Self { groupings: (0..1 << columns).collect() }
    }

    /// The last one, the last two, and so on to all.
    pub(super) fn rollup(columns: usize) -> Self {
        Self { groupings: (0..=columns).map(|left_out| (1 << left_out) - 1).collect() }
    }

    /// The groups of all groupings, out of those by all columns.
    pub(super) fn derive<A: Aggregate>(&self, base: Groups<A>, means: &Means) -> Result<Groups<A>, Error> {
        let Groups { function, held: finest, mut memory_bytes_peak, means: of_base } = base;
        let mut levels: Vec<Held<A>> = Vec::new();
        let mut sizes = BTreeMap::from([(0, 0)]);
        for left_out in 1.. {
            let children = self.children(left_out, &sizes);
            if children.is_empty() {
                break;
            }
            let used: usize = levels.iter().map(Held::memory_bytes).sum();
            let share = Means { memory_bytes: means.memory_bytes.saturating_sub(used), ..means.clone() };
            let mut level = Level::new(&function, &share);
            match levels.last() {
                None => finest.for_each(&mut |key, state| level.add_below(0, key, &children, state))?,
                Some(before) => before.for_each(&mut |key, state| {
                    let (grouping, key) = keys::split_grouping(key);
                    level.add_below(grouping, key, &children, state)
                })?,
            }
            let level = level.finish()?;
            sizes.clear();
            level.for_each(&mut |key, _| {
                *sizes.entry(keys::split_grouping(key).0).or_default() += 1;
                Ok(())
            })?;
            levels.push(level);
        }
        let held = Held::Cube(Box::new(finest), levels);
        memory_bytes_peak = memory_bytes_peak.max(held.memory_bytes());
        Ok(Groups { function, means: of_base, held, memory_bytes_peak })
    }

    /// The groupings that leave out this many columns, each under the one that it follows from: of those that leave out
    /// one less, that of the least size.
    fn children(&self, left_out: u32, sizes: &BTreeMap<u16, u64>) -> BTreeMap<u16, Vec<u16>> {
        let mut children: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
        for grouping in self.groupings.iter().filter(|grouping| grouping.count_ones() == left_out) {
            let finer = sizes.iter().filter(|(finer, _)| *finer & grouping == **finer);
            if let Some((parent, _)) = finer.min_by_key(|(_, size)| **size) {
                children.entry(*parent).or_default().push(*grouping);
            }
        }
        children
    }
}

/// The groups of a level: as they are while they fit, and packed from then on.
struct Level<'a, A: Aggregate> {
    function: &'a Arc<A>,
    means: Means,
    groups: LevelGroups<A>,
    key: Vec<u8>,
}

enum LevelGroups<A: Aggregate> {
    Loose(HashAggregator<Arc<A>>),
    Packed(Box<Gatherer<A>>),
}

impl<'a, A: Aggregate> Level<'a, A> {
    /// An empty one; half of the memory is for groups as they are, for the packed ones are filled from them.
    fn new(function: &'a Arc<A>, means: &Means) -> Self {
        let means = means.share(1, 2);
        let groups = LevelGroups::Loose(HashAggregator::new(Arc::clone(function), means.memory_bytes));
        Self { function, means, groups, key: Vec::new() }
    }

    /// Adds a group's state to the groups that follow from its grouping.
    fn add_below(
        &mut self,
        grouping: u16,
        key: &[u8],
        children: &BTreeMap<u16, Vec<u16>>,
        state: &[u8],
    ) -> Result<(), Error> {
        let Some(children) = children.get(&grouping) else { return Ok(()) };
        let columns = keys::split(key);
        for child in children {
            let mut masked = std::mem::take(&mut self.key);
            masked.clear();
            keys::push_grouping(*child, &[], &mut masked);
            for (bit, column) in (0..columns.len()).rev().zip(&columns) {
                match child >> bit & 1 {
                    0 => masked.extend_from_slice(column),
                    _ => keys::push(&mut masked, None),
                }
            }
            let added = self.add(&masked, state);
            self.key = masked;
            added?;
        }
        Ok(())
    }

    fn add(&mut self, key: &[u8], state: &[u8]) -> Result<(), Error> {
        match &mut self.groups {
            LevelGroups::Packed(groups) => return groups.add_state(key, state),
            LevelGroups::Loose(groups) => {
                if groups.add_state(key, state).is_ok() {
                    return Ok(());
                }
                let mut packed = Gatherer::new(Arc::clone(self.function), self.means.clone())?;
                groups.finalize()?;
                groups.for_each(&mut |key, state| packed.add_state(key, state))?;
                packed.add_state(key, state)?;
                self.groups = LevelGroups::Packed(Box::new(packed));
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Held<A>, Error> {
        match self.groups {
            LevelGroups::Packed(groups) => Ok(groups.finish()?.held),
            LevelGroups::Loose(mut groups) => {
                // What cannot be merged beforehand is merged whenever it is shown.
                drop(groups.finalize());
                Ok(Held::Loose(groups))
            }
        }
    }
}
