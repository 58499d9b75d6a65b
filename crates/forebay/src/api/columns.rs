//! Columns of Arrow in and out of tables: keys and values as two arrays of equal length.

use std::fmt;
use std::sync::Arc;

use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, BinaryArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use forebay_base::merge::Direction;
use forebay_base::{Error, Order, Range, Result};

use crate::api::KeyBounds;
use crate::api::key_bounds::{prefix_range, range_of};
use crate::read;
use crate::versions::{Versions, View};
use crate::{Batch, Cursor, OrderedTable, Snapshot, Table};

/// A record batch ends once it has this many bytes, however few its rows are: offsets in it are 31-bit numbers.
const BATCH_BYTES: usize = 64 << 20;
/// What operands merge to may be longer than what they came in.
const BATCH_BYTES_MAX: usize = i32::MAX as usize;

/// So many keys are looked up together.
const KEYS_AT_ONCE: usize = 1024;

/// The bytes of an array's row, appended to what is there.
type Row<'a> = Box<dyn Fn(usize, &mut Vec<u8>) + 'a>;

impl Batch {
    /// Sets the key of each row to its value, or deletes it where the value is null. Both arrays are as long.
    ///
    /// Keys and values are of the types `Binary`, `LargeBinary`, `BinaryView`, `FixedSizeBinary`, `Utf8`, `LargeUtf8` or
    /// `Utf8View`: their bytes as they are. Keys may be whole numbers, too, signed or not, of 8 to 64 bits: big-endian, and
    /// of signed ones with the first bit turned over, so that keys are in the numbers' order. A null key, another type
    /// or another length makes the commit fail, and nothing of the batch is written. It costs what
    /// [`put`](Self::put) of each row costs; the arrays are not kept.
    pub fn put_columns(&mut self, table: impl AsRef<Table>, keys: &dyn Array, values: &dyn Array) {
        if let Err(fault) = self.push_columns(table.as_ref(), keys, values) {
            self.fail(fault);
        }
    }

    /// Removes the key of each row, present or not. Keys are of the types that [`put_columns`](Self::put_columns) takes.
    pub fn delete_columns(&mut self, table: impl AsRef<Table>, keys: &dyn Array) {
        match key_rows(keys) {
            Ok(key_of) => {
                let mut key = Vec::new();
                for row in 0..keys.len() {
                    key.clear();
                    key_of(row, &mut key);
                    self.delete(table.as_ref(), &key);
                }
            }
            Err(fault) => self.fail(fault),
        }
    }

    fn push_columns(&mut self, table: &Table, keys: &dyn Array, values: &dyn Array) -> Result<()> {
        if keys.len() != values.len() {
            return Err(Error::invalid(format!("there are {} keys and {} values", keys.len(), values.len())));
        }
        let value_of = byte_rows(values).ok_or_else(|| {
            Error::invalid(format!("values are {}; they must be binary or text", values.data_type()))
        })?;
        let key_of = key_rows(keys)?;
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for row in 0..keys.len() {
            key.clear();
            key_of(row, &mut key);
            if values.is_null(row) {
                self.delete(table, &key);
                continue;
            }
            value.clear();
            value_of(row, &mut value);
            self.put(table, &key, &value);
        }
        Ok(())
    }
}

/// Rows that are keys.
fn key_rows(keys: &dyn Array) -> Result<Row<'_>> {
    if let Some(row) = (0..keys.len()).find(|&row| keys.is_null(row)) {
        return Err(Error::invalid(format!("the key of row {row} is null; a null value deletes its key")));
    }
    number_rows(keys).or_else(|| byte_rows(keys)).ok_or_else(|| {
        Error::invalid(format!("keys are {}; they must be binary, text or whole numbers", keys.data_type()))
    })
}

