//! What a table that gets another order becomes: runs that nobody else knows of yet, made of records that come in any
//! order. They are sorted in pieces that fit memory; runs are merged where they become many.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use forebay_base::limits::STORED_VALUE_BYTES_MAX;
use forebay_base::merge::{Cursor, Direction};
use forebay_base::{Error, Order, Range, Record, Result};
use forebay_store::Cause;

use crate::files::{DataFile, Source, Store, TableContext};
use crate::options::TableOptions;
use crate::registry::convert;
use crate::rule::TableRule;
use crate::run_set::{Policy, RunSet, RunSetTable};
use crate::seam::{Applied, Check, Job, Planned, Rebased, TableVersion};

/// This many runs are merged to one: a record is written once for each time that their number grows by this.
const RUNS_MAX: u32 = 16;
/// What a record takes in a piece besides its bytes.
const PLACE_BYTES: usize = size_of::<(u64, usize)>();

/// See the module. Dropped before it is [finished](Self::finish), it leaves no files.
pub struct ReorderTarget {
    version: Arc<dyn TableVersion>,
    context: TableContext,
    /// Each file, and how many parts refer to it.
    files: BTreeMap<u64, (DataFile, i64)>,
    piece: Piece,
    piece_bytes_max: usize,
}

impl ReorderTarget {
    /// One of nothing, for a table of these options, whose lists go to `store`.
    pub fn new(
        options: &TableOptions,
        store: Store,
        rule: &Arc<TableRule>,
        merge_memory_bytes: usize,
    ) -> Self {
        let piece = Piece::new(store.order());
        let context = TableContext::new(store, Arc::clone(rule), merge_memory_bytes);
        let set = RunSet::new(Policy::Tiering { runs_max: RUNS_MAX }, options.tree.node_bytes);
        let version = Arc::new(RunSetTable::new(set, options.tree, context.clone()));
        Self { version, context, files: BTreeMap::new(), piece, piece_bytes_max: merge_memory_bytes }
    }

    /// Adds a record. Of one key there is one, until the next [`close`](Self::close).
    pub fn push(&mut self, record: &Record<'_>, check: Check<'_>) -> Result<()> {
        self.piece.push(record)?;
        if self.piece.memory_bytes() >= self.piece_bytes_max {
            self.close(check)?;
        }
        Ok(())
    }

    /// What is added from here on is newer.
    pub fn close(&mut self, check: Check<'_>) -> Result<()> {
        let piece = std::mem::replace(&mut self.piece, Piece::new(self.context.store.order()));
        if piece.places.is_empty() {
            return Ok(());
        }
        if let Some(job) = self.version.ingest(Box::new(piece.sorted()), None)? {
            self.run(job, check)?;
        }
        let busy = BTreeSet::new();
        while let Some(planned) = self.version.next_work(&busy) {
            match planned {
                Planned::Edit(edit) => self.apply(&edit)?,
                Planned::Job(plan) => self.run(self.version.start(&plan)?, check)?,
            }
        }
        Ok(())
    }

    /// Adds all that a file of another order has, newer than all before.
    pub fn push_file(&mut self, file: &DataFile, check: Check<'_>) -> Result<()> {
        self.close(check)?;
        let reading = self.context.files(Cause::Merge).reading(1);
        let mut cursor = Source::new(file, &Range::all(), Direction::Forward, reading)?;
        while cursor.prefix().is_some() {
            self.push(&cursor.record(), check)?;
            cursor.advance()?;
        }
        self.close(check)
    }

    /// How many records it has, in runs.
    pub fn records(&self) -> u64 {
        self.version.records()
    }

    /// The table version, in the form of these options' layout. It has all that log segments below `below` brought.
    pub fn version(&self, options: &TableOptions, below: u64) -> Option<Arc<dyn TableVersion>> {
        convert(&*self.version, options, below)
    }

    /// Leaves the files to whoever refers to them.
    pub fn finish(mut self) {
        self.files.clear();
    }

    fn run(&mut self, mut job: Box<dyn Job>, check: Check<'_>) -> Result<()> {
        let outcome = job.finish(check)?;
        let made = outcome.files();
        self.files.extend(made.into_iter().map(|file| (file.id(), (file, 0))));
        let Rebased { edit, .. } = self.version.rebase(outcome)?;
        self.apply(&edit)
    }

    fn apply(&mut self, edit: &[u8]) -> Result<()> {
        let find = |id: u64| self.files.get(&id).map(|(file, _)| file.clone());
        let Applied { version, references } = self.version.apply(edit, &find)?;
        self.version = version;
        for (file, by) in references {
            if let Some((_, count)) = self.files.get_mut(&file.id()) {
                *count += i64::from(by);
                debug_assert!(*count >= 0, "no part is given up twice");
            }
        }
        self.files.retain(|_, (file, count)| {
            if *count <= 0 {
                file.retire();
            }
            *count > 0
        });
        Ok(())
    }
}

impl Drop for ReorderTarget {
    fn drop(&mut self) {
        self.files.values().for_each(|(file, _)| file.retire());
    }
}

/// Records in memory, to be put in order.
struct Piece {
    order: Order,
    bytes: Vec<u8>,
    /// Of each record the prefix, and where it begins.
    places: Vec<(u64, usize)>,
    at: usize,
}

impl Piece {
    fn new(order: Order) -> Self {
        Self { order, bytes: Vec::new(), places: Vec::new(), at: 0 }
    }

    fn push(&mut self, record: &Record<'_>) -> Result<()> {
        if record.value.len() > STORED_VALUE_BYTES_MAX {
            // What is read back would not be this record.
            return Err(Error::too_long(record.key, record.value.len(), STORED_VALUE_BYTES_MAX));
        }
        self.places.push((self.order.prefix(record.key), self.bytes.len()));
        record.encode(&mut self.bytes);
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        self.bytes.len() + PLACE_BYTES * self.places.len()
    }

    fn sorted(mut self) -> Self {
        let bytes = &self.bytes;
        let key = |place: usize| record_at(bytes, place).key;
        self.places.sort_unstable_by(|(prefix, place), (other, other_place)| {
            prefix.cmp(other).then_with(|| key(*place).cmp(key(*other_place)))
        });
        debug_assert!(
            self.places.is_sorted_by(|(prefix, place), (other, other_place)| {
                (prefix, key(*place)) < (other, key(*other_place))
            }),
            "a piece has each key once"
        );
        self
    }
}

fn record_at(bytes: &[u8], place: usize) -> Record<'_> {
    // Only places of records are kept.
    Record::decode(&bytes[place..]).map_or(Record::delete(&[]), |(record, _)| record)
}

impl Cursor for Piece {
    fn prefix(&self) -> Option<u64> {
        self.places.get(self.at).map(|(prefix, _)| *prefix)
    }

    fn record(&self) -> Record<'_> {
        self.places.get(self.at).map_or(Record::delete(&[]), |(_, place)| record_at(&self.bytes, *place))
    }

    fn advance(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Operands of one key that come to more became a tombstone of the empty key. The value is not touched, and so
    /// takes no memory.
    #[test]
    fn a_record_that_nobody_could_read_back_is_refused_by_name() {
        let mut piece = Piece::new(Order::Lexical);
        let long = vec![0; STORED_VALUE_BYTES_MAX + 1];
        let refused = piece.push(&Record::put(b"key", &long)).unwrap_err();
        assert!(matches!(refused, Error::TooLong(_)), "{refused}");
        assert!(piece.places.is_empty());
        piece.push(&Record::put(b"key", b"value")).unwrap();
        assert_eq!(piece.record(), Record::put(b"key", b"value"));
    }
}
