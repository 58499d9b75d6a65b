//! The log's segments: how one is sealed and the next becomes active, and when they are not needed any more.

use std::sync::Arc;

use forebay_base::Result;

use super::write::{Unwritten, Writes};
use super::{Log, RECORD_BYTES_MIN};
use crate::buffer::WriteBuffer;
use crate::log::batch::Payload;
use crate::log::frame::{self, frame_bytes};
use crate::log::prepared_segment::PreparedSegment;

/// How many equal batches fit an empty buffer, and the bytes that one takes in the log.
pub fn batches_of(buffer_bytes: u64, batch: &Payload) -> (u64, u64) {
    let bytes = frame_bytes(batch.bytes().len()) as u64;
    let records_max = buffer_bytes / RECORD_BYTES_MIN as u64;
    ((buffer_bytes / bytes).min(records_max / u64::from(batch.records().max(1))).max(1), bytes)
}

impl Log {
    /// Seals the active segment, if it still is `segment`, and goes on in the next one. `publish` is called
    /// with the sealed buffer before anything can be appended to the new one.
    pub fn rotate(
        &self,
        segment: u64,
        next: PreparedSegment,
        publish: impl FnOnce(&Arc<WriteBuffer>),
    ) -> Result<()> {
        let mut inner = self.inner.lock();
        // To one that is sealed and is to be written yet others may write.
        while inner.writing == Some(segment) {
            inner = self.wait(inner);
        }
        inner.check()?;
        if inner.buffer.segment() != segment {
            return Ok(());
        }
        debug_assert!(
            next.appender.is_empty() && next.buffer.segment() > segment,
            "the next segment is a new one"
        );
        let (start, end) = (inner.written, inner.appender.len());
        let is_written = self.writes == Writes::Always || start == end;
        if self.writes == Writes::Always {
            frame::write(&*inner.file, self.secret, segment, start, &inner.buffer.bytes()[start..end])?;
            self.metrics.log_bytes.add((end - start) as u64);
            inner.written_sequence = inner.last_sequence;
        }
        publish(&next.buffer);
        let file = std::mem::replace(&mut inner.file, next.file);
        let buffer = std::mem::replace(&mut inner.buffer, next.buffer);
        if is_written {
            inner.unsynced.push((segment, file));
        } else {
            let sequence = inner.last_sequence;
            inner.unwritten.push_back(Unwritten { buffer, file, written: start, sequence });
        }
        (inner.appender, inner.written) = (next.appender, 0);
        (inner.records, inner.range_deletes) = (0, 0);
        Ok(())
    }

    /// Segments below this one are not needed any more, for what they hold, up to this record, is durable elsewhere:
    /// nobody writes or syncs them. Else their handles, and with them the space of those that are removed, would stay
    /// until the next sync. Returns the one among them that somebody is just writing to: its file is to have no other
    /// use.
    pub fn forget(&self, (below, sequence): (u64, u64)) -> Option<u64> {
        let mut gone = Vec::new();
        let mut inner = self.inner.lock();
        debug_assert!(sequence <= inner.last_sequence, "what is durable was appended");
        inner.unsynced.retain(|(segment, _)| *segment >= below);
        while inner.unwritten.front().is_some_and(|sealed| sealed.buffer.segment() < below) {
            // Let go of once the lock is.
            gone.extend(inner.unwritten.pop_front());
        }
        inner.written_sequence = inner.written_sequence.max(sequence);
        inner.durable_sequence = inner.durable_sequence.max(sequence);
        inner.writing.filter(|&segment| segment < below)
    }

    /// The first segment that is not written whole, the active one at the latest, and how much of it is in its file.
    pub fn written(&self) -> (u64, u64) {
        let first = self.inner.lock().first_unwritten();
        (first.buffer.segment(), first.written as u64)
    }

    /// The active buffer's segment id.
    pub fn active_segment(&self) -> u64 {
        self.inner.lock().buffer.segment()
    }
}
