//! How much memory a database may take: as much as it was told, or its share of a pool, in which it has a seat.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay_base::{Error, Result};
use forebay_env::sync::atomic::{AtomicU64, Ordering};
use forebay_env::sync::{Mutex, Rank};
use forebay_env::{Env, Haste, Jobs};

use super::arbiter::{SHARE_BYTES_MIN, Wish};
use super::rate::Rate;
use super::{OWN_BYTES, Shared};
use crate::options::Options;

/// So many times what a log has is what its buffers, and all that stands beside them, take: as without a pool.
const LOG_TIMES: u64 = 4;

/// See the module.
pub(crate) enum Limit {
    /// As long as it is open.
    Fixed { bytes: u64, rate: Rate },
    /// By what others want.
    Seat(Seat),
}

impl Limit {
    /// Of a database that is being opened.
    pub(crate) fn new(options: &Options, dir: &Path, env: &Env) -> Result<Self> {
        let limit = match &options.pool {
            None => Self::Fixed {
                bytes: options.memory_limit_bytes(),
                rate: Rate::new(options.background_rate_bytes),
            },
            Some(pool) => {
                // Without background work nobody gives anything back.
                let wish = if options.read_only { Wish::Fixed } else { Wish::Asleep { kept_bytes: 0 } };
                Self::Seat(pool.shared().join(&dir.display().to_string(), &env.jobs, wish)?)
            }
        };
        limit.rate().join(&env.clock);
        Ok(limit)
    }

    /// How fast background work may go: that of a pool's databases, together.
    pub(crate) fn rate(&self) -> &Rate {
        match self {
            Self::Fixed { rate, .. } => rate,
            Self::Seat(seat) => &seat.pool.rate,
        }
    }

    /// Gives it another rate, if it has one of its own.
    pub(crate) fn set_rate(&self, rate_bytes: u64) -> Result<()> {
        Rate::validate(rate_bytes)?;
        match self {
            Self::Fixed { rate, .. } => rate.set(rate_bytes),
            Self::Seat(_) => {
                let reason =
                    "the database has its background_rate from its pool; call Pool::set_background_rate";
                return Err(Error::invalid(reason));
            }
        }
        Ok(())
    }

