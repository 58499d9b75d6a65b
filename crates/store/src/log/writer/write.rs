//! Writing the log to its segments' files, in the order in which they were filled.

use std::sync::Arc;

use forebay_base::Result;
use forebay_env::sync::MutexGuard;
use forebay_env::{File, yield_point};

use super::{Inner, Log, Unlocked};
use crate::buffer::WriteBuffer;
use crate::log::frame;

/// This much is stored into mapped pages, and more written by a call. A store costs what its pages cost, and a call what
/// eight hundred bytes of them do; from a few KiB on, calls are quicker.
const STORE_BYTES_MAX: usize = 2 << 10;

/// When what is appended goes to its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writes {
    /// At the latest when its segment is sealed.
    Always,
    /// When somebody asks for it: what is flushed before never does.
    OnRequest,
}

/// A sealed segment of which some is not written yet.
pub(super) struct Unwritten {
    pub(super) buffer: Arc<WriteBuffer>,
    pub(super) file: Arc<dyn File>,
    /// How much of it is.
    pub(super) written: usize,
    /// The number of its last record.
    pub(super) sequence: u64,
}

impl Log {
    /// Writes all up to a record.
    pub fn write_up_to(&self, sequence: u64) -> Result<()> {
        self.write_to(self.inner.lock(), sequence)
    }

    /// Writes up to a record, unless somebody else does.
    pub(super) fn write_to<'a>(&'a self, mut inner: MutexGuard<'a, Inner>, sequence: u64) -> Result<()> {
        loop {
            inner.check()?;
            if inner.written_sequence >= sequence {
                return Ok(());
            }
            inner = if inner.writing.is_some() {
                self.wait(inner)
            } else if self.store(&mut inner)? {
                inner
            } else {
                self.write(inner)?
            };
        }
    }

    /// Writes all that is appended into mapped pages of the segment, if that is little and they can be had: under the
    /// lock, which that takes less long than to let go of it and to take it again.
    fn store(&self, inner: &mut Inner) -> Result<bool> {
        debug_assert!(inner.writing.is_none(), "one writes at a time");
        let (start, end) = (inner.written, inner.appender.len());
        let is_stored = end - start <= STORE_BYTES_MAX
            && inner.unwritten.is_empty()
            && frame::store(
                &*inner.file,
                self.secret,
                inner.buffer.segment(),
                start,
                &inner.buffer.bytes()[start..end],
            )?;
        if is_stored {
            self.metrics.log_bytes.add((end - start) as u64);
            (inner.written, inner.written_sequence) = (end, inner.last_sequence);
        }
        Ok(is_stored)
    }

    /// Writes a segment as far as it is appended, the first that is not written, without the lock, for all who wait.
    pub(super) fn write<'a>(&'a self, mut inner: MutexGuard<'a, Inner>) -> Result<MutexGuard<'a, Inner>> {
        let first = inner.first_unwritten();
        let Unwritten { buffer, file, written: start, sequence } = &first;
        let bytes = &buffer.bytes()[*start..];
        if bytes.is_empty() {
            return Ok(inner);
        }
        debug_assert!(inner.writing.is_none(), "one writes at a time");
        inner.writing = Some(buffer.segment());
        drop(inner);
        let unlocked = Unlocked { log: self, done: |inner| inner.writing = None };
        yield_point("log is written");
        let outcome = frame::write(&**file, self.secret, buffer.segment(), *start, bytes);
        let mut inner = unlocked.over();
        outcome?;
        self.metrics.log_bytes.add(bytes.len() as u64);
        inner.note_written(buffer.segment(), start + bytes.len(), *sequence);
        Ok(inner)
    }
}

impl Inner {
    /// The first segment that is not written whole, as it is by now: the active one at the latest.
    pub(super) fn first_unwritten(&self) -> Unwritten {
        let of = |buffer: &Arc<WriteBuffer>, file: &Arc<dyn File>, written, sequence| Unwritten {
            buffer: Arc::clone(buffer),
            file: Arc::clone(file),
            written,
            sequence,
        };
        match self.unwritten.front() {
            Some(sealed) => of(&sealed.buffer, &sealed.file, sealed.written, sealed.sequence),
            None => of(&self.buffer, &self.file, self.written, self.last_sequence),
        }
    }

    /// A segment was written up to a place, and that is a record's end. It may have been sealed before, and flushed
    /// meanwhile.
    fn note_written(&mut self, segment: u64, end: usize, sequence: u64) {
        if self.buffer.segment() == segment {
            debug_assert!(self.written < end, "nobody else has written meanwhile");
            self.written = end;
        } else if self.unwritten.front().is_some_and(|sealed| sealed.buffer.segment() == segment) {
            debug_assert_eq!(end, self.unwritten[0].buffer.len(), "what is sealed grows no more");
            let sealed = self.unwritten.pop_front();
            self.unsynced.extend(sealed.map(|sealed| (segment, sealed.file)));
        }
        self.written_sequence = self.written_sequence.max(sequence);
    }
}
