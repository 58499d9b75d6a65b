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
pub(super) struct Tally {
    /// The files, and bytes of the values in each.
    files: Vec<(Arc<ValueFile>, u64)>,
    /// This many of them are named in any case.
    kept: usize,
    /// Where each is in `files`.
    places: BTreeMap<u64, usize>,
    /// The same of the file that was asked for last among those of some lowest bits.
    near: Vec<u32>,
}

/// What a file of records has, and the value files, which are held until it holds them.
#[derive(Default)]
pub struct Tallied {
    /// How much of which.
    pub shares: Arc<[ValueShare]>,
    /// The same files, in this order.
    pub files: Vec<Arc<ValueFile>>,
}

impl Tally {
    /// Goes on from what there is.
    pub(super) fn over(files: &[Arc<ValueFile>], shares: &[ValueShare]) -> Self {
        debug_assert!(files.iter().map(|file| file.id).eq(shares.iter().map(|share| share.file)));
        let places = files.iter().enumerate().map(|(place, file)| (file.id, place)).collect();
        let files: Vec<_> = files.iter().cloned().zip(shares.iter().map(|share| share.bytes)).collect();
        Self { kept: files.len(), files, places, near: Vec::new() }
    }

    /// The file that a pointer leads to, and how many bytes are counted there.
    #[inline]
    pub(super) fn entry(
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

    /// Whether there is none to name.
    pub(super) fn is_empty(&self) -> bool {
        self.kept == 0 && self.files.iter().all(|(_, bytes)| *bytes == 0)
    }

    /// The files and how much is in each; and files of what was moved, all of which is the list's.
    pub(super) fn finish(self, moved: Vec<Arc<ValueFile>>) -> Tallied {
        let moved = moved.into_iter().map(|file| (Arc::clone(&file), file.bytes));
        let kept = self.kept;
        let named = self.files.into_iter().enumerate();
        let named = named.filter(|(place, (_, bytes))| *place < kept || *bytes > 0).map(|(_, used)| used);
        let mut used: Vec<_> = named.chain(moved).collect();
        used.sort_by_key(|(file, _)| file.id);
        debug_assert!(used.is_sorted_by(|one, next| one.0.id < next.0.id), "each file has one share");
        let (files, bytes): (Vec<_>, Vec<_>) = used.into_iter().unzip();
        let shares = files.iter().zip(bytes);
        let shares = shares.map(|(file, bytes)| ValueShare { file: file.id, file_bytes: file.bytes, bytes });
        Tallied { shares: shares.collect(), files }
    }
}
