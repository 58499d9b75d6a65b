//! What an aggregation may use: memory, threads, and a place for temporary files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay::Error;
use forebay_aggregate::{Aggregate, Order, SortAggregator};
use forebay_env::Env;

use crate::temporary::Temporary;

/// Less memory than this is refused.
pub(super) const MEMORY_BYTES_MIN: u64 = 2 << 20;
/// The least that a table can do with, and what it goes on with in files.
const TABLE_BYTES_MIN: usize = 1792 << 10;
/// What each of many threads has of a table.
const THREAD_BYTES: usize = 6 << 20;
/// Beside several threads that add, this many merge at most.
const MERGING_THREADS_MAX: usize = 4;
/// The least that a sort can do with.
const SORT_BYTES_MIN: usize = 1 << 20;

/// What an aggregation may use.
#[derive(Debug, Clone)]
pub(super) struct Means {
    pub(super) memory_bytes: usize,
    /// How many threads may work.
    pub(super) threads: usize,
    /// How many of them read and add,
    pub(super) readers: usize,
    /// and how many make what is written of groups, besides the one that shows them.
    pub(super) encoders: usize,
    /// Where temporary files go, in a directory of their own.
    pub(super) temp: PathBuf,
}

impl Means {
    /// A part of the memory.
    pub(super) fn share(&self, parts: usize, of: usize) -> Self {
        Self { memory_bytes: self.memory_bytes / of * parts, ..self.clone() }
    }

    /// How many threads a table has the memory for.
    pub(super) fn table_threads(&self) -> usize {
        let bytes = self.table_bytes();
        let most = if bytes < 2 << 20 { 2 } else { (bytes / THREAD_BYTES).max(4) };
        // Who adds merges too.
        self.threads.min(most).min(if self.readers > 1 { MERGING_THREADS_MAX } else { usize::MAX })
    }

    /// The memory of a table, with that of the sort it goes on with.
    pub(super) fn table_bytes(&self) -> usize {
        self.memory_bytes.max(TABLE_BYTES_MIN)
    }

    /// A directory for temporary files.
    pub(super) fn directory(&self) -> Result<Scratch, Error> {
        let make = || tempfile::Builder::new().prefix("forebay-aggregate-").tempdir_in(&self.temp);
        let (directory, known) = Temporary::make(make, |directory| directory.path())
            .map_err(|error| Error::io("make a temporary directory in", &self.temp, &error))?;
        Ok(Scratch { directory, _known: known })
    }

    /// A sort by the keys' bytes.
    pub(super) fn sorter<A: Aggregate>(&self, function: &Arc<A>) -> Result<Sorter<A>, Error> {
        let directory = self.directory()?;
        let (function, bytes) = (Arc::clone(function), (self.memory_bytes / 4).max(SORT_BYTES_MIN));
        let sort = SortAggregator::new(function, Order::Lexical, Env::real().fs, directory.path(), bytes)?;
        Ok(Sorter { sort, _directory: directory })
    }
}

/// A directory for temporary files, which goes with this.
pub(super) struct Scratch {
    directory: tempfile::TempDir,
    _known: Temporary,
}

impl Scratch {
    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// An external sort, and the directory of its files, which goes with it.
pub(super) struct Sorter<A> {
    pub(super) sort: SortAggregator<Arc<A>>,
    _directory: Scratch,
}
