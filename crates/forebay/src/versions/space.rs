//! What the versions of a table share of its space: who takes it, what was measured of it, and how far background work
//! has come in getting it back.

use std::sync::Arc;
use std::time::Duration;

use forebay_env::sync::Mutex;
use forebay_env::sync::atomic::{AtomicBool, AtomicU64};
use forebay_layouts::{Place, TableVersion, Usage};
use forebay_store::list::DiskUse;

/// What the versions of a table share to know its space.
#[derive(Default)]
pub(crate) struct TableSpace {
    pub(crate) disk: Arc<DiskUse>,
    pub(crate) reclaim: Reclaim,
    pub(crate) reclaim_passes: ReclaimPasses,
    /// Bytes that are there for savepoints only.
    pub(crate) kept_bytes: AtomicU64,
}

/// What the versions of a bounded table share.
#[derive(Default)]
pub(crate) struct Reclaim {
    measured: Mutex<Option<Measured>>,
    /// Where the way round the table goes on.
    pub(crate) place: Mutex<Option<Place>>,
    stuck: Mutex<Option<Stuck>>,
    /// The flush waits for merges of this table, and nobody is known who holds what they would free.
    pub(crate) starves: AtomicBool,
    /// It has waited for long enough to say why.
    pub(crate) is_waited_for: AtomicBool,
}

/// What the lists came to when they were looked at last.
#[derive(Clone, Copy)]
struct Measured {
    disk_bytes: u64,
    usage: Usage,
}

/// Nothing can be done for a table's space, as long as its files take just so much.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stuck {
    disk_bytes: u64,
    /// There is something to do, but no room for it.
    pub(crate) no_room: bool,
}

/// What is measured anew: when files have grown or shrunk by this share of what lives.
const MEASURED_SHARE: u64 = 32;

impl TableSpace {
    /// Why nothing can be done, if so.
    pub(crate) fn stuck(&self) -> Option<Stuck> {
        let stuck = *self.reclaim.stuck.lock();
        stuck.filter(|stuck| stuck.disk_bytes == self.disk.bytes())
    }

    /// Whether there is work for a bounded table, and no room for it. Where readers hold nothing there always is.
    pub(crate) fn lacks_room(&self) -> bool {
        self.found_no_room() && self.disk.held_bytes() > 0
    }

    /// Whether there was no room for work when it was planned last. Readers may have let go of what they held since.
    pub(crate) fn found_no_room(&self) -> bool {
        self.stuck().is_some_and(|stuck| stuck.no_room)
    }

    /// Notes that nothing can be done. Says whether that is news.
    pub(crate) fn note_stuck(&self, no_room: bool) -> bool {
        let stuck = Some(Stuck { disk_bytes: self.disk.bytes(), no_room });
        let before = std::mem::replace(&mut *self.reclaim.stuck.lock(), stuck);
        before != stuck
    }
}

impl Reclaim {
    /// What the lists came to a little while ago, where files take this much by now.
    pub(crate) fn measure(&self, version: &dyn TableVersion, disk_bytes: u64) -> Usage {
        let mut measured = self.measured.lock();
        match &*measured {
            Some(known) if is_near(known, disk_bytes) => known.usage,
            _ => {
                let usage = Usage::of(version);
                debug_assert!(
                    usage.unmerged_bytes <= usage.file_bytes,
                    "what is claimed twice is there once"
                );
                *measured = Some(Measured { disk_bytes, usage });
                usage
            }
        }
    }

    /// Forgets what was measured: the table is another one by now.
    pub(crate) fn forget(&self) {
        *self.measured.lock() = None;
        *self.place.lock() = None;
        *self.stuck.lock() = None;
    }
}

fn is_near(known: &Measured, disk_bytes: u64) -> bool {
    known.disk_bytes.abs_diff(disk_bytes) <= known.usage.live_bytes / MEASURED_SHARE
}

/// What the versions of a table share of its rounds.
#[derive(Default)]
pub(crate) struct ReclaimPasses(Mutex<ReclaimPass>);

#[derive(Default)]
struct ReclaimPass {
    /// When the next begins, once that is known.
    next: Option<Duration>,
    /// The last log segment whose buffer must be in lists before.
    segment: u64,
    /// How often the compactor is still to come to the table's end.
    passes_left: u32,
}

impl ReclaimPasses {
    /// Whether a round is due that comes every half of an interval.
    pub(crate) fn is_due(&self, now: Duration, interval: Duration) -> bool {
        now >= *self.0.lock().next.get_or_insert(now.saturating_add(interval / 2))
    }

    /// Begins a round, twice round the table, once the buffer of a segment is in lists. The next one comes at `next`.
    pub(crate) fn begin(&self, next: Option<Duration>, segment: u64) {
        let mut pass = self.0.lock();
        debug_assert!(pass.segment <= segment, "a round is of what was written since, too");
        debug_assert!(next.is_none_or(|next| pass.next <= Some(next)), "rounds are due one after the other");
        *pass = ReclaimPass { next, segment, passes_left: 2 };
    }

    /// The segment whose buffer must be in lists before a round goes on, if one is under way.
    pub(crate) fn waits_for(&self) -> Option<u64> {
        let pass = self.0.lock();
        (pass.passes_left > 0).then_some(pass.segment)
    }

    /// Notes that the compactor came to the table's end.
    pub(crate) fn note_pass_end(&self) {
        let mut pass = self.0.lock();
        pass.passes_left = pass.passes_left.saturating_sub(1);
    }

    /// Notes that there is nothing to be merged.
    pub(crate) fn note_nothing_left(&self) {
        self.0.lock().passes_left = 0;
    }
}
