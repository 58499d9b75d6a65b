//! How much of a list's filter is worth its memory, and making it thinner.
//!
//! **Invariant:** what is noted of a file decides how thin its filter is, and never an answer.

use forebay_env::sync::atomic::Ordering;

use super::file::{Body, ListFile};
use super::filter::{Allowance, FilterKind};

impl ListFile {
    /// How many keys its filter has; of a file that is not open, or not sound, as many as were
    /// [noted](Self::note_part).
    pub fn filter_keys(&self) -> u64 {
        match self.ready() {
            None if self.store().options.filter_bits_per_key > 0 => self.keys.load(Ordering::Relaxed),
            ready => ready.filter(|body| body.filter().is_some()).map_or(0, |body| body.footer.records),
        }
    }

    /// What its filter is like.
    pub fn filter_kind(&self) -> FilterKind {
        self.store().options.filter_kind()
    }

    /// How many keys there would be in all if the list had as many at all places as it has where lists stand for it.
    pub fn density(&self) -> f64 {
        let own = |body: &Body| body.index.density(self.store().options.order, body.footer.records);
        self.noted_density().or_else(|| self.ready().map(own)).unwrap_or(1.0)
    }

    pub(super) fn noted_density(&self) -> Option<f64> {
        Some(f64::from_bits(self.density.load(Ordering::Relaxed))).filter(|density| *density > 0.0)
    }

    /// Notes what lists stand for: records of so many bytes each, at this share of all places.
    pub fn note_part(&self, record_bytes: f64, share: f64) {
        // What else is in the file may count as records: too many are better than too few.
        self.keys.store((self.meta().bytes as f64 / record_bytes.max(1.0)) as u64, Ordering::Relaxed);
        let keys = self.filter_keys().max(1) as f64;
        let density = if self.store().options.order.is_uniform() { keys / share.max(1e-12) } else { keys };
        self.density.store(density.to_bits(), Ordering::Relaxed);
    }

    /// Gives up precision of the filter until a key takes no more than it is allowed.
    pub fn thin_filter(&self, allowed: Allowance) {
        let filter = self.ready().and_then(|body| Some((body.filter()?, body.footer.records)));
        let freed = filter.map_or(0, |(filter, keys)| filter.thin(allowed, keys));
        self.store().metrics.filter_memory_bytes.subtract(freed as u64);
    }
}
