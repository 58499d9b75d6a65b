//! Transactions, with what others do meanwhile; single keys that are changed by what they have.

use super::Generator;
use crate::{Act, Expected, Kind, Op, Query};

/// What is done beside a transaction, if it is drawn. Instead of all else there is a batch.
const BESIDE: [Kind; 20] = [
    Kind::Put,
    Kind::Delete,
    Kind::Merge,
    Kind::Batch,
    Kind::Sync,
    Kind::Flush,
    Kind::WaitUntilIdle,
    Kind::Compact,
    Kind::SetLayout,
    Kind::Step,
    Kind::Wait,
    Kind::Clock,
    Kind::Savepoint,
    Kind::Rollback,
    Kind::DropSavepoint,
    Kind::Ingest,
    Kind::Renew,
    Kind::Swap,
    Kind::Update,
    Kind::Life,
];

impl Generator {
    pub(super) fn transaction(&mut self) -> Op {
        let most = [3, 10, 40][self.transactions.index(3)];
        // Some have nobody beside them, and must not conflict.
        let alone = self.transactions.chance(20);
        let acts = (0..=self.transactions.below(most)).map(|_| self.act(alone)).collect();
        Op::Transact(acts, self.durability())
    }

    fn act(&mut self, alone: bool) -> Act {
        let table = self.table();
        match self.transactions.below(if alone { 15 } else { 20 }) {
            0..4 => Act::Read(table, Query::Get(self.key())),
            4 => Act::Read(table, self.multi_get()),
            5..7 => Act::Read(table, self.scan()),
            7 => match self.transactions.below(100) {
                0..10 => Act::Read(table, Query::All),
                10..20 => Act::Read(table, Query::Count),
                _ => Act::Write(self.put(table)),
            },
            8..10 => Act::Write(self.put(table)),
            10..12 => Act::Write(self.merge(table)),
            12..14 => Act::Write(self.delete(table)),
            14 if self.transactions.chance(5) => Act::Clear,
            14..17 => match alone {
                true => Act::Write(self.put(table)),
                false => Act::Beside(Box::new(self.draw_one(Kind::Put))),
            },
            _ => {
                let kind = self.kind();
                let kind = if BESIDE.contains(&kind) { kind } else { Kind::Batch };
                Act::Beside(Box::new(self.draw_one(kind)))
            }
        }
    }

    pub(super) fn swap(&mut self, table: usize) -> Op {
        let expected = [Expected::Own, Expected::Own, Expected::Nothing, Expected::Other];
        let expected = expected[self.transactions.index(expected.len())];
        let stamp = self.stamp;
        let new = self.transactions.chance(80).then(|| self.values.value(&mut self.transactions, stamp));
        Op::Swap(table, self.key(), expected, new)
    }
}
