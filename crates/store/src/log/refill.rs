//! Frames that were read back, as the write buffer of a segment: of their own, or of a new one that takes several.

use std::sync::Arc;

use forebay_base::{Error, Result};
use forebay_env::{Appender, Arena};

use super::frame::{NO_TRAILER, Secret, append_frame};
use super::recover::{Frame, placed};
use super::writer::{RANGE_DELETES_MAX, RECORD_BYTES_MIN};
use crate::buffer::{ArenaPool, RangeDelete, WriteBuffer};

/// A buffer that is being filled.
pub struct Refill {
    segment: u64,
    secret: Secret,
    arena: Arc<Arena>,
    appender: Appender,
    records: usize,
    range_deletes: Vec<RangeDelete>,
}

impl Refill {
    /// For this many bytes at first, as the image of this segment. A short one takes no more memory than that.
    pub fn new(segment: u64, bytes: usize, secret: Secret, pool: &ArenaPool) -> Self {
        let is_short = bytes < pool.arena_bytes();
        let (arena, appender) = if is_short { pool.make(bytes) } else { pool.take(bytes) };
        Self { segment, secret, arena, appender, records: 0, range_deletes: Vec::new() }
    }

    /// The segment's id.
    pub fn segment(&self) -> u64 {
        self.segment
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.appender.len()
    }

    /// The memory it has them in.
    pub fn image(&mut self) -> Arc<Arena> {
        self.appender.publish();
        Arc::clone(&self.arena)
    }

    /// Whether a writer would have put the frame here too.
    pub fn takes(&self, frame: &Frame<'_>) -> bool {
        let records = self.records + frame.header.records as usize;
        frame.header.end(self.appender.len()) <= self.arena.capacity()
            && records <= self.arena.capacity() / RECORD_BYTES_MIN
            && self.range_deletes.len() + frame.range_deletes.len() <= RANGE_DELETES_MAX
    }

    /// Appends a frame, whose header becomes that of its place here.
    pub fn push(&mut self, frame: &Frame<'_>, pool: &ArenaPool) -> Result<()> {
        let offset = self.appender.len();
        let end = frame.header.end(offset);
        self.make_room(end, pool)?;
        let head = frame.in_memory(self.secret).encode(self.secret, self.segment, offset);
        // Elsewhere it is encrypted as another one.
        let is_there = (frame.segment, frame.at) == (self.segment, offset);
        let trailer = if is_there { frame.trailer } else { NO_TRAILER };
        append_frame(&mut self.appender, &head, frame.payload, &trailer).ok_or_else(full)?;
        debug_assert_eq!(self.appender.len(), end, "a frame ends where its header says");
        self.records += frame.header.records as usize;
        self.range_deletes.extend(frame.range_deletes.iter().map(|delete| placed(delete, offset)));
        Ok(())
    }

    /// Takes more memory where a segment has more than was thought: how long its file is does not tell what is in it.
    fn make_room(&mut self, bytes: usize, pool: &ArenaPool) -> Result<()> {
        if bytes > self.arena.capacity() {
            self.appender.publish();
            let (arena, mut appender) = pool.make(bytes.max(2 * self.arena.capacity()));
            appender.append(self.arena.prefix(usize::MAX)).ok_or_else(full)?;
            self.appender = appender;
            pool.put_back(std::mem::replace(&mut self.arena, arena));
        }
        Ok(())
    }

    /// The buffer.
    pub fn finish(mut self, pool: &Arc<ArenaPool>) -> Arc<WriteBuffer> {
        self.appender.publish();
        let buffer = WriteBuffer::new(self.segment, self.arena, Some(Arc::clone(pool)));
        buffer.set_range_deletes(self.range_deletes);
        Arc::new(buffer)
    }
}

fn full() -> Error {
    Error::bug("a log segment is longer than its buffer")
}
