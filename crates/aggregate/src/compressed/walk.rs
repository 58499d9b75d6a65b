//! A walk over a leaf's chunks, in the order of hashes, as they are merged with what was added.

use forebay_base::Result;
use forebay_env::sync::Arc;

use super::base::Base;
use super::chunk::Packer;
use super::columns::Columns;
use super::parts::Part;
use super::stream::Segment;
use super::writer::Writer;
use crate::broken::Broken;

/// A leaf's chunks.
pub(super) enum Chunks {
    /// Their segments go to the writer on the way.
    Own(Base),
    /// They stay where they are.
    Lent(Arc<Part>),
}

impl Default for Chunks {
    fn default() -> Self {
        Self::Own(Base::default())
    }
}

impl Chunks {
    pub(super) fn take_broken(&mut self) -> Broken {
        match self {
            Self::Own(base) => std::mem::take(&mut base.broken),
            Self::Lent(part) => part.base.broken.clone(),
        }
    }

    /// Puts the records of a chunk in place of those in `records`, or none where there is no such chunk.
    fn next(
        &mut self,
        number: usize,
        packer: &mut Packer,
        records: &mut Columns,
        free: &mut Vec<Segment>,
    ) -> Result<()> {
        match self {
            Self::Own(base) => base.consume(number, packer, records, free),
            Self::Lent(part) if number < part.base.len() => part.base.unpack(number, packer, records),
            Self::Lent(_) => {
                records.clear();
                Ok(())
            }
        }
    }
}

/// A walk over a leaf's chunks.
pub(super) struct Walk {
    pub(super) packer: Packer,
    pub(super) base: Chunks,
    /// The number of the next chunk.
    next: usize,
    /// The records of a chunk,
    pub(super) records: Columns,
    /// which of them is next,
    pub(super) at: usize,
    /// and up to which they are in the writer.
    copied: usize,
}

impl Walk {
    pub(super) fn new(packer: Packer, state_bytes: Option<usize>) -> Self {
        let records = Columns::new(state_bytes);
        Self { packer, base: Chunks::default(), next: 0, records, at: 0, copied: 0 }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.records.memory_bytes() + self.packer.memory_bytes()
    }

    pub(super) fn restart(&mut self, base: Chunks, writer: &mut Writer) -> Result<()> {
        (self.base, self.next) = (base, 0);
        self.enter_next_chunk(writer)
    }

    fn enter_next_chunk(&mut self, writer: &mut Writer) -> Result<()> {
        let Self { packer, base, next, records, .. } = self;
        base.next(*next, packer, records, &mut writer.free)?;
        (self.at, self.copied, self.next) = (0, 0, self.next + 1);
        Ok(())
    }

    /// Goes to the first record that is not below this place; what it passes goes to the writer, now or later. `false`
    /// where it stops between two chunks before, since the writer has enough.
    #[inline]
    pub(super) fn seek(&mut self, hash: u64, key: &[u8], writer: &mut Writer) -> Result<bool> {
        loop {
            self.at = self.records.seek(self.at, hash, key);
            if self.at < self.records.len() || self.records.is_empty() {
                return Ok(true);
            }
            self.copy(writer);
            self.enter_next_chunk(writer)?;
            if writer.has_enough() {
                return Ok(false);
            }
        }
    }

    #[inline]
    pub(super) fn is_at(&self, hash: u64, key: &[u8]) -> bool {
        self.records.is(self.at, hash, key)
    }

    /// Copies what was passed.
    #[inline]
    pub(super) fn copy(&mut self, writer: &mut Writer) {
        debug_assert!(self.copied <= self.at && self.at <= self.records.len());
        if self.copied < self.at {
            writer.extend(&self.records, self.copied..self.at);
            self.copied = self.at;
        }
    }

    /// Leaves the record here out.
    pub(super) fn skip(&mut self) {
        debug_assert!(self.at < self.records.len() && self.copied == self.at, "what was before is copied");
        self.at += 1;
        self.copied = self.at;
    }

    /// Goes to the end; `false` where it stops between two chunks before, since the writer has enough.
    pub(super) fn finish(&mut self, writer: &mut Writer) -> Result<bool> {
        while !self.records.is_empty() {
            if writer.has_enough() {
                return Ok(false);
            }
            self.at = self.records.len();
            self.copy(writer);
            self.enter_next_chunk(writer)?;
        }
        self.base = Chunks::default();
        Ok(true)
    }
}
