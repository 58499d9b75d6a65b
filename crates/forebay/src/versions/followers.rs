//! Tables that are being given another order: what is flushed into one meanwhile must follow it.

use forebay_base::Error;
use forebay_layouts::DataFile;

use crate::versions::{TableState, Versions};

/// What a table that is given another order has to keep in mind.
#[derive(Default)]
pub(crate) struct Following {
    /// Files that were added to the table's, oldest first.
    files: Vec<DataFile>,
    /// Records copied, and records to be copied.
    progress: (u64, u64),
}

/// Why something has to wait for a table that is being reordered.
pub(crate) fn is_being_sorted(table: &TableState) -> Error {
    Error::invalid(format!(
        "table `{}` is being sorted into another order; try again when that is done",
        table.name
    ))
}

impl Versions {
    /// Begins to keep in mind what is flushed into a table. `false` where that was begun already.
    pub(crate) fn begin_following(&self, table: u32) -> bool {
        let mut followers = self.followers.lock();
        let was_begun = followers.contains_key(&table);
        followers.entry(table).or_default();
        !was_begun
    }

    /// Begins anew: what was flushed before is copied with all else.
    pub(crate) fn follow_anew(&self, table: u32) {
        let before = self.followers.lock().insert(table, Following::default());
        debug_assert!(before.is_some(), "what begins anew was begun");
    }

    pub(crate) fn end_following(&self, table: u32) {
        let before = self.followers.lock().remove(&table);
        debug_assert!(before.is_some(), "what ends was begun");
    }

    /// Takes the files that were made of buffers since the last time, oldest first.
    pub(crate) fn take_followers(&self, table: u32) -> Vec<DataFile> {
        let mut followers = self.followers.lock();
        followers.get_mut(&table).map(|following| std::mem::take(&mut following.files)).unwrap_or_default()
    }

    /// Notes files that were made of a buffer.
    pub(super) fn note_new_lists(&self, table: u32, files: Vec<DataFile>) {
        if let Some(table) = self.state().tables.get(&table) {
            table.note_flush();
        }
        if let Some(following) = self.followers.lock().get_mut(&table) {
            following.files.extend(files);
        }
    }

    /// Whether a table is being reordered: its range cannot be deleted, nothing can be ingested.
    pub(crate) fn is_reordering(&self, table: u32) -> bool {
        self.followers.lock().contains_key(&table)
    }

    /// Whether any table is being reordered.
    pub(crate) fn reorders_any(&self) -> bool {
        !self.followers.lock().is_empty()
    }

    /// Notes how many records are copied, of how many.
    pub(crate) fn note_reordered(&self, table: u32, progress: (u64, u64)) {
        if let Some(following) = self.followers.lock().get_mut(&table) {
            following.progress = progress;
        }
    }

    /// How many records are copied of a table that is being reordered, of how many.
    pub(crate) fn reordered(&self, table: u32) -> Option<(u64, u64)> {
        self.followers.lock().get(&table).map(|following| following.progress)
    }
}