/// Rows of bytes or text.
fn byte_rows(array: &dyn Array) -> Option<Row<'_>> {
    macro_rules! rows {
        ($array:expr) => {{
            let array = $array?;
            let row: Row<'_> =
                Box::new(move |row, out: &mut Vec<u8>| out.extend_from_slice(array.value(row).as_ref()));
            row
        }};
    }
    Some(match array.data_type() {
        DataType::Binary => rows!(array.as_binary_opt::<i32>()),
        DataType::LargeBinary => rows!(array.as_binary_opt::<i64>()),
        DataType::BinaryView => rows!(array.as_binary_view_opt()),
        DataType::FixedSizeBinary(_) => rows!(array.as_fixed_size_binary_opt()),
        DataType::Utf8 => rows!(array.as_string_opt::<i32>()),
        DataType::LargeUtf8 => rows!(array.as_string_opt::<i64>()),
        DataType::Utf8View => rows!(array.as_string_view_opt()),
        _ => return None,
    })
}

/// Rows of whole numbers, in bytes of the same order.
fn number_rows(array: &dyn Array) -> Option<Row<'_>> {
    macro_rules! rows {
        ($type:ty, $turned:expr) => {{
            let numbers = array.as_primitive_opt::<$type>()?;
            let row: Row<'_> = Box::new(move |row, out: &mut Vec<u8>| {
                let turned: <$type as ArrowPrimitiveType>::Native = $turned;
                out.extend_from_slice(&(numbers.value(row) ^ turned).to_be_bytes());
            });
            row
        }};
    }
    Some(match array.data_type() {
        DataType::UInt8 => rows!(UInt8Type, 0),
        DataType::UInt16 => rows!(UInt16Type, 0),
        DataType::UInt32 => rows!(UInt32Type, 0),
        DataType::UInt64 => rows!(UInt64Type, 0),
        DataType::Int8 => rows!(Int8Type, i8::MIN),
        DataType::Int16 => rows!(Int16Type, i16::MIN),
        DataType::Int32 => rows!(Int32Type, i32::MIN),
        DataType::Int64 => rows!(Int64Type, i64::MIN),
        _ => return None,
    })
}

impl Table {
    /// Writes columns at the database's default durability, all rows or none: [`Batch::put_columns`].
    ///
    /// ```
    /// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
    /// # use forebay::{Database, Layout, Options};
    /// use arrow_array::{Int32Array, StringArray};
    ///
    /// # let db = Database::open("/db", Options::default().env(env))?;
    /// let names = db.table("names").layout(Layout::leveling(10)).open_ordered()?;
    /// names.put_columns(&Int32Array::from(vec![7, -1]), &StringArray::from(vec!["seven", "less"]))?;
    /// let batch = names.scan_columns(.., 1000)?.next().unwrap()?;
    /// assert_eq!(batch.num_rows(), 2);
    /// # Ok::<(), forebay::Error>(())
    /// ```
    pub fn put_columns(&self, keys: &dyn Array, values: &dyn Array) -> Result<()> {
        let mut batch = Batch::new();
        batch.put_columns(self, keys, values);
        self.commit(&batch)
    }

    /// Looks up the key of each row, as of one moment: a column of values, null where there is no such key. Keys are of
    /// the types that [`put_columns`](Self::put_columns) takes. Device reads: those of [`multi_get`](Self::multi_get).
    pub fn get_columns(&self, keys: &dyn Array) -> Result<BinaryArray> {
        Snapshot::new(&self.engine).get_columns(self, keys)
    }

    /// All entries as record batches, in the table's own order, as of now: see
    /// [`OrderedTable::scan_columns`].
    pub fn iter_columns(&self, rows_max: usize) -> Result<ColumnScan> {
        ColumnScan::new(self, self.view(), Range::all(), rows_max)
    }
}

impl Snapshot {
    /// Looks up the key that each row has: see [`Table::get_columns`].
    pub fn get_columns(&self, table: impl AsRef<Table>, keys: &dyn Array) -> Result<BinaryArray> {
        self.get_columns_within(table.as_ref(), keys, BATCH_BYTES_MAX)
    }

