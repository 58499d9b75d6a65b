//! [`WindowedRows`]: rows with the beginning of each one's window beside them, as a column of the key.

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use forebay_env::sync::Arc;
use forebay_env::sync::atomic::{AtomicU64, Ordering};
use forebay_groups::{Late, Windowed};

use super::stored::StoredWindows;
use crate::failure::{Failure, Outcome, Raised};

/// What becomes of rows that are late.
pub(super) struct LateRows {
    pub(super) late: Late,
    /// Those that were dropped; of states that had gathered by then each is one.
    pub(super) dropped: AtomicU64,
}

impl LateRows {
    pub(super) fn of(text: &str) -> Outcome<Arc<Self>> {
        let late = match text {
            "refuse" => Late::Refuse,
            "drop" => Late::Drop,
            _ => return Err(Failure::invalid(format!("late is `{text}`; it is \"refuse\" or \"drop\""))),
        };
        Ok(Arc::new(Self { late, dropped: AtomicU64::new(0) }))
    }

    pub(super) fn count(&self, more: usize) {
        self.dropped.fetch_add(more as u64, Ordering::Relaxed);
    }
}

/// See the module.
pub(super) struct WindowedRows {
    pub(super) input: Box<dyn RecordBatchReader + Send>,
    pub(super) windowed: Windowed,
    /// They tell from when on rows are kept, if they were there before the first row.
    pub(super) windows: Option<Arc<StoredWindows>>,
    pub(super) late: Arc<LateRows>,
}

impl WindowedRows {
    fn with_windows(&mut self, rows: &RecordBatch) -> Outcome<RecordBatch> {
        if let Some(known) = &self.windows {
            self.windowed.kept_from = known.windows.kept_from()?;
        }
        let (rows, dropped) = self.windowed.rows(rows)?;
        self.late.count(dropped);
        Ok(rows)
    }
}

impl Iterator for WindowedRows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.input.next()?;
        Some(next.and_then(|rows| self.with_windows(&rows).map_err(Raised::carry)))
    }
}

impl RecordBatchReader for WindowedRows {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.windowed.schema)
    }
}
