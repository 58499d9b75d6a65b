//! What all takes, and whether there is room for more.

use forebay_env::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::options::{SLACK, Sizes};
use super::stream::{SEGMENT_BYTES, SEGMENT_ENTRY_BYTES, Segment};
use super::worker::Shared;
use crate::aggregate::Aggregate;

/// What is counted besides segments.
#[derive(Default)]
pub(super) struct Room {
    pub(super) memory_max: usize,
    /// Memory of leaves' indexes and of their directory.
    pub(super) index_bytes: AtomicUsize,
    /// Of what merges leaves.
    pub(super) scratch_bytes: AtomicUsize,
    /// Of what is hot or staged, and of states that are made of values.
    pub(super) stripe_bytes: AtomicUsize,
    /// Of what came by columns.
    pub(super) front_bytes: AtomicUsize,
    /// The most that it may take.
    pub(super) front_bytes_max: AtomicUsize,
    /// Records that were added and are merged, since groups went to files last.
    pub(super) merged: AtomicU64,
    /// What is added gathers in leaves until memory is full: few records would meet one of their group there.
    pub(super) gathers: AtomicBool,
    /// Rows come by columns: nothing is packed as long as there is ample room,
    pub(super) is_loose: AtomicBool,
    /// and there is none any more.
    pub(super) is_scarce: AtomicBool,
    /// Memory does not suffice for more keys.
    pub(super) is_full: AtomicBool,
    /// Somebody makes room: those who add wait for it.
    pub(super) is_made: AtomicBool,
}

/// There is ample room while leaves take no more than this share of the memory.
const AMPLE_SHARE: usize = 4;

/// Who wants room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// More is added.
    Adding,
    /// What was taken is to be merged, with what is kept for that.
    Merging,
    /// The same where there is nothing else left to do.
    Anyway,
}

impl Room {
    /// What is used besides segments, or what parts may take in any case where that is more. Groups in files keep to
    /// their own part: nothing that is done here would have them take less.
    pub(super) fn besides(&self, least: &Sizes) -> usize {
        let bytes = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        bytes(&self.index_bytes)
            + bytes(&self.scratch_bytes).max(least.scratch_bytes)
            + bytes(&self.stripe_bytes).max(least.hot_bytes + least.staged_bytes)
            + bytes(&self.front_bytes)
            + least.spilled_bytes
    }
}

impl<A: Aggregate> Shared<A> {
    /// Whether there may be this many segments and bytes besides: beside all that other parts and merges may take
    /// meanwhile.
    fn fits(&self, segments: usize, bytes: usize, need: Need) -> bool {
        let (sizes, room) = (&self.sizes, &self.room);
        let used_bytes = segments * SEGMENT_ENTRY_BYTES + bytes + room.besides(sizes) + sizes.reserve_bytes;
        match need {
            // What is hot or staged goes to buffers at the end.
            Need::Adding => {
                let front_bytes = room.front_bytes.load(Ordering::Relaxed);
                let more_bytes = room.front_bytes_max.load(Ordering::Relaxed).saturating_sub(front_bytes);
                let kept_bytes = sizes.hot_bytes + sizes.staged_bytes + more_bytes;
                let is_shut = room.is_full.load(Ordering::Relaxed) || room.is_made.load(Ordering::Relaxed);
                !is_shut && used_bytes + kept_bytes <= room.memory_max
            }
            Need::Merging => used_bytes <= room.memory_max,
            Need::Anyway => true,
        }
    }

    /// Whether there is room for this many segments more.
    pub(super) fn has_room(&self, segments: usize, need: Need) -> bool {
        self.fits(self.pool.used() + segments, 0, need)
    }

    /// Whether there is room for this many bytes more, of what finds records.
    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        self.fits(self.pool.used(), bytes, Need::Merging)
    }

    /// Whether there is room for a good part of the memory more.
    pub(super) fn has_slack(&self) -> bool {
        self.has_room(self.room.memory_max / SLACK / SEGMENT_BYTES, Need::Adding)
    }

    /// Whether leaves that have nothing packed stay so. Once memory is no longer ample none do.
    pub(super) fn is_loose(&self) -> bool {
        let room = &self.room;
        if self.pool.used() * SEGMENT_BYTES > room.memory_max / AMPLE_SHARE {
            room.is_scarce.store(true, Ordering::Relaxed);
        }
        room.is_loose.load(Ordering::Relaxed) && !room.is_scarce.load(Ordering::Relaxed)
    }

    /// Takes this many segments if there is room for them; nobody else takes that meanwhile.
    pub(super) fn take(&self, segments: usize, need: Need, into: &mut Vec<Segment>) -> bool {
        self.pool.take_if(segments, |used| self.fits(used, 0, need), into)
    }

    /// All that it takes now, but for groups in files.
    pub(super) fn memory_bytes(&self) -> usize {
        self.pool.memory_bytes() + self.room.besides(&Sizes::default())
    }
}