    /// The same, of no more than so many bytes of values; little more are in memory at a time.
    fn get_columns_within(&self, table: &Table, keys: &dyn Array, bytes_max: usize) -> Result<BinaryArray> {
        let (id, key_of) = (self.own(table)?, key_rows(keys)?);
        let mut found = BinaryBuilder::new();
        let (mut text, mut ends, mut bytes) = (Vec::new(), vec![0], 0_usize);
        for start in (0..keys.len()).step_by(KEYS_AT_ONCE) {
            text.clear();
            ends.truncate(1);
            for row in start..keys.len().min(start + KEYS_AT_ONCE) {
                key_of(row, &mut text);
                ends.push(text.len());
            }
            let asked: Vec<&[u8]> = ends.windows(2).map(|bounds| &text[bounds[0]..bounds[1]]).collect();
            let (context, left_bytes) = (&self.engine().context, bytes_max - bytes);
            let values =
                read::multi_get_within(context, self.view(), id, &asked, left_bytes, |value, _| value)?;
            bytes += values.iter().flat_map(|(_, value)| value).map(Vec::len).sum::<usize>();
            if values.len() < asked.len() || bytes > bytes_max {
                return Err(Error::TooLong(format!(
                    "the values of these keys have more than {bytes_max} bytes, which is what a column of Arrow takes; \
                     ask for fewer keys at once"
                )));
            }
            values.iter().for_each(|(_, value)| found.append_option(value.as_deref()));
        }
        let found = found.finish();
        debug_assert_eq!(found.len(), keys.len(), "a value or a null for each key");
        Ok(found)
    }

    /// All entries that a table had as record batches: see [`Table::iter_columns`].
    pub fn iter_columns(&self, table: impl AsRef<Table>, rows_max: usize) -> Result<ColumnScan> {
        self.own(table.as_ref())?;
        ColumnScan::new(table.as_ref(), self.view().clone(), Range::all(), rows_max)
    }

    /// Entries that had keys in the range as record batches: see [`OrderedTable::scan_columns`].
    pub fn scan_columns(
        &self,
        table: &OrderedTable,
        bounds: impl KeyBounds,
        rows_max: usize,
    ) -> Result<ColumnScan> {
        let view = self.view().clone().in_order(self.own(table)?)?;
        ColumnScan::new(table, view, range_of(Order::Lexical, &bounds), rows_max)
    }

    /// Entries whose keys began so, as record batches.
    pub fn prefix_columns(
        &self,
        table: &OrderedTable,
        prefix: impl AsRef<[u8]>,
        rows_max: usize,
    ) -> Result<ColumnScan> {
        let view = self.view().clone().in_order(self.own(table)?)?;
        ColumnScan::new(table, view, prefix_range(Order::Lexical, prefix.as_ref()), rows_max)
    }
}

impl OrderedTable {
    /// Entries with keys in the range, ascending, as record batches of two binary columns, `key` and `value`, as of now.
    /// A batch has at most so many rows, at least 1, and ends once it has 64 MiB. Device reads: those of
    /// [`range`](Self::range); each key and value is copied once.
    pub fn scan_columns(&self, bounds: impl KeyBounds, rows_max: usize) -> Result<ColumnScan> {
        let view = self.view().in_order(self.id())?;
        ColumnScan::new(self, view, range_of(Order::Lexical, &bounds), rows_max)
    }
}

/// Record batches of a walk: [`OrderedTable::scan_columns`]. After an error it ends.
pub struct ColumnScan {
    versions: Arc<Versions>,
    view: View,
    table: u32,
    range: Range,
    direction: Direction,
    /// Once the walk has begun.
    cursor: Option<Cursor>,
    schema: SchemaRef,
    rows_max: usize,
    /// The cursor's entry is still to come: it had no room in the batch before.
    is_held: bool,
    is_over: bool,
}

impl ColumnScan {
    fn new(table: &Table, mut view: View, range: Range, rows_max: usize) -> Result<Self> {
        if rows_max == 0 {
            return Err(Error::invalid("rows_max is 0; a record batch has at least one row"));
        }
        let state = view.table(table.id())?;
        state.rule()?;
        if state.options.time_to_live.is_some() {
            // What is alive is known from now on, whenever the walk begins.
            view.moment.get_or_insert_with(|| table.engine.context.env.clock.unix_milliseconds());
        }
        let column = |name| Field::new(name, DataType::Binary, false);
        Ok(Self {
            versions: Arc::clone(&table.engine.versions),
            view,
            table: table.id(),
            range,
            direction: Direction::Forward,
            cursor: None,
            schema: Arc::new(Schema::new(vec![column("key"), column("value")])),
            rows_max,
            is_held: false,
            is_over: false,
        })
    }

