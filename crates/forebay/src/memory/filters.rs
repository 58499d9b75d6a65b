//! The memory of filters. Where all of them together would take more than their share of the limit, each is
//! made thinner. At their thinnest those in hash order only tell which page a key would be in; others deny nothing, the
//! oldest first.

use std::sync::Arc;

use forebay_env::sync::atomic::Ordering;
use forebay_layouts::{DataFile, FILTER_BITS_MAX};

use crate::memory::MemoryShares;
use crate::versions::TableState;

const _: () = assert!(FILTER_BITS_MAX < u32::MAX, "what is no bound is above all bounds");

/// How many bits a key may have, so that the filters of this many keys take no more than this many bytes.
/// `u32::MAX` where that is no bound.
pub(crate) fn bits_per_key(filter_bytes: u64, keys: u64) -> u32 {
    let bits = filter_bytes.saturating_mul(8) / keys.max(1);
    if bits > FILTER_BITS_MAX as u64 { u32::MAX } else { bits as u32 }
}

/// How many records lists have whose files have filters.
pub(crate) fn filtered_records<'a>(tables: impl Iterator<Item = &'a Arc<TableState>>) -> u64 {
    let filtered = tables.filter(|table| table.options.filter_bits_per_key > 0);
    filtered.map(|table| table.version.records()).sum()
}

/// Memory that one step of thinning gives back at most, and a list more: about as much work as a step of a merge.
const THINNED_BYTES: u64 = 128 << 10;

impl MemoryShares {
    /// Decides how thin new filters are to be, after lists have come and gone, and leaves the rest of the memory for
    /// reading to the page cache.
    pub(crate) fn tend_filters(&self) {
        self.share_memory();
        let level = &self.versions.lists.filter_bits_max;
        if level.load(Ordering::Relaxed) == u32::MAX && !self.filters_exceed() {
            return;
        }
        if self.filters_exceed() {
            // Snapshots' lookups of files that are gone for all others may take longer.
            let retired = self.versions.lock().retired.kept();
            retired.iter().for_each(|file| file.thin_filter(0));
        }
        // Of filters that are not in memory yet no more is known than what lists have of their files.
        let held: u64 = self.versions.lock().references.values().map(|(file, _)| file.filter_keys()).sum();
        let keys = held.max(filtered_records(self.versions.state().tables.values()));
        level.store(bits_per_key(self.filter_bytes(), keys).max(1), Ordering::Relaxed);
    }

    /// Whether filters take more than their share.
    pub(crate) fn filters_exceed(&self) -> bool {
        self.context.metrics.filter_memory_bytes.get() > self.filter_bytes()
    }

    /// Makes filters as thin as new ones, oldest first, until they fit their share or a step is done. Says whether
    /// anything was given back: at their thinnest, filters may exceed their share all the same.
    pub(crate) fn thin_filters(&self) -> bool {
        let bits = self.versions.lists.filter_bits_max.load(Ordering::Relaxed);
        let held = &self.context.metrics.filter_memory_bytes;
        let before = held.get();
        let enough_bytes = self.filter_bytes().max(before.saturating_sub(THINNED_BYTES));
        let files: Vec<DataFile> =
            self.versions.lock().references.values().map(|(file, _)| file.clone()).collect();
        // Where that is not enough, the oldest filters deny nothing any more.
        for bits in [bits, 0] {
            files.iter().take_while(|_| held.get() > enough_bytes).for_each(|file| file.thin_filter(bits));
        }
        held.get() < before
    }
}
