//! What is drawn for [groups](crate::Groups).

use std::ops::Bound;

use forebay_aggregate::group_key;

use super::{Generator, STAMP_BITS};
use crate::groups::{CUBE, WINDOWS, aligned, window_key};
use crate::{Beside, Change, Op, Query, Seen, Write};

/// Operations of a round are numbered from a multiple of this.
const ROUND: u64 = 10_000;
/// Windows go on by this many milliseconds from one round to the next.
const ROUND_MILLISECONDS: u64 = 1_000;

impl Generator {
    /// How late it is, as of values: a millisecond for each operation.
    fn time(&self) -> u64 {
        let number = self.stamp >> STAMP_BITS;
        200 + number / ROUND * ROUND_MILLISECONDS + number % ROUND
    }

    /// Values for the cube or the windows, or both, and perhaps changes of tables.
    pub(super) fn group_batch(&mut self) -> Vec<Change> {
        let (to_cube, to_windows) = [(true, false), (false, true), (true, true)][self.groups.index(3)];
        let mut changes = Vec::new();
        if self.groups.chance(30) {
            changes = self.batch();
            changes.retain(|change| !matches!(change.write, Write::Metadata(_)));
        }
        let is_alone = changes.is_empty();
        let most = [1, 8, 60][self.groups.index(3)];
        for _ in 0..self.groups.below(most + 1) {
            self.stamp += 1;
            let value = Write::Merge(self.values.value(&mut self.groups, self.stamp));
            if to_cube {
                changes.push(Change { table: CUBE, key: self.group_key(), write: value.clone() });
            }
            if to_windows {
                let (time, key) = (self.value_time(), self.window_part());
                changes.push(Change { table: WINDOWS, key: window_key(time, &key), write: value });
            }
        }
        let bytes = self.stamp.to_le_bytes().to_vec();
        let table = if to_windows { WINDOWS } else { CUBE };
        if to_windows || is_alone {
            changes.push(Change { table, key: Vec::new(), write: Write::Metadata(bytes) });
        }
        changes
    }

    fn value_time(&mut self) -> u64 {
        let (now, dice) = (self.time(), &mut self.groups);
        match dice.below(10) {
            0 => now.saturating_sub(dice.below(600)),
            1..4 => now.saturating_sub(dice.below(200)),
            _ => (now + 10).saturating_sub(dice.below(30)),
        }
    }

    fn window_part(&mut self) -> Vec<u8> {
        let among = self.key_count.min(40);
        self.keys.key(self.groups.below(among))
    }

    fn group_key(&mut self) -> Vec<u8> {
        let first = [Some(&b"a"[..]), Some(b"b"), Some(b""), Some(b"a\0b"), None][self.groups.index(5)];
        let second = self.window_part();
        group_key::of([first, Some(&second[..]).filter(|_| self.groups.chance(90))])
    }

    pub(super) fn read_groups(&mut self) -> Op {
        let seen = match self.groups.below(4) {
            0 => Seen::Snapshots,
            1 => Seen::Savepoint(format!("savepoint-{}", self.groups.below(3))),
            _ => Seen::Now,
        };
        let is_of_cube = self.groups.chance(50);
        let key = if is_of_cube { Self::group_key } else { Self::window_part };
        let query = match self.groups.below(8) {
            0..2 => Query::Get(key(self)),
            2..6 => {
                let (low, high) = (key(self), key(self));
                Query::Range(self.end(low), self.end(high))
            }
            6 => {
                let mut prefix = key(self);
                let columns = group_key::split(&prefix).next().map_or(0, <[u8]>::len);
                prefix.truncate(if is_of_cube { columns } else { self.groups.index(10) });
                Query::Prefix(prefix)
            }
            _ => Query::All,
        };
        let times = match self.groups.below(4) {
            0 => 0..u64::MAX,
            1 => {
                let start = self.value_time();
                start..start + self.groups.below(100)
            }
            _ => {
                let (time, tier) = (self.value_time(), self.groups.index(3));
                aligned(time, tier, 1 + self.groups.below(3))
            }
        };
        Op::ReadGroups(seen, (!is_of_cube).then_some(times), query)
    }

    fn end(&mut self, key: Vec<u8>) -> Bound<Vec<u8>> {
        match self.groups.below(5) {
            0 => Bound::Unbounded,
            1..3 => Bound::Included(key),
            _ => Bound::Excluded(key),
        }
    }

    pub(super) fn expiry(&mut self) -> Op {
        let now = self.expiry_time();
        let beside = match self.groups.below(10) {
            0..2 => Beside::Expire(self.expiry_time()),
            2..4 => Beside::Savepoint(format!("savepoint-{}", self.groups.below(3))),
            _ => Beside::Nothing,
        };
        Op::Expire(now, beside)
    }

    fn expiry_time(&mut self) -> u64 {
        let (now, dice) = (self.time(), &mut self.groups);
        match dice.below(8) {
            0 => now.saturating_sub(dice.below(100)),
            1 => now + dice.below(200),
            _ => now,
        }
    }

    pub(super) fn one_of_groups(&mut self) -> usize {
        [CUBE, WINDOWS][self.groups.index(2)]
    }
}
