//! What a refresh let go of, as long as somebody reads it.

use std::sync::Weak;

use forebay_layouts::WeakFile;
use forebay_store::Place;

use crate::versions::SegmentFile;

/// See the module.
pub(super) struct Left {
    /// What needs it was read up to here.
    pub(super) place: Place,
    pub(super) files: Vec<WeakFile>,
    pub(super) segments: Vec<Weak<SegmentFile>>,
}

impl Left {
    pub(super) fn is_read(&self) -> bool {
        self.files.iter().any(WeakFile::is_kept) || self.segments.iter().any(|file| file.strong_count() > 0)
    }
}
