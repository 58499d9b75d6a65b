//! [`StoredWindows`]: what is open of windows that a database keeps, and [`Spanned`], some of them that are read.
//!
//! The key of a group begins with its window's beginning. In the database it does not: there each window is a table.

use std::ops::Range;
use std::vec::IntoIter;

use arrow_array::RecordBatch;
use forebay::aggregate::Composite;
use forebay::{Batch, Durability, Error, Result, WindowsScan, WindowsSnapshot};
use forebay_aggregate::arrow::{PartialBatches, PartialSchema, RecordBatchStates};
use forebay_aggregate::group_key;
use forebay_env::sync::Arc;

use super::shape::Shape;
use crate::database::Open;
use crate::failure::Outcome;
use crate::groups::held::{Opens, Writes};
use crate::groups::kept::Shape as Kept;
use crate::groups::read::{Grouped, Wanted};
use crate::rows::{BATCH_ROWS, Batches};

type States = Arc<Composite>;

/// See the module.
pub(super) struct StoredWindows {
    open: Arc<Open>,
    pub(super) windows: forebay::Windows<States>,
    pub(super) schema: PartialSchema,
    pub(super) shape: Shape,
}

impl Opens for StoredWindows {
    const NOUN: &'static str = "windows";
    type Means = Shape;

    fn open(open: &Arc<Open>, name: &str, schema: PartialSchema, shape: &Shape) -> Outcome<Self> {
        let windows =
            open.with_detached(|db| db.windows(name, Arc::clone(schema.function()), shape.tiers()).open())?;
        Ok(Self { open: Arc::clone(open), windows, schema, shape: shape.clone() })
    }

    fn schema(&self) -> &PartialSchema {
        &self.schema
    }

    fn shape(shape: &Shape) -> Kept {
        Kept::Windows(shape.kept())
    }
}

impl Writes for StoredWindows {
    fn write(
        &self,
        states: Option<&mut RecordBatchStates>,
        batch: Batch,
        durability: Durability,
        metadata: Option<&[u8]>,
    ) -> Result<u64> {
        let mut rows = self.windows.batch();
        if let Some(states) = states {
            states.take(&mut |key, state| {
                let (start, rest) = split(key).ok_or_else(|| Error::Bug("a row is in no window".into()))?;
                rows.add_state(start, rest, state)
            })?;
        }
        match metadata {
            Some(metadata) => rows.commit_with(batch, durability, metadata),
            None => rows.write(batch, durability),
        }
    }
}

impl StoredWindows {
    /// The windows as they are now.
    pub(super) fn now(&self) -> Result<WindowsSnapshot<States>> {
        let snapshot = self.open.with_detached(|db| Ok(db.snapshot()))?;
        Ok(self.windows.at(&snapshot))
    }
}

/// The beginning of a group's window, and the key of the group in it.
fn split(key: &[u8]) -> Option<(u64, &[u8])> {
    let first = group_key::split(key).next()?;
    let text = group_key::column(first)?;
    let start = std::str::from_utf8(&text).ok()?.parse().ok()?;
    Some((start, &key[first.len()..]))
}

/// Windows that begin within a range of time.
pub(super) struct Spanned {
    pub(super) stored: Arc<StoredWindows>,
    pub(super) times: Range<u64>,
}

impl Grouped for Spanned {
    fn schema(&self) -> &PartialSchema {
        &self.stored.schema
    }

    fn states(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>> {
        let now = self.stored.now()?;
        let state = |key: &Vec<u8>| match split(key) {
            Some((time, rest)) => now.get_state(self.stored.shape.period.around(time), rest),
            None => Ok(None),
        };
        keys.iter().map(state).collect()
    }

    fn batches(&self, wanted: Wanted) -> Result<Batches> {
        let (now, schema) = (self.stored.now()?, &self.stored.schema);
        let made = match wanted {
            Wanted::Answers => PartialBatches::of_answers(schema),
            Wanted::States => PartialBatches::new(schema),
        };
        let windows = now.windows(self.times.clone())?.into_iter();
        let made = made.rows_max(BATCH_ROWS);
        Ok(Box::new(Walk { now, windows, scan: None, key: Vec::new(), made, is_over: false }))
    }
}

/// Groups of windows, one window after the other.
struct Walk {
    now: WindowsSnapshot<States>,
    windows: IntoIter<Range<u64>>,
    /// The window that is being walked through, and how long the part of keys is that stands for it.
    scan: Option<(WindowsScan<States>, usize)>,
    key: Vec<u8>,
    made: PartialBatches,
    is_over: bool,
}

impl Walk {
    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let Some((scan, prefix)) = &mut self.scan else {
                let Some(window) = self.windows.next() else {
                    self.is_over = true;
                    return self.made.finish();
                };
                self.key = group_key::of([Some(window.start.to_string())]);
                self.scan = Some((self.now.iter(window)?, self.key.len()));
                continue;
            };
            match scan.next_state().transpose()? {
                None => self.scan = None,
                Some((rest, state)) => {
                    self.key.truncate(*prefix);
                    self.key.extend_from_slice(&rest);
                    if let Some(full) = self.made.push(&self.key, &state)? {
                        return Ok(Some(full));
                    }
                }
            }
        }
    }
}

impl Iterator for Walk {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.advance();
        self.is_over |= next.is_err();
        next.transpose()
    }
}
