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
}

impl Keeper {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self { engine, next: Duration::ZERO, quiet: Quiet::default() }
    }

    fn keep(&self) -> Result<()> {
        let engine = &self.engine;
        engine.log()?.sync_to(u64::MAX)?;
        if engine.lists.trash.empty(&*engine.env.fs) | engine.wants_relief() {
            engine.env.jobs.wake();
        }
        // Nobody else tells that time has passed.
        if engine.state().tables.values().any(|table| table.wants_expiry()) {
            engine.env.jobs.wake();
        }
        engine.begin_rounds()?;
        engine.rewrite_manifest()
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
        if now < self.next {
            return Step::Until(self.next);
        }
        self.next = now + self.engine.options.sync_interval;
        self.quiet.look(&self.engine, now);
        match self.keep() {
            Ok(()) => {
                self.engine.recovered(super::KEEP);
                Step::Until(self.next)
            }
            Err(error) => self.engine.failed(super::KEEP, error),
        }
    }
}
