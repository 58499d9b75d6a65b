//! How much memory a database may take: as much as it was told, or its share of a pool, in which it has a seat.

use std::path::Path;
use std::sync::Arc;

use forebay_base::Result;
use forebay_env::sync::atomic::{AtomicU64, Ordering};
use forebay_env::sync::{Mutex, Rank};
use forebay_env::{Haste, Jobs};

use super::arbiter::{SHARE_BYTES_MIN, Wish};
use super::{OWN_BYTES, Shared};
use crate::options::Options;

/// See the module.
pub(crate) enum Limit {
    /// As long as it is open.
    Fixed(u64),
    /// By what others want.
    Seat(Seat),
}

impl Limit {
    /// Of a database that is being opened.
    pub(crate) fn new(options: &Options, dir: &Path, jobs: &Jobs) -> Result<Self> {
        let Some(pool) = &options.pool else { return Ok(Self::Fixed(options.memory_limit_bytes())) };
        // Without background work nobody gives anything back.
        let wish = if options.read_only { Wish::Fixed } else { Wish::Asleep { kept_bytes: 0 } };
        pool.shared().join(&dir.display().to_string(), jobs, wish).map(Self::Seat)
    }

    /// How much it is now.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Seat(seat) => {
                let share = seat.share_bytes();
                debug_assert!(share >= SHARE_BYTES_MIN, "a share of {share} bytes");
                share - OWN_BYTES
            }
        }
    }

    /// The seat, if there is a pool.
    pub(crate) fn seat(&self) -> Option<&Seat> {
        match self {
            Self::Fixed(_) => None,
            Self::Seat(seat) => Some(seat),
        }
    }

    /// The right to begin a merge; `None` as long as others of the pool have all that there are.
    pub(crate) fn begin_job(&self) -> Option<Permit> {
        match self {
            Self::Fixed(_) => Some(Permit(None)),
            Self::Seat(Seat { pool, number, urgency, .. }) => {
                let haste = urgency.lock().haste();
                let may_begin = pool.permits.lock().take(*number, haste);
                may_begin.then(|| Permit(Some((Arc::clone(pool), haste))))
            }
        }
    }

    /// Whether somebody may wait for the database's background work from now on, though nobody does.
    pub(crate) fn set_haste(&self, jobs: &Jobs, haste: Haste) {
        self.hasten(jobs, |urgency| urgency.haste = haste);
    }

    /// Somebody waits for it from now on.
    pub(crate) fn begin_wait(&self, jobs: &Jobs) {
        self.hasten(jobs, |urgency| urgency.waiters += 1);
    }

    pub(crate) fn end_wait(&self, jobs: &Jobs) {
        self.hasten(jobs, |urgency| {
            debug_assert!(urgency.waiters > 0, "who waits was counted");
            urgency.waiters -= 1;
        });
    }

    /// In a pool: whether somebody waits for background work.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.seat().is_some_and(|seat| seat.urgency.lock().waiters > 0)
    }

    fn hasten(&self, jobs: &Jobs, change: impl FnOnce(&mut Urgency)) {
        let Some(seat) = self.seat() else { return };
        let mut urgency = seat.urgency.lock();
        let before = urgency.haste();
        change(&mut urgency);
        let haste = urgency.haste();
        if haste == before {
            return;
        }
        // Under the lock: what is told last is what is true last.
        jobs.set_haste(haste);
        drop(urgency);
        if haste == Haste::Hasty {
            // What was put off is asked for again.
            jobs.wake();
        }
    }

    /// The database is closed, and nothing in it gives anything back any more: what it has others may have. Handles that
    /// are left read with the least.
    pub(crate) fn leave(&self) {
        if let Self::Seat(Seat { pool, number, share_bytes, .. }) = self {
            pool.leave(*number);
            share_bytes.store(SHARE_BYTES_MIN, Ordering::Relaxed);
        }
    }
}

