//! Rollback: all tables become what they were at a savepoint.
//!
//! 1. All writers wait. What is buffered is flushed, so that no buffer has a record of any table.
//! 2. One edit gives all tables the versions of the savepoint. With it goes the log's mark: nothing that was flushed
//!    before comes back from the log. Work that is under way meets tables of another generation, and is thrown away.
//! 3. The rollback takes a number, as a record would, and nothing before it is kept for its changes: so whoever
//!    follows them learns of it, also who has seen the last of them.

use std::sync::Arc;

use forebay_base::{Error, Result};
use forebay_env::yield_point;
use forebay_layouts::convert;
use forebay_store::manifest::{Edit, LogMark, Rollback};

use crate::history::History;
use crate::versions::{TableState, Tables, has_other_files, is_being_sorted};

/// Where the generations of a rollback begin: no table gets as many layouts between two of them.
const GENERATIONS_PER_ROLLBACK: u64 = 1 << 32;

impl History {
    pub(crate) fn rollback(&self, name: &str) -> Result<()> {
        self.context.log()?;
        self.versions.tell_feed()?;
        self.versions.lock().savepoint(name)?;
        if self.freeze_all(true)? {
            return Err(Error::invalid("another rollback is under way"));
        }
        let outcome = self.writer.flush().and_then(|()| self.restore(name));
        if outcome.is_err() {
            self.freeze_all(false)?;
        }
        self.memory.share_memory();
        self.memory.tend_filters();
        self.background.flush_again();
        outcome
    }

    /// Makes all writers wait, or go on. Returns whether they waited.
    fn freeze_all(&self, frozen: bool) -> Result<bool> {
        let mut before = false;
        self.context.log()?.change_epoch(|| {
            self.versions.update_state(|state| before = std::mem::replace(&mut state.is_frozen, frozen));
        });
        Ok(before)
    }

    /// Gives all tables what they had. No buffer has a record, and nobody writes.
    fn restore(&self, name: &str) -> Result<()> {
        let log = self.context.log()?;
        let mut version_set = self.versions.lock();
        let state = self.versions.state();
        if let Some(table) = state.tables.values().find(|table| self.versions.is_reordering(table.id)) {
            return Err(is_being_sorted(table));
        }
        let savepoint = Arc::clone(version_set.savepoint(name)?);
        debug_assert!(state.is_frozen, "all writers wait");
        debug_assert!(
            state.sealed.iter().chain([&state.active]).all(|buffer| buffer.is_empty()),
            "no buffer has a record"
        );
        debug_assert_eq!(log.last_sequence(), version_set.log.flushed.1, "all that was accepted is flushed");
        version_set.rollbacks += 1;
        let (generation, (below, last)) =
            (version_set.rollbacks * GENERATIONS_PER_ROLLBACK, version_set.log.flushed);
        let restored = |table: &Arc<TableState>| {
            // What the log still has of it is no longer its own.
            let version = convert(&*table.version, &table.options, below);
            Ok(table.with_generation(version.ok_or_else(has_other_files)?, generation))
        };
        let tables: Tables = savepoint.tables.values().map(restored).collect::<Result<_>>()?;
        let mark = (below, last + 1);
        let mark = LogMark { kept: mark, low: mark, flushed: mark, vouched: 0 };
        let entries = tables.values().map(|table| table.entry()).collect();
        version_set.append(&Edit::Rollback(Rollback { log: mark, tables: entries }))?;
        version_set.log_is_ahead = false;
        version_set.rolled_back = last + 1;
        yield_point("rollback is durable");
        log.change_epoch_behind(last + 1, || {
            self.versions.update_state(|state| {
                state.tables.clone_from(&tables);
                state.is_frozen = false;
            });
        });
        version_set.note_rollback(&state.tables, &tables);
        version_set.retain_segments(mark, None);
        Ok(())
    }
}
