//! What a list has in which value file.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_base::{Result, ValuePointer};

use super::{ValueFile, ValueFiles, ValueShare};

/// Files are looked for at once in this many places, by the lowest bits of their ids: neighbours in a list point
/// anywhere.
const NEAR: usize = 1024;

const _: () = assert!(NEAR.is_power_of_two(), "the lowest bits are told by a mask");

/// Counts the pointers that are written to a list, and holds the files from the first one on: what is merged may go
/// meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The files, and bytes of the values in each.
    files: Vec<(Arc<ValueFile>, u64)>,
    /// Where each is in `files`.
    places: BTreeMap<u64, usize>,
    /// The same of the file that was asked for last among those of some lowest bits.
    near: Vec<u32>,
}

/// What a list has, and the files, which are held until the list holds them.
pub(crate) struct Tallied {
    pub(crate) shares: Arc<[ValueShare]>,
    _files: Vec<Arc<ValueFile>>,
}

impl Tally {
    /// The file that a pointer leads to, and how many bytes are counted there.
    #[inline]
    pub(crate) fn entry(
        &mut self,
        files: &ValueFiles,
        pointer: &ValuePointer,
    ) -> Result<&mut (Arc<ValueFile>, u64)> {
        let near = self.near.get(pointer.file as usize % NEAR).map_or(0, |&place| place as usize);
        let is_there = self.files.get(near).is_some_and(|(file, _)| file.id == pointer.file);
        let place = if is_there { near } else { self.find(files, pointer.file)? };
        debug_assert_eq!(self.files[place].0.id, pointer.file);
        Ok(&mut self.files[place])
    }

    /// Where a file is, which is named here if it was not yet.
    #[inline(never)]
    fn find(&mut self, files: &ValueFiles, id: u64) -> Result<usize> {
        let place = match self.places.get(&id) {
            Some(&place) => place,
            None => {
                self.files.push((files.get(id)?, 0));
                self.places.insert(id, self.files.len() - 1);
                self.files.len() - 1
            }
        };
        self.near.resize(NEAR, 0);
        self.near[id as usize % NEAR] = place as u32;
        Ok(place)
    }

    /// Whether none was counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.iter().all(|(_, bytes)| *bytes == 0)
    }

    /// The files and how much is in each; and files of what was moved, all of which is the list's.
    pub(crate) fn finish(self, moved: Vec<Arc<ValueFile>>) -> Tallied {
        let moved = moved.into_iter().map(|file| (Arc::clone(&file), file.bytes));
        let mut used: Vec<_> = self.files.into_iter().filter(|(_, bytes)| *bytes > 0).chain(moved).collect();
        used.sort_by_key(|(file, _)| file.id);
        debug_assert!(used.is_sorted_by(|one, next| one.0.id < next.0.id), "each file has one share");
        let (files, bytes): (Vec<_>, Vec<_>) = used.into_iter().unzip();
        let shares = files.iter().zip(bytes);
        let shares = shares.map(|(file, bytes)| ValueShare { file: file.id, file_bytes: file.bytes, bytes });
        Tallied { shares: shares.collect(), _files: files }
    }
}
