//! What gathers the groups of a run: memory and temporary files ([`gathering`](super::gathering)), or a database
//! ([`store`](super::store)).

use std::sync::Arc;

use forebay::Error;
use forebay::limits::KEY_BYTES_MAX;
use forebay_aggregate::columns::OverRows;
use forebay_aggregate::functions::Count;
use forebay_aggregate::{Aggregate, Composite, Value, group_key as keys};

use super::batch::Row;
use super::by::Table;
use super::gathering::Gatherer;
use super::groups::{Groups, Walks};
use super::inputs::OnBad;
use super::means::Means;
use super::reached::Reached;
use super::refused::Refused;
use super::store::{Store, Storer};
use crate::failure::Failure;
use crate::input::Rows;

/// What takes values and states of groups.
pub(super) trait Sink<A: Aggregate> {
    /// Adds one value to a key.
    fn add<'v>(&mut self, key: &[u8], value: A::Input<'v>) -> Result<(), Refused>
    where
        A::Input<'v>: Copy;

    /// Merges a state into a key's.
    fn add_state(&mut self, key: &[u8], state: &[u8]) -> Result<(), Error>;

    fn function(&self) -> &A;
}

/// A function that can be given rows and whose answers can be shown.
pub(super) trait Measure: OverRows + Sized {
    /// What its answers are called.
    fn names(&self) -> Vec<String>;

    /// Adds a row, of which `values` gives the columns.
    fn add_row<'a>(
        sink: &mut impl Sink<Self>,
        key: &[u8],
        values: impl Iterator<Item = Value<'a>>,
    ) -> Result<(), Refused>;

    /// As [`add_row`](Self::add_row), but that each function passes over a value that it refuses. Returns how many did;
    /// nothing where the row is at fault for another reason.
    fn add_what_is_taken<'a>(
        _sink: &mut impl Sink<Self>,
        _key: &[u8],
        _values: impl Iterator<Item = Value<'a>>,
    ) -> Result<Option<u64>, Error> {
        Ok(None)
    }

    /// Appends what a state stands for.
    fn answer(&self, state: &[u8], answers: &mut Vec<Value<'_>>) -> Result<(), Error>;
}

/// Adds a row by itself, to be told why it is refused; where bad ones are skipped, without the values that functions
/// refuse. Returns how many those are. `key` is memory for its key.
pub(super) fn add_alone<A: Measure>(
    sink: &mut impl Sink<A>,
    table: &Table,
    row: &Row<'_>,
    on_bad: OnBad,
    key: &mut Vec<u8>,
) -> Result<u64, Refused> {
    key.clear();
    (0..table.keys.len()).for_each(|at| keys::push(key, row.column(at)));
    let values = || (0..table.columns.len()).map(|at| row.value(at));
    match A::add_row(sink, key, values()) {
        Err(Refused::Record(error)) if on_bad == OnBad::Skip => {
            let taken = A::add_what_is_taken(sink, key, values()).map_err(Refused::Work)?;
            taken.ok_or(Refused::Record(error))
        }
        added => added.map(|()| 0),
    }
}

impl Measure for Count {
    fn names(&self) -> Vec<String> {
        vec!["count".into()]
    }

    #[inline]
    fn add_row<'a>(
        sink: &mut impl Sink<Self>,
        key: &[u8],
        _values: impl Iterator<Item = Value<'a>>,
    ) -> Result<(), Refused> {
        sink.add(key, ())
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
        sink: &mut impl Sink<Self>,
        key: &[u8],
        values: impl Iterator<Item = Value<'a>>,
    ) -> Result<(), Refused> {
        let row: smallvec::SmallVec<[Value<'_>; 8]> = values.collect();
        sink.add(key, &row[..])
    }

    fn add_what_is_taken<'a>(
        sink: &mut impl Sink<Self>,
        key: &[u8],
        values: impl Iterator<Item = Value<'a>>,
    ) -> Result<Option<u64>, Error> {
        if key.len() > KEY_BYTES_MAX {
            return Ok(None);
        }
        let row: smallvec::SmallVec<[Value<'_>; 8]> = values.collect();
        let mut state = Vec::new();
        let refused = sink.function().lift_what_is_taken(&row, &mut state);
        sink.add_state(key, &state)?;
        Ok(Some(refused))
    }

    fn answer(&self, state: &[u8], answers: &mut Vec<Value<'_>>) -> Result<(), Error> {
        self.finish_into(state, answers)
    }
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
    pub(super) fn finish(self, walks: Walks) -> Result<Groups<A>, Failure> {
        match self {
            Self::Gathering(gatherer) => Ok(gatherer.finish(walks)?),
            Self::Storing(storer) => storer.finish(),
        }
    }
}

impl<A: Aggregate> Sink<A> for Engine<A> {
    #[inline]
    fn add<'v>(&mut self, key: &[u8], value: A::Input<'v>) -> Result<(), Refused>
    where
        A::Input<'v>: Copy,
    {
        match self {
            Self::Gathering(gatherer) => gatherer.add(key, value),
            Self::Storing(storer) => storer.add(key, value),
        }
    }

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
}
