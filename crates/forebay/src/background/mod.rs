//! Background work: five machines, each a loop of short steps.
//!
//! - the [sorter](sorter) puts sealed buffers in order, oldest first;
//! - the [absorber](absorber) writes sorted buffers to lists, oldest first;
//! - the [merger](merger) does what tables' catalogs plan: spills, splits, merges;
//! - the [helper](helper) does parts of the merger's job beside it, where a job has such;
//! - the [keeper](keeper) gets the next log segment ready, syncs the log, removes retired files, rewrites the
//!   manifest.
//!
//! A step that fails changes nothing; the machine says why in `Engine::troubles`, waits, and tries again, so
//! that work goes on when there is room on the disk again.

mod absorber;
mod cutting;
mod helper;
mod keeper;
mod merger;
mod sorter;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use forebay_base::{Error, Result};
use forebay_env::{Handle, Machine, Step};
use forebay_store::log::recover::Extent;

use crate::engine::Engine;
use crate::read_back;

pub(crate) const ABSORB: &str = "forebay-absorb";
const SORT: &str = "forebay-sort";
pub(crate) const MERGE: &str = "forebay-merge";
const HELP: &str = "forebay-help";
const KEEP: &str = "forebay-keep";

/// How long a machine waits after a failure.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// Starts all machines, once `pending` segments of the log are loaded too.
pub(crate) fn start(engine: &Arc<Engine>, pending: VecDeque<Extent>) -> Result<Vec<Handle>> {
    let mut machines: [(&'static str, Box<dyn Machine>); 5] = [
        (SORT, Box::new(sorter::Sorter::new(Arc::clone(engine)))),
        (ABSORB, Box::new(absorber::Absorber::new(Arc::clone(engine)))),
        (MERGE, Box::new(merger::Merger::new(Arc::clone(engine)))),
        (HELP, Box::new(helper::Helper::new(Arc::clone(engine)))),
        (KEEP, Box::new(keeper::Keeper::new(Arc::clone(engine)))),
    ];
    let [sorter, absorber, merger, ..] = &mut machines;
    let mut work = [&mut sorter.1, &mut absorber.1, &mut merger.1];
    for extent in pending {
        // Buffers go to lists, here, until there is room; or, where a merge rule is not known yet, more are held.
        while engine.state().sealed.len() >= engine.options.write_buffers
            && work.iter_mut().any(|machine| matches!(machine.step(), Step::Worked))
        {}
        let buffer = read_back::load(&engine.log_files(), &extent, &engine.pool)?;
        engine.update_state(|state| state.sealed.insert(0, buffer));
    }
    Ok(machines.into_iter().map(|(name, machine)| engine.env.jobs.spawn(name, machine)).collect())
}

impl Engine {
    /// Notes that so many bytes were worked through, for writers who wait.
    fn progressed(&self, bytes: u64) {
        self.pace.add(bytes);
        self.env.jobs.wake();
    }

    /// Notes a machine's failure and when to try again.
    fn failed(&self, machine: &'static str, error: Error) -> Step {
        self.troubles.lock().insert(machine, error);
        self.env.jobs.wake();
        Step::Until(self.env.clock.now() + RETRY_AFTER)
    }

    /// Notes what a machine waits for that users must do.
    fn waits(&self, machine: &'static str, reason: Error) {
        if self.troubles.lock().insert(machine, reason).is_none() {
            self.env.jobs.wake();
        }
    }

    /// Notes that a machine gets on again. Damage stays: what lies under it is not worked on any more, so
    /// nobody may wait for that.
    fn recovered(&self, machine: &'static str) {
        let mut troubles = self.troubles.lock();
        if troubles.get(machine).is_some_and(|trouble| !trouble.is_corruption()) {
            troubles.remove(machine);
            drop(troubles);
            self.env.jobs.wake();
        }
    }
}
