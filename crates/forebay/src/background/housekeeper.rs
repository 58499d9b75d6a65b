//! Housekeeping: what snapshots keep of buffers, the background sync that bounds what a power loss can take, removal of
//! retired files, the manifest's rewriting, and seeing that nobody writes.

use std::sync::Arc;
use std::time::Duration;

use forebay_base::{Error, Result, planted};
use forebay_env::{Machine, Step};

use crate::background::Background;
use crate::memory::IdleWatch;
use crate::versions::TableState;

use super::sync_schedule::SyncSchedule;

pub(super) struct Housekeeper {
    background: Arc<Background>,
    next: Duration,
    sync_schedule: SyncSchedule,
    next_collection: Duration,
    /// Whether all went well the last time, and the last sync.
    is_kept: bool,
    is_synced: bool,
    idle_watch: IdleWatch,
    /// When the next piece of a retired file is removed, while there are some.
    next_removal: Option<Duration>,
    /// It comes back late, unless it is woken.
    is_resting: bool,
}

/// How long at most until it looks again for what is due besides the sync of the log, however seldom that is wanted.
const LOOK_INTERVAL_MAX: Duration = Duration::from_secs(1);
/// How often the manifest is told how late it is, where entries expire.
const TIME_INTERVAL: Duration = Duration::from_secs(60);
/// The same in a pool, for a database that nobody writes to: there may be very many.
const LOOK_INTERVAL_RESTING: Duration = Duration::from_secs(2);
/// For how long nothing is removed after a removal, by what that took. Where large files go the device may be busy with
/// nothing else, and lookups wait for it.
const PAUSE_PER_REMOVAL: f64 = 3.0;
/// Rests are shorter the more waits, and there are none once that is this share of what is not to be removed: merges
/// may leave files behind faster than removals with rests between them keep up with.
const WAITING_SHARE: f64 = 0.05;

const _: () = assert!(WAITING_SHARE > 0.0 && WAITING_SHARE < 1.0, "it is a share of what stays");

impl Housekeeper {
    pub(super) fn new(background: Arc<Background>) -> Self {
        Self {
            sync_schedule: SyncSchedule::new(background.context.options.sync_interval),
            background,
            next: Duration::ZERO,
            next_collection: Duration::ZERO,
            is_kept: true,
            is_synced: true,
            idle_watch: IdleWatch::default(),
            next_removal: None,
            is_resting: false,
        }
    }

    fn look_interval(&self) -> Duration {
        self.background.context.options.sync_interval.min(LOOK_INTERVAL_MAX)
    }

    /// What is due now and then. Each of it is done whatever becomes of the others: what fails for want of space must
    /// keep neither the log from being synced nor files from being removed, or there would never be space.
    fn keep(&mut self) -> Result<()> {
        let background = &self.background;
        let now = background.context.env.clock.now();
        if background.wants_read_compaction() {
            background.context.env.jobs.wake();
        }
        // Nobody else tells that time has passed.
        if background.versions.state().tables.values().any(|table| table.wants_expiry()) {
            background.context.env.jobs.wake();
        }
        if now >= self.next_collection {
            self.next_collection = now.saturating_add(LOOK_INTERVAL_MAX);
            background.collect_values();
        }
        background.answer_readers();
        let begun = background.begin_reclaim_passes();
        let timed = self.background.versions.lock().keep_time(TIME_INTERVAL);
        begun.and(timed).and(self.give_way()).and(self.background.versions.rewrite_manifest())
    }

    /// Syncs the log, if it is time for that.
    fn sync(&mut self, now: Duration) -> Result<()> {
        if now < self.sync_schedule.next {
            return Ok(());
        }
        let log = self.background.context.log()?;
        let (durable, due) = log.durable_and_due();
        let is_due = self.sync_schedule.look(now, durable, due);
        let is_synced = !is_due || planted::is("background-sync-forgotten");
        let synced = if is_synced { Ok(()) } else { log.sync_to(due) };
        self.is_synced = synced.is_ok();
        synced.inspect_err(|_| self.sync_schedule.put_off(now, super::RETRY_AFTER))
    }

