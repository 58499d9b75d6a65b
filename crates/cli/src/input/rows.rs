//! Rows as records: one column is the key, another the value.

use super::{Pair, Position, Rows, Source, Trouble, TroubleKind};

/// See the module. Of the rows' chosen columns the first is the key and the second the value; no value is an empty one.
pub(crate) struct RowRecords<R, F> {
    rows: R,
    /// How many bytes of the input are read.
    bytes_read: F,
}

impl<R: Rows, F: Fn() -> u64> RowRecords<R, F> {
    pub(crate) fn new(rows: R, bytes_read: F) -> Self {
        Self { rows, bytes_read }
    }
}

impl<R: Rows, F: Fn() -> u64> Source for RowRecords<R, F> {
    fn next(&mut self) -> Result<Option<Pair<'_>>, Trouble> {
        if !self.rows.advance()? {
            return Ok(None);
        }
        match self.rows.column(0) {
            Some(key) => Ok(Some((key, self.rows.column(1).unwrap_or_default()))),
            None => Err(TroubleKind::bad("the key's column has no value here")),
        }
    }

    fn position(&self) -> Position {
        self.rows.position()
    }

    fn bytes_read(&self) -> u64 {
        (self.bytes_read)()
    }
}
