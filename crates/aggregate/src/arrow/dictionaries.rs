//! The numbers of dictionaries that came last: batches of one file mostly share theirs.

use arrow_array::{Array, ArrayRef};
use forebay_env::sync::{Arc, Mutex};

use crate::columns::new_dictionary;

/// So many are known. Each is kept from being freed, so that no other takes its place in memory.
const KNOWN_MAX: usize = 16;

/// See the module.
#[derive(Default)]
pub(super) struct Dictionaries(Mutex<Vec<(ArrayRef, u64)>>);

impl Dictionaries {
    /// The number of a dictionary; a new one where it is not known any more.
    pub(super) fn number(&self, texts: &ArrayRef) -> u64 {
        let mut known = self.0.lock();
        let found = known.iter().position(|(other, _)| Arc::ptr_eq(other, texts));
        let entry = found.map_or_else(|| (Arc::clone(texts), new_dictionary()), |at| known.remove(at));
        let number = entry.1;
        known.insert(0, entry);
        known.truncate(KNOWN_MAX);
        debug_assert!(known.iter().skip(1).all(|(_, other)| *other != number), "each has its own");
        number
    }

    /// How many bytes those take that are known.
    pub(super) fn memory_bytes(&self) -> usize {
        self.0.lock().iter().map(|(texts, _)| texts.get_array_memory_size()).sum()
    }
}
