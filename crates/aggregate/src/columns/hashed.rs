//! [`HashedRows`]: a hash table behind the table that takes rows by columns, for who wants states of many rows that are
//! few groups, and knows exactly which rows are in them.

use forebay_base::Result;

use super::front::{Front, OnRefused};
use super::{OverRows, Rows};
use crate::aggregate::Aggregate;
use crate::aggregator::{Aggregator, Visit};
use crate::hash::HashAggregator;

/// An aggregator in memory that takes rows by columns, and values and states one by one.
pub struct HashedRows<A> {
    function: A,
    front: Front,
    front_bytes: usize,
    groups: HashAggregator<A>,
}

impl<A: Aggregate + Clone> HashedRows<A> {
    /// An empty one that takes no more than `memory_max` bytes, and a sixteenth for rows by columns.
    pub fn new(function: A, memory_max: usize) -> Self {
        let groups = HashAggregator::new(function.clone(), memory_max);
        Self { function, front: Front::new(memory_max, memory_max), front_bytes: 0, groups }
    }
}

impl<A: OverRows> HashedRows<A> {
    /// Adds rows: as adding each by itself does, under the key that [`Rows::write_key`] gives. Those that are refused,
    /// because their key is too long or a function does not take its value, are not added; their numbers are put in
    /// place of what `refused` holds, in order.
    ///
    /// An error is one of the work: there is no knowing then how many of the rows were added.
    pub fn add_rows(&mut self, rows: &Rows<'_>, refused: &mut Vec<u32>) -> Result<()> {
        self.add_by(rows, OnRefused::PassBy, refused).map(drop)
    }

    /// Adds the rows before the first that is refused, and none behind that. Returns how many.
    pub fn add_sound_rows(&mut self, rows: &Rows<'_>) -> Result<usize> {
        self.add_by(rows, OnRefused::End, &mut Vec::new())
    }

    fn add_by(&mut self, rows: &Rows<'_>, on_refused: OnRefused, refused: &mut Vec<u32>) -> Result<usize> {
        let Self { function, front, front_bytes, groups } = self;
        let mut sink = |_, key: &[u8], state: &[u8]| groups.add_state(key, state);
        let added = front.add(&function.functions(), rows, on_refused, refused, &mut sink);
        *front_bytes = front.memory_bytes();
        debug_assert!(added.as_ref().is_ok_and(|added| *added <= rows.len()) || added.is_err());
        added
    }
}

impl<A: Aggregate> Aggregator<A> for HashedRows<A> {
    #[inline]
    fn add(&mut self, key: &[u8], value: A::Input<'_>) -> Result<()> {
        self.groups.add(key, value)
    }

    fn add_state(&mut self, key: &[u8], state: &[u8]) -> Result<()> {
        self.groups.add_state(key, state)
    }

    fn finalize(&mut self) -> Result<()> {
        let Self { front, front_bytes, groups, .. } = self;
        let emptied = front.empty(&mut |_, key, state| groups.add_state(key, state));
        *front_bytes = front.memory_bytes();
        emptied?;
        debug_assert!(front.is_empty(), "all of it has left");
        self.groups.finalize()
    }

    /// Of what was there when it was finalised.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.groups.get(key)
    }

    /// The same, in the order in which keys first came.
    fn for_each(&self, visit: &mut Visit<'_>) -> Result<()> {
        self.groups.for_each(visit)
    }

    #[inline]
    fn memory_bytes(&self) -> usize {
        self.front_bytes + self.groups.memory_bytes()
    }
}
