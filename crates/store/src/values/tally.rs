//! What a list has in which value file.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_base::{Result, ValuePointer};

use super::{ValueFile, ValueFiles, ValueShare};

/// Counts the pointers that are written to a list.
#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<u64, u64>);

/// What a list has, and the files, which are held until the list holds them.
pub(crate) struct Tallied {
    pub(crate) shares: Arc<[ValueShare]>,
    _files: Vec<Arc<ValueFile>>,
}

impl Tally {
    /// Counts a pointer.
    pub(crate) fn add(&mut self, files: &ValueFiles, pointer: &[u8]) -> Result<()> {
        let pointer = ValuePointer::decode(pointer).ok_or_else(|| files.malformed())?;
        *self.0.entry(pointer.file).or_default() += pointer.bytes;
        Ok(())
    }

    /// Whether none was counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The files and how much is in each. All must be known: of the lists that are merged, or just made.
    pub(crate) fn finish(self, files: &ValueFiles) -> Result<Tallied> {
        let found =
            self.0.iter().map(|(&id, &bytes)| Ok((files.get(id)?, bytes))).collect::<Result<Vec<_>>>()?;
        let shares = found.iter().map(|(file, bytes)| ValueShare {
            file: file.id,
            file_bytes: file.bytes,
            bytes: *bytes,
        });
        let shares = shares.collect();
        Ok(Tallied { shares, _files: found.into_iter().map(|(file, _)| file).collect() })
    }
}
