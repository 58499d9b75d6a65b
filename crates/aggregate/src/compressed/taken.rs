//! All groups, taken out of their aggregator: any threads show some leaves each. A leaf is merged as it is shown, and
//! nothing is packed for that.
//!
//! **Invariant:** each group is in one leaf, and leaves are in the order of hashes.

use std::ops::Range;

use forebay_base::merge::Cursor;
use forebay_base::{Record, Result};
use forebay_env::sync::{Arc, Mutex};

use super::CompressedAggregator;
use super::parts::{Part, Parts, Told};
use super::worker::{Shared, recount};
use crate::aggregate::Aggregate;
use crate::aggregator::Visit;

/// Groups that were [taken](CompressedAggregator::take_groups) out of an aggregator, by their keys' hashes.
pub struct TakenGroups<A: Aggregate> {
    shared: Arc<Shared<A>>,
    leaves: Vec<Mutex<Option<Arc<Part>>>>,
    told: Arc<Mutex<Told>>,
}

impl<A: Aggregate> CompressedAggregator<A> {
    /// Takes all groups out of it, to be shown as they lie in memory: where each is shown once or twice, that costs less
    /// than to [finalise](crate::Aggregator::finalize) them. Nothing is taken where some are in files.
    pub fn take_groups(&mut self) -> Result<Option<TakenGroups<A>>> {
        self.collect()?;
        if self.is_spilled() {
            return Ok(None);
        }
        let mut leaves = Vec::new();
        self.each_leaf(|holder| {
            let (tail, base) = (std::mem::take(&mut holder.tail), std::mem::take(&mut holder.base));
            if tail.bytes() > 0 || base.len() > 0 || !base.broken.is_empty() {
                let pool = Arc::clone(&self.shared.pool);
                let part = Part { leaf: holder.leaf, tail, base, number: 0, pool };
                leaves.push(Mutex::new(Some(Arc::new(part))));
            }
            Ok(())
        })?;
        Ok(Some(TakenGroups { shared: Arc::clone(&self.shared), leaves, told: Arc::default() }))
    }
}

impl<A: Aggregate> Drop for TakenGroups<A> {
    fn drop(&mut self) {
        self.free(0..self.leaves.len());
    }
}

impl<A: Aggregate> TakenGroups<A> {
    /// In how many leaves they are.
    pub fn leaves(&self) -> usize {
        self.leaves.len()
    }

    /// A leaf has no more groups than this.
    pub fn groups_max(&self, leaf: usize) -> u64 {
        let part = self.leaves[leaf].lock();
        part.as_ref().map_or(0, |part| part.tail.lengths().records + part.base.records())
    }

    /// Shows the groups of some leaves. Those that are lost are left out.
    pub fn show(&self, leaves: Range<usize>, visit: &mut Visit<'_>) -> Result<()> {
        let parts: Vec<_> = self.leaves[leaves].iter().filter_map(|leaf| leaf.lock().clone()).collect();
        let mut groups = Parts::new(&self.shared, &parts, Arc::clone(&self.told))?;
        while groups.prefix().is_some() {
            let Record { key, value: state, .. } = groups.record();
            visit(key, state)?;
            groups.advance()?;
        }
        Ok(())
    }

    /// Gives back the memory of some leaves, which have no groups from now on.
    pub fn free(&self, leaves: Range<usize>) {
        for leaf in &self.leaves[leaves] {
            if let Some(part) = leaf.lock().take() {
                recount(&self.shared.room.index_bytes, part.base.index_bytes(), 0);
            }
        }
        self.shared.pool.release();
    }

    /// An error that tells of a group that is lost, once all are shown and any is.
    pub fn told(&self) -> Result<()> {
        self.told.lock().lost.first().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// How many bytes of memory they take now, with all that shows them.
    pub fn memory_bytes(&self) -> usize {
        self.shared.memory_bytes()
    }
}
