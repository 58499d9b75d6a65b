//! A buffer's segment of the log as the place where long values stay.

use std::sync::Arc;

use super::WriteBuffer;
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
