//! The memory of filters. Where all of them together would take more than their share of the limit, they are made
//! thinner: those of lists that are dense, as merged ones are, most, since a bit a key denies least there
//! ([`FilterLevel`](forebay_store::list::FilterLevel)). At their thinnest those in hash order only tell which page a key
//! would be in; others deny nothing, the oldest first.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_env::sync::atomic::Ordering;
use forebay_layouts::{DataFile, Portion};
use forebay_store::list::{Allowance, FilterDemand};

use crate::memory::MemoryShares;
use crate::versions::TableState;

/// Memory that one step of thinning gives back at most, and a list more: about as much work as a step of a merge.
const THINNED_BYTES: u64 = 128 << 10;
/// What filters are planned to take of their share, and what if that does not do.
pub(super) const SHARES_PLANNED: [f64; 6] = [FilterDemand::SHARE_PLANNED, 0.93, 0.85, 0.7, 0.4, 0.0];
/// After this many lists' worth of commits it is looked at again what lists stand for of each file.
const LISTS_A_COMMIT: u64 = 1024;
/// Notes at each file how much lists stand for of it. Returns how many lists there are.
fn note_parts<'a>(tables: impl Iterator<Item = &'a Arc<TableState>>) -> u64 {
    let mut lists = 0;
    for table in tables.filter(|table| table.options.filter_bits_per_key > 0) {
        let mut files: BTreeMap<u64, (DataFile, Portion, f64)> = BTreeMap::new();
        table.version.each_list(&mut |held| {
            lists += 1;
            let high = held.range.high.as_ref().map_or(u64::MAX, |high| high.prefix);
            let share = high.saturating_sub(held.range.low.prefix) as f64 / u64::MAX as f64;
            let entry = files.entry(held.file.id()).or_insert_with(|| (held.file, Portion::default(), 0.0));
            entry.1.records += held.portion.records;
            entry.1.bytes += held.portion.bytes;
            entry.2 += share;
        });
        for (file, Portion { bytes, records }, share) in files.into_values() {
            file.note_part(bytes as f64 / records.max(1) as f64, share);
        }
    }
    lists
}

impl MemoryShares {
    /// Decides how thin new filters are to be, after lists have come and gone, and leaves the rest of the memory for
    /// reading to the page cache.
    pub(crate) fn tend_filters(&self) {
        self.share_memory();
        if !self.versions.lists.filter_level.is_bound() && !self.filters_exceed() {
            return;
        }
        if self.filters_exceed() {
            // Snapshots' lookups of files that are gone for all others may take longer.
            let retired = self.versions.lock().retired.kept();
            retired.iter().for_each(|file| file.thin_filter(Allowance::NONE));
        }
        self.plan_filters(SHARES_PLANNED[0]);
    }

    /// Decides how thin filters are to be, so that they take this part of their share.
    pub(super) fn plan_filters(&self, part: f64) {
        let paid = self.lists_paid.fetch_add(LISTS_A_COMMIT, Ordering::Relaxed) + LISTS_A_COMMIT;
        if paid >= self.lists_noted.load(Ordering::Relaxed) {
            let lists = note_parts(self.versions.state().tables.values());
            self.lists_noted.store(lists, Ordering::Relaxed);
            self.lists_paid.store(0, Ordering::Relaxed);
        }
        let mut demand = FilterDemand::default();
        let mut add = |file: &DataFile| demand.add(file.filter_kind(), file.density(), file.filter_keys());
        self.versions.lock().references.values().for_each(|(file, _)| add(file));
        let bytes = self.filter_bytes();
        self.versions.lists.filter_level.set(demand.level(bytes as f64 * part), bytes);
    }

    /// Whether filters take more than their share.
    pub(crate) fn filters_exceed(&self) -> bool {
        self.context.metrics.filter_memory_bytes.get() > self.filter_bytes()
    }

    /// Whether filters have much more room than when it was decided how thin they are to be.
    pub(crate) fn filters_may_grow(&self) -> bool {
        self.versions.lists.filter_level.is_outgrown(self.filter_bytes())
    }

    /// Makes filters as thin as new ones, oldest first, until they fit their share or a step is done. Says whether
    /// anything was given back: at their thinnest, filters may exceed their share all the same.
    pub(crate) fn thin_filters(&self) -> bool {
        let level = &self.versions.lists.filter_level;
        let held = &self.context.metrics.filter_memory_bytes;
        let before = held.get();
        let there = Some((before, self.filter_bytes()));
        if *self.in_vain.lock() == there {
            return false;
        }
        let enough_bytes = self.filter_bytes().max(before.saturating_sub(THINNED_BYTES));
        let files: Vec<DataFile> =
            self.versions.lock().references.values().map(|(file, _)| file.clone()).collect();
        let some = || files.iter().take_while(|_| held.get() > enough_bytes);
        let thin = || some().for_each(|file| file.thin_filter(level.allowance(file.density(), file.id())));
        thin();
        // Their share may have been larger when that was decided, and they take more than planned: whole pages.
        for part in SHARES_PLANNED.into_iter().take_while(|_| held.get() == before) {
            self.plan_filters(part);
            thin();
        }
        if held.get() == before {
            // Where that is not enough, the oldest filters deny nothing any more.
            some().for_each(|file| file.thin_filter(Allowance::NONE));
        }
        if held.get() == before {
            // Until some list comes or goes, or the share is another one, there is no more to be had.
            self.plan_filters(SHARES_PLANNED[0]);
            *self.in_vain.lock() = there;
        }
        held.get() < before
    }
}
