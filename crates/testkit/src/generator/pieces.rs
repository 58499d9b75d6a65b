//! Reads of whole tables, in pieces.

use super::Generator;
use crate::{Op, Query};

impl Generator {
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
