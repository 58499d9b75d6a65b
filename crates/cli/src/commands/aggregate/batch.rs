//! Rows of text that are added together: each column's texts one behind the other.

use forebay::Error;
use forebay_aggregate::Value;
use forebay_aggregate::columns::{Bits, Items, Lane, Rows, Texts};

use super::by::Table;
use crate::input::{self, Position, Trouble};

/// A batch is full with so many rows, or once its texts take this much: it stays in the second cache.
const ROWS_MAX: usize = 4096;
const BYTES_MAX: usize = 256 << 10;

/// See the module.
pub(super) struct Batch {
    columns: Vec<Column>,
    keys: usize,
    positions: Vec<Position>,
    bytes: usize,
}

/// The texts of a column.
struct Column {
    bytes: Vec<u8>,
    offsets: Vec<i32>,
    /// Which rows have a text, and which of these are values to functions: a bit each.
    is_there: Vec<u8>,
    is_value: Vec<u8>,
}

impl Column {
    fn lane<'a>(&'a self, valid: &'a [u8]) -> Result<Lane<'a>, Error> {
        let texts = Texts::new(&self.offsets, &self.bytes)?;
        Lane::new(Items::Bytes(texts), Some(Bits::new(valid, 0)))
    }
}

impl Batch {
    /// An empty one.
    pub(super) fn new(table: &Table) -> Self {
        let column = |_: &String| Column {
            bytes: Vec::new(),
            offsets: vec![0],
            is_there: Vec::new(),
            is_value: Vec::new(),
        };
        let columns = table.columns.iter().map(column).collect();
        Self { columns, keys: table.keys.len(), positions: Vec::new(), bytes: 0 }
    }

    /// Takes the current row.
    #[inline]
    pub(super) fn push(&mut self, rows: &impl input::Rows) {
        let row = self.positions.len();
        for (at, column) in self.columns.iter_mut().enumerate() {
            if row.is_multiple_of(8) {
                column.is_there.push(0);
                column.is_value.push(0);
            }
            if let Some(text) = rows.column(at) {
                column.bytes.extend_from_slice(text);
                self.bytes += text.len();
                let is_value = rows.value(at) != Value::Null;
                column.is_there[row / 8] |= 1 << (row % 8);
                column.is_value[row / 8] |= u8::from(is_value) << (row % 8);
            }
            // A text that is too long for the offsets is refused with all rows.
            column.offsets.push(i32::try_from(column.bytes.len()).unwrap_or(-1));
        }
        self.positions.push(rows.position());
    }

    pub(super) fn is_full(&self) -> bool {
        self.positions.len() >= ROWS_MAX || self.bytes >= BYTES_MAX
    }

    /// The rows: each column twice, as a key and as values.
    pub(super) fn rows(&self) -> Result<Rows<'_>, Error> {
        let keys = self.columns[..self.keys].iter().map(|column| column.lane(&column.is_there));
        let values = self.columns.iter().map(|column| column.lane(&column.is_value));
        Rows::with_keys(keys.collect::<Result<_, _>>()?, values.collect::<Result<_, _>>()?)
    }

    /// Where the row at this place stands.
    pub(super) fn position(&self, at: usize) -> Position {
        self.positions[at]
    }

    pub(super) fn clear(&mut self) {
        for column in &mut self.columns {
            column.bytes.clear();
            column.offsets.truncate(1);
            column.is_there.clear();
            column.is_value.clear();
        }
        self.positions.clear();
        self.bytes = 0;
    }
}

/// One of some rows.
pub(super) struct Row<'a> {
    values: Vec<Value<'a>>,
    texts: Vec<Option<Vec<u8>>>,
    position: Position,
}

impl<'a> Row<'a> {
    /// That at this place.
    pub(super) fn of(rows: &Rows<'a>, at: usize, position: Position) -> Self {
        let mut values = Vec::new();
        rows.row(at, &mut values);
        let text = |lane: &Lane<'_>| {
            let value = lane.value(at);
            (value != Value::Null).then(|| value.to_text().into_owned())
        };
        // Those of the key come first.
        let others = rows.lanes().iter().skip(rows.keys().len());
        let texts = rows.keys().iter().chain(others).map(text).collect();
        Self { texts, values, position }
    }
}

impl input::Rows for Row<'_> {
    fn advance(&mut self) -> Result<bool, Trouble> {
        Ok(false)
    }

    fn column(&self, at: usize) -> Option<&[u8]> {
        self.texts[at].as_deref()
    }

    fn value(&self, at: usize) -> Value<'_> {
        self.values[at].clone()
    }

    fn position(&self) -> Position {
        self.position
    }

    fn end(&self) -> u64 {
        self.position.offset
    }
}
