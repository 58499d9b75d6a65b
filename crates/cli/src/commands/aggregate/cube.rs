//! Coarser groupings out of the finest one: every group's state is merged under its key with some columns
//! left out. The input is read once, however many groupings there are.
//!
//! A key of these groups begins with its *grouping*: two bytes, in which the bit of each column that is left
//! out is set, the last column's lowest, as by `GROUPING` in SQL.

use forebay::Error;
use forebay::aggregate::Aggregate;
use forebay::env::sync::Arc;

use super::engine::{Groups, Means};
use super::gathering::Gatherer;
use super::keys;

/// The most columns of a cube.
pub(super) const COLUMNS_MAX: usize = 12;
/// Bytes of a grouping in a key.
const GROUPING_BYTES: usize = 2;

/// Which columns are left out in each grouping.
#[derive(Debug)]
pub(super) struct Cube {
    groupings: Vec<u16>,
}

impl Cube {
    /// Every choice of so many columns.
    pub(super) fn full(columns: usize) -> Self {
        Self { groupings: (0..1 << columns).collect() }
    }

    /// The last one, the last two, and so on to all.
    pub(super) fn rollup(columns: usize) -> Self {
        Self { groupings: (0..=columns).map(|left_out| (1 << left_out) - 1).collect() }
    }

    /// The groups of all groupings, out of those by all columns.
    pub(super) fn derive<A: Aggregate>(&self, base: &Groups<A>, means: Means) -> Result<Groups<A>, Error> {
        let mut engine = Gatherer::new(Arc::clone(&base.function), means)?;
        let mut masked = Vec::new();
        base.held.for_each(&mut |key, state| {
            let columns = keys::split(key);
            for grouping in &self.groupings {
                masked.clear();
                masked.extend_from_slice(&grouping.to_be_bytes());
                for (bit, column) in (0..columns.len()).rev().zip(&columns) {
                    match grouping >> bit & 1 {
                        0 => masked.extend_from_slice(column),
                        _ => keys::push(&mut masked, None),
                    }
                }
                engine.add_state(&masked, state)?;
            }
            Ok(())
        })?;
        let mut groups = engine.finish()?;
        groups.memory_bytes_peak =
            base.memory_bytes_peak.max(base.held.memory_bytes() + groups.memory_bytes_peak);
        Ok(groups)
    }
}

/// The grouping of a key, and the key of its columns.
pub(super) fn split(key: &[u8]) -> (u16, &[u8]) {
    match key.split_first_chunk::<GROUPING_BYTES>() {
        Some((grouping, columns)) => (u16::from_be_bytes(*grouping), columns),
        None => (0, key),
    }
}
