//! Where memory does not suffice and there is a directory: what is merged goes to an external sort, and memory is
//! free again.
//!
//! **Invariant:** every state is in the leaves or in the sort, and in one of them only, also after an error.

use forebay_base::Result;
use forebay_env::sync::Arc;

use super::chunk::Packer;
use super::columns::Columns;
use super::leaves::Leaves;
use super::tail::restore;
use super::{CompressedAggregator, new_hot};
use crate::aggregate::Aggregate;
use crate::aggregator::Aggregator;
use crate::sort::SortAggregator;

impl<A: Aggregate> CompressedAggregator<A> {
    /// Moves all that is merged to the sort.
    pub(super) fn spill(&mut self) -> Result<()> {
        let Self { sorter: Some(sorter), shared, leaves, .. } = self else { return Ok(()) };
        let state_bytes = shared.function.state_bytes();
        let (mut packer, mut records) = (Packer::new(state_bytes), Columns::new(state_bytes));
        let mut free = Vec::new();
        self.is_spilled = true;
        for base in leaves.holders.iter_mut().map(|holder| &mut holder.base) {
            let before = base.index_bytes();
            while base.pop(&mut packer, &mut records, &mut free)? {
                shared.pool.give(&mut free);
                let mut moved = 0;
                let outcome = (0..records.len()).try_for_each(|at| {
                    sorter.add_state(records.keys.get(at), records.states.get(at))?;
                    moved += 1;
                    Ok(())
                });
                if let Err(error) = outcome {
                    let mut left = Columns::new(state_bytes);
                    left.extend(&records, moved..records.len());
                    base.push(&mut packer, &left, &mut || shared.pool.take());
                    shared.forget(before - base.index_bytes());
                    return Err(error);
                }
            }
            shared.forget(before);
        }
        *leaves = Leaves::new(self.sizes.tail_bytes_min);
        Ok(())
    }

    /// Gives a record to the sort that there is no room for elsewhere.
    pub(super) fn sort(&mut self, key: &[u8], trimmed: &[u8]) -> Result<()> {
        let mut state = vec![0; self.shared.function.state_bytes().unwrap_or(trimmed.len())];
        restore(trimmed, &mut state);
        self.sorter.as_mut().map_or(Ok(()), |sorter| sorter.add_state(key, &state))?;
        self.is_spilled = true;
        Ok(())
    }

    /// Moves all that is left to the sort, and has it merge what it has, so that it can be read. What is in files needs
    /// no memory here.
    pub(super) fn finish_spilled(&mut self) -> Result<()> {
        self.spill()?;
        self.shared.release();
        self.hot = new_hot(self.shared.function.state_bytes(), &self.sizes);
        self.sorter.as_mut().map_or(Ok(()), |sorter| sorter.finalize())
    }

    /// The sort, if all that is finalised is there.
    pub(super) fn spilled(&self) -> Option<&SortAggregator<Arc<A>>> {
        self.sorter.as_deref().filter(|_| self.is_spilled)
    }
}
