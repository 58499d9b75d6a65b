//! Where memory does not suffice and there is a directory: what is merged goes to an external sort, and memory is
//! free again.
//!
//! **Invariant:** every state is in the leaves or in the sort, and in one of them only, also after an error.

use forebay_base::Result;
use forebay_env::sync::Arc;

use super::CompressedAggregator;
use super::chunk::Packer;
use super::columns::Columns;
use super::leaves::Leaves;
use super::merge::malformed;
use crate::aggregate::Aggregate;
use crate::aggregator::Aggregator;
use crate::sort::SortAggregator;

impl<A: Aggregate> CompressedAggregator<A> {
    /// Moves all that is merged to the sort.
    pub(super) fn spill(&mut self) -> Result<()> {
        let Self { sorter: Some(sorter), shared, leaves, .. } = self else { return Ok(()) };
        let state_bytes = shared.function.state_bytes();
        let (mut packer, mut records) = (Packer::new(state_bytes), Columns::new(state_bytes));
        self.is_spilled = true;
        for base in leaves.holders.iter_mut().map(|holder| &mut holder.base) {
            let before = base.bytes();
            while let Some(chunk) = base.pop() {
                packer.unpack(&chunk.bytes, &mut records).ok_or_else(malformed)?;
                let mut moved = 0;
                let outcome = (0..records.len()).try_for_each(|at| {
                    sorter.add_state(records.keys.get(at), records.states.get(at))?;
                    moved += 1;
                    Ok(())
                });
                if let Err(error) = outcome {
                    let mut left = Columns::new(state_bytes);
                    left.extend(&records, moved..records.len());
                    base.push(&mut packer, &left);
                    shared.forget(before - base.bytes());
                    return Err(error);
                }
            }
            shared.forget(before);
        }
        *leaves = Leaves::new(self.sizes.tail_bytes_min);
        Ok(())
    }

    /// Moves all that is left to the sort, and has it merge what it has, so that it can be read.
    pub(super) fn finish_spilled(&mut self) -> Result<()> {
        self.spill()?;
        self.sorter.as_mut().map_or(Ok(()), |sorter| sorter.finalize())
    }

    /// The sort, if all that is finalised is there.
    pub(super) fn spilled(&self) -> Option<&SortAggregator<Arc<A>>> {
        self.sorter.as_deref().filter(|_| self.is_spilled)
    }
}
