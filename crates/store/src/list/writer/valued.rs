//! Records whose values stand in value files.

use std::sync::Arc;

use forebay_base::{
    Block, Error, Kind, POINTED_OFFSET_MAX, POINTER_BYTES, Record, Result, ValuePointer, sometimes,
};

use super::ListWriter;
use crate::list::store::ListStore;
use crate::values::{Tallied, Tally, ValueFile, ValueWriter};

/// Where values of a list stand that is being written.
#[derive(Default)]
pub(super) struct Values {
    tally: Tally,
    /// What is moved from files that are collected.
    moving: Option<ValueWriter>,
    moved: Vec<Arc<ValueFile>>,
}

impl Values {
    /// Whether any value of the list stands in a value file.
    pub(super) fn any(&self) -> bool {
        self.moving.is_some() || !self.moved.is_empty() || !self.tally.is_empty()
    }

    /// What the list has in which value file, and those files.
    pub(super) fn finish(mut self) -> Result<Tallied> {
        self.finish_moving()?;
        Ok(self.tally.finish(self.moved))
    }

    fn finish_moving(&mut self) -> Result<()> {
        let finished = self.moving.take().map(ValueWriter::finish).transpose()?;
        self.moved.extend(finished);
        Ok(())
    }

    /// Counts a pointer, or moves its value, where its file is collected, and returns the new way to it. A value that
    /// cannot be read stays where it is.
    #[inline]
    fn take(&mut self, store: &ListStore, record: &Record<'_>) -> Result<Option<ValuePointer>> {
        let pointer = ValuePointer::decode(record.value).ok_or_else(|| store.values.malformed())?;
        let (file, bytes) = self.tally.entry(&store.values, &pointer)?;
        if file.is_collected() {
            match store.values.load(record.key, record.value) {
                Ok(value) => return self.move_value(store, pointer, &value).map(Some),
                Err(_) => file.give_up(),
            }
        }
        *bytes += pointer.bytes;
        Ok(None)
    }

    #[inline(never)]
    fn move_value(&mut self, store: &ListStore, pointer: ValuePointer, value: &[u8]) -> Result<ValuePointer> {
        // Pointers stay of one length.
        let is_full = |writer: &ValueWriter| writer.bytes() > POINTED_OFFSET_MAX || sometimes!(1 in 8);
        if self.moving.as_ref().is_some_and(is_full) {
            self.finish_moving()?;
        }
        let writer = match &mut self.moving {
            Some(writer) => writer,
            None => self.moving.insert(ValueWriter::new(&store.values, store.new_id())?),
        };
        writer.push(pointer, value)
    }

    /// As [`take`](Self::take), of all pointers of a block. Returns its bytes with new ways, where something was moved.
    fn take_block(&mut self, store: &ListStore, block: &Block) -> Result<Option<Vec<u8>>> {
        let mut bytes = None;
        for index in 0..block.len() {
            if let Some(pointer) = self.take(store, &block.record(index))? {
                let even = pointer.even().ok_or_else(|| Error::bug("a value was moved out of reach"))?;
                let (end, bytes) =
                    (block.offset(index + 1), bytes.get_or_insert_with(|| block.bytes().to_vec()));
                bytes[end - POINTER_BYTES..end].copy_from_slice(&even);
            }
        }
        Ok(bytes)
    }
}

impl ListWriter {
    /// Adds a record whose value stands in a value file.
    #[inline(never)]
    pub(super) fn push_valued(&mut self, prefix: u64, record: &Record<'_>) -> Result<()> {
        debug_assert_eq!(record.kind, Kind::Pointer);
        let Some(pointer) = self.values.get_or_insert_default().take(&self.store, record)? else {
            return self.push_plain(prefix, record);
        };
        let mut value = Vec::with_capacity(POINTER_BYTES);
        pointer.encode(&mut value);
        if self.shape.sizes().is_some() && value.len() != POINTER_BYTES {
            return Err(Error::bug("a value was moved out of reach"));
        }
        self.push_plain(prefix, &Record { value: &value, ..*record })
    }

    /// Takes the pointers of a block of them: see [`Values::take_block`].
    pub(super) fn take_block(&mut self, block: &Block) -> Result<Option<Vec<u8>>> {
        debug_assert_eq!(block.kind(), Kind::Pointer);
        self.values.get_or_insert_default().take_block(&self.store, block)
    }
}
