//! Records whose values stand in value files, or are to.

use forebay_base::{Kind, Record, Result, ValuePointer};

use super::ListWriter;
use crate::list::store::ListStore;
use crate::values::{Apart, Tallied, Tally, ValueWriter};

/// Where values of a list stand that is being written.
#[derive(Default)]
pub(super) struct Values {
    /// Of a write buffer's list: by what long values become pointers.
    apart: Option<Apart>,
    tally: Tally,
    /// What is moved from files that are collected.
    moved: Option<ValueWriter>,
}

impl Values {
    /// Of a write buffer's list.
    pub(super) fn of(apart: Apart) -> Self {
        Self { apart: Some(apart), ..Self::default() }
    }

    /// Whether any value of the list stands in a value file.
    pub(super) fn any(&self) -> bool {
        self.moved.is_some() || !self.tally.is_empty()
    }

    /// What the list has in which value file, and those files.
    pub(super) fn finish(self) -> Result<Tallied> {
        let moved = self.moved.map(ValueWriter::finish).transpose()?;
        Ok(self.tally.finish(moved))
    }

    /// Counts a pointer, or moves its value, where its file is collected, and returns the new way to it. A value that
    /// cannot be read stays where it is.
    fn take(&mut self, store: &ListStore, record: &Record<'_>) -> Result<Option<Vec<u8>>> {
        let pointer = ValuePointer::decode(record.value).ok_or_else(|| store.values.malformed())?;
        let (file, bytes) = self.tally.entry(&store.values, &pointer)?;
        let read = file.is_collected().then(|| store.values.load(record.key, record.value));
        let Some(Ok(value)) = read else {
            read.iter().for_each(|_| file.give_up());
            *bytes += pointer.bytes;
            return Ok(None);
        };
        let writer = match &mut self.moved {
            Some(writer) => writer,
            None => self.moved.insert(ValueWriter::new(&store.values, store.new_id())?),
        };
        let mut bytes = Vec::new();
        writer.push(pointer, &value)?.encode(&mut bytes);
        Ok(Some(bytes))
    }
}

impl ListWriter {
    /// Adds a record whose value stands in a value file, or is to.
    #[inline(never)]
    pub(super) fn push_valued(&mut self, prefix: u64, record: &Record<'_>) -> Result<()> {
        let mut values = self.values.take().unwrap_or_default();
        let outcome = self.push_by(&mut values, prefix, record);
        self.values = Some(values);
        outcome
    }

    fn push_by(&mut self, values: &mut Values, prefix: u64, record: &Record<'_>) -> Result<()> {
        if record.kind == Kind::Pointer {
            let moved = values.take(&self.store, record)?;
            let value = moved.as_deref().unwrap_or(record.value);
            return self.push_plain(prefix, &Record { value, ..*record });
        }
        let Values { apart, tally, .. } = values;
        let made = apart.as_mut().and_then(|apart| apart.pointer_for(record));
        if let Some((pointer, _)) = &made {
            tally.entry(&self.store.values, pointer)?.1 += pointer.bytes;
        }
        self.push_plain(prefix, made.as_ref().map_or(record, |(_, record)| record))
    }
}
