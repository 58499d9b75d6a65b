//! What keeps the groups of a run: memory and temporary files ([`gathering`](super::gathering)), or a database
//! ([`store`](super::store)). And what they come to, wherever they are.

use std::path::{Path, PathBuf};

use forebay::Error;
use forebay::limits::KEY_BYTES_MAX;
use forebay_aggregate::functions::Count;
use forebay_aggregate::{
    Aggregate, Aggregator, Composite, HashAggregator, Order, SortAggregator, Value, Visit,
};
use forebay_env::Env;
use std::sync::Arc;

use super::cube;
use super::gathering::{Gathered, Gatherer};
use super::reached::Reached;
use super::store::{Store, Storer};
use crate::failure::Failure;
use crate::temporary::Temporary;

/// Less memory than this is refused.
pub(super) const MEMORY_BYTES_MIN: u64 = 2 << 20;
/// The least that a table can do with, and the sort it goes on with.
const TABLE_BYTES_MIN: usize = 1536 << 10;
/// What each of many threads has of a table.
const THREAD_BYTES: usize = 6 << 20;
/// The least that a sort can do with.
const SORT_BYTES_MIN: usize = 1 << 20;

/// What an aggregation may use.
#[derive(Debug, Clone)]
pub(super) struct Means {
    pub(super) memory_bytes: usize,
    /// How many threads may work.
    pub(super) threads: usize,
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
        self.threads.min(most)
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

/// A function that can be given rows and whose answers can be shown.
pub(super) trait Measure: Aggregate + Sized {
    /// What its answers are called.
    fn names(&self) -> Vec<String>;

    /// Adds a row, of which `values` gives the columns.
    fn add_row<'a>(
        engine: &mut Engine<Self>,
        key: &[u8],
        values: impl Iterator<Item = Value<'a>>,
    ) -> Result<(), Refused>;

    /// As [`add_row`](Self::add_row), but that each function passes over a value that it refuses. Returns how many did;
    /// nothing where the row is at fault for another reason.
    fn add_what_is_taken<'a>(
        _engine: &mut Engine<Self>,
        _key: &[u8],
        _values: impl Iterator<Item = Value<'a>>,
    ) -> Result<Option<u64>, Error> {
        Ok(None)
    }

    /// Appends what a state stands for.
    fn answer(&self, state: &[u8], answers: &mut Vec<Value<'_>>) -> Result<(), Error>;
}

impl Measure for Count {
    fn names(&self) -> Vec<String> {
        vec!["count".into()]
    }

    #[inline]
    fn add_row<'a>(
        engine: &mut Engine<Self>,
        key: &[u8],
        _values: impl Iterator<Item = Value<'a>>,
    ) -> Result<(), Refused> {
        engine.add(key, ())
    }

    #[inline]
    fn answer(&self, state: &[u8], answers: &mut Vec<Value<'_>>) -> Result<(), Error> {
        answers.push(Value::from(self.finish(state)?));
        Ok(())
    }
}

impl Measure for Composite {
    fn names(&self) -> Vec<String> {
        Composite::names(self).map(str::to_string).collect()
    }

    fn add_row<'a>(
        engine: &mut Engine<Self>,
        key: &[u8],
        values: impl Iterator<Item = Value<'a>>,
    ) -> Result<(), Refused> {
        let row: smallvec::SmallVec<[Value<'_>; 8]> = values.collect();
        engine.add(key, &row[..])
    }

    fn add_what_is_taken<'a>(
        engine: &mut Engine<Self>,
        key: &[u8],
        values: impl Iterator<Item = Value<'a>>,
    ) -> Result<Option<u64>, Error> {
        if key.len() > KEY_BYTES_MAX {
            return Ok(None);
        }
        let row: smallvec::SmallVec<[Value<'_>; 8]> = values.collect();
        let mut state = Vec::new();
        let refused = engine.function().lift_what_is_taken(&row, &mut state);
        engine.add_state(key, &state)?;
        Ok(Some(refused))
    }

    fn answer(&self, state: &[u8], answers: &mut Vec<Value<'_>>) -> Result<(), Error> {
        answers.extend(self.finish(state)?);
        Ok(())
    }
}

/// Why a value was not added.
#[derive(Debug)]
pub(super) enum Refused {
    /// Its key or the value itself is at fault.
    Record(Error),
    /// The work failed.
    Work(Error),
}

/// Who is to blame for an error at adding a value.
#[cold]
pub(super) fn refusal<A: Aggregate>(function: &A, key: &[u8], value: A::Input<'_>, error: Error) -> Refused {
    if key.len() > KEY_BYTES_MAX {
        let reason = format!("the key has {} bytes; at most {KEY_BYTES_MAX} are allowed", key.len());
        return Refused::Record(Error::Invalid(reason));
    }
    function.lift(value, &mut Vec::new()).map_or_else(Refused::Record, |()| Refused::Work(error))
}

/// See the module.
pub(super) enum Engine<A: Aggregate> {
    Gathering(Box<Gatherer<A>>),
    Storing(Box<Storer<A>>),
}

