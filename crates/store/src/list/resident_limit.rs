//! How much tables may keep in memory that no file has: one room for all of them, by what it takes and not by what is in
//! it.

use forebay_env::sync::atomic::{AtomicU64, Ordering};

/// The room, and what is taken of it.
#[derive(Debug, Default)]
pub struct ResidentLimit {
    /// See [`ResidentRoom`].
    bytes: AtomicU64,
    buffer_bytes: AtomicU64,
    /// How many log segments are held for it at most.
    buffers_max: AtomicU64,
    /// See [`Kept`].
    record_bytes: AtomicU64,
    memory_bytes: AtomicU64,
    /// What there is of segments below this is to go to files: it holds the log.
    pub due_below: AtomicU64,
    /// How many wait for all of it to go to files. Meanwhile nothing comes in.
    pub drains: AtomicU64,
}

/// How much may be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ResidentRoom {
    /// Bytes of memory, of all tables.
    pub bytes: u64,
    /// How long the write buffer is that comes next.
    pub buffer_bytes: u64,
    /// The most write buffers that something of is kept: the log goes back as far.
    pub buffers_max: u64,
}

/// What is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Kept {
    /// Bytes of records.
    pub record_bytes: u64,
    /// What the lists take that have them, with filters, page search and what of them nobody needs any more.
    pub memory_bytes: u64,
}

/// Lists may take this much whatever the room is: beside what else there is that is little. Within it records count.
const MEMORY_BYTES_FREE: u64 = 4 << 20;

impl ResidentLimit {
    /// Of this room, and nothing kept in it.
    pub fn new(room: ResidentRoom) -> Self {
        let limit = Self::default();
        limit.set_room(room);
        limit
    }

    /// The room as it is now.
    pub fn room(&self) -> ResidentRoom {
        let load = |what: &AtomicU64| what.load(Ordering::Relaxed);
        ResidentRoom {
            bytes: load(&self.bytes),
            buffer_bytes: load(&self.buffer_bytes),
            buffers_max: load(&self.buffers_max),
        }
    }

    /// From now on there is this much.
    pub fn set_room(&self, room: ResidentRoom) {
        self.bytes.store(room.bytes, Ordering::Relaxed);
        self.buffer_bytes.store(room.buffer_bytes, Ordering::Relaxed);
        self.buffers_max.store(room.buffers_max, Ordering::Relaxed);
    }

    /// What all tables have of it, as was noted last.
    pub fn kept(&self) -> Kept {
        Kept {
            record_bytes: self.record_bytes.load(Ordering::Relaxed),
            memory_bytes: self.memory_bytes.load(Ordering::Relaxed),
        }
    }

    /// Notes what all tables have of it.
    pub fn note_kept(&self, kept: Kept) {
        self.record_bytes.store(kept.record_bytes, Ordering::Relaxed);
        self.memory_bytes.store(kept.memory_bytes, Ordering::Relaxed);
    }

    /// How much of it has to go before another write buffer comes in.
    pub fn excess_bytes(&self) -> u64 {
        self.room().excess_bytes(self.kept())
    }
}

impl ResidentRoom {
    /// What may stay while there is room for another write buffer: half of it at least.
    pub fn kept_bytes_max(self) -> u64 {
        self.bytes.saturating_sub(self.buffer_bytes).max(self.bytes / 2)
    }

    /// By how much the memory that lists take is more than may stay.
    pub fn memory_excess_bytes(self, kept: Kept) -> u64 {
        kept.memory_bytes.saturating_sub(self.kept_bytes_max().max(MEMORY_BYTES_FREE))
    }

    /// By how much there is more than may stay.
    pub fn excess_bytes(self, kept: Kept) -> u64 {
        self.memory_excess_bytes(kept).max(kept.record_bytes.saturating_sub(self.kept_bytes_max()))
    }
}

impl Kept {
    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            record_bytes: self.record_bytes.saturating_add(other.record_bytes),
            memory_bytes: self.memory_bytes.saturating_add(other.memory_bytes),
        }
    }

    /// What is left of it without another.
    pub fn without(self, other: Self) -> Self {
        Self {
            record_bytes: self.record_bytes.saturating_sub(other.record_bytes),
            memory_bytes: self.memory_bytes.saturating_sub(other.memory_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_buffer_finds_room_whatever_the_lists_take() {
        let room = ResidentRoom { bytes: 64 << 20, buffer_bytes: 16 << 20, buffers_max: 8 };
        let excess = |record_bytes, memory_bytes| room.excess_bytes(Kept { record_bytes, memory_bytes });
        assert_eq!(room.kept_bytes_max(), 48 << 20);
        assert_eq!([excess(40 << 20, 48 << 20), excess(40 << 20, 50 << 20)], [0, 2 << 20]);
        // A buffer that is longer than half of the room leaves that half.
        let long = ResidentRoom { buffer_bytes: 48 << 20, ..room };
        assert_eq!(long.kept_bytes_max(), 32 << 20);
        // Of so little, records count.
        let small = ResidentRoom { bytes: 64 << 10, buffer_bytes: 16 << 10, buffers_max: 8 };
        let kept = Kept { record_bytes: 48 << 10, memory_bytes: 1 << 20 };
        assert_eq!(small.excess_bytes(kept), 0);
        assert_eq!(small.excess_bytes(Kept { record_bytes: 50 << 10, ..kept }), 2 << 10);
        let limit = ResidentLimit::default();
        limit.set_room(room);
        limit.note_kept(Kept { record_bytes: 1, memory_bytes: 50 << 20 });
        assert_eq!((limit.room(), limit.excess_bytes()), (room, 2 << 20));
    }
}
