//! Keeping long values of a write buffer apart, as it goes to lists.

use std::sync::Arc;

use forebay_base::{Kind, Record, ValuePointer};

use super::ValueFile;
use crate::WriteBuffer;

/// Makes pointers of the long values of a buffer whose segment is a value file.
pub struct Apart {
    buffer: Arc<WriteBuffer>,
    file: Arc<ValueFile>,
    bytes_min: usize,
    pointer: Vec<u8>,
}

impl Apart {
    /// For values of at least this many bytes; `None` where the buffer's segment is no value file.
    pub fn of(buffer: &Arc<WriteBuffer>, bytes_min: usize) -> Option<Self> {
        let file = buffer.value_file()?;
        Some(Self { buffer: Arc::clone(buffer), file, bytes_min, pointer: Vec::new() })
    }

    /// The pointer and the record that a list gets for one that is put, where its value is long and stands in the buffer itself: not
    /// where it was brought by something else that is merged with the buffer.
    pub(crate) fn pointer_for<'a>(&'a mut self, record: &Record<'a>) -> Option<(ValuePointer, Record<'a>)> {
        if record.kind != Kind::Put || record.value.len() < self.bytes_min {
            return None;
        }
        let (image, value) = (self.buffer.bytes().as_ptr_range(), record.value.as_ptr_range());
        if value.start < image.start || value.end > image.end {
            return None;
        }
        let offset = value.start.addr() - image.start.addr();
        debug_assert_eq!(&self.buffer.bytes()[offset..offset + record.value.len()], record.value);
        self.pointer.clear();
        let pointer = ValuePointer::new(self.file.id(), offset as u64, record.key, record.value);
        pointer.encode(&mut self.pointer);
        Some((pointer, Record { kind: Kind::Pointer, key: record.key, value: &self.pointer }))
    }
}
