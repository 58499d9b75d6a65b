//! Merging for the sake of lookups. Many lists left as they are make a load cheap and lookups expensive: each list is
//! asked. Two things lead to a merge that no limit asks for:
//!
//! - *idle time*: nobody writes, so the machine merges what was never merged;
//! - *waste*: lookups note the time that they waste, and once that would have paid for a merge, the merge is done. So a
//!   program that only writes pays nothing, and a program that reads pays in proportion.

use std::collections::BTreeSet;

use forebay_env::sync::atomic::Ordering;
use forebay_layouts::{NodeKey, Plan, Portion, ReadTerms};

use crate::background::Background;
use crate::versions::TableState;

/// What a merge costs on a processor of today, in nanoseconds: for itself, with its file's name and the edit made
/// durable; for a record; for a byte.
const MERGE_NANOSECONDS: f64 = 10e6;
const RECORD_NANOSECONDS: f64 = 64.0;
const BYTE_NANOSECONDS: f64 = 1.0;

impl Background {
    /// A merge that idle time allows or that lookups have paid for, if there is one, and its price.
    pub(crate) fn plan_read_compaction(
        &self,
        table: &TableState,
        busy: &BTreeSet<NodeKey>,
    ) -> Option<(Plan, u64)> {
        let is_idle = self.compacts_when_idle();
        if !is_idle && !self.pays_for_merge(table) {
            return None;
        }
        let ratio = self.context.options.read_compaction_ratio;
        debug_assert!(ratio > 0.0, "nothing is merged for lookups where that is not wanted");
        let cost = |portion: Portion| {
            let nanoseconds = MERGE_NANOSECONDS
                + RECORD_NANOSECONDS * portion.records as f64
                + BYTE_NANOSECONDS * portion.bytes as f64;
            (nanoseconds / ratio) as u64
        };
        let budget = table.wasted_nanoseconds.load(Ordering::Relaxed);
        table.version.next_read_compaction(busy, &ReadTerms { is_idle, budget, cost: &cost })
    }

    /// Whether some table's lookups might have paid for a merge. Worth asking now and then: lookups wake nobody.
    pub(crate) fn wants_read_compaction(&self) -> bool {
        self.context.health.compactors_are_idle()
            && self.versions.state().tables.values().any(|table| self.pays_for_merge(table))
    }

    fn pays_for_merge(&self, table: &TableState) -> bool {
        let ratio = self.context.options.read_compaction_ratio;
        ratio > 0.0 && table.wasted_nanoseconds.load(Ordering::Relaxed) as f64 >= MERGE_NANOSECONDS / ratio
    }

    fn compacts_when_idle(&self) -> bool {
        self.context.options.read_compaction_ratio > 0.0 && self.memory.is_idle()
    }
}
