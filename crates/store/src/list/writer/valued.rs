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
        !self.tally.is_empty()
    }

    /// What the list has in which value file, and those files.
    pub(super) fn finish(self, store: &ListStore) -> Result<Tallied> {
        // Until the list has it somebody must.
        let moved = self.moved.map(ValueWriter::finish).transpose()?;
        let finished = self.tally.finish(&store.values);
        drop(moved);
        finished
    }

    /// The pointer to a value, which is moved where its file is collected.
    fn moved(&mut self, store: &ListStore, record: &Record<'_>) -> Result<Option<Vec<u8>>> {
        let Some(pointer) = ValuePointer::decode(record.value) else { return Ok(None) };
        let file = store.values.get(pointer.file)?;
        if !file.is_collected() {
            return Ok(None);
        }
        let value = match store.values.load(record.key, record.value) {
            Err(error) if error.is_corruption() => {
                file.give_up();
                return Ok(None);
            }
            read => read?,
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
            let moved = values.moved(&self.store, record)?;
            let record = Record { value: moved.as_deref().unwrap_or(record.value), ..*record };
            values.tally.add(&self.store.values, record.value)?;
            return self.push_plain(prefix, &record);
        }
        let Values { apart, tally, .. } = values;
        let pointer = apart.as_mut().and_then(|apart| apart.pointer_for(record));
        if let Some(pointer) = &pointer {
            tally.add(&self.store.values, pointer.value)?;
        }
        self.push_plain(prefix, pointer.as_ref().unwrap_or(record))
    }
}