    /// Removes a piece of the next retired file, if it is time for that. All at one go, the log and readers would wait.
    fn remove(&mut self, now: Duration) {
        let (background, clock) = (&self.background, &self.background.context.env.clock);
        if self.next_removal.is_none_or(|next| now < next) {
            return;
        }
        if planted::is("retired-files-stay") {
            self.next_removal = None;
            return;
        }
        self.next_removal =
            background.versions.lists.trash.remove_some(&*background.context.env.fs).then(|| {
                let ended = clock.now();
                ended + (ended - now).mul_f64(PAUSE_PER_REMOVAL * self.pause_share())
            });
        if self.next_removal.is_some() {
            background.context.env.jobs.wake();
        }
    }

    /// Writes out a buffer that others of a pool want the memory of. What it holds and nobody else sees goes once it is
    /// flushed.
    fn give_way(&self) -> Result<()> {
        let background = &self.background;
        if !background.memory.wants_shorter_buffer() {
            return Ok(());
        }
        let segment = background.context.log()?.active_segment();
        background.writer.try_rotate(segment)
    }

    /// Whether there is nothing to come back for soon, until somebody writes.
    fn may_rest(&self) -> bool {
        let is_done = self.is_kept && self.is_synced && self.next_removal.is_none();
        if !is_done || !self.background.memory.begin_rest() {
            return false;
        }
        // Whoever writes from here on sees that it rests.
        let is_durable = self.background.context.log.as_ref().is_none_or(|log| {
            let (durable, due) = log.durable_and_due();
            durable == due
        });
        is_durable || {
            self.background.memory.end_rest();
            false
        }
    }

    /// See [`pause_share`].
    fn pause_share(&self) -> f64 {
        let state = self.background.versions.state();
        let disks = || state.tables.values().map(|table| &table.space.disk);
        let values = &self.background.versions.lists.values;
        let leaving = disks().map(|disk| disk.leaving_bytes()).sum::<u64>() + values.leaving_bytes();
        pause_share(leaving, disks().map(|disk| disk.bytes()).sum::<u64>() + values.leaving_bytes())
    }
}

/// How much of a rest there is time for, from 0 to 1, where this much of all files waits to be removed.
fn pause_share(leaving_bytes: u64, bytes: u64) -> f64 {
    let most = WAITING_SHARE * bytes.saturating_sub(leaving_bytes) as f64;
    (1.0 - leaving_bytes as f64 / most.max(1.0)).max(0.0)
}

impl Background {
    /// Answers readers of other processes that ask for numbers, and removes what dead ones have left.
    fn answer_readers(&self) {
        let Some(leases) = self.versions.lists.trash.leases() else { return };
        // Who asks holds one.
        if leases.held().is_empty() {
            return;
        }
        for reader in leases.asking() {
            let answer = self.context.answer.get().and_then(|answer| answer());
            // Who has no answer by then does without.
            let _ = answer.map(|answer| leases.answer(&reader, &answer));
        }
    }

    /// Begins the rounds that are due: twice round the table, once what is in the active write buffer is in lists. Called
    /// now and then, by a machine, which must not wait.
    fn begin_reclaim_passes(&self) -> Result<()> {
        let (now, state) = (self.context.env.clock.now(), self.versions.state());
        let is_due = |table: &TableState| {
            let interval = table.options.reclaim_interval;
            interval.is_some_and(|interval| table.space.reclaim_passes.is_due(now, interval))
        };
        let due: Vec<_> = state.tables.values().filter(|table| is_due(table)).collect();
        let segment = self.context.log()?.active_segment();
        if due.is_empty() || (!state.active.is_empty() && !self.writer.has_room()) {
            return Ok(());
        }
        if !state.active.is_empty() {
            self.writer.try_rotate(segment)?;
            if self.context.log()?.active_segment() == segment {
                // Somebody seals it just now, or is about to: the next look finds what has come of it.
                return Ok(());
            }
        }
        for table in due {
            let next = table.options.reclaim_interval.map(|all| now.saturating_add(all / 2));
            table.space.reclaim_passes.begin(next, segment);
        }
        self.context.env.jobs.wake();
        Ok(())
    }
}

