//! What the versions of a table share of its space: who takes it, what was measured of it, and how far background work
//! has come in getting it back.

use std::sync::{Arc, Weak};
use std::time::Duration;

use forebay_env::sync::Mutex;
use forebay_env::sync::atomic::{AtomicBool, AtomicU64};
use forebay_layouts::{Place, TableVersion, Usage};
use forebay_store::list::DiskUse;

use crate::versions::TableState;

/// What the versions of a table share to know its space.
#[derive(Default)]
pub(crate) struct TableSpace {
    pub(crate) disk: Arc<DiskUse>,
    pub(crate) reclaim: Reclaim,
    pub(crate) reclaim_passes: ReclaimPasses,
    pub(crate) at_work: AtWork,
    /// How many keys it has, as long as that is known.
    pub(crate) counted: Counted,
    /// Bytes that are there for savepoints only.
    pub(crate) kept_bytes: AtomicU64,
}

/// How many keys a table had when they were counted last, and in which version.
#[derive(Default)]
pub(crate) struct Counted(Mutex<Option<(Weak<dyn TableVersion>, u64)>>);

impl Counted {
    /// How many a version has, if it is the one that was counted.
    pub(crate) fn of(&self, version: &Arc<dyn TableVersion>) -> Option<u64> {
        let counted = self.0.lock();
        let (known, keys) = counted.as_ref()?;
        // Its place is its own for as long as it is remembered.
        (known.as_ptr().addr() == Arc::as_ptr(version).addr()).then_some(*keys)
    }

    /// Remembers how many a version has.
    pub(crate) fn note(&self, version: &Arc<dyn TableVersion>, keys: u64) {
        *self.0.lock() = Some((Arc::downgrade(version), keys));
    }
}

/// The compactions of a table that are under way. They begin under the version set's lock, under which they are planned.
#[derive(Default)]
pub(crate) struct AtWork(Mutex<AtWorkNow>);

#[derive(Clone, Copy, Default)]
struct AtWorkNow {
    /// Jobs, and those who do parts of them.
    jobs: usize,
    /// What the jobs read.
    bytes: u64,
    /// For which generation of the table they were planned.
    generation: u64,
}

/// One of them, until it is dropped.
pub(crate) struct UnderWay {
    space: Arc<TableSpace>,
    bytes: u64,
}

/// A table of which a job is under way, for those who do parts of it.
pub(crate) struct Helped {
    space: Arc<TableSpace>,
    generation: u64,
}

impl UnderWay {
    /// A compaction of a table that reads this many bytes begins.
    pub(crate) fn begin(space: &Arc<TableSpace>, generation: u64, bytes: u64) -> Self {
        let mut now = space.at_work.0.lock();
        debug_assert!(now.jobs == 0 || now.generation == generation, "work of a former layout is over");
        *now = AtWorkNow { jobs: now.jobs + 1, bytes: now.bytes + bytes, generation };
        drop(now);
        Self { space: Arc::clone(space), bytes }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut now = self.space.at_work.0.lock();
        debug_assert!(now.jobs > 0 && now.bytes >= self.bytes, "what ends has begun");
        (now.jobs, now.bytes) = (now.jobs - 1, now.bytes - self.bytes);
    }
}

impl Helped {
    pub(crate) fn of(table: &TableState) -> Self {
        Self { space: Arc::clone(&table.space), generation: table.generation }
    }

    /// Somebody begins with a part.
    pub(crate) fn begin(&self) -> UnderWay {
        UnderWay::begin(&self.space, self.generation, 0)
    }
}

impl AtWork {
    /// Whether no compactor works on the table.
    pub(crate) fn is_none(&self) -> bool {
        self.0.lock().jobs == 0
    }

    /// Whether one more may begin, which was planned for this generation, or which is to be alone.
    pub(crate) fn allows(&self, generation: u64, is_for_one: bool) -> bool {
        let now = self.0.lock();
        now.jobs == 0 || (now.generation == generation && !is_for_one)
    }

    /// How much they read.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.lock().bytes
    }
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
    /// What files took then, and those among them that were about to be removed.
    bytes: (u64, u64),
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
    /// What the lists came to a little while ago, where files take this much by now, and this much of it is leaving.
    pub(crate) fn measure(&self, version: &dyn TableVersion, bytes: (u64, u64)) -> Usage {
        let mut measured = self.measured.lock();
        match &*measured {
            Some(known) if is_near(known, bytes) => known.usage,
            _ => {
                let usage = Usage::of(version);
                debug_assert!(
                    usage.unmerged_bytes <= usage.file_bytes,
                    "what is claimed twice is there once"
                );
                *measured = Some(Measured { bytes, usage });
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

fn is_near(known: &Measured, (disk_bytes, leaving_bytes): (u64, u64)) -> bool {
    let change = known.bytes.0.abs_diff(disk_bytes).max(known.bytes.1.abs_diff(leaving_bytes));
    change <= known.usage.live_bytes / MEASURED_SHARE
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
    /// How often a compactor is still to come to the table's end.
    passes_left: u32,
}

impl ReclaimPasses {
    /// Whether a round is due that comes every half of an interval, which may have become a shorter one.
    pub(crate) fn is_due(&self, now: Duration, interval: Duration) -> bool {
        let (mut pass, latest) = (self.0.lock(), now.saturating_add(interval / 2));
        let next = pass.next.map_or(latest, |next| next.min(latest));
        pass.next = Some(next);
        now >= next
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

    /// Notes that a compactor came to the table's end.
    pub(crate) fn note_pass_end(&self) {
        let mut pass = self.0.lock();
        pass.passes_left = pass.passes_left.saturating_sub(1);
    }

    /// Notes that there is nothing to be merged.
    pub(crate) fn note_nothing_left(&self) {
        self.0.lock().passes_left = 0;
    }
}
