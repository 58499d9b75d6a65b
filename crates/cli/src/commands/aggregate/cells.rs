//! Groups on their way to where they are shown: some thousand together, column by column.

use forebay_aggregate::Value;

use super::kinds::Kind;
use super::lines::{Lines, Row};

/// See the module.
#[derive(Debug)]
pub(super) struct Cells {
    columns: Vec<Column>,
    rows: usize,
    bytes: usize,
}

/// A column of them.
#[derive(Debug)]
pub(super) enum Column {
    Texts(Texts),
    Values(Vec<Value<'static>>),
    Ints(Numbers<i64>),
    Floats(Numbers<f64>),
}

/// Numbers of one type.
#[derive(Debug, Default)]
pub(super) struct Numbers<T> {
    pub(super) values: Vec<T>,
    pub(super) nulls: Vec<bool>,
    /// The first value that is none of them.
    pub(super) refused: Option<Value<'static>>,
}

impl<T: Copy + Default> Numbers<T> {
    /// Takes a value that is such a number, or none.
    #[inline]
    fn push(&mut self, value: Value<'static>, number: impl FnOnce(&Value<'_>) -> Option<T>) {
        let (is_null, number) = (value == Value::Null, number(&value));
        self.values.push(number.unwrap_or_default());
        self.nulls.push(is_null);
        if number.is_none() && !is_null {
            self.refused.get_or_insert(value);
        }
    }

    fn get(&self, row: usize) -> Option<T> {
        (!self.nulls[row]).then(|| self.values[row])
    }

    fn clear(&mut self) {
        self.values.clear();
        self.nulls.clear();
    }
}

/// The integer that a value is.
fn int(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::I64(value) => Some(*value),
        Value::I128(value) => i64::try_from(*value).ok(),
        _ => None,
    }
}

/// The floating-point number nearest to a number.
fn float(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::F64(value) => Some(*value),
        Value::I64(value) => Some(*value as f64),
        Value::I128(_) | Value::F32(_) | Value::Decimal(_) => Some(value.as_f64().unwrap_or(f64::NAN)),
        _ => None,
    }
}

impl Column {
    /// Takes the next value. Returns how much memory it takes.
    #[inline]
    fn push(&mut self, value: Value<'static>) -> usize {
        match self {
            Self::Ints(ints) => ints.push(value, int),
            Self::Floats(floats) => floats.push(value, float),
            Self::Values(values) => {
                let long_bytes = match &value {
                    Value::Bytes(text) => text.len(),
                    Value::List(_) | Value::Pairs(_) => value.to_text().len(),
                    _ => 0,
                };
                values.push(value);
                return size_of::<Value<'_>>() + long_bytes;
            }
            Self::Texts(_) => return 0,
        }
        size_of::<u64>()
    }

    /// An empty one of the same kind.
    fn like(&self) -> Self {
        match self {
            Self::Texts(_) => Self::Texts(Texts::default()),
            Self::Values(_) => Self::Values(Vec::new()),
            Self::Ints(_) => Self::Ints(Numbers::default()),
            Self::Floats(_) => Self::Floats(Numbers::default()),
        }
    }
}

/// Texts one behind the other.
#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) bytes: Vec<u8>,
    /// Where each ends, and which are none.
    pub(super) ends: Vec<u32>,
    pub(super) nulls: Vec<bool>,
}

impl Texts {
    pub(super) fn push(&mut self, text: Option<&[u8]>) -> usize {
        let text_bytes = text.map_or(0, <[u8]>::len);
        self.bytes.extend_from_slice(text.unwrap_or_default());
        // Keys are short, and so many cells have no more texts than a few of the longest.
        self.ends.push(self.bytes.len() as u32);
        self.nulls.push(text.is_none());
        text_bytes
    }

    pub(super) fn get(&self, row: usize) -> Option<&[u8]> {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        (!self.nulls[row]).then(|| &self.bytes[start..self.ends[row] as usize])
    }
}

impl Cells {
    /// No rows, of this many texts and then this many values.
    pub(super) fn new(texts: usize, values: usize) -> Self {
        let texts = (0..texts).map(|_| Column::Texts(Texts::default()));
        let values = (0..values).map(|_| Column::Values(Vec::new()));
        Self { columns: texts.chain(values).collect(), rows: 0, bytes: 0 }
    }

    /// The same for values of these kinds, where they are told.
    pub(super) fn of_kinds(mut self, kinds: &[Kind]) -> Self {
        for (column, kind) in self.columns.iter_mut().zip(kinds) {
            let numbers = match kind {
                Kind::Int => Column::Ints(Numbers::default()),
                Kind::Float => Column::Floats(Numbers::default()),
                Kind::Text | Kind::Truth | Kind::Decimal(_) => continue,
            };
            if matches!(column, Column::Values(_)) {
                *column = numbers;
            }
        }
        self
    }

    /// The text of the row that is being made in this column.
    #[inline]
    pub(super) fn text(&mut self, at: usize, text: Option<&[u8]>) {
        if let Some(Column::Texts(texts)) = self.columns.get_mut(at) {
            self.bytes += size_of::<u32>() + texts.push(text);
        }
    }

    /// Its values, from this column on.
    #[inline]
    pub(super) fn values(&mut self, from: usize, row: impl Iterator<Item = Value<'static>>) {
        for (column, value) in self.columns.iter_mut().skip(from).zip(row) {
            self.bytes += column.push(value);
        }
    }

    /// All of the row is there.
    #[inline]
    pub(super) fn end_row(&mut self) {
        self.rows += 1;
    }

    /// Others, of which there are no rows yet.
    pub(super) fn like(&self) -> Self {
        Self { columns: self.columns.iter().map(Column::like).collect(), rows: 0, bytes: 0 }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// About what they take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn columns_mut(&mut self) -> &mut [Column] {
        &mut self.columns
    }

    pub(super) fn clear(&mut self) {
        for column in &mut self.columns {
            match column {
                Column::Texts(Texts { bytes, ends, nulls }) => {
                    bytes.clear();
                    ends.clear();
                    nulls.clear();
                }
                Column::Values(values) => values.clear(),
                Column::Ints(ints) => ints.clear(),
                Column::Floats(floats) => floats.clear(),
            }
        }
        (self.rows, self.bytes) = (0, 0);
    }

    /// Writes a row; `is_plain` says of which columns texts stand as they are.
    pub(super) fn write_row(&self, row: usize, is_plain: &[bool], line: &mut Row<'_>) {
        for (column, is_plain) in self.columns.iter().zip(is_plain) {
            match column {
                Column::Texts(texts) if *is_plain => line.push_plain(texts.get(row)),
                Column::Texts(texts) => line.push(&texts.get(row).map_or(Value::Null, Value::bytes)),
                Column::Values(values) => line.push(&values[row]),
                Column::Ints(ints) => line.push(&Value::from(ints.get(row))),
                Column::Floats(floats) => line.push(&Value::from(floats.get(row))),
            }
        }
    }

    /// Which columns have texts that stand in these lines as they are.
    pub(super) fn are_plain(&self, lines: &Lines) -> Vec<bool> {
        let is_plain =
            |column: &Column| matches!(column, Column::Texts(texts) if lines.is_plain(&texts.bytes));
        self.columns.iter().map(is_plain).collect()
    }
}
