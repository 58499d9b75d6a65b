//! States that gather before a table of groups gets them.

use forebay::aggregate::Aggregate;
use forebay::{Aggregator, Batch, Result};
use forebay_aggregate::arrow::RecordBatchStates;

/// States that gather before they are written take about so much.
pub const PENDING_BYTES: usize = 16 << 20;
/// What is written by one commit takes no more than this.
pub const COMMIT_BYTES_MAX: usize = 1 << 30;

/// Puts the states that have gathered into a batch.
pub fn put_states<A: Aggregate>(
    groups: &Aggregator<A>,
    states: &mut RecordBatchStates,
    batch: &mut Batch,
) -> Result<()> {
    states.take(&mut |key, state| {
        batch.add_state(groups, key, state);
        Ok(())
    })
}