impl Machine for Housekeeper {
    fn step(&mut self) -> Step {
        if self.background.context.is_closing() || self.background.context.fatal().is_some() {
            return Step::Finished;
        }
        let background = Arc::clone(&self.background);
        let now = background.context.env.clock.now();
        background.memory.end_rest();
        if self.is_resting {
            self.next = self.next.min(now + self.look_interval());
        }
        background.memory.follow_share();
        background.memory.take_back();
        // First of all: what else is to be done may take long.
        let synced = self.sync(now);
        let mut kept = Ok(());
        let looks = now >= self.next;
        if looks {
            self.next = now + self.look_interval();
            self.idle_watch.look(&background.memory, now);
            kept = self.keep();
            self.is_kept = kept.is_ok();
            self.next_removal.get_or_insert(now);
        }
        let kept = synced.and(kept);
        if kept.as_ref().is_err_and(Error::is_no_space) {
            // All of them go when the failure is noted.
            self.next_removal = None;
        } else {
            self.remove(background.context.env.clock.now());
        }
        // After all that others wait for, and a buffer at a time: there may be much to write.
        let has_moved = background.memory.move_pinned_buffer();
        background.memory.move_pinned_lists();
        if let Err(error) = kept {
            return background.note_failure((super::HOUSEKEEP, 0), error);
        }
        if self.is_kept && self.is_synced {
            background.note_recovery((super::HOUSEKEEP, 0));
        }
        if has_moved {
            return Step::Worked;
        }
        self.is_resting = self.may_rest();
        if self.is_resting {
            // Woken before, it looks soon after.
            self.next = if looks { now + LOOK_INTERVAL_RESTING } else { self.next };
            return Step::Until(self.next);
        }
        let next = self.next.min(self.sync_schedule.next);
        Step::Until(self.next_removal.map_or(next, |removal| removal.min(next)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_env::Env;
    use forebay_env::fs::{FaultyFs, MemoryFs};
    use forebay_store::log::Durability;

    use super::{super::HOUSEKEEP, pause_share};
    use crate::{Database, Options};

    /// Steps between two tries of the sync told that all was well again.
    #[test]
    fn a_sync_that_fails_is_told_until_one_succeeds() {
        let fs = FaultyFs::new(MemoryFs::new());
        let env = Env::simulated(fs.clone(), 1);
        let options = Options::default().memory_limit(1 << 20).env(env.clone());
        let db = Database::open("/db", options.durability(Durability::Memory)).unwrap();
        let table = db.table("t").open().unwrap();
        let health = &db.engine().context.health;
        fs.rule("write *.log all no-space").unwrap();
        table.put(b"a", b"1").unwrap();
        let mut troubled = 0;
        let step = |by| {
            env.jobs.advance(Duration::from_millis(by));
            env.jobs.step_some(100);
            health.trouble_at(HOUSEKEEP).is_some()
        };
        for _ in 0..1000 {
            let is_troubled = step(1);
            assert!(is_troubled || troubled == 0, "after {troubled} ms it says that all is well");
            troubled += u32::from(is_troubled);
        }
        assert!(troubled > 800, "{troubled} of 1000 ms");
        fs.clear();
        assert!(!(0..10).fold(true, |_, _| step(100)));
        assert_eq!(db.durable_sequence(), db.last_sequence());
    }

    #[test]
    fn the_more_waits_to_be_removed_the_shorter_are_the_rests() {
        let shares = [(0, 1000), (25, 1025), (50, 1050), (500, 1500), (1000, 1000)];
        assert_eq!(shares.map(|(leaving, all)| pause_share(leaving, all)), [1.0, 0.5, 0.0, 0.0, 0.0]);
        assert_eq!(pause_share(0, 0), 1.0);
    }
}
