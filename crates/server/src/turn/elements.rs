//! What a turn knows and writes of the elements of a database's containers.
//!
//! **Invariant:** what was written is in `known` until it is committed, so that whoever looks there first, and then in
//! the table, sees it. Of a range that was cleared nothing is looked for before it is written anew.

use std::collections::{BTreeMap, btree_map};
use std::ops::Range;

use forebay::{Batch, OrderedTable, Result, Scan};

use super::Turn;
use crate::elements;

/// An element of this turn.
#[derive(Debug)]
struct Known {
    value: Option<Vec<u8>>,
    is_written: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Elements {
    known: BTreeMap<Vec<u8>, Known>,
    /// Ranges that were cleared, before all else that was written.
    cleared: Vec<Range<Vec<u8>>>,
    /// Of keys and values.
    bytes: usize,
    drops: bool,
}

/// What an element takes besides its key and value.
const KNOWN_BYTES: usize = 64;

impl Elements {
    fn insert(&mut self, key: Vec<u8>, value: Option<Vec<u8>>, is_written: bool) {
        self.bytes += key.len() + value.as_ref().map_or(0, Vec::len) + KNOWN_BYTES;
        self.known.insert(key, Known { value, is_written });
    }

    fn forget(&mut self, range: Range<Vec<u8>>) {
        let keys: Vec<_> = self.known.range(range).map(|(key, _)| key.clone()).collect();
        keys.iter().for_each(|key| drop(self.known.remove(key)));
    }

    /// Memory that it takes, or has taken since it was written out.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Has nobody look for a container any more, and its elements deleted some time.
    pub(super) fn drop_container(&mut self, id: u64) {
        self.forget(elements::all(id));
        self.insert(elements::dropped(id), Some(Vec::new()), true);
        self.drops = true;
    }

    /// Notes which key holds a container.
    pub(super) fn own(&mut self, id: u64, key: &[u8]) {
        self.insert(elements::owner(id), Some(key.to_vec()), true);
    }

    pub(super) fn is_written(&self) -> bool {
        !self.cleared.is_empty() || self.known.values().any(|known| known.is_written)
    }

    /// Adds to a batch what was written, and forgets it all. Returns whether containers were dropped.
    pub(super) fn write_out(&mut self, table: &OrderedTable, batch: &mut Batch) -> bool {
        for range in self.cleared.drain(..) {
            batch.delete_range(table, range);
        }
        for (key, known) in std::mem::take(&mut self.known).into_iter().filter(|(_, known)| known.is_written)
        {
            match known.value {
                Some(value) => batch.put(table, key, value),
                None => batch.delete(table, key),
            }
        }
        self.bytes = 0;
        std::mem::take(&mut self.drops)
    }
}

/// Which way a walk goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Forward,
    Backward,
}

/// A key and a value.
pub(crate) type Element = (Vec<u8>, Vec<u8>);

/// Elements of a range, as the turn sees them: those of the table, and over them those of the turn.
pub(crate) struct Walk<'t> {
    way: Way,
    table: Scan,
    known: btree_map::Range<'t, Vec<u8>, Known>,
    next_of_table: Option<Element>,
    next_known: Option<(&'t Vec<u8>, &'t Known)>,
    has_begun: bool,
}

impl Walk<'_> {
    fn advance_table(&mut self) -> Result<()> {
        let next = match self.way {
            Way::Forward => self.table.next(),
            Way::Backward => self.table.next_back(),
        };
        self.next_of_table = next.transpose()?;
        Ok(())
    }

    fn advance_known(&mut self) {
        self.next_known = match self.way {
            Way::Forward => self.known.next(),
            Way::Backward => self.known.next_back(),
        };
    }

    fn step(&mut self) -> Result<Option<Element>> {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.advance_table()?;
            self.advance_known();
        }
        loop {
            let order = match (&self.next_of_table, &self.next_known) {
                (None, None) => return Ok(None),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some((key, _)), Some((known, _))) if self.way == Way::Forward => key.cmp(known),
                (Some((key, _)), Some((known, _))) => (*known).cmp(key),
            };
            if order.is_lt() {
                let found = self.next_of_table.take();
                self.advance_table()?;
                return Ok(found);
            }
            if order.is_eq() {
                self.advance_table()?;
            }
            let known = self.next_known;
            self.advance_known();
            if let Some((key, Known { value: Some(value), .. })) = known {
                return Ok(Some((key.clone(), value.clone())));
            }
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = Result<Element>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

impl Turn<'_> {
    /// An element.
    pub(crate) fn element(&mut self, database: usize, key: Vec<u8>) -> Result<Option<&[u8]>> {
        let elements = &mut self.elements[database];
        if !elements.known.contains_key(&key) {
            let value = self.shared.elements(database)?.get(&key)?;
            elements.insert(key.clone(), value, false);
        }
        Ok(elements.known.get(&key).and_then(|known| known.value.as_deref()))
    }

    /// Looks elements up at once, of which the turn does not know yet.
    pub(crate) fn look_up(&mut self, database: usize, keys: Vec<Vec<u8>>) -> Result<()> {
        self.look_up_within(database, keys, usize::MAX)
    }

    /// The same, until what was found has more than so many bytes.
    pub(super) fn look_up_within(
        &mut self,
        database: usize,
        mut keys: Vec<Vec<u8>>,
        bytes_max: usize,
    ) -> Result<()> {
        let elements = &mut self.elements[database];
        keys.retain(|key| !elements.known.contains_key(key));
        if keys.is_empty() {
            return Ok(());
        }
        keys.sort_unstable();
        keys.dedup();
        let found = self.shared.elements(database)?.multi_get_with_expiry_within(&keys, bytes_max)?;
        for (at, found) in found {
            elements.insert(std::mem::take(&mut keys[at]), found.map(|(value, _)| value), false);
        }
        Ok(())
    }

    /// Elements that nobody will look for again: the turn does not remember them.
    pub(crate) fn passing(&self, database: usize, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>> {
        let known = &self.elements[database].known;
        let unknown: Vec<&Vec<u8>> = keys.iter().filter(|key| !known.contains_key(*key)).collect();
        let mut found = self.shared.elements(database)?.multi_get(&unknown)?.into_iter();
        let value = |key| match known.get(key) {
            Some(known) => known.value.clone(),
            None => found.next().flatten(),
        };
        Ok(keys.iter().map(value).collect())
    }

    /// Sets an element, or deletes it.
    pub(crate) fn set_element(&mut self, database: usize, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.note_write();
        self.elements[database].insert(key, value, true);
    }

    /// Deletes all elements of a range, however many, of which nothing is looked for before it is written anew.
    pub(crate) fn clear_elements(&mut self, database: usize, range: Range<Vec<u8>>) {
        self.note_write();
        let elements = &mut self.elements[database];
        elements.forget(range.clone());
        elements.cleared.push(range);
    }

    /// The elements of a range.
    pub(crate) fn walk(&self, database: usize, range: Range<Vec<u8>>, way: Way) -> Result<Walk<'_>> {
        // A tree refuses a range that is the wrong way round.
        let range = if range.start < range.end { range } else { range.start.clone()..range.start };
        Ok(Walk {
            way,
            table: self.shared.elements(database)?.range(&range.start[..]..&range.end[..])?,
            known: self.elements[database].known.range(range),
            next_of_table: None,
            next_known: None,
            has_begun: false,
        })
    }
}
