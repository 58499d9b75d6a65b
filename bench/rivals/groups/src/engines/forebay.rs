//! Forebay's Compressed Buffer Tree, or several between which keys are divided.

use forebay_aggregate::functions::Count;
use forebay_aggregate::{Aggregator, AggregatorOptions, CompressedAggregator};
use forebay_base::hash::key_hash;

use super::{Engine, Setting, each_key};
use crate::Failure;
use crate::blocks::Blocks;

/// More than there is: an aggregator should not have to make room.
const MEMORY_BYTES: usize = 16 << 30;
/// Not the one that trees order keys by.
const SEED: u64 = 1;

pub(super) struct Trees {
    trees: Vec<CompressedAggregator<Count>>,
    adds: u64,
    /// So many adds between finalising.
    finalize_adds: u64,
}

impl Trees {
    pub(super) fn new(setting: &Setting, adds: u64) -> Result<Self, Failure> {
        let options = AggregatorOptions::default().memory_limit(MEMORY_BYTES).threads(setting.threads);
        let tree = |_| CompressedAggregator::new(Count, options.clone());
        let trees = (0..setting.trees).map(tree).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { trees, adds, finalize_adds: adds.div_ceil(setting.finalizes) })
    }

    fn finalize(&mut self) -> Result<(), Failure> {
        Ok(self.trees.iter_mut().try_for_each(Aggregator::finalize)?)
    }
}

impl Engine for Trees {
    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").into()
    }

    fn add(&mut self, blocks: &Blocks) -> Result<(), Failure> {
        let (mut added, mut next) = (0, self.finalize_adds);
        each_key(blocks, |key| {
            match &mut self.trees[..] {
                [tree] => tree.add(key, ())?,
                trees => {
                    let at = key_hash(key, SEED) % trees.len() as u64;
                    trees[at as usize].add(key, ())?;
                }
            }
            added += 1;
            // The last time is when all is shown.
            if added == next && added < self.adds {
                next += self.finalize_adds;
                self.finalize()?;
            }
            Ok(())
        })
    }

    fn each(&mut self, visit: &mut dyn FnMut(&[u8], u64)) -> Result<(), Failure> {
        self.finalize()?;
        Ok(self.trees.iter().try_for_each(|tree| show(tree, visit))?)
    }
}

/// Shows what an aggregator has counted.
pub(super) fn show(
    counts: &impl Aggregator<Count>,
    visit: &mut dyn FnMut(&[u8], u64),
) -> Result<(), forebay_base::Error> {
    counts.for_each(&mut |key, state| {
        visit(key, state.first_chunk().map_or(0, |count| u64::from_le_bytes(*count)));
        Ok(())
    })
}
