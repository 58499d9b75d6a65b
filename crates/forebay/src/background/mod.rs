//! Background work: machines, each a loop of short steps.
//!
//! - the [sorter](sorter) puts sealed buffers in order, oldest first;
//! - the [flusher](flusher) writes sorted buffers to lists, oldest first;
//! - [compactors](compactor), as many as the machine has cores, do what tables' versions plan: spills, splits, merges,
//!   or parts of what another one does;
//! - the [segment maker](segments) gets the next log segment ready;
//! - the [housekeeper](housekeeper) syncs the log, removes retired files, rewrites the manifest.
//!
//! A step that fails changes nothing; the machine says why in [`Health`](crate::context::Health), waits, and tries again, so
//! that work goes on when there is room on the disk again.

mod compactor;
mod flusher;
mod full_compaction;
mod housekeeper;
mod planning;
mod range_deletes;
mod read_compaction;
mod rewriting;
mod segments;
mod sorter;
mod sync_schedule;
mod value_files;
mod waiting;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use forebay_base::{Error, Result};
use forebay_env::jobs::text_of;
use forebay_env::sync::{Mutex, Rank};
use forebay_env::{Handle, Machine, Step};
use forebay_layouts::JobWorker;
use forebay_store::names;

pub(crate) use self::rewriting::Scope;
use crate::context::{COMPACT, Context, FLUSH};
use crate::memory::MemoryShares;
use crate::space::Space;
use crate::versions::{Commit, Helped, Versions};
use crate::write::Writer;
use full_compaction::FullCompaction;

pub(crate) use waiting::Draining;

const SORT: &str = "forebay-sort";
const PREPARE: &str = "forebay-segment";
const HOUSEKEEP: &str = "forebay-house";

/// How long a machine waits after a failure.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// Who does parts of a compactor's job, and of which table.
type Offer = (Box<dyn JobWorker>, Helped);

/// What machines work with, and what is asked of them.
pub(crate) struct Background {
    context: Arc<Context>,
    versions: Arc<Versions>,
    space: Arc<Space>,
    memory: Arc<MemoryShares>,
    writer: Arc<Writer>,
    /// Tables that a full compaction is under way for.
    compacting: Mutex<BTreeMap<u32, FullCompaction>>,
    /// By a compactor's number: those that have nothing to do take after them.
    workers: Mutex<BTreeMap<usize, Offer>>,
    /// Tables whose last job failed, the latest last: others come first.
    failed: Mutex<Vec<u32>>,
    /// That of value files.
    collection: Mutex<value_files::Collection>,
}

impl Background {
    pub(crate) fn new(
        versions: &Arc<Versions>,
        space: &Arc<Space>,
        memory: &Arc<MemoryShares>,
        writer: &Arc<Writer>,
    ) -> Self {
        Self {
            context: Arc::clone(&versions.context),
            versions: Arc::clone(versions),
            space: Arc::clone(space),
            memory: Arc::clone(memory),
            writer: Arc::clone(writer),
            compacting: Mutex::ranked(Rank::Leaf, BTreeMap::new()),
            workers: Mutex::ranked(Rank::Leaf, BTreeMap::new()),
            failed: Mutex::ranked(Rank::Leaf, Vec::new()),
            collection: Mutex::ranked(Rank::Leaf, value_files::Collection::default()),
        }
    }
}

/// All machines, by name, before they run by themselves.
pub(crate) struct Machines {
    context: Arc<Context>,
    machines: Vec<(String, Box<dyn Machine>)>,
}

impl Machines {
    pub(crate) fn new(background: &Arc<Background>) -> Self {
        let with = || Arc::clone(background);
        let mut machines: Vec<(String, Box<dyn Machine>)> = vec![
            (PREPARE.into(), Box::new(segments::SegmentMaker::new(with()))),
            (HOUSEKEEP.into(), Box::new(housekeeper::Housekeeper::new(with()))),
            (SORT.into(), Box::new(sorter::Sorter::new(with()))),
            (FLUSH.into(), Box::new(flusher::Flusher::new(with()))),
        ];
        let compactors = 0..background.context.health.compactors();
        machines.extend(compactors.map(|number| -> (String, Box<dyn Machine>) {
            (format!("{COMPACT}-{number}"), Box::new(compactor::Compactor::new(number, with())))
        }));
        Self { context: Arc::clone(&background.context), machines }
    }

    /// Has a machine that brings buffers to lists do a step. `false` where none has anything to do.
    pub(crate) fn flush_some(&mut self) -> bool {
        let mut work =
            self.machines.iter_mut().filter(|(name, _)| ![PREPARE, HOUSEKEEP].contains(&name.as_str()));
        work.any(|(_, machine)| matches!(machine.step(), Step::Worked))
    }

    /// Lets all of them run.
    pub(crate) fn spawn(self) -> Vec<Handle> {
        let Self { context, machines } = self;
        let spawn = |(name, machine): (String, Box<dyn Machine>)| {
            let guarded = Guarded { name: name.clone(), context: Arc::clone(&context), machine };
            let handle = context.env.jobs.spawn(&name, Box::new(guarded));
            if let Some(reason) = handle.refused() {
                context.poison(&reason);
            }
            handle
        };
        machines.into_iter().map(spawn).collect()
    }
}

