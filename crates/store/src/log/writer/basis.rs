//! What a batch was made from, and whether that still is what there is.

use forebay_base::planted;

use super::Appended;
use crate::buffer::{HasRead, WriteBuffer};

/// What a batch was made from: it is appended only where nothing has changed that since.
pub struct Basis<'a> {
    /// What was read for it.
    pub read: &'a dyn HasRead,
    /// In this segment, and in none before it,
    pub segment: u64,
    /// what is before this place is known to have left all that as it was.
    pub place: usize,
    /// So many bytes behind it are looked through while nobody can append. Of more the batch is stale.
    pub bytes_max: usize,
}

impl Basis<'_> {
    /// Why a batch is not appended to the active buffer, if so.
    pub(super) fn refuse(&self, active: &WriteBuffer) -> Option<Appended> {
        let newer_bytes = active.len().saturating_sub(self.place);
        if active.segment() != self.segment || newer_bytes > self.bytes_max {
            return Some(Appended::Stale);
        }
        debug_assert!(self.place <= active.len(), "what was looked through is there");
        let changed = self.read.changed(active, self.place..usize::MAX).map(Appended::Conflict);
        changed.filter(|_| !planted::is("conflict-under-the-lock"))
    }
}
