//! A tournament of `k` sources: each inner node of the tree remembers the source that lost there, so the
//! next record costs one comparison a level. Prefixes are compared in an array of their own; keys only to
//! break ties; and among equal records the source with the lowest number, the newest, comes first.

use super::Cursor;
use crate::{Record, Result};

/// Which way a merge walks. Its sources must walk the same way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From low to high.
    Forward,
    /// From high to low.
    Backward,
}

/// The merge of sorted sources, given newest first.
pub struct LoserTree<C> {
    sources: Vec<C>,
    prefixes: Vec<u64>,
    live: Vec<bool>,
    /// `losers[0]` is the winner of all; node `i` has the children `2i` and `2i + 1`.
    losers: Vec<usize>,
    direction: Direction,
}

impl<C: Cursor> LoserTree<C> {
    /// Starts the tournament.
    pub fn new(sources: Vec<C>, direction: Direction) -> Self {
        let count = sources.len();
        let mut tree = Self {
            prefixes: vec![0; count],
            live: vec![false; count],
            losers: vec![usize::MAX; count.max(1)],
            sources,
            direction,
        };
        for source in 0..count {
            tree.look(source);
        }
        for source in (0..count).rev() {
            tree.enter(source);
        }
        tree
    }

    fn look(&mut self, source: usize) {
        let prefix = self.sources[source].prefix();
        self.live[source] = prefix.is_some();
        self.prefixes[source] = prefix.unwrap_or(0);
    }

    /// Plays a source up from its leaf while the tree is being filled: an empty place keeps it.
    fn enter(&mut self, source: usize) {
        let mut winner = source;
        let mut node = (source + self.sources.len()) / 2;
        while node > 0 {
            if self.losers[node] == usize::MAX {
                self.losers[node] = winner;
                return;
            }
            if self.comes_before(self.losers[node], winner) {
                std::mem::swap(&mut self.losers[node], &mut winner);
            }
            node /= 2;
        }
        self.losers[0] = winner;
    }

    /// Plays the winner's source up again after it has advanced.
    fn replay(&mut self) {
        let mut winner = self.losers[0];
        let mut node = (winner + self.sources.len()) / 2;
        while node > 0 {
            if self.comes_before(self.losers[node], winner) {
                std::mem::swap(&mut self.losers[node], &mut winner);
            }
            node /= 2;
        }
        self.losers[0] = winner;
    }

    #[inline]
    fn comes_before(&self, left: usize, right: usize) -> bool {
        if !(self.live[left] && self.live[right]) {
            return self.live[left];
        }
        let order = self.prefixes[left]
            .cmp(&self.prefixes[right])
            .then_with(|| self.sources[left].record().key.cmp(self.sources[right].record().key));
        let order = match self.direction {
            Direction::Forward => order,
            Direction::Backward => order.reverse(),
        };
        order.then(left.cmp(&right)).is_lt()
    }
}

impl<C: Cursor> Cursor for LoserTree<C> {
    #[inline]
    fn prefix(&self) -> Option<u64> {
        let winner = self.losers[0];
        (winner < self.live.len() && self.live[winner]).then(|| self.prefixes[winner])
    }

    #[inline]
    fn record(&self) -> Record<'_> {
        self.sources[self.losers[0]].record()
    }

    fn advance(&mut self) -> Result<()> {
        let winner = self.losers[0];
        self.sources[winner].advance()?;
        self.look(winner);
        self.replay();
        Ok(())
    }
}
