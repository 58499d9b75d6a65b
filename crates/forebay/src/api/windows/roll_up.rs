//! Rolling windows up, and dropping them.
//!
//! 1. Windows of a tier that are past are rolled up in order, finer tiers first, some groups at a time: one batch adds
//!    these to the window of the next tier, and notes in the [`Marks`] up to which key. The last one of a window notes
//!    that it is done.
//! 2. What is no longer kept is noted, and flushed to lists with all of before: a savepoint has tables as they are, but
//!    records only as far as they were flushed.
//! 3. Its tables are dropped.
//!
//! After a crash each step goes on from its marks. Values that come meanwhile go by the marks, too.

use std::ops::Bound;

use forebay_aggregate::Aggregate;
use forebay_base::limits::VALUE_BYTES_MAX;
use forebay_base::{Error, Order, Result};
use forebay_env::yield_point;
use forebay_store::log::Durability;

use super::marks::{Marks, Rolling};
use super::{MARKS, Parts, Window, Windows};
use crate::api::database::drop_numbered;
use crate::api::key_bounds::range_of;
use crate::context::refuse_guests;
use crate::{Batch, Scan};

/// The most groups that are rolled up while no value can be added.
const GROUPS_MAX: usize = 4096;
/// The most bytes of them.
const GROUP_BYTES_MAX: usize = 1 << 20;

/// What [`Windows::expire`] has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Windows that were rolled up to the next tier.
    pub rolled_up: usize,
    /// Windows that were dropped.
    pub dropped: usize,
}

impl<A: Aggregate> Windows<A> {
    /// Makes it `now`, a time as of values: rolls windows that are past up to coarser ones, and drops those that are no
    /// longer kept. Call it now and then, such as once for each window of the finest tier. Reads are exact before and
    /// after it, and while it works, beside which values can be added. An earlier time than once before does nothing.
    ///
    /// After an error or a crash it goes on where it was when it is called again. Reads each window that it rolls up, and
    /// flushes write buffers if it drops any. A time that is too late cannot be taken back. A state of more than 256 MiB
    /// cannot be rolled up: an error names its key and window.
    pub fn expire(&self, now: u64) -> Result<Expired> {
        refuse_guests()?;
        let mut expired = Expired::default();
        while self.parts.roll_up_some(now, &mut expired)? {
            yield_point("some groups are rolled up");
        }
        expired.dropped = self.parts.drop_expired(now)?;
        Ok(expired)
    }
}

impl<A: Aggregate> Parts<A> {
    /// Rolls up some groups. Says whether there may be more.
    fn roll_up_some(&self, now: u64, expired: &mut Expired) -> Result<bool> {
        let _alone = self.engine.declared.write();
        let mut marks = self.marks_now()?;
        let before = marks.clone();
        let mut batch = Batch::new();
        let rolling = match marks.rolling.take() {
            Some(rolling) => Some((rolling.tier, rolling.start, Bound::Excluded(rolling.key))),
            None => {
                let next = self.next_to_roll_up(&mut marks, now);
                next.map(|window| (window.tier, window.start, Bound::Unbounded))
            }
        };
        let is_more = rolling.is_some();
        if let Some((tier, start, after)) = rolling {
            debug_assert_eq!(marks.rolled[tier], start, "windows are rolled up in order");
            debug_assert!(
                self.tiers.period(tier + 1).start(start) >= marks.floors[tier + 1],
                "a window is kept until what goes to it has come"
            );
            match self.append_groups(tier, start, after, &mut batch)? {
                Some(key) => marks.rolling = Some(Rolling { tier, start, key }),
                None => {
                    marks.rolled[tier] = self.tiers.period(tier).end(start);
                    expired.rolled_up += 1;
                }
            }
        }
        if marks != before {
            self.declared.put(&mut batch, MARKS, &marks.encode());
            self.write(&batch)?;
        }
        Ok(is_more)
    }