/// Who waits for a database's background work.
#[derive(Debug, Default)]
pub(super) struct Urgency {
    /// Whether somebody soon may.
    haste: Haste,
    /// How many do.
    waiters: usize,
}

impl Urgency {
    pub(super) fn start() -> Mutex<Self> {
        Mutex::ranked(Rank::Leaf, Self::default())
    }

    fn haste(&self) -> Haste {
        if self.waiters > 0 { Haste::Hasty } else { self.haste }
    }
}

/// A database's place in a pool.
pub(crate) struct Seat {
    pub(super) pool: Arc<Shared>,
    pub(super) number: u64,
    pub(super) share_bytes: Arc<AtomicU64>,
    pub(super) urgency: Mutex<Urgency>,
}

impl Seat {
    /// What it may take, with what a database takes in any case.
    pub(crate) fn share_bytes(&self) -> u64 {
        self.share_bytes.load(Ordering::Relaxed)
    }

    /// Tells what the database holds and wants. Its share is another one at once, as far as that can be.
    pub(crate) fn report(&self, held_bytes: u64, wish: Wish) {
        self.pool.report(self.number, held_bytes, wish);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.pool.leave(self.number);
    }
}

/// Lasts as long as a merge does.
pub(crate) struct Permit(Option<(Arc<Shared>, Haste)>);

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some((pool, haste)) = &self.0 {
            let next = pool.permits.lock().give_back(*haste);
            pool.tell(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Arc;
    use std::time::Duration;

    use forebay_env::{Clock, Env, Haste, Machine, Step};

    use super::Shared;
    use crate::{Database, Options, Pool};

    /// Three databases in haste that have one merge after the other, where two have room: one of them always waits.
    struct Others {
        pool: Arc<Shared>,
        clock: Arc<dyn Clock>,
        merging: VecDeque<u64>,
        turns: u32,
    }

    impl Machine for Others {
        fn step(&mut self) -> Step {
            self.turns += 1;
            assert!(self.turns < 10_000, "who waits has no turn");
            if self.merging.pop_front().is_some() {
                let next = self.pool.permits.lock().give_back(Haste::Hasty);
                self.pool.tell(next);
            }
            for number in [101, 102, 103] {
                if !self.merging.contains(&number) && self.pool.permits.lock().take(number, Haste::Hasty) {
                    self.merging.push_back(number);
                }
            }
            Step::Until(self.clock.now() + Duration::from_millis(1))
        }
    }

    /// It was taken for asleep, and its merges came after all others, which have no end here.
    #[test]
    fn who_waits_for_merges_has_turns_beside_others_in_haste() {
        let (pool, env) = (Pool::new(16 << 20, 1).unwrap(), Env::memory(7));
        let db = Database::open("/db", Options::default().pool(&pool).env(env.clone())).unwrap();
        let table = db.table("t").open().unwrap();
        for round in 0..6u64 {
            (0..100u64).for_each(|key| table.put(key.to_be_bytes(), round.to_le_bytes()).unwrap());
            db.flush().unwrap();
        }
        for _ in 0..50 {
            env.jobs.advance(Duration::from_millis(100));
            env.jobs.step_some(1000);
        }
        let haste = || db.engine().context.limit.seat().unwrap().urgency.lock().haste();
        assert_eq!(haste(), Haste::Leisure, "nobody has written for seconds");
        let (shared, clock) = (Arc::clone(pool.shared()), Arc::clone(&env.clock));
        let others = Others { pool: shared, clock, merging: VecDeque::new(), turns: 0 };
        drop(env.jobs.spawn("others", Box::new(others)));
        env.jobs.step_some(100);
        assert_eq!(pool.shared().permits.lock().taken(), 2);
        table.compact().unwrap();
        assert_eq!(haste(), Haste::Leisure, "nobody waits any more");
        assert_eq!(table.get(7u64.to_be_bytes()).unwrap().as_deref(), Some(&5u64.to_le_bytes()[..]));
    }
}
