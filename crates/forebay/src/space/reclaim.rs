//! What is deleted or outdated leaves the files of a table within its `reclaim_interval`, while the database is open
//! and no snapshot or scan holds them:
//!
//! 1. Every half of it the housekeeper has the active write buffer written out.
//! 2. Once that is in lists, a compactor goes twice round the table, as for [bounded space](crate::space::bound): the first
//!    time ends what was under way, the second time begins behind what was written out. A table in which all is merged
//!    costs nothing.
//!
//! Segments of the log are not used again where a table has an interval, for they keep old bytes until they are
//! written over.

use crate::space::Space;
use crate::versions::{State, TableState};

impl Space {
    /// Whether a round of a table is to be gone on with.
    pub(crate) fn wants_reclaim_pass(&self, table: &TableState, state: &State) -> bool {
        let waits_for = table.space.reclaim_passes.waits_for();
        waits_for.is_some_and(|segment| state.sealed.iter().all(|buffer| buffer.segment() > segment))
    }
}
