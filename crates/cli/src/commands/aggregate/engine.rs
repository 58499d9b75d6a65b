//! Which aggregator does the work: the one place that makes them.
//!
//! 1. Groups gather in memory, packed: in a compressed buffer tree.
//! 2. When it says that it is full, its states go to an external sort, and it begins anew. It stays in front of
//!    the sort, so that frequent groups are merged before they cost anything on disk.
//! 3. At the end the sort has everything, or was never needed.
//!
//! **Invariant:** a value that was added is in exactly one state, of the table or of the sort.

use std::path::PathBuf;

use forebay::Error;
use forebay::aggregate::functions::Count;
use forebay::aggregate::{
    Aggregate, Aggregator, AggregatorOptions, Composite, CompressedAggregator, Order, SortAggregator, Value,
    Visit,
};
use forebay::env::Env;
use forebay::env::sync::Arc;
use forebay::limits::KEY_BYTES_MAX;
use tempfile::TempDir;

/// Less memory than this is refused.
pub(super) const MEMORY_BYTES_MIN: u64 = 2 << 20;
/// The least that a table can do with.
const TABLE_BYTES_MIN: usize = 512 << 10;
/// The least that a sort can do with.
const SORT_BYTES_MIN: usize = 1 << 20;

/// What an aggregation may use.
#[derive(Debug, Clone)]
pub(super) struct Means {
    pub(super) memory_bytes: usize,
    /// Where temporary files go, in a directory of their own.
    pub(super) temp: PathBuf,
}

impl Means {
    /// A part of the memory.
    pub(super) fn share(&self, parts: usize, of: usize) -> Self {
        Self { memory_bytes: self.memory_bytes / of * parts, temp: self.temp.clone() }
    }

    /// What a sort takes; the table has the rest.
    fn sort_bytes(&self) -> usize {
        (self.memory_bytes / 4).max(SORT_BYTES_MIN)
    }

    fn table_bytes(&self) -> usize {
        self.memory_bytes.saturating_sub(self.sort_bytes()).max(TABLE_BYTES_MIN)
    }

    /// A sort by the keys' bytes.
    pub(super) fn sorter<A: Aggregate>(&self, function: &Arc<A>) -> Result<Sorter<A>, Error> {
        let directory = tempfile::Builder::new()
            .prefix("forebay-aggregate-")
            .tempdir_in(&self.temp)
            .map_err(|error| Error::io("make a temporary directory in", &self.temp, &error))?;
        let fs = Env::real().fs;
        let sort = SortAggregator::new(
            Arc::clone(function),
            Order::Lexical,
            fs,
            directory.path(),
            self.sort_bytes(),
        )?;
        Ok(Sorter { sort, _directory: directory })
    }
}

/// An external sort, and the directory of its files, which goes with it.
pub(super) struct Sorter<A> {
    pub(super) sort: SortAggregator<Arc<A>>,
    _directory: TempDir,
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

/// See the module.
pub(super) struct Engine<A: Aggregate> {
    function: Arc<A>,
    means: Means,
    table: CompressedAggregator<Arc<A>>,
    sorter: Option<Sorter<A>>,
    memory_bytes_peak: usize,
    lifted: Vec<u8>,
}

impl<A: Aggregate> Engine<A> {
    pub(super) fn new(function: Arc<A>, means: Means) -> Result<Self, Error> {
        let table = Self::table(&function, &means)?;
        Ok(Self { function, means, table, sorter: None, memory_bytes_peak: 0, lifted: Vec::new() })
    }

    fn table(function: &Arc<A>, means: &Means) -> Result<CompressedAggregator<Arc<A>>, Error> {
        let options = AggregatorOptions::default().memory_limit(means.table_bytes());
        CompressedAggregator::new(Arc::clone(function), options)
    }

    /// Adds one value to a key.
    #[inline]
    pub(super) fn add<'v>(&mut self, key: &[u8], value: A::Input<'v>) -> Result<(), Refused>
    where
        A::Input<'v>: Copy,
    {
        match self.table.add(key, value) {
            Ok(()) => Ok(()),
            Err(_) => self.add_refused(key, value),
        }
    }

    /// Adds what the table refused: because of itself, or because the table is full.
    #[cold]
    fn add_refused(&mut self, key: &[u8], value: A::Input<'_>) -> Result<(), Refused> {
        if key.len() > KEY_BYTES_MAX {
            return Err(Refused::Record(Error::Invalid(format!(
                "the key has {} bytes, {KEY_BYTES_MAX} at most",
                key.len()
            ))));
        }
        let mut lifted = std::mem::take(&mut self.lifted);
        lifted.clear();
        let added = self
            .function
            .lift(value, &mut lifted)
            .map_err(Refused::Record)
            .and_then(|()| self.add_with_room(key, &lifted).map_err(Refused::Work));
        self.lifted = lifted;
        added
    }

