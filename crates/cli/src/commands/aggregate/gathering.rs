//! Groups that live as long as the command.
//!
//! 1. They gather in memory, packed: in a compressed buffer tree.
//! 2. When it says that it is full, its states go to an external sort, and it begins anew. It stays in front of
//!    the sort, so that frequent groups are merged before they cost anything on disk.
//! 3. At the end the sort has everything, or was never needed.
//!
//! **Invariant:** a value that was added is in exactly one state, of the table or of the sort.

use forebay::Error;
use forebay::aggregate::{Aggregate, Aggregator, AggregatorOptions, CompressedAggregator, SortAggregator};
use forebay::env::sync::Arc;

use super::engine::{Groups, Held, Means, Refused, Sorter, lifted};

/// See the module.
pub(super) struct Gatherer<A: Aggregate> {
    function: Arc<A>,
    means: Means,
    table: CompressedAggregator<Arc<A>>,
    sorter: Option<Sorter<A>>,
    memory_bytes_peak: usize,
    lifted: Vec<u8>,
}

impl<A: Aggregate> Gatherer<A> {
    pub(super) fn new(function: Arc<A>, means: Means) -> Result<Self, Error> {
        let table = Self::table(&function, &means)?;
        Ok(Self { function, means, table, sorter: None, memory_bytes_peak: 0, lifted: Vec::new() })
    }

    fn table(function: &Arc<A>, means: &Means) -> Result<CompressedAggregator<Arc<A>>, Error> {
        let options =
            AggregatorOptions::default().memory_limit(means.table_bytes()).threads(means.table_threads());
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
        let mut state = std::mem::take(&mut self.lifted);
        let added = lifted(&*self.function, key, value, &mut state)
            .and_then(|()| self.add_with_room(key, &state).map_err(Refused::Work));
        self.lifted = state;
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use forebay::aggregate::{Composite, Value};
    use forebay::limits::KEY_BYTES_MAX;

    use super::*;

    const COLUMNS: [&str; 1] = ["v"];

    fn gatherer(functions: &str) -> Gatherer<Composite> {
        let function = Arc::new(Composite::parse(functions, &COLUMNS).unwrap());
        Gatherer::new(function, Means { memory_bytes: 2 << 20, threads: 2, temp: std::env::temp_dir() })
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
        assert!(gatherer.sorter.is_some(), "the test is to spill");
        let groups = gatherer.finish().unwrap();
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
        assert!(gatherer.sorter.is_none());
        assert!(matches!(gatherer.finish().unwrap().held, Held::Table(_)));
    }
}
