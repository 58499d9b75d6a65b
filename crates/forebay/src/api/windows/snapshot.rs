//! Reading windows: as they are now, or as a snapshot has them.

use std::fmt;
use std::ops::{Bound, Range as Times, RangeBounds};
use std::sync::Arc;

use forebay_aggregate::Aggregate;
use forebay_base::{Error, Order, Range, Result};
use forebay_env::guest;
use forebay_layouts::answered;

use super::marks::Marks;
use super::scan::Merge;
use super::{Windows, WindowsScan};
use crate::Scan;
use crate::api::KeyBounds;
use crate::api::key_bounds::{prefix_range, range_of};
use crate::read;
use crate::versions::View;

/// So much of a key is told.
const KEY_BYTES_SHOWN: usize = 64;

/// [`Windows`] at one moment.
pub struct WindowsSnapshot<A> {
    windows: Windows<A>,
    view: View,
    database_id: u64,
}

impl<A> fmt::Debug for WindowsSnapshot<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WindowsSnapshot({:?})", self.windows)
    }
}

impl<A: Aggregate> WindowsSnapshot<A> {
    pub(super) fn new(windows: &Windows<A>, view: View, database_id: u64) -> Self {
        // Without their states keys come to nothing.
        let reading = view.reading.keys_only(false);
        Self { windows: windows.clone(), view: view.reading(reading), database_id }
    }

    /// What a key's values over a range of time came to.
    pub fn get(&self, times: impl RangeBounds<u64>, key: impl AsRef<[u8]>) -> Result<Option<A::Output>> {
        let state = self.get_state(times, key)?;
        state.map(|state| self.windows.function().finish(&state)).transpose()
    }

    /// The state of a key over a range of time.
    pub fn get_state(&self, times: impl RangeBounds<u64>, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let (parts, key) = (&*self.windows.parts, key.as_ref());
        let marks = self.marks()?.of_key(&parts.tiers, key);
        let mut states = Vec::new();
        for table in self.tables(&marks, &times_of(&times))? {
            states.extend(read::get(&parts.engine.context, &self.view, table, key)?);
        }
        merged(self.windows.function(), key, states)
    }

    /// All keys with what their values over a range of time came to, ascending.
    pub fn iter(&self, times: impl RangeBounds<u64>) -> Result<WindowsScan<A>> {
        self.scan(&times_of(&times), Range::all())
    }

    /// The same of a range of keys.
    pub fn range(&self, times: impl RangeBounds<u64>, bounds: impl KeyBounds) -> Result<WindowsScan<A>> {
        self.scan(&times_of(&times), range_of(Order::Lexical, &bounds))
    }

    /// The same of keys that begin so.
    pub fn prefix(&self, times: impl RangeBounds<u64>, prefix: impl AsRef<[u8]>) -> Result<WindowsScan<A>> {
        self.scan(&times_of(&times), prefix_range(Order::Lexical, prefix.as_ref()))
    }

    /// The windows of the finest tier that are kept and begin within a range of time, ascending: those that have values,
    /// and perhaps such that a crash left without. Each is a range that can be asked.
    pub fn windows(&self, times: impl RangeBounds<u64>) -> Result<Vec<Times<u64>>> {
        let (marks, parts) = (self.marks()?, &*self.windows.parts);
        let times = times_of(&times);
        let is_asked = |start: &u64| *start >= marks.floors[0] && times.contains(start);
        let finest = parts.windows_of(&self.view).into_iter().filter(|window| window.tier == 0);
        let mut starts: Vec<u64> = finest.map(|window| window.start).filter(is_asked).collect();
        starts.sort_unstable();
        Ok(starts.into_iter().map(|start| parts.tiers.period(0).around(start)).collect())
    }

    /// From when on times are kept, by some tier.
    pub fn kept_from(&self) -> Result<u64> {
        Ok(self.marks()?.floors.last().copied().unwrap_or_default())
    }

    /// The bytes that came with the last [`commit`](crate::WindowsBatch::commit) before.
    pub fn metadata(&self) -> Result<Option<Vec<u8>>> {
        self.windows.parts.declared.metadata(self.view()?, self.database_id)
    }

    fn marks(&self) -> Result<Marks> {
        self.windows.parts.marks(self.view()?, self.database_id)
    }

    /// What it sees. Windows are found by the names of their tables, which a transaction does not note.
    fn view(&self) -> Result<&View> {
        match self.view.own {
            None => Ok(&self.view),
            Some(_) => Err(Error::invalid(
                "windows cannot be read in a transaction, which would not notice new ones; read them from \
                 Database::snapshot",
            )),
        }
    }

    /// The tables that together have a range of time, of keys that have these marks.
    fn tables(&self, marks: &Marks, times: &Times<u64>) -> Result<Vec<u32>> {
        let parts = &*self.windows.parts;
        let pieces = marks.cover(&parts.tiers, times)?;
        let mut windows = parts.windows_of(&self.view);
        windows.retain(|window| {
            pieces.iter().any(|(tier, piece)| window.tier == *tier && piece.contains(&window.start))
        });
        Ok(windows.into_iter().map(|window| window.table).collect())
    }

    fn scan(&self, times: &Times<u64>, keys: Range) -> Result<WindowsScan<A>> {
        let marks = self.marks()?;
        let (passed, others) = marks.of_keys(&self.windows.parts.tiers);
        let merges = match &marks.rolling {
            None => vec![self.merge(&others, times, keys)?],
            Some(rolling) => {
                let low = keys.intersect(&range_of(Order::Lexical, &..=&rolling.key));
                let high = keys
                    .intersect(&range_of(Order::Lexical, &(Bound::Excluded(&rolling.key), Bound::Unbounded)));
                vec![self.merge(&passed, times, low)?, self.merge(&others, times, high)?]
            }
        };
        Ok(WindowsScan::new(Arc::clone(&self.windows.parts.function), merges))
    }

    fn merge(&self, marks: &Marks, times: &Times<u64>, keys: Range) -> Result<Merge> {
        let scan = |table| {
            Scan::new(&self.windows.parts.engine, self.view.clone().in_order(table)?, table, keys.clone())
        };
        let tables = if keys.is_empty() { Vec::new() } else { self.tables(marks, times)? };
        Merge::new(tables.into_iter().map(scan).collect::<Result<_>>()?)
    }
}

/// What the states of a key come to; an error where the function panics.
pub(super) fn merged<A: Aggregate>(
    function: &A,
    key: &[u8],
    mut states: Vec<Vec<u8>>,
) -> Result<Option<Vec<u8>>> {
    if states.len() < 2 {
        return Ok(states.pop());
    }
    let states: Vec<&[u8]> = states.iter().map(Vec::as_slice).collect();
    let mut merged = Vec::new();
    let of_key = || {
        let (rule, shown) = (function.state_type(), key[..key.len().min(KEY_BYTES_SHOWN)].escape_ascii());
        format!("the aggregation rule `{}` of windows panicked at key \"{shown}\"", rule.as_str())
    };
    guest::take_failure();
    guest::ask(of_key, || function.merge(&states, &mut merged));
    answered(Ok(Some(merged)))
}

fn times_of(times: &impl RangeBounds<u64>) -> Times<u64> {
    let start = match times.start_bound() {
        Bound::Included(time) => *time,
        Bound::Excluded(time) => time.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match times.end_bound() {
        Bound::Included(time) => time.saturating_add(1),
        Bound::Excluded(time) => *time,
        Bound::Unbounded => u64::MAX,
    };
    start..end
}