    /// Merges a state into a key's.
    pub(super) fn add_state(&mut self, key: &[u8], state: &[u8]) -> Result<(), Error> {
        match self.table.add_state(key, state) {
            Ok(()) => Ok(()),
            Err(_) => self.add_with_room(key, state),
        }
    }

    fn add_with_room(&mut self, key: &[u8], state: &[u8]) -> Result<(), Error> {
        let sorter = self.spill()?;
        // A state that an empty table has no room for may still fit there.
        sorter.add_state(key, state)
    }

    /// Empties the table into the sort.
    fn spill(&mut self) -> Result<&mut SortAggregator<Arc<A>>, Error> {
        let sorter = match self.sorter.take() {
            Some(sorter) => sorter,
            None => self.means.sorter(&self.function)?,
        };
        let sort = &mut self.sorter.insert(sorter).sort;
        self.table.finalize()?;
        self.table.for_each(&mut |key, state| sort.add_state(key, state))?;
        self.memory_bytes_peak = self.memory_bytes_peak.max(self.table.memory_bytes() + sort.memory_bytes());
        self.table = Self::table(&self.function, &self.means)?;
        Ok(sort)
    }

    /// All groups.
    pub(super) fn finish(mut self) -> Result<Groups<A>, Error> {
        self.table.finalize()?;
        if self.sorter.is_some() {
            self.spill()?.finalize()?;
        }
        let Self { function, means, table, sorter, memory_bytes_peak, .. } = self;
        let held = match sorter {
            Some(sorter) => Held::Sorted(sorter),
            None => Held::Table(table),
        };
        let memory_bytes_peak = memory_bytes_peak.max(held.memory_bytes());
        Ok(Groups { function, means, held, memory_bytes_peak })
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
    /// In memory.
    Table(CompressedAggregator<Arc<A>>),
    /// In a file, by their keys' bytes.
    Sorted(Sorter<A>),
}

impl<A: Aggregate> Held<A> {
    /// Shows every key and its state.
    pub(super) fn for_each(&self, visit: &mut Visit<'_>) -> Result<(), Error> {
        match self {
            Self::Table(table) => table.for_each(visit),
            Self::Sorted(sorter) => sorter.sort.for_each(visit),
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Table(table) => table.memory_bytes(),
            Self::Sorted(sorter) => sorter.sort.memory_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const COLUMNS: [&str; 1] = ["v"];

    fn engine(functions: &str) -> Engine<Composite> {
        let function = Arc::new(Composite::parse(functions, &COLUMNS).unwrap());
        Engine::new(function, Means { memory_bytes: 2 << 20, temp: std::env::temp_dir() }).unwrap()
    }

    /// What is added is counted once, wherever it went.
    fn counts_once(functions: &str) {
        let mut engine = engine(functions);
        let mut expected: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
        let mut refused = 0;
        for number in 0..600_000_u64 {
            // Every third row has a key of its own; the others come again and again.
            let key = if number % 3 == 0 { number } else { number % 50 }.to_string().into_bytes();
            let text = if number % 10_000 == 9 { "none" } else { "3" };
            match engine.add(&key, &[Value::bytes(text.as_bytes())]) {
                Ok(()) => *expected.entry(key).or_default() += 3,
                Err(Refused::Record(_)) if text == "none" => refused += 1,
                Err(error) => panic!("{error:?}"),
            }
        }
        assert_eq!(refused, 60);
        assert!(engine.sorter.is_some(), "the test is to spill");
        let groups = engine.finish().unwrap();
        assert!(groups.memory_bytes_peak <= 2 << 20, "{}", groups.memory_bytes_peak);
        let mut seen = BTreeMap::new();
        let keep = &mut |key: &[u8], state: &[u8]| {
            let sum = match &groups.function.finish(state)?[0] {
                Value::I128(sum) => *sum as i64,
                Value::List(values) => 3 * values.len() as i64,
                other => panic!("{other:?}"),
            };
            assert_eq!(seen.insert(key.to_vec(), sum), None);
            Ok(())
        };
        groups.held.for_each(keep).unwrap();
        assert_eq!(seen, expected);
    }

    #[test]
    fn what_does_not_fit_is_counted_once() {
        counts_once("sum:v");
    }

    #[test]
    fn states_that_grow_are_counted_once() {
        counts_once("list:v:100000,sum:v");
    }

    #[test]
    fn a_value_that_is_refused_makes_nobody_spill() {
        let mut engine = engine("sum:v");
        assert!(matches!(engine.add(b"a", &[Value::bytes(&b"x"[..])]), Err(Refused::Record(_))));
        let long = vec![b'k'; KEY_BYTES_MAX + 1];
        assert!(matches!(engine.add(&long, &[Value::from(1_i64)]), Err(Refused::Record(_))));
        assert!(engine.sorter.is_none());
        assert!(matches!(engine.finish().unwrap().held, Held::Table(_)));
    }
}
