//! Reads of whole tables, in pieces; and compactions of pieces.

use std::ops::Bound;

use forebay::Rewrite;

use super::{Generator, draw_key};
use crate::{Op, Query};

impl Generator {
    pub(super) fn compaction(&mut self, table: usize) -> Op {
        if self.ranges.chance(50) {
            return Op::Compact(table);
        }
        if self.ranges.chance(30) {
            let what = if self.ranges.chance(70) { Rewrite::All } else { Rewrite::OlderKeys };
            return Op::Rewrite(table, what);
        }
        let mut key = || draw_key(&mut self.ranges, self.keys, self.key_count);
        let (mut low, mut high) = (key(), key());
        if low > high {
            std::mem::swap(&mut low, &mut high);
        }
        let end = |key, is_open| if is_open { Bound::Unbounded } else { Bound::Included(key) };
        let (from, to) = (self.ranges.chance(20), self.ranges.chance(20));
        Op::CompactRange(table, (end(low, from), end(high, to)))
    }

    pub(super) fn pieces(&mut self, table: usize) -> Op {
        let dice = &mut self.pieces;
        let query = match dice.below(4) {
            0 => Query::Pieces([1, 7, 100][dice.index(3)]),
            1 => Query::Parts(1 + dice.index(9)),
            _ => Query::Count,
        };
        if dice.chance(30) { Op::ReadSnapshot(table, query) } else { Op::Read(table, query) }
    }
}