impl<A: Aggregate> Engine<A> {
    /// An engine that keeps groups in a store, if there is one.
    pub(super) fn new(function: Arc<A>, means: Means, store: Option<&Store>) -> Result<Self, Failure> {
        Ok(match store {
            Some(store) => Self::Storing(Box::new(Storer::new(store, function, means)?)),
            None => Self::Gathering(Box::new(Gatherer::new(function, means)?)),
        })
    }

    /// Adds one value to a key.
    #[inline]
    pub(super) fn add<'v>(&mut self, key: &[u8], value: A::Input<'v>) -> Result<(), Refused>
    where
        A::Input<'v>: Copy,
    {
        match self {
            Self::Gathering(gatherer) => gatherer.add(key, value),
            Self::Storing(storer) => storer.add(key, value),
        }
    }

    /// Merges a state into a key's.
    fn add_state(&mut self, key: &[u8], state: &[u8]) -> Result<(), Error> {
        match self {
            Self::Gathering(gatherer) => gatherer.add_state(key, state),
            Self::Storing(storer) => storer.add_state(key, state),
        }
    }

    fn function(&self) -> &A {
        match self {
            Self::Gathering(gatherer) => gatherer.function(),
            Self::Storing(storer) => storer.function(),
        }
    }

    /// Whether what was added should be committed at the next place where that can be.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        match self {
            Self::Gathering(_) => false,
            Self::Storing(storer) => storer.is_due(),
        }
    }

    /// How far the file of this name was read.
    pub(super) fn reached(&self, file: &[u8]) -> Result<Option<Reached>, Failure> {
        match self {
            Self::Gathering(_) => Ok(None),
            Self::Storing(storer) => storer.reached(file),
        }
    }

    /// A file, by all its names, was read as far as this, and everything before is added. Commits that, if it is due.
    pub(super) fn reach(&mut self, keys: Vec<Vec<u8>>, reached: Reached) -> Result<(), Failure> {
        match self {
            Self::Gathering(_) => Ok(()),
            Self::Storing(storer) => storer.reach(keys, reached),
        }
    }

    /// All groups.
    pub(super) fn finish(self) -> Result<Groups<A>, Failure> {
        match self {
            Self::Gathering(gatherer) => Ok(gatherer.finish()?),
            Self::Storing(storer) => storer.finish(),
        }
    }
}

/// Every group and its state.
pub(super) struct Groups<A: Aggregate> {
    pub(super) function: Arc<A>,
    pub(super) means: Means,
    pub(super) held: Held<A>,
    /// The most memory that gathering them took.
    pub(super) memory_bytes_peak: usize,
}

/// Where groups are once all are there.
pub(super) enum Held<A: Aggregate> {
    /// In memory, or in a file by their keys' bytes.
    Gathered(Box<Gathered<A>>),
    /// In a database, by their keys' bytes.
    Stored(forebay::Aggregator<Arc<A>>),
    /// In memory, as they are.
    Loose(HashAggregator<Arc<A>>),
    /// The finest groups of a cube, without their grouping, and all others.
    Cube(Box<Self>, Vec<Self>),
}

impl<A: Aggregate> Held<A> {
    /// Shows every key and its state.
    pub(super) fn for_each(&self, visit: &mut Visit<'_>) -> Result<(), Error> {
        match self {
            Self::Gathered(groups) => groups.table.for_each(visit),
            Self::Stored(groups) => groups.for_each(visit),
            Self::Loose(groups) => groups.for_each(visit),
            Self::Cube(finest, others) => {
                let mut whole = Vec::new();
                finest.for_each(&mut |key, state| {
                    whole.clear();
                    cube::push(0, key, &mut whole);
                    visit(&whole, state)
                })?;
                others.iter().try_for_each(|groups| groups.for_each(visit))
            }
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Gathered(groups) => groups.table.memory_bytes(),
            Self::Stored(groups) => groups.memory_bytes(),
            Self::Loose(groups) => groups.memory_bytes(),
            Self::Cube(finest, others) => {
                finest.memory_bytes() + others.iter().map(Self::memory_bytes).sum::<usize>()
            }
        }
    }

    /// Whether some are in temporary files.
    pub(super) fn is_spilled(&self) -> bool {
        match self {
            Self::Gathered(groups) => groups.table.is_spilled(),
            Self::Cube(finest, others) => finest.is_spilled() || others.iter().any(Self::is_spilled),
            Self::Stored(_) | Self::Loose(_) => false,
        }
    }

    /// Whether a database has them, but for what follows from them.
    pub(super) fn is_stored(&self) -> bool {
        match self {
            Self::Stored(_) => true,
            Self::Cube(finest, _) => finest.is_stored(),
            Self::Gathered(_) | Self::Loose(_) => false,
        }
    }

    /// Whether groups are shown in the order of their keys' bytes.
    pub(super) fn is_sorted(&self) -> bool {
        match self {
            Self::Gathered(groups) => groups.table.is_spilled(),
            // They may have got another layout since.
            Self::Stored(groups) => groups.layout().is_ok_and(|layout| layout.is_ordered()),
            Self::Cube(..) | Self::Loose(_) => false,
        }
    }
}
