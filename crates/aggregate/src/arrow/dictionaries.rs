//! The numbers of dictionaries that came last: batches of one file mostly share theirs.

use arrow_array::{Array, ArrayRef};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_schema::DataType;
use forebay_base::Result;
use forebay_env::sync::{Arc, Mutex};

use crate::columns::new_dictionary;

/// So many are known. Each is kept from being freed, so that no other takes its place in memory.
const KNOWN_MAX: usize = 16;

/// Offsets of texts, and their bytes.
pub(super) type Plain = (ScalarBuffer<i32>, Buffer);

/// A dictionary's values, the same as plain texts, and its number.
struct Known {
    values: ArrayRef,
    texts: Plain,
    number: u64,
}

impl Known {
    fn memory_bytes(&self) -> usize {
        let (offsets, bytes) = &self.texts;
        let copied = match self.values.data_type() {
            DataType::Utf8 | DataType::Binary => 0,
            _ => offsets.inner().len() + bytes.len(),
        };
        self.values.get_array_memory_size() + copied
    }
}

/// See the module.
#[derive(Default)]
pub(super) struct Dictionaries(Mutex<Vec<Known>>);

impl Dictionaries {
    /// The texts of a dictionary, and its number: a new one where it is not known any more.
    pub(super) fn find(
        &self,
        values: &ArrayRef,
        texts: impl FnOnce() -> Result<Plain>,
    ) -> Result<(Plain, u64)> {
        let mut known = self.0.lock();
        let entry = match known.iter().position(|known| Arc::ptr_eq(&known.values, values)) {
            Some(at) => known.remove(at),
            None => Known { values: Arc::clone(values), texts: texts()?, number: new_dictionary() },
        };
        let found = (entry.texts.clone(), entry.number);
        known.insert(0, entry);
        known.truncate(KNOWN_MAX);
        debug_assert!(known.iter().skip(1).all(|known| known.number != found.1), "each has its own");
        Ok(found)
    }

    /// How many bytes those take that are known.
    pub(super) fn memory_bytes(&self) -> usize {
        self.0.lock().iter().map(Known::memory_bytes).sum()
    }
}
