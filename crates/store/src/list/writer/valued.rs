//! Records whose values stand in value files.

use forebay_base::{Block, Error, Kind, POINTER_BYTES, Record, Result, ValuePointer};

use super::ListWriter;
use crate::values::Pointers;

impl ListWriter {
    /// Where values of the list stand.
    #[inline]
    fn pointers(&mut self) -> &mut Pointers {
        let store = &self.store;
        self.values.get_or_insert_with(|| Box::new(Pointers::new(&store.values, &store.next_id)))
    }

    /// Adds a record whose value stands in a value file.
    #[inline(never)]
    pub(super) fn push_valued(&mut self, prefix: u64, record: &Record<'_>) -> Result<()> {
        debug_assert_eq!(record.kind, Kind::Pointer);
        let Some(pointer) = self.pointers().take(record)? else {
            return self.push_plain(prefix, record);
        };
        let mut value = Vec::with_capacity(POINTER_BYTES);
        pointer.encode(&mut value);
        if self.shape.sizes().is_some() && value.len() != POINTER_BYTES {
            return Err(out_of_reach());
        }
        self.push_plain(prefix, &Record { value: &value, ..*record })
    }

    /// Takes all pointers of a block of them. Returns its bytes with new ways, where something was moved.
    pub(super) fn take_block(&mut self, block: &Block) -> Result<Option<Vec<u8>>> {
        debug_assert_eq!(block.kind(), Kind::Pointer);
        let pointers = self.pointers();
        let mut bytes = None;
        for index in 0..block.len() {
            if let Some(pointer) = pointers.take(&block.record(index))? {
                let even = ValuePointer::even(&pointer).ok_or_else(out_of_reach)?;
                let (end, bytes) =
                    (block.offset(index + 1), bytes.get_or_insert_with(|| block.bytes().to_vec()));
                bytes[end - POINTER_BYTES..end].copy_from_slice(&even);
            }
        }
        Ok(bytes)
    }
}

fn out_of_reach() -> Error {
    Error::bug("a value was moved out of reach")
}
