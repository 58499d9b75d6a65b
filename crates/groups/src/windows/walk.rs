//! [`WindowStates`]: groups of windows, and [`WindowsWalk`]: the same as record batches. The key of a group begins with its window's beginning; in the
//! database it does not, as there each window is a table.

use std::ops::{Bound, Range};
use std::vec::IntoIter;

use arrow_array::RecordBatch;
use forebay::aggregate::Composite;
use forebay::{Result, WindowsScan, WindowsSnapshot};
use forebay_aggregate::arrow::{PartialBatches, PartialSchema};
use forebay_aggregate::group_key;
use forebay_env::sync::Arc;

use crate::Wanted;

type States = Arc<Composite>;

/// The beginning of a group's window, and the key of the group in it.
pub fn split_window(key: &[u8]) -> Option<(u64, &[u8])> {
    let first = group_key::split(key).next()?;
    let text = group_key::column(first)?;
    let start = std::str::from_utf8(&text).ok()?.parse().ok()?;
    Some((start, &key[first.len()..]))
}

/// Groups of windows with their states, one window after the other.
pub struct WindowStates {
    now: WindowsSnapshot<States>,
    windows: IntoIter<Range<u64>>,
    /// The window that is being walked through, and how long the part of keys is that stands for it.
    scan: Option<(WindowsScan<States>, usize)>,
    key: Vec<u8>,
    /// Where the walk begins in this window.
    behind: Option<(u64, Vec<u8>)>,
}

impl WindowStates {
    /// Of the windows that begin within a range of time.
    pub fn new(now: WindowsSnapshot<States>, times: Range<u64>) -> Result<Self> {
        let windows = now.windows(times)?.into_iter();
        Ok(Self { now, windows, scan: None, key: Vec::new(), behind: None })
    }

    /// The same from behind a group on, in its window and in those that follow.
    pub fn behind(now: WindowsSnapshot<States>, start: u64, key: Vec<u8>, end: u64) -> Result<Self> {
        Ok(Self { behind: Some((start, key)), ..Self::new(now, start..end)? })
    }

    /// The next key and its state.
    #[expect(clippy::should_implement_trait, reason = "it lends the key")]
    pub fn next(&mut self) -> Result<Option<(&[u8], Vec<u8>)>> {
        loop {
            let Some((scan, prefix)) = &mut self.scan else {
                let Some(window) = self.windows.next() else { return Ok(None) };
                self.key = group_key::of([Some(window.start.to_string())]);
                let scan = match self.behind.take().filter(|(start, _)| *start == window.start) {
                    Some((_, key)) => {
                        self.now.range(window, (Bound::Excluded(&key[..]), Bound::Unbounded::<&[u8]>))?
                    }
                    None => self.now.iter(window)?,
                };
                self.scan = Some((scan, self.key.len()));
                continue;
            };
            match scan.next_state().transpose()? {
                None => self.scan = None,
                Some((rest, state)) => {
                    self.key.truncate(*prefix);
                    self.key.extend_from_slice(&rest);
                    return Ok(Some((&self.key, state)));
                }
            }
        }
    }
}

/// Groups of windows as record batches.
pub struct WindowsWalk {
    states: WindowStates,
    made: PartialBatches,
    is_over: bool,
}

impl WindowsWalk {
    /// Batches of so many groups.
    pub fn new(states: WindowStates, schema: &PartialSchema, wanted: Wanted, rows_max: usize) -> Self {
        let made = match wanted {
            Wanted::Answers => PartialBatches::of_answers(schema),
            Wanted::States => PartialBatches::new(schema),
        };
        Self { states, made: made.rows_max(rows_max), is_over: false }
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        while let Some((key, state)) = self.states.next()? {
            if let Some(full) = self.made.push(key, &state)? {
                return Ok(Some(full));
            }
        }
        self.is_over = true;
        self.made.finish()
    }
}

impl Iterator for WindowsWalk {
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