    /// The same from the end, of a walk that has not begun.
    #[must_use]
    pub fn backward(mut self) -> Self {
        debug_assert!(self.cursor.is_none(), "a walk keeps its direction");
        self.direction = Direction::Backward;
        self
    }

    /// The schema of all batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn take(&mut self) -> Result<Option<RecordBatch>> {
        let cursor = match &mut self.cursor {
            Some(cursor) => cursor,
            none => {
                let (view, range) = (self.view.clone(), self.range.clone());
                none.insert(Cursor::new(&self.versions, view, self.table, range, self.direction)?)
            }
        };
        let (mut keys, mut values) = (BinaryBuilder::new(), BinaryBuilder::new());
        let (mut rows, mut key_bytes, mut value_bytes) = (0, 0, 0);
        while rows < self.rows_max && key_bytes + value_bytes < BATCH_BYTES {
            if !std::mem::take(&mut self.is_held) {
                match self.direction {
                    Direction::Forward => cursor.next()?,
                    Direction::Backward => cursor.prev()?,
                }
            }
            let Some((key, value)) = cursor.entry() else {
                self.is_over = true;
                break;
            };
            if rows > 0 && value_bytes + value.len() > BATCH_BYTES_MAX {
                self.is_held = true;
                break;
            }
            if value.len() > BATCH_BYTES_MAX {
                return Err(Error::TooLong(format!(
                    "a value has {} bytes, more than a column of Arrow takes; read it by `get`",
                    value.len()
                )));
            }
            (rows, key_bytes, value_bytes) = (rows + 1, key_bytes + key.len(), value_bytes + value.len());
            debug_assert!(
                key_bytes.max(value_bytes) <= BATCH_BYTES_MAX,
                "offsets in a column are 31-bit numbers"
            );
            keys.append_value(key);
            values.append_value(value);
        }
        debug_assert!(!self.is_held || rows > 0, "what is kept for the next batch had rows before it");
        if rows == 0 {
            return Ok(None);
        }
        let batch =
            RecordBatch::try_new(self.schema(), vec![Arc::new(keys.finish()), Arc::new(values.finish())]);
        batch.map(Some).map_err(|error| Error::bug(format!("columns make no record batch: {error}")))
    }
}

impl Iterator for ColumnScan {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let batch = self.take().transpose();
        self.is_over |= !matches!(batch, Some(Ok(_)));
        batch
    }
}

impl fmt::Debug for ColumnScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ColumnScan({:?})", self.cursor)
    }
}

#[cfg(test)]
mod tests {
    use forebay_env::Env;
    use forebay_env::fs::{MemoryFs, TracedFs};

    use super::*;
    use crate::{Codec, Database, Options};

    /// All of a thousand values were read, and held twice, before it was looked at how long they are.
    #[test]
    fn values_beyond_what_a_column_takes_are_not_read() {
        const VALUE_BYTES: usize = 64 << 10;
        let files = TracedFs::new(MemoryFs::new());
        let options = Options::default().memory_limit(16 << 20).env(Env::simulated(files.clone(), 1));
        let db = Database::open("/db", options).unwrap();
        let table = db.table("t").codec(Codec::None).open().unwrap();
        (0..64_u8).for_each(|key| table.put([key], vec![key; VALUE_BYTES]).unwrap());
        db.flush().unwrap();
        let keys = BinaryArray::from_iter_values((0..64_u8).map(|key| [key]));
        let get = |keys: &BinaryArray| db.snapshot().get_columns_within(&table, keys, 3 * VALUE_BYTES);
        let before = files.counts_of("list").read_bytes;
        let outcome = get(&keys);
        assert!(matches!(outcome, Err(Error::TooLong(_))), "{outcome:?}");
        let read_bytes = files.counts_of("list").read_bytes - before;
        assert!(read_bytes < 32 * VALUE_BYTES as u64, "{read_bytes} bytes were read");
        let few = get(&keys.slice(0, 3)).unwrap();
        assert!((0..3).all(|row| few.value(row) == [row as u8; VALUE_BYTES]));
    }
}
