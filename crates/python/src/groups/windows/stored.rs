//! [`StoredWindows`]: what is open of windows that a database keeps, and [`Spanned`], some of them that are read.
//!
//! The key of a group begins with its window's beginning. In the database it does not: there each window is a table.

use std::ops::Range;

use forebay::aggregate::Composite;
use forebay::{Batch, Durability, Error, Result, WindowsSnapshot};
use forebay_aggregate::arrow::{PartialSchema, RecordBatchStates};
use forebay_env::sync::Arc;
use forebay_groups::{Late, WindowShape as Shape, WindowStates, WindowsWalk, split_window};

use super::input::LateRows;
use crate::database::Open;
use crate::failure::Outcome;
use crate::groups::held::{Opens, Writes};
use crate::groups::kept::Shape as Kept;
use crate::groups::read::{Find, Grouped, Wanted};
use crate::groups::scalars::Between;
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
    type Late = LateRows;

    fn write(
        &self,
        states: Option<&mut RecordBatchStates>,
        mut batch: Batch,
        durability: Durability,
        metadata: Option<&[u8]>,
        late: &LateRows,
    ) -> Result<u64> {
        let mut rows = self.windows.batch();
        if let Some(states) = states {
            states.take(&mut |key, state| {
                let (start, rest) =
                    split_window(key).ok_or_else(|| Error::Bug("a row is in no window".into()))?;
                rows.add_state(start, rest, state)
            })?;
        }
        loop {
            // Only what may be tried again is held twice.
            let may_drop = late.late == Late::Drop && !rows.is_empty();
            let all = if may_drop { batch.clone() } else { std::mem::take(&mut batch) };
            let written = match metadata {
                Some(metadata) => rows.commit_with(all, durability, metadata),
                None => rows.write(all, durability),
            };
            let dropped = match &written {
                // Time may have gone on since the rows were looked at.
                Err(Error::Invalid(_)) if may_drop => rows.forget_before(self.windows.kept_from()?),
                _ => 0,
            };
            if dropped == 0 {
                return written;
            }
            late.count(dropped);
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

/// Windows that begin within a range of time.
pub(super) struct Spanned {
    pub(super) stored: Arc<StoredWindows>,
    pub(super) times: Range<u64>,
}

impl Grouped for Spanned {
    fn schema(&self) -> &PartialSchema {
        &self.stored.schema
    }

    /// Any time within a window stands for that.
    fn between(&self, column: usize) -> Between {
        if column == 0 { Between::Floored } else { Between::Refused }
    }

    fn finder(&self) -> Result<Box<Find<'_>>> {
        let now = self.stored.now()?;
        let state = move |key: &Vec<u8>| match split_window(key) {
            Some((time, rest)) => now.get_state(self.stored.shape.period.around(time), rest),
            None => Ok(None),
        };
        Ok(Box::new(move |keys| keys.iter().map(&state).collect()))
    }

    fn batches(&self, wanted: Wanted) -> Result<Batches> {
        let states = WindowStates::new(self.stored.now()?, self.times.clone())?;
        Ok(Box::new(WindowsWalk::new(states, &self.stored.schema, wanted, BATCH_ROWS)))
    }
}
