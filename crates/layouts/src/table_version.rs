//! The seam between the engine and a layout: a table's version, which is a value, and what can be done
//! with it. Work is planned (pure), run (heavy, no locks), rebased and applied (cheap, one edit).

use std::collections::BTreeSet;
use std::sync::Arc;

use forebay_base::limits::STEP_BYTES;
use forebay_base::merge::{Cursor, Direction};
use forebay_base::{Bound, Error, Range, Record, Result};
use forebay_buffer_tree::{JobPlan, Place, Portion, ReadTerms};
use forebay_store::buffer::{Contents, Run};
use forebay_store::list::{FileMeta, Lookup};
use forebay_store::salvage::Gaps;
use forebay_store::{Cause, WriteBuffer};

use crate::files::Fragment;
use crate::run_set::{Made, Slice};
use crate::space::FilePart;
use crate::wb_tree::Description;
use crate::{DataFile, Source, TableOptions};

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

/// A planned job.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is busy until the job's edit is applied.
    pub nodes: Vec<NodeKey>,
    /// Bytes of records to be read from lists.
    pub bytes: u64,
    pub(crate) work: Work,
}

/// What is to be done, by layout.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    Flush,
    Tree(JobPlan),
    Runs(Slice),
}

impl Plan {
    /// The error of a layout that is given another one's plan or outcome.
    pub(crate) fn foreign() -> Error {
        Error::bug("the table's layout has changed since this was planned")
    }
}

/// What a finished job hands to [`TableVersion::rebase`].
#[derive(Clone, Debug)]
pub enum Outcome {
    #[doc(hidden)]
    Tree(forebay_buffer_tree::Outcome<Fragment>),
    #[doc(hidden)]
    Runs(Made<DataFile>),
}

impl Outcome {
    /// How many records those hold, as far as it is known.
    pub fn records(&self) -> u64 {
        match self {
            Self::Tree(_) => 0,
            Self::Runs(made) => made.records(),
        }
    }

    /// Gives up what was written.
    pub fn discard(&self) {
        self.files().iter().for_each(DataFile::discard);
    }

