//! Rollback: all tables become what they were at a savepoint.
//!
//! 1. All writers wait. What is buffered is flushed, so that no buffer has a record of any table.
//! 2. One edit gives all tables their catalogs of then. With it goes the log's mark: nothing that was absorbed before comes
//!    back from the log. Work that is under way meets tables of another era, and is thrown away.
//! 3. The rollback takes a number, as a record would, and nothing before it is kept for its changes: so whoever follows them
//!    learns of it, also who has seen the last of them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use forebay_base::{Error, Result};
use forebay_env::yield_point;
use forebay_store::manifest::{Edit, LogMark, Rollback};

use crate::engine::{Engine, State, TableState};
use crate::ledger::Ledger;
use crate::tables::Tables;

/// Where the eras of a rollback begin: no table gets as many layouts between two of them.
const ERAS: u64 = 1 << 32;

impl Engine {
    pub(crate) fn rollback(&self, name: &str) -> Result<()> {
        self.log()?;
        self.ledger.lock().savepoint(name)?;
        if self.freeze_all(true)? {
            return Err(Error::invalid("another rollback is under way"));
        }
        let outcome = self.flush().and_then(|()| self.restore(name));
        if outcome.is_err() {
            self.freeze_all(false)?;
        }
        self.share_memory();
        self.tend_filters();
        self.absorb_again();
        outcome
    }

    /// Makes all writers wait, or go on. Returns whether they waited.
    fn freeze_all(&self, frozen: bool) -> Result<bool> {
        let mut before = false;
        self.log()?.switch(|| {
            self.update_state(|state| before = std::mem::replace(&mut state.is_frozen, frozen));
        });
        Ok(before)
    }

    /// Gives all tables what they had. No buffer has a record, and nobody writes.
    fn restore(&self, name: &str) -> Result<()> {
        let log = self.log()?;
        let mut ledger = self.ledger.lock();
        let state = self.state();
        let rewritten = self.rewriting.lock().keys().next().copied();
        if let Some(table) = rewritten.and_then(|id| state.tables.get(&id)) {
            let reason = format!("table `{}` is being given another order; wait for that", table.name);
            return Err(Error::invalid(reason));
        }
        let savepoint = Arc::clone(ledger.savepoint(name)?);
        ledger.rollbacks += 1;
        let (era, (below, last)) = (ledger.rollbacks * ERAS, ledger.log.absorbed);
        let restored = |table: &Arc<TableState>| {
            // What the log still has of it is no longer its own.
            let catalog = table.catalog.convert(&table.options, below);
            Ok(table.restored(catalog.ok_or_else(|| self.has_other_files())?, era))
        };
        let tables: Tables = savepoint.tables.values().map(restored).collect::<Result<_>>()?;
        let mark = (below, last + 1);
        let mark = LogMark { kept: mark, low: mark, absorbed: mark, vouched: 0 };
        let entries = tables.values().map(|table| table.entry()).collect();
        self.append(&mut ledger, &Edit::Rollback(Rollback { log: mark, tables: entries }))?;
        ledger.log_is_ahead = false;
        ledger.rolled_back = last + 1;
        yield_point("rollback is durable");
        log.switch_behind(last + 1, || {
            self.update_state(|state| {
                state.tables.clone_from(&tables);
                state.is_frozen = false;
            });
        });
        self.rolled_back(&mut ledger, &state, &tables);
        self.hold(&mut ledger, mark, None);
        Ok(())
    }

    /// Notes that tables are other ones.
    fn rolled_back(&self, ledger: &mut Ledger, before: &State, now: &Tables) {
        ledger.busy.clear();
        self.aside.lock().clear();
        now.values().for_each(|table| table.space.reclaim.forget());
        let files = |tables: &Tables| tables.values().flat_map(|table| table.catalog.files()).collect();
        ledger.refer_instead(files(&before.tables), files(now));
        // Nobody who writes has caused what is to be done anew.
        let debt_bytes: u64 = now.values().map(|table| table.catalog.debt_bytes()).sum();
        self.inherited_bytes.store(debt_bytes, Ordering::Relaxed);
        self.weigh();
        self.weigh_savepoints(ledger);
    }
}
