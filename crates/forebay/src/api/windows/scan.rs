//! Walking over several windows at a time: their groups are merged as they are met.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::Arc;

use forebay_aggregate::Aggregate;
use forebay_base::Result;

use super::snapshot::merged;
use crate::Scan;

/// Keys with what their values over a range of time come to, ascending, as of when the walk was made. After an error it
/// ends.
pub struct WindowsScan<A> {
    function: Arc<A>,
    /// One behind the other; the last is walked first.
    merges: Vec<Merge>,
}

impl<A> WindowsScan<A> {
    pub(super) fn new(function: Arc<A>, mut merges: Vec<Merge>) -> Self {
        merges.reverse();
        Self { function, merges }
    }
}

impl<A> fmt::Debug for WindowsScan<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let windows: usize = self.merges.iter().map(|merge| merge.heads.len()).sum();
        write!(f, "WindowsScan({windows} windows)")
    }
}

impl<A: Aggregate> WindowsScan<A> {
    /// The next key, with the state of its values instead of what they come to.
    pub fn next_state(&mut self) -> Option<Result<(Vec<u8>, Vec<u8>)>> {
        loop {
            let next = self.merges.last_mut()?.next();
            let entry = match next {
                Ok(None) => {
                    self.merges.pop();
                    continue;
                }
                Ok(Some((key, states))) => {
                    merged(&*self.function, &key, states).map(|state| (key, state.unwrap_or_default()))
                }
                Err(error) => Err(error),
            };
            return Some(self.unless_failed(entry));
        }
    }

    fn unless_failed<T>(&mut self, entry: Result<T>) -> Result<T> {
        if entry.is_err() {
            self.merges.clear();
        }
        entry
    }
}

impl<A: Aggregate> Iterator for WindowsScan<A> {
    type Item = Result<(Vec<u8>, A::Output)>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.next_state()?;
        let entry = entry.and_then(|(key, state)| Ok((key, self.function.finish(&state)?)));
        Some(self.unless_failed(entry))
    }
}

impl<A: Aggregate> std::iter::FusedIterator for WindowsScan<A> {}

/// A group that a walk stands at: key, number of the walk, state.
type Head = (Vec<u8>, usize, Vec<u8>);
/// A key and its states.
type Met = (Vec<u8>, Vec<Vec<u8>>);

/// Several walks as one.
pub(super) struct Merge {
    scans: Vec<Scan>,
    /// The next group of each walk that has one.
    heads: BinaryHeap<Reverse<Head>>,
}

impl Merge {
    pub(super) fn new(scans: Vec<Scan>) -> Result<Self> {
        let mut merge = Self { heads: BinaryHeap::with_capacity(scans.len()), scans };
        (0..merge.scans.len()).try_for_each(|number| merge.advance(number))?;
        Ok(merge)
    }

    fn advance(&mut self, number: usize) -> Result<()> {
        if let Some(entry) = self.scans[number].next() {
            let (key, state) = entry?;
            self.heads.push(Reverse((key, number, state)));
        }
        Ok(())
    }

    /// The next key, and its states in all windows.
    fn next(&mut self) -> Result<Option<Met>> {
        let Some(Reverse((key, number, state))) = self.heads.pop() else { return Ok(None) };
        let mut states = vec![state];
        self.advance(number)?;
        while self.heads.peek().is_some_and(|Reverse((next, ..))| *next == key) {
            if let Some(Reverse((_, number, state))) = self.heads.pop() {
                states.push(state);
                self.advance(number)?;
            }
        }
        debug_assert!(
            self.heads.peek().is_none_or(|Reverse((next, ..))| *next > key),
            "each walk ascends, and what it has of a key was met"
        );
        Ok(Some((key, states)))
    }
}
