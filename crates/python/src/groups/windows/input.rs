//! [`WindowedRows`]: rows with the beginning of each one's window beside them, as a column of the key.

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use forebay_env::sync::Arc;
use forebay_env::sync::atomic::{AtomicU64, Ordering};
use forebay_groups::{Late, Windowed};

use crate::failure::{Failure, Outcome, Raised};

/// What becomes of rows that are late.
pub(super) fn late(text: &str) -> Outcome<Late> {
    match text {
        "refuse" => Ok(Late::Refuse),
        "drop" => Ok(Late::Drop),
        _ => Err(Failure::invalid(format!("late is `{text}`; it is \"refuse\" or \"drop\""))),
    }
}

/// See the module.
pub(super) struct WindowedRows {
    pub(super) input: Box<dyn RecordBatchReader + Send>,
    pub(super) windowed: Windowed,
    /// Rows that were dropped.
    pub(super) dropped: Arc<AtomicU64>,
}

impl Iterator for WindowedRows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.input.next()?;
        Some(next.and_then(|rows| {
            let (rows, dropped) =
                self.windowed.rows(&rows).map_err(|error| Raised::carry(Failure::from(error)))?;
            self.dropped.fetch_add(dropped as u64, Ordering::Relaxed);
            Ok(rows)
        }))
    }
}

impl RecordBatchReader for WindowedRows {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.windowed.schema)
    }
}
