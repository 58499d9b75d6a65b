//! Keeping long values of a write buffer apart, as it goes to lists.

use std::sync::Arc;

use forebay_base::record::Shape;
use forebay_base::{
    Error, Kind, POINTED_BYTES_MAX, POINTED_OFFSET_MAX, POINTER_BYTES, Record, Result, ValuePointer,
};

use super::ValueFile;
use crate::WriteBuffer;

/// Makes pointers of the long values of a buffer whose segment is a value file: a value stands in the segment where it
/// stands in the buffer, which is the segment's image.
pub struct Apart {
    file: Arc<ValueFile>,
    buffer_bytes: u64,
    bytes_min: usize,
    /// Values end with their expiry.
    expire: bool,
}

impl Apart {
    /// For values of at least this many bytes, which end with their expiry or do not; `None` where the buffer's segment is
    /// no value file.
    pub fn of(buffer: &WriteBuffer, bytes_min: usize, expire: bool) -> Option<Self> {
        let (file, buffer_bytes) = (buffer.value_file()?, buffer.len() as u64);
        Some(Self { file, buffer_bytes, bytes_min, expire })
    }

    /// The shape of what lists get for records of this shape.
    pub fn shape(&self, shape: Shape) -> Shape {
        match shape {
            Shape::Fixed { value_bytes, .. } if (value_bytes as usize) < self.bytes_min => shape,
            Shape::Fixed { key_bytes, value_bytes }
                if !self.expire
                    && u64::from(value_bytes) <= POINTED_BYTES_MAX
                    && self.file.id().max(self.buffer_bytes) <= POINTED_OFFSET_MAX =>
            {
                Shape::Pointers { key_bytes }
            }
            _ => Shape::Variable,
        }
    }

    /// Whether a record is put whose value is long enough.
    #[inline]
    pub(crate) fn takes(&self, record: &Record<'_>) -> bool {
        record.kind == Kind::Put && record.value.len() >= self.bytes_min
    }

    /// The way to a value that is put and stands here in the buffer.
    #[inline]
    pub(crate) fn pointer(&self, key: &[u8], value: &[u8], at: usize) -> ValuePointer {
        debug_assert!(value.len() >= self.bytes_min && (at + value.len()) as u64 <= self.buffer_bytes);
        let pointer = ValuePointer::new(self.file.id(), at as u64, key, value);
        if self.expire { pointer.expiring(value) } else { pointer }
    }

    /// The same as lists have it that are of pointers alone, where the [shape](Self::shape) says so.
    #[inline]
    pub(crate) fn even_pointer(&self, key: &[u8], value: &[u8], at: usize) -> Result<[u8; POINTER_BYTES]> {
        let even = self.pointer(key, value, at).even();
        even.ok_or_else(|| Error::bug("whoever goes by blocks has asked for the shape"))
    }
}
