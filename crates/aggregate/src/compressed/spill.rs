//! Where memory does not suffice and there is a directory: what is merged goes to an external sort, and memory is
//! free again.
//!
//! **Invariant:** every state is in the leaves or in the sort, and in one of them only, also after an error. It goes
//! from one to the other under the locks of both.

use forebay_env::sync::atomic::Ordering;

use forebay_base::Result;

use super::base::Base;
use super::chunk::Packer;
use super::columns::Columns;
use super::tree::Tree;
use super::worker::recount;
use super::{CompressedAggregator, Sort};
use crate::aggregate::Aggregate;
use crate::aggregator::Aggregator;
use crate::sort::{Sorted, SortedWalk};

impl<A: Aggregate> CompressedAggregator<A> {
    /// Does something with the sort, if there is one, and counts what it takes then.
    fn with_sort<T>(&self, user: impl FnOnce(&mut Sort<A>) -> Result<T>) -> Result<Option<T>> {
        let Some(sorter) = &self.sorter else { return Ok(None) };
        let mut sort = sorter.lock();
        let before = sort.memory_bytes();
        let outcome = user(&mut sort);
        recount(&self.shared.room.sort_bytes, before, sort.memory_bytes());
        outcome.map(Some)
    }

    /// Moves all that is merged to the sort.
    pub(super) fn spill(&self) -> Result<()> {
        // Before anything goes there: who finds it unset under a tree's lock finds all in the tree.
        self.is_spilled.store(true, Ordering::Relaxed);
        self.trees.iter().try_for_each(|tree| self.spill_tree(&mut tree.0.lock()))
    }

    /// Moves what a tree has at home.
    fn spill_tree(&self, tree: &mut Tree) -> Result<()> {
        let mut unpacking = self.unpacking();
        let mut bases = tree.leaves.holders.iter_mut().map(|holder| &mut holder.base);
        bases.try_for_each(|base| self.spill_base(base, &mut unpacking))?;
        if tree.leaves.is_empty() {
            tree.reset(&self.shared);
        }
        Ok(())
    }

    /// Moves all that was merged before, leaf by leaf, and waits for those that are being merged: who reads wants all.
    fn spill_whole(&self) -> Result<()> {
        self.is_spilled.store(true, Ordering::Relaxed);
        let mut unpacking = self.unpacking();
        self.each_leaf(|base| self.spill_base(base, &mut unpacking))?;
        // Their directories go, too.
        self.spill()
    }

    fn spill_base(&self, base: &mut Base, (packer, records): &mut (Packer, Columns)) -> Result<()> {
        let shared = &*self.shared;
        let (mut free, before) = (Vec::new(), base.index_bytes());
        while base.pop(packer, records, &mut free)? {
            shared.pool.give(&mut free);
            let mut moved = 0;
            let outcome = self.with_sort(|sort| {
                (0..records.len()).try_for_each(|at| {
                    sort.add_state(records.keys.get(at), records.states.get(at))?;
                    moved += 1;
                    Ok(())
                })
            });
            if let Err(error) = outcome {
                let mut left = Columns::new(shared.function.state_bytes());
                left.extend(records, moved..records.len());
                base.push(packer, &left, &mut || shared.pool.take());
                recount(&shared.room.index_bytes, before, base.index_bytes());
                return Err(error);
            }
        }
        let broken = std::mem::take(&mut base.broken);
        recount(&shared.room.index_bytes, before, base.index_bytes());
        self.with_sort(|sort| {
            sort.lose(broken);
            Ok(())
        })?;
        Ok(())
    }

    /// Gives a record to the sort that there is no room for elsewhere.
    pub(super) fn sort(&self, key: &[u8], state: &[u8]) -> Result<()> {
        self.is_spilled.store(true, Ordering::Relaxed);
        self.with_sort(|sort| sort.add_state(key, state))?;
        Ok(())
    }

    /// Moves all that is merged to the sort, and has it merge what it has, so that it can be read. What is in files
    /// needs no memory here.
    pub(super) fn finish_spilled(&self) -> Result<()> {
        self.spill_whole()?;
        self.shared.release();
        self.stripes().for_each(|stripe| stripe.lock().shrink(&self.shared));
        self.with_sort(Aggregator::finalize)?;
        Ok(())
    }

    /// What of a key's state is in files.
    pub(super) fn get_spilled(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if !self.is_spilled() {
            return Ok(None);
        }
        let found = self.with_sort(|sort| {
            sort.finalize()?;
            sort.get(key)
        })?;
        Ok(found.flatten())
    }

    /// All that was merged, in one file.
    fn spilled(&self) -> Result<Option<Sorted>> {
        self.finish_spilled()?;
        self.with_sort(|sort| {
            sort.finalize()?;
            sort.finalized()
        })
    }

    pub(super) fn keys_spilled(&self) -> Result<u64> {
        self.spilled()?.map_or(Ok(0), |sorted| sorted.keys())
    }

    /// Walks all that was merged, in the order of keys. No lock is held meanwhile.
    pub(super) fn walk_spilled(&self) -> Result<Option<SortedWalk>> {
        self.spilled()?.map(Sorted::walk).transpose()
    }
}
