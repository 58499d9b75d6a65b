//! How long a list file is there, and with it the value files that it has pointers to.

use std::sync::Arc;

use forebay_env::sync::atomic::Ordering;

use super::file::{ListFile, SHARE_MEMORY_BYTES};
use crate::values::{ValueFile, ValueShare};

impl ListFile {
    /// How many records it has, if somebody has opened it.
    pub fn known_records(&self) -> Option<u64> {
        self.ready().map(|body| body.footer.records)
    }

    /// Where it has values.
    pub fn value_files(&self) -> &[Arc<ValueFile>] {
        &self.values
    }

    /// Whether it has values in a file that is to be emptied.
    pub fn is_collected(&self) -> bool {
        self.values.iter().any(|values| values.is_collected())
    }

    /// What it has in value files.
    pub fn value_shares(&self) -> &[ValueShare] {
        &self.meta.values
    }

    /// Marks the file as unneeded: it is removed once nobody reads it any more. Call only after the edit
    /// that drops it is durable.
    pub fn retire(&self) {
        if !self.retired.swap(true, Ordering::AcqRel) {
            self.store.disk.retire(self.meta.bytes);
            self.values.iter().for_each(|values| values.end());
            self.drop_digest();
        }
    }

    /// Whether nothing refers to it any more.
    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// Counts it as one of the table's files: for those that were there when the database was opened.
    pub fn found(&self) {
        self.store.disk.found(self.meta.bytes);
        self.values.iter().for_each(|values| values.begin());
    }
}

impl Drop for ListFile {
    fn drop(&mut self) {
        let shares = self.meta.values.len() as u64;
        self.store.metrics.index_memory_bytes.subtract(SHARE_MEMORY_BYTES * shares);
        if self.retired.load(Ordering::Acquire) {
            self.store.retire(self.path(), self.meta.bytes);
        }
    }
}
