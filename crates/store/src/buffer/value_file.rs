//! A buffer's segment of the log as the place where long values stay.

use std::sync::Arc;

use forebay_base::Kind;

use super::{Run, WriteBuffer};
use crate::values::ValueFile;

impl WriteBuffer {
    /// Its segment as a value file, if that was made one.
    pub fn value_file(&self) -> Option<Arc<ValueFile>> {
        self.value_file.get().cloned()
    }

    /// Says that its segment has become a value file.
    pub fn set_value_file(&self, file: Arc<ValueFile>) {
        let was_none = self.value_file.set(file).is_ok();
        debug_assert!(was_none, "a segment becomes a value file once");
    }
}

/// This many records are looked at to tell how long values are.
const SAMPLES: usize = 64;

impl Run {
    /// About which share of its bytes are values that are put and have at least this many: as of some records, taken
    /// evenly from all.
    pub fn long_share(&self, buffer: &WriteBuffer, bytes_min: usize) -> f64 {
        let some = (0..self.len()).step_by((self.len() / SAMPLES).max(1));
        let records = some.map(|index| self.record(buffer, self.place(index)));
        let (long, all) = records.fold((0, 0), |(long, all), record| {
            let is_long = record.kind == Kind::Put && record.value.len() >= bytes_min;
            let value_bytes = if is_long { record.value.len() } else { 0 };
            (long + value_bytes, all + record.key.len() + record.value.len())
        });
        debug_assert!(long <= all, "a value is part of its record");
        long as f64 / all.max(1) as f64
    }
}
