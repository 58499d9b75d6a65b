//! The pointers of a file of records that is being written: how much it has in which value file, and what is moved on
//! the way from value files that are emptied.

use std::sync::Arc;

use forebay_base::{Kind, POINTED_OFFSET_MAX, Record, Result, ValuePointer, sometimes};
use forebay_env::sync::atomic::{AtomicU64, Ordering};

use super::{Tallied, Tally, ValueFile, ValueFiles, ValueShare, ValueWriter};

/// See the module.
pub struct Pointers {
    values: Arc<ValueFiles>,
    /// The next file id of the database.
    next_id: Arc<AtomicU64>,
    tally: Tally,
    /// What is moved from files that are collected.
    moving: Option<ValueWriter>,
    moved: Vec<Arc<ValueFile>>,
}

impl Pointers {
    /// None yet.
    pub fn new(values: &Arc<ValueFiles>, next_id: &Arc<AtomicU64>) -> Self {
        Self::over(values, next_id, &[], &[])
    }

    /// Those of a file that goes on from another one, which has these shares. All of these files are named in the end,
    /// also where nothing is left there.
    pub fn over(
        values: &Arc<ValueFiles>,
        next_id: &Arc<AtomicU64>,
        files: &[Arc<ValueFile>],
        shares: &[ValueShare],
    ) -> Self {
        let (values, next_id, tally) = (Arc::clone(values), Arc::clone(next_id), Tally::over(files, shares));
        Self { values, next_id, tally, moving: None, moved: Vec::new() }
    }

    /// Whether any value stands in a value file, or a file is to be named.
    pub fn any(&self) -> bool {
        self.moving.is_some() || !self.moved.is_empty() || !self.tally.is_empty()
    }

    /// What there is in which value file, and those files.
    pub fn finish(mut self) -> Result<Tallied> {
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
    pub fn take(&mut self, record: &Record<'_>) -> Result<Option<ValuePointer>> {
        let pointer = self.decode(record.value)?;
        let (file, bytes) = self.tally.entry(&self.values, &pointer)?;
        *bytes += pointer.bytes;
        if file.is_collected() { self.move_from(record, pointer) } else { Ok(None) }
    }

    /// As [`take`](Self::take), of a pointer that is counted already.
    #[inline]
    pub fn carry(&mut self, record: &Record<'_>) -> Result<Option<ValuePointer>> {
        if !self.values.is_collecting() {
            return Ok(None);
        }
        let pointer = self.decode(record.value)?;
        let (file, _) = self.tally.entry(&self.values, &pointer)?;
        if file.is_collected() { self.move_from(record, pointer) } else { Ok(None) }
    }

    /// A pointer that was counted is there no more.
    pub fn give_up(&mut self, pointer: &[u8]) -> Result<()> {
        let pointer = self.decode(pointer)?;
        let (_, bytes) = self.tally.entry(&self.values, &pointer)?;
        debug_assert!(*bytes >= pointer.bytes, "what goes was counted");
        *bytes = bytes.saturating_sub(pointer.bytes);
        Ok(())
    }

    #[inline]
    fn decode(&self, pointer: &[u8]) -> Result<ValuePointer> {
        ValuePointer::decode(pointer).ok_or_else(|| self.values.malformed())
    }

    #[inline(never)]
    fn move_from(&mut self, record: &Record<'_>, pointer: ValuePointer) -> Result<Option<ValuePointer>> {
        debug_assert_eq!(record.kind, Kind::Pointer);
        let read = self.values.load(record.key, record.value);
        let (file, bytes) = self.tally.entry(&self.values, &pointer)?;
        let Ok(value) = read else {
            file.give_up();
            return Ok(None);
        };
        *bytes = bytes.saturating_sub(pointer.bytes);
        // Pointers stay of one length.
        let is_full = |writer: &ValueWriter| writer.bytes() > POINTED_OFFSET_MAX || sometimes!(1 in 8);
        if self.moving.as_ref().is_some_and(is_full) {
            self.finish_moving()?;
        }
        let writer = match &mut self.moving {
            Some(writer) => writer,
            None => {
                let id = self.next_id.fetch_add(1, Ordering::Relaxed);
                self.moving.insert(ValueWriter::new(&self.values, id)?)
            }
        };
        writer.push(pointer, &value).map(Some)
    }
}