    /// The files that were written, or grew.
    pub fn files(&self) -> Vec<DataFile> {
        match self {
            Self::Tree(outcome) => {
                let lists = outcome.fragment().into_iter().map(|Fragment(list)| Arc::clone(list));
                lists.map(DataFile::List).collect()
            }
            Self::Runs(made) => made.files().cloned().collect(),
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

/// Records that lists in memory have, and no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    /// The oldest log segment that has some of them.
    pub first_segment: u64,
    /// How many bytes of records.
    pub bytes: u64,
    /// What the lists take, with filters and page search: those of which something is left, as a whole.
    pub memory_bytes: u64,
}

/// Called between steps; an error ends the work.
pub type Check<'a> = &'a dyn Fn() -> Result<()>;

/// A job on its way.
pub trait Job: Send {
    /// Works through about this many bytes; `Some` when all is written.
    fn step(&mut self, bytes_max: usize) -> Result<Option<Outcome>>;
    /// What it does.
    fn cause(&self) -> Cause;

    /// One who does parts of it beside it, where there are such.
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
}

/// A table version after an edit.
pub struct Applied {
    /// The new value.
    pub version: Arc<dyn TableVersion>,
    /// How many lists more or fewer refer to each file that the edit touched.
    pub references: Vec<(DataFile, i32)>,
}

/// A stretch of a table that one set of sources covers.
pub struct Stretch {
    /// What the sources are responsible for.
    pub range: Range,
    /// Newest first, each inside the range. They have read nothing, and are sought before they are read.
    pub sources: Vec<Source>,
}

/// A table's lists under its layout. A value: edits make new ones, snapshots keep old ones.
pub trait TableVersion: Send + Sync {
    /// Shows `each` what the lists have of some keys: the number of a lookup and a record of its key, newest
    /// first, until it says that it has seen enough of that one. Device reads: one for each list that has the
    /// key or whose filter does not deny it. Returns about how many nanoseconds went to lists in vain that a
    /// merge would have spared.
    fn find(&self, lookups: &[Lookup<'_>], each: &mut dyn FnMut(usize, &Record<'_>) -> bool) -> Result<u64>;

    /// The sources at `from` for a walk inside `within`: the stretch that holds the records from `from` on
    /// (forward) or just below it (backward; `None` means the end). `None` when nothing is left.
    fn stretch(&self, from: Option<&Bound>, within: &Range, direction: Direction) -> Result<Option<Stretch>>;

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
    /// they are rebased. `None` where the layout has no place for such.
    fn ingest(&self, _input: Box<dyn Cursor + Send>) -> Result<Option<Box<dyn Job>>> {
        Ok(None)
    }

    /// Plans: what to do next, leaving busy nodes alone. Pure.
    fn next_work(&self, busy: &BTreeSet<NodeKey>) -> Option<Planned>;

    /// Plans the next step of a full compaction. Pure.
    fn next_full_compaction(&self, busy: &BTreeSet<NodeKey>) -> Option<Plan>;

    /// Plans the next step of a compaction that goes round the table from a place on, and where it goes on from then:
    /// `None` for the beginning. `None` when nothing is left up to the end, or may be done now. A round ends, and has
    /// merged all that there was when it began, whatever is added meanwhile. Pure.
    fn next_reclaim(&self, busy: &BTreeSet<NodeKey>, from: Option<&Place>) -> Option<(Plan, Option<Place>)>;

    /// Whether what is left of a round from a place on can only be done once nobody is at work on it.
    fn round_waits(&self, _from: Option<&Place>) -> bool {
        false
    }

    /// Plans the job that spares lookups the most for what it costs, if the terms allow one; and that cost. Pure.
    fn next_read_compaction(&self, busy: &BTreeSet<NodeKey>, terms: &ReadTerms<'_>) -> Option<(Plan, u64)>;

    /// Starts a planned job.
    fn start(&self, plan: &Plan) -> Result<Box<dyn Job>>;

    /// Fits a finished job to this table version.
    fn rebase(&self, outcome: Outcome) -> Result<Rebased>;

    /// Applies an edit: live work and recovery alike. `file` finds files by id.
    fn apply(&self, edit: &[u8], file: &dyn Fn(u64) -> Option<DataFile>) -> Result<Applied>;

    /// The edit that drops all records of a range without reading any; `None` where the layout cannot.
    fn drop_range(&self, _range: &Range) -> Option<Vec<u8>> {
        None
    }

    /// Starts writing what takes all records of some ranges, side by side and in order, out of the lists; `None` where
    /// they can be [dropped](Self::drop_range) instead. What is damaged cannot tell its keys: it is passed over and
    /// noted.
    fn delete_by_tombstones(&self, _ranges: &[Range], _gaps: &Arc<Gaps>) -> Result<Option<Box<dyn Job>>> {
        Ok(None)
    }

    /// Whether an outcome of this layout still fits: not where what the job has read was cut meanwhile.
    fn takes(&self, outcome: &Outcome) -> bool;

    /// The same records under other options, whose layout has the same order. Moves none of them. Nothing is resident
    /// where the new layout is a WB tree; all that log segments below `below` brought is here. `None` where the new
    /// layout has no use for files of this kind.
    fn convert(&self, options: &TableOptions, below: u64) -> Option<Arc<dyn TableVersion>>;

    /// Bytes that wait above their nodes' limits.
    fn debt_bytes(&self) -> u64;

    /// What is in memory alone, if anything is.
    fn resident(&self) -> Option<Resident> {
        None
    }

    /// Whether any of its files is a tree.
    fn has_trees(&self) -> bool {
        false
    }

    /// Records in lists, every version counted.
    fn records(&self) -> u64;

    /// About how much of the range lies in lists, every version counted, from metadata in memory: a list errs by a page
    /// at either end. Pure.
    fn portion(&self, range: &Range) -> Portion;

    /// Every file, as often as parts refer to it.
    fn files(&self) -> Vec<DataFile>;

    /// A file that is the table's, and only named so far.
    fn named(&self, meta: FileMeta) -> DataFile;

    /// Shows every list. Pure.
    fn each_list(&self, visit: &mut dyn FnMut(FilePart<'_>));

    /// The version's bytes for a snapshot of the manifest.
    fn encode(&self) -> Vec<u8>;

    /// The organisation as a person would draw it.
    fn describe(&self) -> Description;
}
