//! The new chunks of a leaf that is merged, which are written onto the segments of what was read.

use forebay_env::sync::Arc;

use super::base::Base;
use super::chunk::Packer;
use super::columns::Columns;
use super::stream::{Pool, Segment};
use crate::broken::Broken;

/// A chunk has this many records at most.
pub(super) const CHUNK_RECORDS: usize = 512;
/// And is closed at this many bytes.
pub(super) const CHUNK_BYTES: usize = 16 << 10;

/// What becomes of what is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Chunks.
    Packed,
    /// It is left as it is, and taken once it has about this many bytes, whole chunks of it.
    Loose { piece_bytes: usize },
}

/// New chunks.
pub(super) struct Writer {
    packer: Packer,
    /// What the next chunk will have.
    pending: Columns,
    /// No chunk lies on both sides of this hash.
    cut: Option<u64>,
    form: Form,
    pub(super) base: Base,
    /// Segments of what was merged so far. Only what those do not hold takes others.
    pub(super) free: Vec<Segment>,
    pool: Arc<Pool>,
}

impl Writer {
    pub(super) fn new(packer: Packer, state_bytes: Option<usize>, pool: Arc<Pool>) -> Self {
        let (cut, base, free) = Default::default();
        Self { packer, pending: Columns::new(state_bytes), cut, form: Form::Packed, base, free, pool }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.packer.memory_bytes() + self.pending.memory_bytes()
    }

    pub(super) fn restart(&mut self, cut: Option<u64>, form: Form) {
        self.packer.restart();
        (self.cut, self.form) = (cut, form);
    }

    #[inline]
    pub(super) fn push(&mut self, hash: u64, key: &[u8], state: &[u8]) {
        self.make_room(hash);
        self.pending.push(hash, key, state);
    }

    /// The state of the last record, if it is this key's.
    #[inline]
    pub(super) fn last_of(&mut self, hash: u64, key: &[u8]) -> Option<&mut [u8]> {
        let last = self.pending.len().checked_sub(1)?;
        self.pending.is(last, hash, key).then(|| self.pending.states.get_mut(last))
    }

    /// Adds records in as large pieces as chunks take.
    pub(super) fn extend(&mut self, from: &Columns, mut range: std::ops::Range<usize>) {
        if self.form != Form::Packed {
            return self.pending.extend(from, range);
        }
        while !range.is_empty() {
            self.make_room(from.hashes[range.start]);
            let mut end = range.end.min(range.start + CHUNK_RECORDS - self.pending.len());
            if let Some(cut) = self.cut {
                end = range.start + from.hashes[range.start..end].partition_point(|&hash| hash < cut);
            }
            end = from.reach(range.start..end, CHUNK_BYTES - self.pending.bytes());
            self.pending.extend(from, range.start..end);
            range.start = end;
        }
    }

    /// Seals what is pending if it is full, or lies before the cut and this hash does not.
    #[inline]
    fn make_room(&mut self, hash: u64) {
        if self.form != Form::Packed {
            return;
        }
        if self.cut.is_some_and(|cut| hash >= cut) {
            self.cut = None;
            self.seal();
        }
        if self.pending.len() >= CHUNK_RECORDS || self.pending.bytes() >= CHUNK_BYTES {
            self.seal();
        }
    }

    /// Whether what was written is to be taken before more is.
    #[inline]
    pub(super) fn has_enough(&self) -> bool {
        match self.form {
            Form::Packed => false,
            Form::Loose { piece_bytes } => self.pending.bytes() >= piece_bytes,
        }
    }

    fn seal(&mut self) {
        if !self.pending.is_empty() {
            let Self { packer, pending, base, free, pool, .. } = self;
            base.push(packer, pending, &mut || free.pop().unwrap_or_else(|| pool.take()));
            pending.clear();
        }
    }

    pub(super) fn finish(&mut self) -> Base {
        self.seal();
        self.give_back();
        debug_assert!(
            self.pending.is_empty() && self.free.is_empty(),
            "nothing is left in the hands of the merge"
        );
        std::mem::take(&mut self.base).shrink()
    }

    /// Puts what was written in place of what `records` hold.
    pub(super) fn take_loose(&mut self, records: &mut Columns) {
        debug_assert!(self.form != Form::Packed && self.base.len() == 0, "nothing was packed");
        std::mem::swap(&mut self.pending, records);
        self.pending.clear();
    }

    /// Returns the groups that are lost of what was left as it is, all of which is taken.
    pub(super) fn finish_loose(&mut self) -> Broken {
        debug_assert!(self.pending.is_empty(), "all of it is taken");
        self.give_back();
        std::mem::take(&mut self.base).broken
    }

    /// Gives back the segments that are not needed.
    pub(super) fn give_back(&mut self) {
        self.pool.give(&mut self.free);
    }
}
