//! What a list has in which value file.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_base::{Result, ValuePointer};

use super::{ValueFile, ValueFiles, ValueShare};

/// Counts the pointers that are written to a list, and holds the files from the first one on: what is merged may go
/// meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<u64, (Arc<ValueFile>, u64)>);

/// What a list has, and the files, which are held until the list holds them.
pub(crate) struct Tallied {
    pub(crate) shares: Arc<[ValueShare]>,
    _files: Vec<Arc<ValueFile>>,
}

impl Tally {
    /// The file that a pointer leads to, and how many bytes are counted there.
    pub(crate) fn entry(
        &mut self,
        files: &ValueFiles,
        pointer: &ValuePointer,
    ) -> Result<&mut (Arc<ValueFile>, u64)> {
        use std::collections::btree_map::Entry::{Occupied, Vacant};
        Ok(match self.0.entry(pointer.file) {
            Occupied(known) => known.into_mut(),
            Vacant(fresh) => fresh.insert((files.get(pointer.file)?, 0)),
        })
    }

    /// Whether none was counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.values().all(|(_, bytes)| *bytes == 0)
    }

    /// The files and how much is in each; and a file of what was moved, all of which is the list's.
    pub(crate) fn finish(self, moved: Option<Arc<ValueFile>>) -> Tallied {
        let moved = moved.map(|file| (Arc::clone(&file), file.bytes));
        let used = self.0.into_values().filter(|(_, bytes)| *bytes > 0);
        let (files, bytes): (Vec<_>, Vec<_>) = used.chain(moved).unzip();
        let shares = files.iter().zip(bytes);
        let shares = shares.map(|(file, bytes)| ValueShare { file: file.id, file_bytes: file.bytes, bytes });
        Tallied { shares: shares.collect(), _files: files }
    }
}
