//! [`Stages`]: what aggregating takes of a processor, stage by stage, for who wants to know.

use std::fmt;
use std::time::Duration;

use forebay_env::sync::atomic::{AtomicU64, Ordering};

/// A stage of aggregating.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Putting what was added in the order of hashes.
    Sort,
    /// Merging sorted records, and the states of equal keys.
    Merge,
    /// Packing what was merged.
    Pack,
    /// Unpacking what is to be merged.
    Unpack,
    /// Copying records as they are.
    Copy,
    /// Handing what a thread has added over to leaves, under a lock that others may want.
    HandOver,
}

impl Stage {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Sort, Self::Merge, Self::Pack, Self::Unpack, Self::Copy, Self::HandOver];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sort => "sort",
            Self::Merge => "merge",
            Self::Pack => "pack",
            Self::Unpack => "unpack",
            Self::Copy => "copy",
            Self::HandOver => "hand_over",
        }
    }
}

/// Counts what each stage takes, by a clock that whoever asks brings: one of the thread's processor time tells that,
/// whatever else runs. What belongs to no stage, such as hashing what is added, is not counted.
pub struct Stages {
    clock: fn() -> Duration,
    nanoseconds: [AtomicU64; Stage::ALL.len()],
}

impl Stages {
    /// With nothing counted yet.
    pub fn new(clock: fn() -> Duration) -> Self {
        Self { clock, nanoseconds: Default::default() }
    }

    /// What a stage took so far, of all threads.
    pub fn of(&self, stage: Stage) -> Duration {
        Duration::from_nanos(self.nanoseconds[stage as usize].load(Ordering::Relaxed))
    }

    fn time<T>(&self, stage: Stage, outer: Option<Stage>, work: impl FnOnce() -> T) -> T {
        let started = (self.clock)();
        let done = work();
        let taken = (self.clock)().saturating_sub(started).as_nanos() as u64;
        self.nanoseconds[stage as usize].fetch_add(taken, Ordering::Relaxed);
        if let Some(outer) = outer {
            // It wraps until the outer stage is counted.
            self.nanoseconds[outer as usize].fetch_sub(taken, Ordering::Relaxed);
        }
        done
    }
}

impl fmt::Debug for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(Stage::ALL.map(|stage| (stage.name(), self.of(stage)))).finish()
    }
}

/// Does something, and counts it if somebody wants to know.
#[inline]
pub(crate) fn timed<T>(stages: Option<&Stages>, stage: Stage, work: impl FnOnce() -> T) -> T {
    match stages {
        Some(stages) => stages.time(stage, None, work),
        None => work(),
    }
}

/// The same for what is part of another stage, which is not to count it.
#[inline]
pub(crate) fn timed_within<T>(
    stages: Option<&Stages>,
    outer: Stage,
    stage: Stage,
    work: impl FnOnce() -> T,
) -> T {
    match stages {
        Some(stages) => stages.time(stage, Some(outer), work),
        None => work(),
    }
}
