//! A batch: records of any tables of one database, written all or not at all.

use std::sync::Arc;
use std::time::Duration;

use forebay_aggregate::Aggregate;
use forebay_base::expiry;
use forebay_base::limits::{BATCH_BYTES_MAX, KEY_BYTES_MAX, VALUE_BYTES_MAX};
use forebay_base::{Error, Kind, Order, Range, Record, Result};
use forebay_store::WriteBuffer;
use forebay_store::buffer::Draft;
use forebay_store::log::batch::Payload;

use crate::api::KeyBounds;
use crate::api::key_bounds::{prefix_range, range_of};
use crate::read;
use crate::{Aggregator, OrderedTable, Table};

/// What a record takes at most besides its key and value.
const RECORD_HEAD_BYTES_MAX: usize = 16;
/// More memory than this is not kept for the next value.
const SPARE_BYTES_MAX: usize = 64 << 10;
/// What a range delete takes at most besides its bounds.
const RANGE_DELETE_HEAD_BYTES_MAX: usize = 32;

/// Puts, deletes, deletes of ranges, operands and values to be aggregated, to be written together. Later ones of a key
/// count as newer.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    payload: Payload,
    database: Option<u64>,
    fault: Option<Error>,
    /// Memory for a state, or a value that expires.
    spare: Vec<u8>,
    amid: Amid,
    /// For the reads of a transaction.
    draft: Option<Box<Draft>>,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// The longest that a batch may be, in bytes of keys, values and what tells of them: 1 GiB.
    pub const fn bytes_max() -> usize {
        BATCH_BYTES_MAX
    }

    /// Sets a key. A key or a value that is [longer](Table::key_bytes_max) than it [may be](Table::value_bytes_max), or a
    /// table of another database, makes the commit fail, and nothing of the batch is written.
    #[inline]
    pub fn put(&mut self, table: impl AsRef<Table>, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        let table = table.as_ref();
        match table.usual_expiry() {
            None => self.write(table, Record::put(key.as_ref(), value.as_ref())),
            Some(expiry) => self.write_until(table, Record::put(key.as_ref(), value.as_ref()), expiry),
        }
    }

    /// Sets a key for a time, counted from now. After that it is gone, as if it were deleted; the value that it had
    /// before does not come back. [`Duration::MAX`] is forever. For a table that was made without
    /// [`time_to_live`](crate::TableBuilder::time_to_live) the commit fails. The longest value has 8 bytes less here.
    pub fn put_with_ttl(
        &mut self,
        table: impl AsRef<Table>,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) {
        let table = table.as_ref();
        let expiry = read::expiry_of(&table.engine.context, ttl);
        self.write_until(table, Record::put(key.as_ref(), value.as_ref()), expiry);
    }

    /// Writes a record that expires at this time, in milliseconds since 1970.
    pub(super) fn write_until(&mut self, table: &Table, record: Record<'_>, expiry: u64) {
        if let Err(fault) = table.takes_expiry() {
            return self.fail(fault);
        }
        let mut stored = std::mem::take(&mut self.spare);
        stored.clear();
        expiry::join(record.value, expiry, &mut stored);
        debug_assert!(table.expires(), "only where values end with an expiry they get one");
        self.write(table, Record { value: &stored, ..record });
        self.spare = if stored.capacity() > SPARE_BYTES_MAX { Vec::new() } else { stored };
    }

    /// Removes a key, present or not.
    pub fn delete(&mut self, table: impl AsRef<Table>, key: impl AsRef<[u8]>) {
        self.write(table.as_ref(), Record::delete(key.as_ref()));
    }

    /// Removes all keys of a range that the table has at the commit, including those put earlier in the same batch. It
    /// costs one record, however many keys those are. The bounds are keys, as those of [`OrderedTable::range`].
    pub fn delete_range(&mut self, table: &OrderedTable, bounds: impl KeyBounds) {
        self.add_range_delete(table, range_of(Order::Lexical, &bounds));
    }

    /// Removes all keys that begin with a prefix.
    pub fn delete_prefix(&mut self, table: &OrderedTable, prefix: impl AsRef<[u8]>) {
        self.add_range_delete(table, prefix_range(Order::Lexical, prefix.as_ref()));
    }

    /// Removes a group of an aggregator that was made with [`deletes`](crate::TableBuilder::deletes): what was added
    /// before counts no more, what is added later does.
    pub fn delete_group<A: Aggregate>(&mut self, aggregator: &Aggregator<A>, key: impl AsRef<[u8]>) {
        let (table, key) = (aggregator.table(), key.as_ref());
        match table.takes_deletes() {
            Ok(()) if self.takes(table, &Record::delete(key)) => {
                self.payload.delete_state(table.id(), table.order(), key);
            }
            Ok(()) => {}
            Err(fault) => self.fail(fault),
        }
    }

    /// Removes all groups of a range, of a layout in key order. It costs one record.
    pub fn delete_group_range<A: Aggregate>(&mut self, aggregator: &Aggregator<A>, bounds: impl KeyBounds) {
        self.delete_groups(aggregator.table(), range_of(Order::Lexical, &bounds));
    }

    /// Removes all groups whose keys begin with a prefix, of a layout in key order.
    pub fn delete_group_prefix<A: Aggregate>(
        &mut self,
        aggregator: &Aggregator<A>,
        prefix: impl AsRef<[u8]>,
    ) {
        self.delete_groups(aggregator.table(), prefix_range(Order::Lexical, prefix.as_ref()));
    }

    fn delete_groups(&mut self, table: &Table, range: Range) {
        match table.takes_deletes() {
            Ok(()) => self.push_range_delete(table, range),
            Err(fault) => self.fail(fault),
        }
    }

    fn add_range_delete(&mut self, table: &Table, range: Range) {
        match table.takes_writes() {
            Ok(()) => self.push_range_delete(table, range),
            Err(fault) => self.fail(fault),
        }
    }

    fn push_range_delete(&mut self, table: &Table, range: Range) {
        if range.is_empty() {
            return;
        }
        let is_foreign = self.database.is_some_and(|database| database != table.database_id());
        if is_foreign
            || self.payload.bytes().len().saturating_add(range_delete_bytes_max(&range)) > BATCH_BYTES_MAX
        {
            return self.refuse(table, &Record::delete(b""), false, is_foreign);
        }
        self.database = Some(table.database_id());
        self.payload.delete_range(table.id(), range);
    }

    /// Merges an operand into a key: see [`Table::merge`]. For a table without a merge rule the commit fails.
    pub fn merge(&mut self, table: impl AsRef<Table>, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) {
        let table = table.as_ref();
        self.merge_at(table, key.as_ref(), operand.as_ref(), table.usual_expiry());
    }

    /// Merges an operand, into the entry that expires at this time, where entries do.
    pub(super) fn merge_at(&mut self, table: &Table, key: &[u8], operand: &[u8], expiry: Option<u64>) {
        let record = Record { kind: Kind::Merge, key, value: operand };
        match (table.takes_operands(), expiry) {
            (Err(fault), _) => self.fail(fault),
            (Ok(()), None) => self.write(table, record),
            (Ok(()), Some(expiry)) => self.write_until(table, record, expiry),
        }
    }

    /// Adds a value to a key of an aggregator. For a value that the function refuses the commit fails.
    #[inline]
    pub fn add<A: Aggregate>(
        &mut self,
        aggregator: &Aggregator<A>,
        key: impl AsRef<[u8]>,
        value: A::Input<'_>,
    ) {
        let mut state = std::mem::take(&mut self.spare);
        state.clear();
        match aggregator.function().lift(value, &mut state) {
            Ok(()) => self.add_state(aggregator, key.as_ref(), &state),
            Err(error) => self.fail(error),
        }
        self.spare = state;
    }

    /// Merges a state of an aggregator's type into that of a key.
    #[inline]
    pub fn add_state<A: Aggregate>(
        &mut self,
        aggregator: &Aggregator<A>,
        key: impl AsRef<[u8]>,
        state: impl AsRef<[u8]>,
    ) {
        self.add_record(aggregator, Record::put(key.as_ref(), state.as_ref()));
    }

    #[inline]
    fn add_record<A: Aggregate>(&mut self, aggregator: &Aggregator<A>, record: Record<'_>) {
        let (table, function) = (aggregator.table(), aggregator.function());
        match function.state_bytes() {
            Some(bytes) if bytes != record.value.len() => {
                self.fail(function.state_type().malformed(record.value));
            }
            Some(_) => {
                if self.takes(table, &record) {
                    self.guarded(|batch| {
                        batch.payload.push_state(table.id(), table.order(), &record, |state, other| {
                            function.merge_in_place(state, other);
                        });
                    });
                }
            }
            None => self.push(table, record),
        }
    }

    #[inline]
    fn write(&mut self, table: &Table, record: Record<'_>) {
        match table.takes_writes() {
            Ok(()) => self.push(table, record),
            Err(fault) => self.fail(fault),
        }
    }

    /// Adds a record as it is stored, also of an aggregator's table.
    #[inline]
    pub(crate) fn push(&mut self, table: &Table, record: Record<'_>) {
        if self.takes(table, &record) {
            self.payload.push(table.id(), table.order(), &record);
        }
    }

    /// Whether the batch can take a record; if not, it fails.
    #[inline]
    fn takes(&mut self, table: &Table, record: &Record<'_>) -> bool {
        let is_long = record.key.len() > KEY_BYTES_MAX || record.value.len() > VALUE_BYTES_MAX;
        let is_foreign = self.database.is_some_and(|database| database != table.database_id());
        let bytes =
            self.payload.bytes().len() + record.key.len() + record.value.len() + RECORD_HEAD_BYTES_MAX;
        if is_long || is_foreign || bytes > BATCH_BYTES_MAX {
            self.refuse(table, record, is_long, is_foreign);
            return false;
        }
        self.database = Some(table.database_id());
        true
    }

    #[cold]
    fn refuse(&mut self, table: &Table, record: &Record<'_>, is_long: bool, is_foreign: bool) {
        let fault = match (is_long, is_foreign) {
            (true, _) => too_long(table, record),
            (_, true) => Error::invalid("a batch cannot span two databases; commit one batch to each"),
            _ => Error::invalid(format!(
                "a batch is longer than {BATCH_BYTES_MAX} bytes (Batch::bytes_max); commit it in parts"
            )),
        };
        self.fail(fault);
    }

    #[cold]
    pub(super) fn fail(&mut self, fault: Error) {
        self.fault.get_or_insert(fault);
    }

    /// How many records there are. Values that are added to one key of an aggregator shortly after one another may be
    /// one record.
    pub fn len(&self) -> usize {
        self.payload.records() as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that the batch takes in the log.
    pub fn encoded_bytes(&self) -> usize {
        self.payload.bytes().len()
    }

    /// Forgets all records and keeps the memory.
    pub fn clear(&mut self) {
        self.payload.clear();
        (self.database, self.fault, self.amid) = (None, None, Amid::default());
        self.draft = None;
    }

    /// Lets functions of users be called. Should one panic amid it, the batch is not committed.
    #[inline]
    pub(crate) fn guarded<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.amid.begin();
        let outcome = work(self);
        self.amid = before;
        outcome
    }

    /// What it holds, as buffers that a view of this database can look into, newest first; noted for tables of these
    /// orders.
    pub(crate) fn written(
        &mut self,
        database: u64,
        order_of: impl Fn(u32) -> Option<Order>,
    ) -> Result<Vec<(Arc<WriteBuffer>, usize)>> {
        if self.payload(database)?.records() == 0 {
            return Ok(Vec::new());
        }
        let draft = self.draft.get_or_insert_default();
        draft.take_in(&mut self.payload, order_of)?;
        Ok(draft.buffers())
    }

    /// The payload, if the batch may be committed to this database.
    pub(crate) fn payload(&self, database: u64) -> Result<&Payload> {
        self.amid.refuse("clear the batch")?;
        match (&self.fault, self.database) {
            (Some(fault), _) => Err(fault.clone()),
            (None, Some(other)) if other != database => {
                Err(Error::invalid("the batch was made for tables of another database"))
            }
            _ => Ok(&self.payload),
        }
    }
}