    /// How much it is now.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Fixed { bytes, .. } => *bytes,
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
            Self::Fixed { .. } => None,
            Self::Seat(seat) => Some(seat),
        }
    }

    /// Of a database that is being opened: asks for what it takes to have this much of a log in memory again, as far as
    /// others have no use for it.
    pub(crate) fn ask_for_log(&self, log_bytes: u64) {
        if let Self::Seat(seat) = self {
            seat.report(
                OWN_BYTES,
                Wish::Awake { bytes: LOG_TIMES.saturating_mul(log_bytes).saturating_add(OWN_BYTES) },
            );
        }
    }

    /// The right to begin a merge, `now` by its clock, for a compactor of this number; `None` as long as others of the
    /// pool have all that there are.
    pub(crate) fn begin_merge(&self, compactor: usize, now: Duration) -> Option<Permit> {
        let Self::Seat(seat) = self else { return Some(Permit(None)) };
        let haste = seat.urgency.lock().haste();
        if seat.pool.begin_merge(seat.number, haste, now) {
            seat.asks.fetch_and(!asker(compactor), Ordering::Relaxed);
            return Some(Permit(Some((Arc::clone(&seat.pool), seat.number, haste))));
        }
        seat.asks.fetch_or(asker(compactor), Ordering::Relaxed);
        None
    }

    /// A compactor has nothing to merge, if it had before. The database waits as long as another one has.
    pub(crate) fn decline_merge(&self, compactor: usize) {
        let own = asker(compactor);
        let was_last = |seat: &&Seat| seat.asks.fetch_and(!own, Ordering::Relaxed) == own;
        let asked = self.seat().filter(was_last);
        asked.into_iter().for_each(|seat| seat.pool.decline_merge(seat.number));
    }

    /// None of the database's compactors merges any more.
    pub(crate) fn decline_merges(&self) {
        let asked = self.seat().filter(|seat| seat.asks.swap(0, Ordering::Relaxed) != 0);
        asked.into_iter().for_each(|seat| seat.pool.decline_merge(seat.number));
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

/// A compactor's bit among those that ask.
fn asker(compactor: usize) -> u64 {
    1 << (compactor % u64::BITS as usize)
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
    /// Which compactors may wait for the right to begin a merge, a bit each.
    pub(super) asks: AtomicU64,
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
pub(crate) struct Permit(Option<(Arc<Shared>, u64, Haste)>);

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some((pool, number, haste)) = &self.0 {
            pool.end_merge(*number, *haste);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use forebay_env::{Access, Clock, Env, Haste, Machine, Step};

    use super::Shared;
    use crate::{Codec, Database, Layout, Options, Pool};

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
            let now = self.clock.now();
            let done = self.merging.pop_front();
            done.into_iter().for_each(|number| self.pool.end_merge(number, Haste::Hasty));
            for number in [101, 102, 103] {
                if !self.merging.contains(&number) && self.pool.begin_merge(number, Haste::Hasty, now) {
                    self.merging.push_back(number);
                }
            }
            Step::Until(now + Duration::from_millis(1))
        }
    }

    /// Nobody does anything for seconds.
    fn rest(env: &Env) {
        for _ in 0..50 {
            env.jobs.advance(Duration::from_millis(100));
            env.jobs.step_some(1000);
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
        rest(&env);
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

    /// It asked for the right to merge in order to look, and waited for the merges of others.
    #[test]
    fn who_has_nothing_to_merge_waits_for_nobodys_merges() {
        let (pool, env) = (Pool::new(16 << 20, 1).unwrap(), Env::memory(8));
        let db = Database::open("/db", Options::default().pool(&pool).env(env.clone())).unwrap();
        let table = db.table("t").open().unwrap();
        let now = env.clock.now();
        assert!([101, 102].iter().all(|number| pool.shared().begin_merge(*number, Haste::Hasty, now)));
        table.put(b"key", b"value").unwrap();
        db.wait_until_idle().unwrap();
        assert_eq!(pool.shared().permits.lock().waiting(), 0);
        // What is to be merged waits, and that is told of it.
        for round in 0..6u64 {
            (0..100u64).for_each(|key| table.put(key.to_be_bytes(), round.to_le_bytes()).unwrap());
            db.flush().unwrap();
        }
        rest(&env);
        assert!(!db.engine().context.health.compactors_are_idle());
        assert_eq!((pool.stats().merges, pool.stats().merges_waiting), (2, 1));
        // What is dropped is merged no more, and whose turn it is says so.
        db.drop_table("t").unwrap();
        pool.shared().end_merge(101, Haste::Hasty);
        db.wait_until_idle().unwrap();
        assert_eq!((pool.stats().merges, pool.stats().merges_waiting), (1, 0));
        assert!(
            pool.shared().begin_merge(103, Haste::Hasty, now),
            "nothing is kept back for who has declined"
        );
    }

    /// How many files of lists have these bytes.
    fn files_with(env: &Env, bytes: &[u8]) -> usize {
        let dir = Path::new("/db");
        let has_bytes = |name: &String| {
            let file = env.fs.open_read(&dir.join(name), Access::Buffered).unwrap();
            let mut all = vec![0; file.len().unwrap() as usize];
            assert_eq!(file.read_at(0, &mut all).unwrap(), all.len());
            all.windows(bytes.len()).any(|window| window == bytes)
        };
        let names = env.fs.list(dir).unwrap();
        names.iter().filter(|name| name.ends_with(".list")).filter(|name| has_bytes(name)).count()
    }

    /// What it was refused the right for counted as done.
    #[test]
    fn a_range_is_compacted_once_that_has_its_turn() {
        let (pool, env) = (Pool::new(16 << 20, 1).unwrap(), Env::memory(10));
        let db = Database::open("/db", Options::default().pool(&pool).env(env.clone())).unwrap();
        let table = db.table("t").layout(Layout::leveling(4)).codec(Codec::None).open_ordered().unwrap();
        (0..100u64).for_each(|key| table.put(key.to_be_bytes(), format!("<value {key:03}>")).unwrap());
        table.compact().unwrap();
        assert!(files_with(&env, b"<value 042>") > 0);
        (40..50u64).for_each(|key| table.delete(key.to_be_bytes()).unwrap());
        let now = env.clock.now();
        assert!([101, 102].iter().all(|number| pool.shared().begin_merge(*number, Haste::Hasty, now)));
        let compacting = env.jobs.fork("compacting", {
            let table = table.clone();
            move || table.compact_range(40u64.to_be_bytes()..50u64.to_be_bytes()).unwrap()
        });
        rest(&env);
        [101, 102].iter().for_each(|number| pool.shared().end_merge(*number, Haste::Hasty));
        compacting.join();
        rest(&env);
        assert_eq!(files_with(&env, b"<value 042>"), 0);
        assert!(files_with(&env, b"<value 039>") > 0);
    }

    /// Who can write no more asks for nothing, and what it was offered is another's.
    #[test]
    fn who_is_poisoned_leaves_its_turn_to_others() {
        let (pool, env) = (Pool::new(16 << 20, 1).unwrap(), Env::memory(9));
        let db = Database::open("/db", Options::default().pool(&pool).env(env.clone())).unwrap();
        let table = db.table("t").open().unwrap();
        let now = env.clock.now();
        assert!([101, 102].iter().all(|number| pool.shared().begin_merge(*number, Haste::Hasty, now)));
        for round in 0..6u64 {
            (0..100u64).for_each(|key| table.put(key.to_be_bytes(), round.to_le_bytes()).unwrap());
            db.flush().unwrap();
        }
        rest(&env);
        assert_eq!(pool.stats().merges_waiting, 1);
        pool.shared().end_merge(101, Haste::Hasty);
        db.engine().context.poison(&"a sync failed");
        env.jobs.step_some(1000);
        assert!(pool.shared().begin_merge(103, Haste::Hasty, now));
    }
}