    /// The next window that is past and not rolled up. Tiers that have none are noted to be rolled up.
    fn next_to_roll_up(&self, marks: &mut Marks, now: u64) -> Option<Window> {
        let windows = self.windows_of(&self.engine.versions.view());
        for tier in 0..marks.rolled.len() {
            let past = self.tiers.period(tier).start(now);
            let is_due =
                |window: &&Window| window.tier == tier && (marks.rolled[tier]..past).contains(&window.start);
            match windows.iter().filter(is_due).min_by_key(|window| window.start) {
                Some(window) => {
                    marks.rolled[tier] = window.start;
                    return Some(*window);
                }
                None => marks.rolled[tier] = marks.rolled[tier].max(past),
            }
        }
        None
    }

    /// Adds groups of a window to the window of the next tier. Returns the last one's key if there are more.
    fn append_groups(
        &self,
        tier: usize,
        start: u64,
        after: Bound<Vec<u8>>,
        batch: &mut Batch,
    ) -> Result<Option<Vec<u8>>> {
        let view = self.engine.versions.view();
        let Some(window) = view.state.table_named(&self.table_name(tier, start)).map(|table| table.id) else {
            return Err(Error::invalid(format!("the table `{}` was dropped", self.table_name(tier, start))));
        };
        let coarser = self.table(tier + 1, self.tiers.period(tier + 1).start(start))?;
        let range = range_of(Order::Lexical, &(after, Bound::Unbounded));
        let view = view.in_order(window)?;
        let (mut groups, mut bytes) = (0, 0);
        for group in Scan::new(&self.engine, view, window, range)? {
            let (key, state) = group?;
            if state.len() > VALUE_BYTES_MAX {
                return Err(Error::invalid(format!(
                    "the state of key {:?} in window `{}` has {} bytes and cannot be rolled up: at most \
                     {VALUE_BYTES_MAX} are allowed; use a function that bounds it",
                    String::from_utf8_lossy(&key[..key.len().min(64)]),
                    self.table_name(tier, start),
                    state.len()
                )));
            }
            batch.add_state(&coarser, &key, &state);
            (groups, bytes) = (groups + 1, bytes + key.len() + state.len());
            if groups == GROUPS_MAX || bytes >= GROUP_BYTES_MAX {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// Drops the windows that are no longer kept. Returns how many that are.
    fn drop_expired(&self, now: u64) -> Result<usize> {
        self.raise_floors(now)?;
        yield_point("windows are to be dropped");
        // Values are added meanwhile, but nothing is rolled back or declared anew.
        let _shared = self.engine.declared.read();
        // A rollback may just have taken back what was noted.
        let marks = self.marks_now()?;
        let mut windows = self.windows_of(&self.engine.versions.view());
        windows.retain(|window| window.start < marks.floors[window.tier]);
        if windows.is_empty() {
            return Ok(0);
        }
        self.engine.writer.flush()?;
        // Lists in memory count on the log.
        self.engine.context.log()?.sync_to(u64::MAX)?;
        let mut dropped = 0;
        for window in windows {
            // Another thread may have dropped it.
            dropped += usize::from(drop_numbered(&self.engine, window.table)?);
            yield_point("a window is dropped");
        }
        Ok(dropped)
    }

    /// Notes what is no longer kept.
    fn raise_floors(&self, now: u64) -> Result<()> {
        let _alone = self.engine.declared.write();
        let mut marks = self.marks_now()?;
        let before = marks.clone();
        for tier in 0..self.tiers.len() {
            // A rollback may have taken back that all was rolled up.
            let own = marks.rolled.get(tier).copied().unwrap_or(u64::MAX);
            let finer = tier.checked_sub(1).map_or(u64::MAX, |finer| marks.rolled[finer]);
            let most = own.min(self.tiers.period(tier).start(finer));
            marks.floors[tier] = marks.floors[tier].max(self.tiers.kept_from(tier, now).min(most));
        }
        if marks == before {
            return Ok(());
        }
        let mut batch = Batch::new();
        self.declared.put(&mut batch, MARKS, &marks.encode());
        self.write(&batch)
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        let database_id = self.declared.table().database_id();
        self.engine.writer.write(batch.payload(database_id)?, Durability::Os).map(drop)
    }
}
