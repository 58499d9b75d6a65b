//! A list's sample of keys, by which merges are planned: kept until nothing plans with the list any more.

use std::sync::Arc;

use forebay_base::digest::Digest;

use super::file::ListFile;

impl ListFile {
    /// Its sample of keys; an empty one where it cannot be opened or is [retired](Self::retire).
    pub fn digest(&self) -> Arc<Digest> {
        let digest = self.body().ok().and_then(|body| body.digest.lock().clone());
        digest.unwrap_or_else(|| Arc::new(Digest::new(0)))
    }

    /// There may be very many lists that only snapshots see, and lookups ask no sample.
    pub(super) fn drop_digest(&self) {
        let digest = self.ready().and_then(|body| body.digest.lock().take());
        let freed = digest.map_or(0, |digest| digest.memory_bytes());
        self.store().metrics.index_memory_bytes.subtract(freed as u64);
    }
}
