//! The seam between the engine and a layout: a table's version, which is a value, and what can be done
//! with it. Work is planned (pure), run (heavy, no locks), rebased and applied (cheap, one edit).
//!
//! A layout is a type that implements four traits, one for each reader: [`Reads`] for lookups and scans, [`Upkeep`] for
//! compactions that no limit asks for, [`Inspect`] for those who count, copy and show what there is, and
//! [`TableVersion`] for all work that its own rules ask for.

mod inspect;
mod keys;
mod outcome;
mod reads;
mod space;
mod upkeep;

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;

use forebay_base::Result;
use forebay_base::limits::STEP_BYTES;
use forebay_base::merge::Cursor;
use forebay_buffer_tree::Expected;
use forebay_store::buffer::{Contents, Run};
use forebay_store::{Cause, WriteBuffer};

use crate::files::DataFile;

pub use inspect::{Description, Inspect, LevelDescription, NodeDescription};
pub use keys::known_keys;
pub use outcome::{Outcome, Plan};
pub(crate) use outcome::{Produced, Work};
pub use reads::{Reads, Stretch};
pub(crate) use space::{EXPIRED_SHARE, EXPIRED_SHARE_COMPACTING, by_file, is_wasteful};
pub use space::{FilePart, Usage, stale_files, value_use};
pub use upkeep::{Resident, Upkeep};

/// A node of a table version, as far as the engine knows it: something that at most one job works on.
pub type NodeKey = forebay_buffer_tree::NodeId;

/// What should be done next.
#[derive(Clone, Debug)]
pub enum Planned {
    /// An edit that moves no data: apply it to this very table version.
    Edit(Vec<u8>),
    /// A job to run.
    Job(Plan),
}

impl Planned {
    pub(crate) fn into_job(self) -> Option<Plan> {
        match self {
            Self::Edit(_) => None,
            Self::Job(plan) => Some(plan),
        }
    }
}

/// An edit that is ready to be applied.
pub struct Rebased {
    /// What [`TableVersion::apply`] takes.
    pub edit: Vec<u8>,
    /// Whether the manifest keeps it. What it makes is gone otherwise once the database is closed.
    pub is_lasting: bool,
}

/// Called between steps; an error ends the work.
pub type Check<'a> = &'a dyn Fn() -> Result<()>;

/// A job on its way.
pub trait Job: Send {
    /// Works through about this many bytes; `Some` when all is written.
    fn step(&mut self, bytes_max: usize) -> Result<Option<Outcome>>;
    /// What it does.
    fn cause(&self) -> Cause;

    /// Who does parts of it beside it, where there are such.
    fn worker(&self) -> Option<Box<dyn JobWorker>> {
        None
    }

    /// Whether it can go on only once who helps it has done what it began, or has given that up.
    fn waits(&self) -> bool {
        false
    }

    /// Works through all of it.
    fn finish(&mut self, check: Check<'_>) -> Result<Outcome> {
        loop {
            check()?;
            if let Some(outcome) = self.step(STEP_BYTES)? {
                return Ok(outcome);
            }
        }
    }
}

/// Does parts of a job beside it. What it has made is the job's; what it fails at is left to the job.
pub trait JobWorker: Send {
    /// Works through about this many bytes; `false` when there is nothing more to help with.
    fn step(&mut self, bytes_max: usize) -> bool;

    /// One more, as long as there are parts that nobody does.
    fn beside(&self) -> Option<Box<dyn JobWorker>>;
}

/// A table version after an edit.
pub struct Applied {
    /// The new value.
    pub version: Arc<dyn TableVersion>,
    /// How many lists more or fewer refer to each file that the edit touched.
    pub references: Vec<(DataFile, i32)>,
}

/// A table's lists under its layout. A value: edits make new ones, snapshots keep old ones.
pub trait TableVersion: Reads + Upkeep + Inspect + Any + Send + Sync {
    /// Plans what of the lists the records of a log segment's buffer are merged with as they are written; `None` where
    /// other work has to make room first. Pure.
    fn plan_flush(&self, segment: u64, contents: &Contents, busy: &BTreeSet<NodeKey>) -> Option<Plan>;

    /// Plans how a buffer comes in again that was flushed before a crash, if only to memory; `None` where files have
    /// all of it. Pure.
    fn plan_reload(&self, _segment: u64, _contents: &Contents) -> Option<Plan> {
        None
    }

    /// Starts writing a sealed buffer's records of this table to lists, as planned.
    fn flush(
        &self,
        plan: &Plan,
        buffer: &Arc<WriteBuffer>,
        run: Arc<Run>,
        contents: &Contents,
    ) -> Result<Box<dyn Job>>;

    /// Starts writing records in order, each key once, to lists of their own, newer than all that is there by the time
    /// they are rebased; how much is to come may be known. `None` where the layout has no place for such.
    fn ingest(
        &self,
        _input: Box<dyn Cursor + Send>,
        _expected: Option<Expected>,
    ) -> Result<Option<Box<dyn Job>>> {
        Ok(None)
    }

    /// Plans: what to do next, leaving busy nodes alone. Pure.
    fn next_work(&self, busy: &BTreeSet<NodeKey>) -> Option<Planned>;

    /// Starts a planned job.
    fn start(&self, plan: &Plan) -> Result<Box<dyn Job>>;

    /// Fits a finished job to this table version.
    fn rebase(&self, outcome: Outcome) -> Result<Rebased>;

    /// Applies an edit: live work and recovery alike. `file` finds files by id.
    fn apply(&self, edit: &[u8], file: &dyn Fn(u64) -> Option<DataFile>) -> Result<Applied>;

    /// Whether an outcome of this layout still fits: not where what the job has read was cut meanwhile.
    fn takes(&self, outcome: &Outcome) -> bool;
}