/// A machine whose panic ends its own database, and no other one that shares its environment.
struct Guarded {
    name: String,
    context: Arc<Context>,
    machine: Box<dyn Machine>,
}

impl Machine for Guarded {
    fn step(&mut self) -> Step {
        let Self { name, context, machine } = self;
        let step = if context.env.jobs.is_stepper() {
            // A simulation's user sees a panic where it waits.
            machine.step()
        } else {
            let stepped = catch_unwind(AssertUnwindSafe(|| machine.step()));
            stepped.unwrap_or_else(|panic| {
                context.poison(&Error::bug(format!("{name} panicked: {}", text_of(&*panic))));
                // It is only dropped, so a half-changed one is never seen.
                Step::Finished
            })
        };
        if step == Step::Finished {
            // Who waits for its work looks for the reason, whoever stopped all writes: a failed sync tells nobody. The
            // housekeeper looks now and then, so this comes soon.
            context.env.jobs.wake();
        }
        step
    }

    fn yields(&self) -> bool {
        self.machine.yields()
    }
}

impl Background {
    /// Commits what machines have done. Filters come and go by that.
    fn commit(&self, commit: Commit) -> Result<bool> {
        let committed = self.versions.commit(commit);
        self.memory.tend_filters();
        committed
    }

    /// What failed for want of space finds some only once files go: those that are retired, all of them, now, and the log
    /// segment that nobody has written to.
    fn make_space(&self, error: &Error) {
        if error.is_no_space() {
            let Context { env, dir, .. } = &*self.context;
            let trash = &self.versions.lists.trash;
            let unused = self.writer.take_next_segment();
            unused.iter().for_each(|segment| trash.discard(&*env.fs, names::log(dir, segment.id())));
            trash.empty(&*env.fs);
        }
    }

    /// Notes that this many bytes were worked through, for writers who wait.
    fn note_progress(&self, bytes: u64) {
        self.writer.pace.add(bytes);
        self.context.env.jobs.wake();
    }

    /// Takes what is worked through from what may be, for merges to come after it.
    fn take_from_rate(&self, bytes: u64) {
        self.context.metrics.background_bytes.add(bytes);
        self.context.limit.rate().take(bytes);
    }

    /// Notes a machine's failure, by its name and number, and when to try again.
    fn note_failure(&self, machine: (&'static str, usize), error: Error) -> Step {
        self.make_space(&error);
        let next_try = self.context.env.clock.now() + RETRY_AFTER;
        self.context.health.fails(machine, error, next_try);
        self.context.env.jobs.wake();
        Step::Until(next_try)
    }

    /// Until when a machine that has failed is to do nothing: what it tells others by wakes it, too, and machines that
    /// fail one after the other would wake each other for ever.
    fn rests(&self, machine: (&'static str, usize)) -> Option<Step> {
        self.context.health.rests(machine, self.context.env.clock.now()).map(Step::Until)
    }

    /// Notes that a machine gets on again. What it has set aside on the way is kept in mind by table.
    fn note_recovery(&self, machine: (&'static str, usize)) {
        if self.context.health.recovers(machine) {
            self.context.env.jobs.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_env::Env;
    use forebay_env::fs::MemoryFs;

    use super::*;
    use crate::options::Options;

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
        let open = |dir: &str| crate::open::open(dir.as_ref(), options()).unwrap().engine;
        let [one, other] = ["/one", "/other"].map(|dir| Arc::clone(&open(dir).context));
        let guarded =
            Guarded { name: "unlucky".into(), context: Arc::clone(&one), machine: Box::new(Panics) };
        env.jobs.spawn("unlucky", Box::new(guarded)).join();
        assert!(one.fatal().is_some_and(|error| error.to_string().contains("unlucky panicked: no luck")));
        assert!(other.fatal().is_none());
    }

    /// A machine that stopped because of it once told nobody, and who waited for a flush did so for ever.
    #[test]
    fn who_waits_is_told_that_all_writes_have_stopped() {
        let env = Env::memory(1);
        let options = Options::default().env(env.clone());
        let db = crate::Database::open("/db", options).unwrap();
        let context = Arc::clone(&db.engine().context);
        let waiter = env.jobs.fork("waiter", move || {
            let told = context.wait_for(|| None, || false);
            assert!(matches!(told, Err(Error::Poisoned(_))), "{told:?}");
        });
        env.jobs.step_some(100);
        // As a failed sync does, which wakes nobody.
        db.engine().context.poison(&"a sync failed");
        waiter.join();
    }

    /// What was over when it was looked at is over, whatever is the case by the time that is told.
    #[test]
    fn who_waits_is_told_what_was_seen() {
        let env = Env::memory(1);
        let engine = crate::open::open("/db".as_ref(), Options::default().env(env)).unwrap().engine;
        let looks = std::cell::Cell::new(0);
        let is_done_once = || looks.replace(looks.get() + 1) == 0;
        assert!(engine.context.wait_for(|| None, is_done_once).is_ok());
    }
}
