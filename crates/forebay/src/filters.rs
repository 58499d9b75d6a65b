//! The memory of filters. Where all of them together would take more than their share of the limit, each is
//! made thinner and none is given up. At their thinnest they only tell which page a key would be in.

use std::sync::Arc;

use forebay_base::limits::STEP_BYTES;
use forebay_env::sync::atomic::Ordering;
use forebay_layouts::FILTER_BITS_MAX;
use forebay_store::ListFile;

use crate::engine::Engine;

/// How many bits a key may have, so that the filters of so many keys take no more than so many bytes.
/// `u32::MAX` where that is no bound.
pub(crate) fn bits_per_key(filter_bytes: u64, keys: u64) -> u32 {
    let bits = filter_bytes.saturating_mul(8) / keys.max(1);
    if bits > FILTER_BITS_MAX as u64 { u32::MAX } else { bits as u32 }
}

impl Engine {
    /// Keeps filters to their share of memory, after lists have come and gone: leaves the rest to the page cache,
    /// decides how thin new ones are to be, and makes older ones as thin, oldest first. It stops once they fit and
    /// have given back a step: the rest is for later calls.
    pub(crate) fn tend_filters(&self) {
        self.share_memory();
        let (share, level) = (self.filter_bytes(), &self.lists.filter_bits_max);
        let held = &self.metrics.filter_memory_bytes;
        if level.load(Ordering::Relaxed) == u32::MAX && held.get() <= share {
            return;
        }
        let files: Vec<Arc<ListFile>> =
            self.ledger.lock().references.values().map(|(file, _)| Arc::clone(file)).collect();
        let keys = files.iter().map(|file| file.filter_keys()).sum();
        let bits = bits_per_key(share, keys);
        level.store(bits, Ordering::Relaxed);
        let enough_bytes = share.min(held.get().saturating_sub(STEP_BYTES as u64));
        files.iter().take_while(|_| held.get() > enough_bytes).for_each(|file| file.thin_filter(bits));
    }
}
