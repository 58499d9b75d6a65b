//! What a layout plans, and what its jobs come to: known to the engine by what it takes and makes, and to the layout alone
//! by what it is.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use forebay_base::{Error, Result};

use super::NodeKey;
use crate::files::DataFile;

/// A planned job.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is busy until the job's edit is applied.
    pub nodes: Vec<NodeKey>,
    /// Bytes of records to be read from lists.
    pub bytes: u64,
    /// Whether tombstones stay, although nothing older lies beneath them: for who follows what is flushed.
    pub keeps_tombstones: bool,
    work: Arc<dyn Work>,
}

/// What a layout has planned: a type of its own.
pub(crate) trait Work: Any + fmt::Debug + Send + Sync {}

impl Plan {
    pub(crate) fn new(nodes: Vec<NodeKey>, bytes: u64, work: impl Work) -> Self {
        debug_assert!(nodes.is_sorted_by(|one, next| one < next), "each node is busy once");
        Self { nodes, bytes, keeps_tombstones: false, work: Arc::new(work) }
    }

    /// What was planned, if this layout has.
    pub(crate) fn work<T: Work>(&self) -> Result<&T> {
        let work: &dyn Any = &*self.work;
        work.downcast_ref().ok_or_else(Self::foreign)
    }

    /// The error of a layout that is given another one's plan or outcome.
    pub(crate) fn foreign() -> Error {
        Error::bug("the table's layout has changed since this was planned")
    }
}

/// What a finished job hands to [`TableVersion::rebase`](super::TableVersion::rebase).
#[derive(Debug)]
pub struct Outcome(Box<dyn Produced>);

/// What a job has made: a type of its layout's.
pub(crate) trait Produced: Any + fmt::Debug + Send {
    /// How many records those hold, as far as it is known.
    fn records(&self) -> u64;
    /// The files that were written, or grew.
    fn files(&self) -> Vec<DataFile>;
}

impl Outcome {
    pub(crate) fn new(produced: impl Produced) -> Self {
        Self(Box::new(produced))
    }

    /// What was made, if a job of this layout has.
    pub(crate) fn take<T: Produced>(self) -> Result<T> {
        let produced: Box<dyn Any> = self.0;
        produced.downcast().map(|made| *made).map_err(|_| Plan::foreign())
    }

    /// The same, to be looked at.
    pub(crate) fn of<T: Produced>(&self) -> Option<&T> {
        let produced: &dyn Any = &*self.0;
        produced.downcast_ref()
    }

    /// How many records those hold, as far as it is known.
    pub fn records(&self) -> u64 {
        self.0.records()
    }

    /// Gives up what was written.
    pub fn discard(&self) {
        self.files().iter().for_each(DataFile::discard);
    }

    /// The files that were written, or grew.
    pub fn files(&self) -> Vec<DataFile> {
        self.0.files()
    }
}