/// Puts, one after the other.
///
/// ```
/// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
/// # use forebay::{Batch, Database, Durability, Options};
/// # let db = Database::open("/db", Options::default().env(env))?;
/// let table = db.table("squares").open()?;
/// let mut batch = Batch::new();
/// batch.extend((1..4_u32).map(|n| (&table, n.to_be_bytes(), (n * n).to_be_bytes())));
/// db.commit(batch, Durability::Os)?;
/// assert_eq!(table.get(3_u32.to_be_bytes())?, Some(9_u32.to_be_bytes().to_vec()));
/// # Ok::<(), forebay::Error>(())
/// ```
impl<T: AsRef<Table>, K: AsRef<[u8]>, V: AsRef<[u8]>> Extend<(T, K, V)> for Batch {
    fn extend<I: IntoIterator<Item = (T, K, V)>>(&mut self, puts: I) {
        puts.into_iter().for_each(|(table, key, value)| self.put(table, key, value));
    }
}

/// Whether a function of users is merging into a state of a batch, or has panicked at that.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Amid(bool);

impl Amid {
    /// Lets functions be called.
    #[inline]
    pub(crate) fn guard<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let before = self.begin();
        let outcome = work();
        *self = before;
        outcome
    }

    /// Notes that functions are called until what this returns stands here again.
    #[inline]
    fn begin(&mut self) -> Self {
        std::mem::replace(self, Self(true))
    }

    /// Refuses a batch at which one panicked: the state that it left half way has values of before.
    pub(crate) fn refuse(self, then: &str) -> Result<()> {
        match self {
            Self(false) => Ok(()),
            Self(true) => Err(Error::Panicked(format!(
                "an aggregation function panicked at a value that was added to a batch; {then}"
            ))),
        }
    }
}

