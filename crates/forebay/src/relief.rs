//! Merging for the sake of lookups. What makes a load cheap, many lists left as they are, makes lookups dear: each
//! list is asked. Two things lead to a merge that no limit asks for:
//!
//! - *rest*: nobody writes, so the machine may as well merge what was never merged;
//! - *waste*: lookups note what they spend in vain, and once that would have paid for a merge it is done. So whoever
//!   writes all the time and never reads pays nothing, and whoever reads pays no more than in proportion.

use std::collections::BTreeSet;

use forebay_base::Result;
use forebay_env::sync::atomic::Ordering;
use forebay_layouts::{NodeKey, Plan, Portion, Terms};

use crate::engine::{Engine, TableState};

/// What a merge costs on a processor of today, in nanoseconds: for itself, with its file's name and the edit made
/// durable; for a record; for a byte.
const MERGE_NANOSECONDS: f64 = 10e6;
const RECORD_NANOSECONDS: f64 = 64.0;
const BYTE_NANOSECONDS: f64 = 1.0;

impl Engine {
    /// A merge that rest allows or that lookups have paid for, if there is one, and what it takes of what they paid.
    pub(crate) fn plan_relief(&self, table: &TableState, busy: &BTreeSet<NodeKey>) -> Option<(Plan, u64)> {
        let at_rest = self.is_at_rest();
        if !at_rest && !self.pays_for_merge(table) {
            return None;
        }
        let ratio = self.options.relief_ratio;
        let cost = |portion: Portion| {
            let nanoseconds = MERGE_NANOSECONDS
                + RECORD_NANOSECONDS * portion.records as f64
                + BYTE_NANOSECONDS * portion.bytes as f64;
            (nanoseconds / ratio) as u64
        };
        let budget = table.vain_nanoseconds.load(Ordering::Relaxed);
        table.catalog.next_relief(busy, &Terms { at_rest, budget, cost: &cost })
    }

    /// Whether some table's lookups might have paid for a merge. Worth asking now and then: lookups wake nobody.
    pub(crate) fn wants_relief(&self) -> bool {
        self.merger_rests.load(Ordering::Relaxed)
            && self.state().tables.values().any(|table| self.pays_for_merge(table))
    }

    fn pays_for_merge(&self, table: &TableState) -> bool {
        let ratio = self.options.relief_ratio;
        ratio > 0.0 && table.vain_nanoseconds.load(Ordering::Relaxed) as f64 >= MERGE_NANOSECONDS / ratio
    }

    fn is_at_rest(&self) -> bool {
        self.options.relief_ratio > 0.0 && self.resting.load(Ordering::Relaxed)
    }

    /// Returns once background work has nothing more to do, as if nobody had written for long.
    pub(crate) fn settle(&self) -> Result<()> {
        self.flush()?;
        self.resting.store(true, Ordering::Relaxed);
        self.share_memory();
        self.env.jobs.wake();
        self.wait_for(|| self.trouble(), || self.is_settled())
    }

    fn is_settled(&self) -> bool {
        let state = self.state();
        if !state.sealed.is_empty() || !self.merger_rests.load(Ordering::Relaxed) {
            return false;
        }
        let ledger = self.ledger.lock();
        let nobody = BTreeSet::new();
        state.tables.values().filter(|table| table.rule().is_ok()).all(|table| {
            let busy = ledger.busy.get(&table.id).unwrap_or(&nobody);
            let is_done = || {
                let more = table.catalog.next_work(busy).is_some() || self.plan_relief(table, busy).is_some();
                !more && !self.wants_space(table)
            };
            self.is_stuck(table) || is_done()
        })
    }
}
