//! Full compactions: users ask for them, the merger does them, and says when nothing is left to merge.
//!
//! **Invariant:** whoever waits for a compaction is told that it is done only by a merger that has looked since they
//! asked, and found the table with nothing to merge and nobody else at work on it.

use std::collections::BTreeMap;

use forebay_base::{Error, Result};

use crate::background::ABSORB;
use crate::engine::{Engine, TableState};

/// What users ask of a table, and how far that is done.
#[derive(Default)]
pub(crate) struct Compaction {
    /// How often it was asked for.
    asked: u64,
    /// How many of those times are over.
    over: u64,
    /// Why it could not be done, when it was over last.
    refused: Option<Error>,
}

impl Engine {
    /// Merges every leaf of a table to one list.
    pub(crate) fn compact(&self, table: u32) -> Result<()> {
        // Nothing of it is merged before that is known.
        self.view().table(table)?.rule()?;
        self.flush()?;
        let passed_over = self.take_up(table);
        let ticket = {
            let mut compacting = self.compacting.lock();
            let compaction = compacting.entry(table).or_default();
            compaction.asked += 1;
            compaction.asked
        };
        self.env.jobs.wake();
        let is_there = || self.state().tables.contains_key(&table);
        let is_over =
            || self.compacting.lock().get(&table).is_some_and(|compaction| compaction.over >= ticket);
        // What the merger fails at of this table is told with the outcome, and of others it is not this one's affair.
        let waited = self.wait_for(|| self.passing_trouble(ABSORB), || is_over() || !is_there());
        if !is_there() {
            self.compacting.lock().remove(&table);
            return Err(Error::NotFound("the table was dropped while it was compacted".into()));
        }
        waited?;
        let refused = self.compacting.lock().get(&table).and_then(|compaction| compaction.refused.clone());
        // What is damaged is left as it is, and that must be said.
        refused.or_else(|| self.why_aside(table)).or(passed_over).map_or(Ok(()), Err)
    }

    /// What there was to be done for a table has failed. Who waits for a compaction of it is told.
    pub(crate) fn failed_compact(&self, table: u32, error: &Error) {
        if let Some(compaction) = self.compacting.lock().get_mut(&table)
            && compaction.over < compaction.asked
        {
            (compaction.over, compaction.refused) = (compaction.asked, Some(error.clone()));
        }
        self.env.jobs.wake();
    }

    /// The tables that compactions are asked of, and how often they were.
    pub(crate) fn compactions(&self) -> BTreeMap<u32, u64> {
        let compacting = self.compacting.lock();
        let wanted = compacting.iter().filter(|(_, compaction)| compaction.over < compaction.asked);
        wanted.map(|(table, compaction)| (*table, compaction.asked)).collect()
    }

    /// Nothing of a table could be planned for a compaction that was asked for so often before somebody looked.
    pub(crate) fn found_compact(&self, table: &TableState, asked: u64) {
        if self.ledger.lock().busy.get(&table.id).is_some_and(|busy| self.is_worked_on(table.id, busy)) {
            // Who is at work on it tells when that is done.
            return;
        }
        let refused = self.refuses(table);
        if let Some(compaction) = self.compacting.lock().get_mut(&table.id) {
            (compaction.over, compaction.refused) = (asked.max(compaction.over), refused);
        }
        self.env.jobs.wake();
    }
}
