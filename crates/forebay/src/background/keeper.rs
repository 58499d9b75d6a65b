//! Housekeeping: the next log segment, the background sync that bounds what a power loss can take, removal of
//! retired files, the manifest's rewriting, and seeing that nobody writes.

use std::sync::Arc;
use std::time::Duration;

use forebay_base::Result;
use forebay_env::{Machine, Step};

use crate::engine::Engine;
use crate::rest::Quiet;

pub(super) struct Keeper {
    engine: Arc<Engine>,
    next: Duration,
    quiet: Quiet,
    /// When the next piece of a retired file is removed, while there are some.
    next_removal: Option<Duration>,
}

/// For how long nothing is removed after a removal, by what that took. Where large files go the device may be busy with
/// nothing else, and lookups wait for it.
const REST_BY_REMOVAL: u32 = 3;

impl Keeper {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self { engine, next: Duration::ZERO, quiet: Quiet::default(), next_removal: None }
    }

    fn keep(&self) -> Result<()> {
        let engine = &self.engine;
        engine.log()?.sync_to(u64::MAX)?;
        if engine.wants_relief() {
            engine.env.jobs.wake();
        }
        // Nobody else tells that time has passed.
        if engine.state().tables.values().any(|table| table.wants_expiry()) {
            engine.env.jobs.wake();
        }
        engine.begin_rounds()?;
        engine.rewrite_manifest()
    }

    /// Removes a piece of the next retired file, if it is time for that. All at one go, the log and readers would wait.
    fn remove(&mut self, now: Duration) {
        let (engine, clock) = (&self.engine, &self.engine.env.clock);
        if self.next_removal.is_none_or(|next| now < next) {
            return;
        }
        self.next_removal = engine.lists.trash.remove_some(&*engine.env.fs).then(|| {
            let ended = clock.now();
            ended + REST_BY_REMOVAL * (ended - now)
        });
        if self.next_removal.is_some() {
            engine.env.jobs.wake();
        }
    }
}

impl Machine for Keeper {
    fn step(&mut self) -> Step {
        if self.engine.is_closing() || self.engine.fatal().is_some() {
            return Step::Finished;
        }
        if let Err(error) = self.engine.prepare_segment() {
            return self.engine.failed(super::KEEP, error);
        }
        let now = self.engine.env.clock.now();
        if now >= self.next {
            self.next = now + self.engine.options.sync_interval;
            self.quiet.look(&self.engine, now);
            if let Err(error) = self.keep() {
                return self.engine.failed(super::KEEP, error);
            }
            self.engine.recovered(super::KEEP);
            self.next_removal.get_or_insert(now);
        }
        self.remove(self.engine.env.clock.now());
        Step::Until(self.next_removal.map_or(self.next, |removal| removal.min(self.next)))
    }
}
