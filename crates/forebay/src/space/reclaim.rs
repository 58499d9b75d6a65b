//! What is deleted or outdated leaves the files of a table within its `reclaim_interval`, while the database is open
//! and no snapshot or scan holds them:
//!
//! 1. Every half of it the housekeeper has the active write buffer written out.
//! 2. Once that is in lists, the compactor goes twice round the table, as for [bounded space](crate::space::bound): the first
//!    time ends what was under way, the second time begins behind what was written out. A table in which all is merged
//!    costs nothing.
//!
//! Segments of the log are not used again where a table has an interval, for they keep old bytes until they are
//! written over.

use std::time::Duration;

use forebay_base::Result;
use forebay_env::sync::Mutex;

use crate::engine::Engine;
use crate::versions::{State, TableState};

/// What the versions of a table share of its rounds.
#[derive(Default)]
pub(crate) struct ReclaimPasses(Mutex<ReclaimPass>);

#[derive(Default)]
struct ReclaimPass {
    /// When the next begins, once that is known.
    next: Option<Duration>,
    /// The last log segment whose buffer must be in lists before.
    segment: u64,
    /// How often the compactor is still to come to the table's end.
    passes_left: u32,
}

impl ReclaimPasses {
    /// Notes that the compactor came to the table's end.
    pub(crate) fn note_pass_end(&self) {
        let mut pass = self.0.lock();
        pass.passes_left = pass.passes_left.saturating_sub(1);
    }

    /// Notes that there is nothing to be merged.
    pub(crate) fn note_nothing_left(&self) {
        self.0.lock().passes_left = 0;
    }
}

impl Engine {
    /// Begins the rounds that are due. Called now and then, by a machine, which must not wait.
    pub(crate) fn begin_reclaim_passes(&self) -> Result<()> {
        let (now, state) = (self.env.clock.now(), self.state());
        let is_due = |table: &TableState| {
            let Some(interval) = table.options.reclaim_interval else { return false };
            now >= *table.space.reclaim_passes.0.lock().next.get_or_insert(now.saturating_add(interval / 2))
        };
        let due: Vec<_> = state.tables.values().filter(|table| is_due(table)).collect();
        let segment = self.log()?.active_segment();
        if due.is_empty() || (!state.active.is_empty() && !self.has_room()) {
            return Ok(());
        }
        if !state.active.is_empty() {
            self.rotate(segment, 0)?;
        }
        for table in due {
            let mut pass = table.space.reclaim_passes.0.lock();
            *pass = ReclaimPass {
                next: table.options.reclaim_interval.map(|all| now.saturating_add(all / 2)),
                segment,
                passes_left: 2,
            };
        }
        self.env.jobs.wake();
        Ok(())
    }

    /// Whether a round of a table is to be gone on with.
    pub(crate) fn wants_reclaim_pass(&self, table: &TableState, state: &State) -> bool {
        let pass = table.space.reclaim_passes.0.lock();
        pass.passes_left > 0 && state.sealed.iter().all(|buffer| buffer.segment() > pass.segment)
    }

    /// Whether old bytes of the log must go.
    pub(crate) fn erases_old_log(&self) -> bool {
        self.state().tables.values().any(|table| table.options.reclaim_interval.is_some())
    }
}