/// What a deleted range takes at most. Its bounds may be longer than keys.
fn range_delete_bytes_max(range: &Range) -> usize {
    let high_bytes = range.high.as_ref().map_or(0, |high| high.key.len());
    range.low.key.len().saturating_add(high_bytes).saturating_add(RANGE_DELETE_HEAD_BYTES_MAX)
}

fn too_long(table: &Table, record: &Record<'_>) -> Error {
    let (what, bytes, most) = match record.key.len() > KEY_BYTES_MAX {
        true => ("key", record.key.len(), table.key_bytes_max()),
        false => {
            let most = table.value_bytes_max();
            ("value", record.value.len() - (VALUE_BYTES_MAX - most), most)
        }
    };
    Error::invalid(format!(
        "the {what} has {bytes} bytes; at most {most} are allowed in table `{}` (Table::{what}_bytes_max)",
        table.name()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bounds were counted as if they were cut to the length of a key and of a value: batches passed the limit that
    /// did not fit the 32 bits of a frame's length, were acknowledged, and were cut off as a torn tail at the next
    /// opening.
    #[test]
    fn a_deleted_range_is_counted_as_long_as_it_is() {
        for (low, high) in
            [(0, None), (3, Some(5)), (300_000, Some(0)), (90_000, Some(400_000)), (200_000, None)]
        {
            let bound = |bytes| Order::Lexical.bound(&vec![7; bytes]);
            let range = Range { low: bound(low), high: high.map(bound) };
            let mut payload = Payload::default();
            payload.delete_range(u32::MAX, range.clone());
            let (took, counted) = (payload.bytes().len(), range_delete_bytes_max(&range));
            assert!(took <= counted && counted < took + 40, "{took} bytes are counted as {counted}");
        }
    }
}
