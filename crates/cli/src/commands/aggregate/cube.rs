//! Coarser groupings out of the finest one, made anew at each showing. The input is read once, however many groupings
//! there are: [`Groupings`] says which follow from which.
//!
//! A key of these groups begins with its grouping.

use std::collections::BTreeMap;

use forebay::Error;
use forebay_aggregate::{
    Aggregate, Aggregator as _, Children, Grouping, Groupings, HashAggregator, group_key,
};
use std::sync::Arc;

use super::gathering::Gatherer;
use super::groups::{Groups, Held, Walks};
use super::means::Means;

/// The groups of all groupings, out of those by all columns.
pub(super) fn derive<A: Aggregate>(
    groupings: &Groupings,
    base: Groups<A>,
    means: &Means,
) -> Result<Groups<A>, Error> {
    let Groups { function, held: finest, mut memory_bytes_peak, means: of_base } = base;
    let mut levels: Vec<Held<A>> = Vec::new();
    let mut sizes = BTreeMap::from([(Grouping::FINEST, 0)]);
    for left_out in 1.. {
        let children = groupings.children(left_out, &sizes);
        if children.is_empty() {
            break;
        }
        let used: usize = levels.iter().map(Held::memory_bytes).sum();
        let left = means.memory_bytes.saturating_sub(used);
        let share = Means { memory_bytes: left, readers: 1, ..means.clone() };
        let mut level = Level::new(&function, &share, groupings, &children);
        match levels.last() {
            None => finest.for_each(&mut |key, state| level.add_below(Grouping::FINEST, key, state))?,
            Some(before) => before.for_each(&mut |key, state| {
                let (grouping, key) = group_key::split_grouping(key);
                level.add_below(grouping, key, state)
            })?,
        }
        let level = level.groups.finish()?;
        sizes.clear();
        level.for_each(&mut |key, _| {
            *sizes.entry(group_key::split_grouping(key).0).or_default() += 1;
            Ok(())
        })?;
        levels.push(level);
    }
    let held = Held::Cube(Box::new(finest), levels);
    memory_bytes_peak = memory_bytes_peak.max(held.memory_bytes());
    Ok(Groups { function, means: of_base, held, memory_bytes_peak })
}

/// A level that is being made.
struct Level<'a, A: Aggregate> {
    groupings: &'a Groupings,
    children: &'a Children,
    groups: LevelGroups<'a, A>,
    key: Vec<u8>,
}

impl<'a, A: Aggregate> Level<'a, A> {
    /// An empty one; half of the memory is for groups as they are, for the packed ones are filled from them.
    fn new(function: &'a Arc<A>, means: &Means, groupings: &'a Groupings, children: &'a Children) -> Self {
        let means = means.share(1, 2);
        let held = Pending::Loose(HashAggregator::new(Arc::clone(function), means.memory_bytes));
        Self { groupings, children, groups: LevelGroups { function, means, held }, key: Vec::new() }
    }

    /// Adds a group's state to the groups that follow from its grouping.
    fn add_below(&mut self, grouping: Grouping, key: &[u8], state: &[u8]) -> Result<(), Error> {
        let Self { groupings, children, groups, key: spare } = self;
        groupings.follow(children, grouping, key, spare, &mut |_, masked| groups.add(masked, state))
    }
}

/// The groups of a level: as they are while they fit, and packed from then on.
struct LevelGroups<'a, A: Aggregate> {
    function: &'a Arc<A>,
    means: Means,
    held: Pending<A>,
}

enum Pending<A: Aggregate> {
    Loose(HashAggregator<Arc<A>>),
    Packed(Box<Gatherer<A>>),
}

impl<A: Aggregate> LevelGroups<'_, A> {
    fn add(&mut self, key: &[u8], state: &[u8]) -> Result<(), Error> {
        match &mut self.held {
            Pending::Packed(groups) => return groups.add_state(key, state),
            Pending::Loose(groups) => {
                if groups.add_state(key, state).is_ok() {
                    return Ok(());
                }
                let mut packed = Gatherer::new(Arc::clone(self.function), self.means.clone())?;
                groups.finalize()?;
                groups.for_each(&mut |key, state| packed.add_state(key, state))?;
                packed.add_state(key, state)?;
                self.held = Pending::Packed(Box::new(packed));
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Held<A>, Error> {
        match self.held {
            Pending::Packed(groups) => Ok(groups.finish(Walks::Many)?.held),
            Pending::Loose(mut groups) => {
                // What cannot be merged beforehand is merged whenever it is shown.
                drop(groups.finalize());
                Ok(Held::Loose(groups))
            }
        }
    }
}
