//! A tournament of `k` sources: each inner node of the tree remembers the source that lost there, so the
//! next record costs one comparison a level. Prefixes lie in the nodes and are compared there; keys only to
//! break ties; and among equal records the source with the lowest number, the newest, comes first. Once one
//! source is left nothing is compared.

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

/// What the other sources of a merge have, beside the one whose turn it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Others {
    /// Nothing any more.
    Ended,
    /// Something.
    Left,
}

/// The merge of sorted sources, given newest first.
pub struct LoserTree<C> {
    sources: Vec<C>,
    /// How many of them have not come to their end.
    left: usize,
    /// `losers[0]` is the winner of all; node `i` has the children `2i` and `2i + 1`.
    losers: Vec<Player>,
    direction: Direction,
}

/// A source, and where it stands: the lower the rank, the sooner its turn.
#[derive(Clone, Copy)]
struct Player {
    rank: u64,
    source: usize,
}

impl Player {
    /// For an empty place.
    const NOBODY: Self = Self { rank: u64::MAX, source: usize::MAX };
}

impl Direction {
    /// The rank of a prefix, and the prefix of a rank.
    #[inline]
    fn turned(self, prefix: u64) -> u64 {
        match self {
            Self::Forward => prefix,
            Self::Backward => !prefix,
        }
    }

    /// The rank of a source that stands so. One at its end has that of the last prefix.
    #[inline]
    fn rank(self, prefix: Option<u64>) -> u64 {
        prefix.map_or(u64::MAX, |prefix| self.turned(prefix))
    }
}

impl<C: Cursor> LoserTree<C> {
    /// Starts the tournament.
    pub fn new(sources: Vec<C>, direction: Direction) -> Self {
        let losers = vec![Player::NOBODY; sources.len().max(1)];
        let mut tree = Self { sources, left: 0, losers, direction };
        tree.play();
        tree
    }

    /// Starts anew, the other way perhaps, once `place` has put all sources where they shall begin. After an error
    /// only another restart is of use.
    pub fn restart(
        &mut self,
        direction: Direction,
        place: impl FnOnce(&mut [C]) -> Result<()>,
    ) -> Result<()> {
        self.direction = direction;
        place(&mut self.sources)?;
        self.play();
        Ok(())
    }

    /// All sources, newest first.
    pub fn sources(&self) -> &[C] {
        &self.sources
    }

    /// The source whose turn it is, if one is left, and whether all others have come to their end.
    #[inline]
    pub fn first(&self) -> Option<(&C, Others)> {
        let others = if self.left == 1 { Others::Ended } else { Others::Left };
        (self.left > 0).then(|| (&self.sources[self.losers[0].source], others))
    }

    fn play(&mut self) {
        self.left = self.sources.iter().filter(|source| source.prefix().is_some()).count();
        self.losers.fill(Player::NOBODY);
        for source in (0..self.sources.len()).rev() {
            let rank = self.direction.rank(self.sources[source].prefix());
            self.enter(Player { rank, source });
        }
        debug_assert!(self.left == 0 || self.first().is_some_and(|(first, _)| first.prefix().is_some()));
    }

    /// Plays a source up from its leaf while the tree is being filled: an empty place keeps it.
    fn enter(&mut self, mut winner: Player) {
        let mut node = (winner.source + self.sources.len()) / 2;
        while node > 0 {
            if self.losers[node].source == Player::NOBODY.source {
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
    #[inline(never)]
    fn replay(&mut self, mut winner: Player) {
        let mut node = (winner.source + self.sources.len()) / 2;
        while node > 0 {
            if self.comes_before(self.losers[node], winner) {
                std::mem::swap(&mut self.losers[node], &mut winner);
            }
            node /= 2;
        }
        self.losers[0] = winner;
    }

    #[inline]
    fn comes_before(&self, one: Player, other: Player) -> bool {
        if one.rank != other.rank {
            return one.rank < other.rank;
        }
        self.breaks_tie(one.source, other.source)
    }

    /// The same of equal prefixes, or where a source is at its end.
    fn breaks_tie(&self, one: usize, other: usize) -> bool {
        let (source, other_source) = (&self.sources[one], &self.sources[other]);
        if source.prefix().is_none() || other_source.prefix().is_none() {
            return source.prefix().is_some();
        }
        let order = source.record().key.cmp(other_source.record().key);
        let order = match self.direction {
            Direction::Forward => order,
            Direction::Backward => order.reverse(),
        };
        order.then(one.cmp(&other)).is_lt()
    }
}

impl<C: Cursor> Cursor for LoserTree<C> {
    #[inline]
    fn prefix(&self) -> Option<u64> {
        (self.left > 0).then(|| self.direction.turned(self.losers[0].rank))
    }

    #[inline]
    fn record(&self) -> Record<'_> {
        self.sources[self.losers[0].source].record()
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        debug_assert!(self.left > 0, "the merge is at its end");
        let source = self.losers[0].source;
        self.sources[source].advance()?;
        let prefix = self.sources[source].prefix();
        self.left -= usize::from(prefix.is_none());
        let player = Player { rank: self.direction.rank(prefix), source };
        if self.left == 1 && prefix.is_some() {
            self.losers[0] = player;
        } else {
            self.replay(player);
        }
        Ok(())
    }
}
