//! Groups that live as long as the command: in a packed aggregator, which goes on in temporary files.

use forebay::Error;
use forebay_aggregate::columns::{OverRows, Rows};
use forebay_aggregate::{Aggregate, Aggregator, AggregatorOptions, CompressedAggregator, RunFiles};
use forebay_env::Env;
use std::sync::Arc;

use super::engine::Sink;
use super::groups::{Gathered, Groups, Held, Walks};
use super::means::Means;
use super::refused::{Refused, refusal};

/// See the module.
pub(super) struct Gatherer<A: Aggregate> {
    function: Arc<A>,
    means: Means,
    groups: Gathered<A>,
}

impl<A: Aggregate> Gatherer<A> {
    pub(super) fn new(function: Arc<A>, means: Means) -> Result<Self, Error> {
        let directory = means.directory()?;
        let options = AggregatorOptions::default()
            .memory_limit(means.table_bytes())
            .threads(means.table_threads())
            .adders(means.readers)
            .spill_to(RunFiles::new(Env::real().fs, directory.path()));
        let table = CompressedAggregator::new(Arc::clone(&function), options)?;
        Ok(Self { function, means, groups: Gathered { table, _directory: directory } })
    }

    /// Adds a value to each of some keys that may be keys, from any thread.
    pub(super) fn add_pairs<'v>(&self, pairs: &[(&[u8], A::Input<'v>)]) -> Result<(), Error>
    where
        A::Input<'v>: Copy,
    {
        self.groups.table.add_pairs(pairs)
    }

    /// Adds one value to a key.
    #[inline]
    pub(super) fn add<'v>(&mut self, key: &[u8], value: A::Input<'v>) -> Result<(), Refused>
    where
        A::Input<'v>: Copy,
    {
        let added = Aggregator::add(&mut self.groups.table, key, value);
        added.map_err(|error| refusal(&*self.function, key, value, error))
    }

    /// Adds rows that come by columns, but for those that are refused, whose numbers are put in place of what `refused`
    /// holds.
    pub(super) fn add_rows(&self, rows: &Rows<'_>, refused: &mut Vec<u32>) -> Result<(), Error>
    where
        A: OverRows,
    {
        self.groups.table.add_rows(rows, refused)
    }

    /// The calling thread adds no more rows: moves what it has of them to where all can merge it.
    pub(super) fn hand_over_rows(&self) -> Result<(), Error> {
        self.groups.table.hand_over_rows()
    }

    /// Merges a state into a key's.
    pub(super) fn add_state(&mut self, key: &[u8], state: &[u8]) -> Result<(), Error> {
        Aggregator::add_state(&mut self.groups.table, key, state)
    }

    pub(super) fn function(&self) -> &A {
        &self.function
    }

    /// How many threads add.
    pub(super) fn readers(&self) -> usize {
        self.means.readers
    }

    /// All groups. For few walks they are merged as they are shown.
    pub(super) fn finish(self, walks: Walks) -> Result<Groups<A>, Error> {
        let Self { function, means, mut groups } = self;
        // What is in files needs no memory any more once it is finalised.
        let memory_bytes = groups.table.memory_bytes();
        let taken = if walks == Walks::Few { groups.table.take_groups()? } else { None };
        if let Some(taken) = taken {
            let memory_bytes_peak = taken.memory_bytes().max(memory_bytes);
            return Ok(Groups { function, means, held: Held::Taken(taken), memory_bytes_peak });
        }
        groups.table.finalize()?;
        let memory_bytes_peak = groups.table.memory_bytes().max(memory_bytes);
        Ok(Groups { function, means, held: Held::Gathered(Box::new(groups)), memory_bytes_peak })
    }
}

/// From any thread.
impl<A: Aggregate> Sink<A> for &Gatherer<A> {
    fn add<'v>(&mut self, key: &[u8], value: A::Input<'v>) -> Result<(), Refused>
    where
        A::Input<'v>: Copy,
    {
        let added = self.groups.table.add(key, value);
        added.map_err(|error| refusal(&*self.function, key, value, error))
    }

    fn add_state(&mut self, key: &[u8], state: &[u8]) -> Result<(), Error> {
        self.groups.table.add_state(key, state)
    }

    fn function(&self) -> &A {
        &self.function
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use forebay::limits::KEY_BYTES_MAX;
    use forebay_aggregate::{Composite, Value};

    use super::*;

    const COLUMNS: [&str; 1] = ["v"];

    fn gatherer(functions: &str) -> Gatherer<Composite> {
        let function = Arc::new(Composite::parse(functions, &COLUMNS).unwrap());
        let temp = std::env::temp_dir();
        Gatherer::new(function, Means { memory_bytes: 2 << 20, threads: 2, readers: 1, encoders: 0, temp })
            .unwrap()
    }

    /// What is added is counted once, wherever it went.
    fn counts_once(functions: &str) {
        let mut gatherer = gatherer(functions);
        let mut expected: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
        let mut refused = 0;
        for number in 0..600_000_u64 {
            // Every third row has a key of its own; the others come again and again.
            let key = if number % 3 == 0 { number } else { number % 50 }.to_string().into_bytes();
            let text = if number % 10_000 == 9 { "none" } else { "3" };
            match gatherer.add(&key, &[Value::bytes(text.as_bytes())]) {
                Ok(()) => *expected.entry(key).or_default() += 3,
                Err(Refused::Record(_)) if text == "none" => refused += 1,
                Err(error) => panic!("{error:?}"),
            }
        }
        assert_eq!(refused, 60);
        assert!(gatherer.groups.table.is_spilled(), "the test is to spill");
        let groups = gatherer.finish(Walks::Few).unwrap();
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
        let mut gatherer = gatherer("sum:v");
        assert!(matches!(gatherer.add(b"a", &[Value::bytes(&b"x"[..])]), Err(Refused::Record(_))));
        let long = vec![b'k'; KEY_BYTES_MAX + 1];
        assert!(matches!(gatherer.add(&long, &[Value::from(1_i64)]), Err(Refused::Record(_))));
        assert!(!gatherer.finish(Walks::Many).unwrap().held.is_spilled());
    }
}
