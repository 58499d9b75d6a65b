//! [`Pool`]: one memory and one set of threads for many databases of a process. Each database has a *share* of the
//! memory, which an [arbiter](arbiter) makes larger and smaller by what all of them hold and want; and each has its
//! machines stepped by an [`Executor`], whose threads are the pool's.

mod arbiter;
mod permits;
mod rate;
mod seat;
mod stats;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use forebay_base::{Error, Result};
use forebay_env::sync::atomic::{AtomicU64, Ordering};
use forebay_env::sync::{Mutex, Rank};
use forebay_env::{Env, Executor, Jobs, RealClock};

use crate::options::BACKGROUND_THREADS_MAX;
use arbiter::{Claim, SHARE_BYTES_MIN, arbitrate};
use permits::Permits;

pub(crate) use arbiter::Wish;
pub(crate) use rate::Rate;
pub(crate) use seat::{Limit, Permit};
pub use stats::{PoolStats, PooledStats};

/// The least memory of a pool.
const POOL_BYTES_MIN: u64 = 4 << 20;
/// Merges of all databases have this part of it,
const WORK_PART: u64 = 8;
/// half of it to read.
const READING_PART: u64 = 2;
/// Databases that are opened while others have all the rest have this part of it.
const OPENING_PART: u64 = 32;
/// What one of several busy databases usually has.
const USUAL_PART: u64 = 16;
/// Those that only read, and give nothing back, have this part of it at most beyond the least.
const READERS_PART: u64 = 4;
/// What an open database takes of its share besides what is counted: counters, locks, open files, what tells of tables.
pub(crate) const OWN_BYTES: u64 = 64 << 10;

const _: () = assert!(OWN_BYTES <= SHARE_BYTES_MIN / 2, "the least share has room for buffers");
const _: () = assert!(POOL_BYTES_MIN / USUAL_PART >= SHARE_BYTES_MIN, "the least pool has room for several");

/// Memory and threads that several databases of a process share, each opened with
/// [`Options::pool`](crate::Options::pool). Memory moves to where it is used; all databases together take no more than
/// the one number, up to a tenth or 16 MiB. A database that nobody uses keeps some 256 KiB, and no thread.
///
/// ```
/// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
/// use forebay::{Database, Options, Pool};
///
/// let pool = Pool::new(64 << 20, 2)?;
/// let mut databases = Vec::new();
/// for number in 0..50 {
///     let options = Options::default().pool(&pool);
///     # let options = options.env(env.clone());
///     databases.push(Database::open(format!("/stores/{number}"), options)?);
/// }
/// databases[7].table("t").open()?.put(b"key", b"value")?;
/// assert_eq!(pool.stats().databases.len(), 50);
/// # Ok::<(), forebay::Error>(())
/// ```
///
/// A clone is the same pool. It lasts as long as a clone of it or a database with it.
#[derive(Clone)]
pub struct Pool(Arc<Shared>);

/// What all clones and all databases have.
pub(crate) struct Shared {
    memory_bytes: u64,
    threads: usize,
    executor: Executor,
    /// The machine's, for databases that are given none: one for all, with one set of threads that write behind.
    env: OnceLock<Env>,
    seats: Mutex<Seats>,
    permits: Mutex<Permits>,
    rate: Rate,
}

#[derive(Default)]
struct Seats {
    last: u64,
    by_number: BTreeMap<u64, Taken>,
}

/// A seat that a database has.
struct Taken {
    label: String,
    jobs: Jobs,
    claim: Claim,
    share_bytes: Arc<AtomicU64>,
}

impl Pool {
    /// A pool of this much memory, at least 4 MiB, and of this many threads for merges, 1 to 64. For what writers soon
    /// wait for, such as flushes, it has one or two threads more. They begin with the first database.
    pub fn new(memory_bytes: u64, threads: usize) -> Result<Self> {
        if memory_bytes < POOL_BYTES_MIN {
            return Err(Error::invalid(format!(
                "memory_bytes of a pool is {memory_bytes}; at least {POOL_BYTES_MIN} are needed"
            )));
        }
        if !(1..=BACKGROUND_THREADS_MAX).contains(&threads) {
            return Err(Error::invalid(format!(
                "threads of a pool is {threads}; it must be between 1 and {BACKGROUND_THREADS_MAX}"
            )));
        }
        Ok(Self(Arc::new(Shared {
            memory_bytes,
            threads,
            executor: Executor::new(threads, Arc::new(RealClock::new())),
            env: OnceLock::new(),
            seats: Mutex::ranked(Rank::Leaf, Seats::default()),
            permits: Mutex::ranked(Rank::Leaf, Permits::new(threads + 1)),
            rate: Rate::new(0),
        })))
    }

    /// How many bytes a second background work of all databases together goes through:
    /// [`Options::background_rate`](crate::Options::background_rate). May be changed at any time.
    pub fn set_background_rate(&self, bytes_a_second: u64) -> Result<()> {
        Rate::validate(bytes_a_second)?;
        self.0.rate.set(bytes_a_second);
        // Who waits looks anew.
        let told: Vec<Jobs> = self.0.seats.lock().by_number.values().map(|seat| seat.jobs.clone()).collect();
        told.iter().for_each(Jobs::wake);
        Ok(())
    }

    /// Who has what, and what its threads are at.
    pub fn stats(&self) -> PoolStats {
        PoolStats::of(&self.0)
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0
    }

    pub(crate) fn threads(&self) -> usize {
        self.0.threads
    }

