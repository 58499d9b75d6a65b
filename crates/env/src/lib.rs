//! All that is not deterministic: files, time, random numbers, threads and locks.
//!
//! The rest of Forebay reaches these only through the [`Env`] it is given, so that a whole database
//! can run in memory, on one thread, from one seed, on a disk that lies.
//!
//! **Invariant:** under [`Env::memory`] and [`Env::simulated`] the same calls give the same answers.

#![expect(
    clippy::disallowed_methods,
    reason = "this crate is where the rest of the workspace gets them from"
)]
#![cfg_attr(
    not(shuttle),
    expect(clippy::disallowed_types, reason = "sync.rs wraps them for the rest of the workspace")
)]

pub mod arena;
pub mod buffer;
pub mod clock;
pub mod encryption;
pub mod filed;
pub mod fs;
pub mod guest;
pub mod jobs;
mod kernel;
pub mod page_frames;
pub mod process;
pub mod rng;
pub mod sync;
pub mod words;

#[cfg(test)]
#[cfg(shuttle)]
mod shuttle_tests;
#[cfg(test)]
#[cfg(not(shuttle))]
mod tests;

use std::fmt;
use std::hash::{BuildHasher, RandomState};

use forebay_base::rare;
use sync::{Arc, Mutex};

pub use arena::{Appender, Arena};
pub use buffer::AlignedBuf;
pub use clock::{Clock, ManualClock, RealClock, SteadyClock};
pub use filed::{Attic, in_pages};
pub use fs::{Access, File, FileLock, FileSystem, LockMode};
pub use jobs::{Executor, ExecutorState, Handle, Haste, Jobs, Machine, Step, yield_point};
pub use kernel::{FiledWords, prefetch};
pub use page_frames::{PageFrame, PageFrames};
pub use rng::Rng;
pub use words::Words;

/// What a database runs in.
#[derive(Clone)]
pub struct Env {
    /// Where its files are.
    pub fs: Arc<dyn FileSystem>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Who does its background work.
    pub jobs: Jobs,
    /// Unpredictable numbers, for hash seeds and file ids; a seeded stream in simulation.
    pub entropy: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl Env {
    /// The machine's files, clock, threads and entropy.
    pub fn real() -> Self {
        process::raise_file_limit();
        rare::seed(None);
        let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
        let jobs = Jobs::threads(Arc::clone(&clock));
        // As those, the standard hasher's keys come from the system's entropy, and differ at every call.
        Self { fs: fs::RealFs::new(), clock, jobs, entropy: Arc::new(hash_secret) }
    }

    /// Files in memory, a clock that moves only when all is idle, no threads, all from `seed`.
    pub fn memory(seed: u64) -> Self {
        Self::simulated(fs::MemoryFs::new(), seed)
    }

    /// As [`memory`](Self::memory), over `fs`.
    pub fn simulated(fs: Arc<dyn FileSystem>, seed: u64) -> Self {
        rare::seed(Some(seed));
        let mut rng = Rng::new(seed);
        let clock = Arc::new(ManualClock::new());
        let jobs = Jobs::stepper(Arc::clone(&clock), rng.next_u64());
        let draws = Mutex::new(rng);
        Self { fs, clock, jobs, entropy: Arc::new(move || draws.lock().next_u64()) }
    }
}

/// A number that nobody can predict, for the hashes of a table in memory: keys that a stranger has chosen must not fall
/// together there. It is another one at each call, in simulation too, so that nothing but time may hang on it.
pub fn hash_secret() -> u64 {
    // The keys are drawn once a thread, and a child of a fork goes on with its parent's.
    RandomState::new().hash_one((process::id(), RealClock::new().unix_milliseconds()))
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env").field("jobs", &self.jobs).finish_non_exhaustive()
    }
}
