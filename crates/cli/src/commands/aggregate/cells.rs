//! Groups on their way to where they are shown: some thousand together, column by column.

use forebay_aggregate::Value;

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
}

/// Texts one behind the other.
#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) bytes: Vec<u8>,
    /// Where each ends, and which are none.
    pub(super) ends: Vec<usize>,
    pub(super) nulls: Vec<bool>,
}

impl Texts {
    pub(super) fn push(&mut self, text: Option<&[u8]>) -> usize {
        let text_bytes = text.map_or(0, <[u8]>::len);
        self.bytes.extend_from_slice(text.unwrap_or_default());
        self.ends.push(self.bytes.len());
        self.nulls.push(text.is_none());
        text_bytes
    }

    pub(super) fn get(&self, row: usize) -> Option<&[u8]> {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        (!self.nulls[row]).then(|| &self.bytes[start..self.ends[row]])
    }
}

impl Cells {
    /// No rows, of this many texts and then this many values.
    pub(super) fn new(texts: usize, values: usize) -> Self {
        let texts = (0..texts).map(|_| Column::Texts(Texts::default()));
        let values = (0..values).map(|_| Column::Values(Vec::new()));
        Self { columns: texts.chain(values).collect(), rows: 0, bytes: 0 }
    }

    /// The text of the row that is being made in this column.
    #[inline]
    pub(super) fn text(&mut self, at: usize, text: Option<&[u8]>) {
        if let Some(Column::Texts(texts)) = self.columns.get_mut(at) {
            self.bytes += size_of::<usize>() + texts.push(text);
        }
    }

    /// Its values, from this column on.
    #[inline]
    pub(super) fn values(&mut self, from: usize, row: impl Iterator<Item = Value<'static>>) {
        for (column, value) in self.columns.iter_mut().skip(from).zip(row) {
            if let Column::Values(values) = column {
                let long_bytes = match &value {
                    Value::Bytes(text) => text.len(),
                    Value::List(_) | Value::Pairs(_) => value.to_text().len(),
                    _ => 0,
                };
                self.bytes += size_of::<Value<'_>>() + long_bytes;
                values.push(value);
            }
        }
    }

    /// All of the row is there.
    #[inline]
    pub(super) fn end_row(&mut self) {
        self.rows += 1;
    }

    /// Others, of which there are no rows yet.
    pub(super) fn like(&self) -> Self {
        let empty = |column: &Column| match column {
            Column::Texts(_) => Column::Texts(Texts::default()),
            Column::Values(_) => Column::Values(Vec::new()),
        };
        Self { columns: self.columns.iter().map(empty).collect(), rows: 0, bytes: 0 }
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
            }
        }
        (self.rows, self.bytes) = (0, 0);
    }

    /// Shows every cell, row by row.
    pub(super) fn for_each_cell(&self, row: usize, mut show: impl FnMut(&Value<'_>)) {
        for column in &self.columns {
            match column {
                Column::Texts(texts) => show(&texts.get(row).map_or(Value::Null, Value::bytes)),
                Column::Values(values) => show(&values[row]),
            }
        }
    }
}
