//! Background work: five machines, each a loop of short steps.
//!
//! - the [sorter](sorter) puts sealed buffers in order, oldest first;
//! - the [flusher](flusher) writes sorted buffers to lists, oldest first;
//! - the [compactor](compactor) does what tables' versions plan: spills, splits, merges;
//! - the [subcompactor](subcompactor) does parts of the compactor's job beside it, if the job has any;
//! - the [housekeeper](housekeeper) gets the next log segment ready, syncs the log, removes retired files, rewrites the
//!   manifest.
//!
//! A step that fails changes nothing; the machine says why in `Engine::troubles`, waits, and tries again, so
//! that work goes on when there is room on the disk again.

mod aside;
mod compactor;
mod flusher;
mod full_compaction;
mod housekeeper;
mod range_deletes;
mod read_compaction;
mod sorter;
mod subcompactor;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use forebay_base::{Error, Result};
use forebay_env::jobs::text_of;
use forebay_env::{Handle, Machine, Step};
use forebay_store::log::recover::Extent;

use crate::engine::{COMPACT, Engine, FLUSH};
use crate::open::{SURPLUS_BUFFERS, load_buffer};

pub(crate) use aside::Aside;
pub(crate) use full_compaction::FullCompaction;

const SORT: &str = "forebay-sort";
const SUBCOMPACT: &str = "forebay-subcomp";
const HOUSEKEEP: &str = "forebay-house";

/// How long a machine waits after a failure.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// Starts all machines, once `pending` segments of the log are loaded too.
pub(crate) fn start(engine: &Arc<Engine>, pending: VecDeque<Extent>) -> Result<Vec<Handle>> {
    let mut machines: [(&'static str, Box<dyn Machine>); 5] = [
        (SORT, Box::new(sorter::Sorter::new(Arc::clone(engine)))),
        (FLUSH, Box::new(flusher::Flusher::new(Arc::clone(engine)))),
        (COMPACT, Box::new(compactor::Compactor::new(Arc::clone(engine)))),
        (SUBCOMPACT, Box::new(subcompactor::Subcompactor::new(Arc::clone(engine)))),
        (HOUSEKEEP, Box::new(housekeeper::Housekeeper::new(Arc::clone(engine)))),
    ];
    let [sorter, flusher, compactor, ..] = &mut machines;
    let mut work = [&mut sorter.1, &mut flusher.1, &mut compactor.1];
    for extent in pending {
        // Buffers go to lists, here, until there is room; or, where a merge rule is not known yet, more are held.
        while engine.state().sealed.len() >= engine.options.write_buffers
            && work.iter_mut().any(|machine| matches!(machine.step(), Step::Worked))
        {}
        // Nobody else is there yet who does.
        engine.lists.trash.empty(&*engine.env.fs);
        engine.has_room_for_the_log()?;
        let buffer = load_buffer(&engine.log_files(), &extent, &engine.pool)?;
        engine.update_state(|state| state.sealed.insert(0, buffer));
    }
    let spawn = |(name, machine): (&'static str, Box<dyn Machine>)| {
        let guarded = Guarded { name, engine: Arc::clone(engine), machine };
        let handle = engine.env.jobs.spawn(name, Box::new(guarded));
        if let Some(reason) = handle.refused() {
            engine.poison(&reason);
        }
        handle
    };
    Ok(machines.into_iter().map(spawn).collect())
}

/// A machine whose panic ends its own database, and no other one that shares its environment.
struct Guarded {
    name: &'static str,
    engine: Arc<Engine>,
    machine: Box<dyn Machine>,
}

impl Machine for Guarded {
    fn step(&mut self) -> Step {
        let Self { name, engine, machine } = self;
        if engine.env.jobs.is_stepper() {
            // A simulation's user sees it where it waits.
            return machine.step();
        }
        let stepped = catch_unwind(AssertUnwindSafe(|| machine.step()));
        stepped.unwrap_or_else(|panic| {
            engine.poison(&Error::bug(format!("{name} panicked: {}", text_of(&*panic))));
            engine.env.jobs.wake();
            // It is only dropped, so a half-changed one is never seen.
            Step::Finished
        })
    }
}

impl Engine {
    /// Whether more of the log can be loaded: what is in memory goes to lists, or a rule is missing, which only they
    /// bring who open the database. Where the disk is at fault it would all be loaded, however long it is.
    fn has_room_for_the_log(&self) -> Result<()> {
        if self.state().sealed.len() < self.options.write_buffers + SURPLUS_BUFFERS {
            return Ok(());
        }
        let trouble = self.troubles.lock().get(FLUSH).cloned();
        trouble.filter(|error| !error.is_lasting()).map_or(Ok(()), Err)
    }

    /// Notes that this many bytes were worked through, for writers who wait.
    fn note_progress(&self, bytes: u64) {
        self.pace.add(bytes);
        self.env.jobs.wake();
    }

    /// Notes a machine's failure and when to try again.
    fn note_failure(&self, machine: &'static str, error: Error) -> Step {
        self.troubles.lock().insert(machine, error);
        self.env.jobs.wake();
        Step::Until(self.env.clock.now() + RETRY_AFTER)
    }

    /// Notes that a machine gets on again. What it has set aside on the way is kept in mind by table.
    fn note_recovery(&self, machine: &'static str) {
        let trouble = self.troubles.lock().remove(machine);
        if trouble.is_some() {
            self.env.jobs.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_env::Env;
    use forebay_env::fs::MemoryFs;

    use super::*;
    use crate::Options;

    struct Panics;

    impl Machine for Panics {
        fn step(&mut self) -> Step {
            panic!("no luck");
        }
    }

    /// An environment is cloned into any number of databases, and once the first panic of any stopped them all for
    /// good.
    #[test]
    fn a_panic_in_one_database_leaves_others_of_its_environment_alone() {
        let env = Env { fs: MemoryFs::new(), ..Env::real() };
        let options = || Options::default().memory_limit(1 << 20).env(env.clone());
        let engines = ["/one", "/other"].map(|dir| crate::open::open(dir.as_ref(), options()).unwrap().0);
        let guarded = Guarded { name: "unlucky", engine: Arc::clone(&engines[0]), machine: Box::new(Panics) };
        env.jobs.spawn("unlucky", Box::new(guarded)).join();
        assert!(
            engines[0].fatal().is_some_and(|error| error.to_string().contains("unlucky panicked: no luck"))
        );
        assert!(engines[1].fatal().is_none());
    }

    /// What was over when it was looked at is over, whatever is the case by the time that is told.
    #[test]
    fn who_waits_is_told_what_was_seen() {
        let env = Env::memory(1);
        let engine = crate::open::open("/db".as_ref(), Options::default().env(env)).unwrap().0;
        let looks = std::cell::Cell::new(0);
        let is_done_once = || looks.replace(looks.get() + 1) == 0;
        assert!(engine.wait_for(|| None, is_done_once).is_ok());
    }
}