    /// What one of several busy databases has.
    pub(crate) fn usual_share_bytes(&self) -> u64 {
        (self.0.memory_bytes / USUAL_PART).max(crate::options::MEMORY_LIMIT_BYTES_MIN)
    }

    /// What a merge has to read.
    pub(crate) fn job_bytes(&self) -> u64 {
        self.0.memory_bytes / WORK_PART / READING_PART / (self.0.threads as u64 + 1)
    }

    /// The environment of a database in it, which is given this one or none. Its machines are stepped by the pool's
    /// threads, but where a simulation steps them.
    pub(crate) fn environment(&self, given: Option<Env>, label: &str) -> Env {
        let env = given.unwrap_or_else(|| self.0.env.get_or_init(Env::real).clone());
        if env.jobs.is_stepper() {
            return env;
        }
        let jobs = self.0.executor.jobs(label, Arc::clone(&env.clock));
        Env { jobs, ..env }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("memory_bytes", &self.0.memory_bytes)
            .field("threads", &self.0.threads)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// What shares come to at most.
    fn shares_bytes(&self) -> u64 {
        self.memory_bytes - self.memory_bytes / WORK_PART - self.memory_bytes / OPENING_PART
    }

    /// A seat for one more database. What it has at first others need not give back.
    fn join(self: &Arc<Self>, label: &str, jobs: &Jobs, wish: Wish) -> Result<seat::Seat> {
        let mut seats = self.seats.lock();
        // What others can never give back: those that only read all that they have.
        let (mut kept_bytes, mut fixed_bytes) = (0_u64, 0_u64);
        for Taken { claim, .. } in seats.by_number.values() {
            let is_fixed = claim.wish == Wish::Fixed;
            let bytes = if is_fixed { claim.taken_bytes() } else { SHARE_BYTES_MIN };
            kept_bytes = kept_bytes.saturating_add(bytes);
            fixed_bytes = fixed_bytes.saturating_add(if is_fixed { bytes } else { 0 });
        }
        if kept_bytes.saturating_add(SHARE_BYTES_MIN) > self.shares_bytes() {
            return Err(Error::invalid(format!(
                "the pool has {} bytes, which are enough for {} databases, and {} are open, which keep {kept_bytes}; \
                 close some, or make a larger pool",
                self.memory_bytes,
                self.shares_bytes() / SHARE_BYTES_MIN,
                seats.by_number.len()
            )));
        }
        let taken = seats.by_number.values().fold(0, |sum: u64, seat| sum + seat.claim.taken_bytes());
        let wanted = match wish {
            Wish::Fixed => (self.memory_bytes / USUAL_PART)
                .min((self.memory_bytes / READERS_PART).saturating_sub(fixed_bytes)),
            _ => 0,
        };
        let share = wanted.min(self.shares_bytes().saturating_sub(taken)).max(SHARE_BYTES_MIN);
        let held_bytes = if wish == Wish::Fixed { share } else { OWN_BYTES };
        seats.last += 1;
        let (number, share_bytes) = (seats.last, Arc::new(AtomicU64::new(share)));
        let taken = Taken {
            label: label.to_owned(),
            jobs: jobs.clone(),
            claim: Claim { share_bytes: share, held_bytes, wish },
            share_bytes: Arc::clone(&share_bytes),
        };
        seats.by_number.insert(number, taken);
        let told = self.share(&mut seats, number);
        drop(seats);
        told.iter().for_each(Jobs::wake);
        let (urgency, asks) = (seat::Urgency::start(), AtomicU64::new(0));
        Ok(seat::Seat { pool: Arc::clone(self), number, share_bytes, urgency, asks })
    }

    fn report(&self, number: u64, held_bytes: u64, wish: Wish) {
        let mut seats = self.seats.lock();
        let Some(seat) = seats.by_number.get_mut(&number) else { return };
        let before = std::mem::replace(&mut seat.claim.held_bytes, held_bytes);
        let exceeds = held_bytes.max(before) > seat.claim.share_bytes;
        let told = if exceeds || !wish.is_about(seat.claim.wish) {
            seat.claim.wish = wish;
            self.share(&mut seats, number)
        } else {
            // Nobody gets another share by that, and there may be very many.
            Vec::new()
        };
        drop(seats);
        told.iter().for_each(Jobs::wake);
    }

    fn leave(&self, number: u64) {
        let mut seats = self.seats.lock();
        let Some(left) = seats.by_number.remove(&number) else { return };
        let told = self.share(&mut seats, number);
        drop(seats);
        drop(left);
        told.iter().for_each(Jobs::wake);
        self.decline_merge(number);
    }

    /// Shares anew. Returns the others that have less now, and may have to give something back.
    fn share(&self, seats: &mut Seats, number: u64) -> Vec<Jobs> {
        let claims: Vec<Claim> = seats.by_number.values().map(|seat| seat.claim).collect();
        let shares = arbitrate(self.shares_bytes(), &claims);
        debug_assert_eq!(shares.len(), claims.len(), "each has a share");
        debug_assert!(shares.iter().all(|share| *share >= SHARE_BYTES_MIN), "each has the least at least");
        let mut told = Vec::new();
        for ((other, seat), share) in seats.by_number.iter_mut().zip(shares) {
            let has_shrunk = share < seat.claim.share_bytes;
            seat.claim.share_bytes = share;
            seat.share_bytes.store(share, Ordering::Relaxed);
            if has_shrunk && *other != number {
                told.push(seat.jobs.clone());
            }
        }
        told
    }
}
