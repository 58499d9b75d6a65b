//! Housekeeping: the next log segment, what snapshots keep of buffers, the background sync that bounds what a power
//! loss can take, removal of retired files, the manifest's rewriting, and seeing that nobody writes.

use std::sync::Arc;
use std::time::Duration;

use forebay_base::{Error, Result, planted};
use forebay_env::{Machine, Step};

use crate::engine::Engine;
use crate::memory::IdleWatch;

pub(super) struct Housekeeper {
    engine: Arc<Engine>,
    next: Duration,
    next_sync: Duration,
    /// Whether all went well the last time.
    is_kept: bool,
    idle_watch: IdleWatch,
    /// When the next piece of a retired file is removed, while there are some.
    next_removal: Option<Duration>,
}

/// How long at most until it looks again for what is due besides the sync of the log, however seldom that is wanted.
const LOOK_INTERVAL_MAX: Duration = Duration::from_secs(1);
/// For how long nothing is removed after a removal, by what that took. Where large files go the device may be busy with
/// nothing else, and lookups wait for it.
const PAUSE_PER_REMOVAL: f64 = 3.0;
/// Rests are shorter the more waits, and there are none once that is this share of what is not to be removed: merges
/// may leave files behind faster than removals with rests between them keep up with.
const WAITING_SHARE: f64 = 0.05;

impl Housekeeper {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self {
            engine,
            next: Duration::ZERO,
            next_sync: Duration::ZERO,
            is_kept: true,
            idle_watch: IdleWatch::default(),
            next_removal: None,
        }
    }

    /// What is due now and then. Each of it is done whatever becomes of the others: what fails for want of space must
    /// keep neither the log from being synced nor files from being removed, or there would never be space.
    fn keep(&mut self) -> Result<()> {
        let engine = &self.engine;
        let now = engine.env.clock.now();
        let synced = if now >= self.next_sync && !planted::is("background-sync-forgotten") {
            self.next_sync = now.saturating_add(engine.options.sync_interval);
            engine.log()?.sync_to(u64::MAX)
        } else {
            Ok(())
        };
        if engine.wants_read_compaction() {
            engine.env.jobs.wake();
        }
        // Nobody else tells that time has passed.
        if engine.state().tables.values().any(|table| table.wants_expiry()) {
            engine.env.jobs.wake();
        }
        let begun = engine.begin_reclaim_passes();
        synced.and(begun).and(engine.rewrite_manifest())
    }

    /// Removes a piece of the next retired file, if it is time for that. All at one go, the log and readers would wait.
    fn remove(&mut self, now: Duration) {
        let (engine, clock) = (&self.engine, &self.engine.env.clock);
        if self.next_removal.is_none_or(|next| now < next) || planted::is("retired-files-stay") {
            return;
        }
        self.next_removal = engine.lists.trash.remove_some(&*engine.env.fs).then(|| {
            let ended = clock.now();
            ended + (ended - now).mul_f64(PAUSE_PER_REMOVAL * self.pause_share())
        });
        if self.next_removal.is_some() {
            engine.env.jobs.wake();
        }
    }

    /// See [`pause_share`].
    fn pause_share(&self) -> f64 {
        let state = self.engine.state();
        let disks = || state.tables.values().map(|table| &table.space.disk);
        let leaving = disks().map(|disk| disk.leaving_bytes()).sum();
        pause_share(leaving, disks().map(|disk| disk.bytes()).sum())
    }
}

/// How much of a rest there is time for, from 0 to 1, where this much of all files waits to be removed.
fn pause_share(leaving_bytes: u64, bytes: u64) -> f64 {
    let most = WAITING_SHARE * bytes.saturating_sub(leaving_bytes) as f64;
    (1.0 - leaving_bytes as f64 / most.max(1.0)).max(0.0)
}

impl Machine for Housekeeper {
    fn step(&mut self) -> Step {
        if self.engine.is_closing() || self.engine.fatal().is_some() {
            return Step::Finished;
        }
        let engine = Arc::clone(&self.engine);
        let prepared = engine.prepare_segment();
        let now = engine.env.clock.now();
        let mut kept = Ok(());
        if now >= self.next {
            self.next = now + engine.options.sync_interval.min(LOOK_INTERVAL_MAX);
            self.idle_watch.look(&engine, now);
            kept = self.keep();
            self.is_kept = kept.is_ok();
            self.next_removal.get_or_insert(now);
        }
        let outcome = prepared.and(kept);
        if outcome.as_ref().is_err_and(Error::is_no_space) {
            // There is room again only once files go: all of them, now.
            engine.lists.trash.empty(&*engine.env.fs);
            self.next_removal = None;
        } else {
            self.remove(engine.env.clock.now());
        }
        // After all that others wait for, and a buffer at a time: there may be much to write.
        let has_moved = engine.move_pinned_buffer();
        engine.move_pinned_lists();
        if let Err(error) = outcome {
            return engine.note_failure(super::HOUSEKEEP, error);
        }
        if self.is_kept {
            engine.note_recovery(super::HOUSEKEEP);
        }
        if has_moved {
            return Step::Worked;
        }
        Step::Until(self.next_removal.map_or(self.next, |removal| removal.min(self.next)))
    }
}

#[cfg(test)]
mod tests {
    use super::pause_share;

    #[test]
    fn the_more_waits_to_be_removed_the_shorter_are_the_rests() {
        let shares = [(0, 1000), (25, 1025), (50, 1050), (500, 1500), (1000, 1000)];
        assert_eq!(shares.map(|(leaving, all)| pause_share(leaving, all)), [1.0, 0.5, 0.0, 0.0, 0.0]);
        assert_eq!(pause_share(0, 0), 1.0);
    }
}
