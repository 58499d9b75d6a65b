//! What only a [wide](Generator::wide) draw has.

use std::collections::BTreeMap;
use std::time::Duration;

use forebay::Codec;

use super::{Generator, draw_key};
use crate::config::{draw_layout, draw_prefix_filter};
use crate::{Altered, Change, Stale};

impl Generator {
    /// Mostly a little, sometimes far, either way.
    pub(super) fn jump(&mut self) -> i64 {
        let most = [100, 2_000, 100_000, 10_000_000][self.wide.index(4)];
        let by = self.wide.below(most) as i64;
        if self.wide.chance(40) { -by } else { by }
    }

    pub(super) fn name(&mut self) -> String {
        format!("savepoint-{}", self.wide.below(3))
    }

    /// What comes sorted, each key once.
    pub(super) fn entries(&mut self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let count = [1, 20, 300][self.wide.index(3)];
        let (mut entries, keys, key_count) = (BTreeMap::new(), self.keys, self.key_count);
        for _ in 0..self.wide.below(count) {
            self.stamp += 1;
            let value = self.values.value(&mut self.wide, self.stamp);
            entries.insert(draw_key(&mut self.wide, keys, key_count), value);
        }
        entries.into_iter().collect()
    }

    /// What is written while a table is sorted anew.
    pub(super) fn meanwhile(&mut self) -> Vec<Vec<Change>> {
        let batches = if self.share_percent > 0 { self.wide.below(6) } else { 0 };
        (0..batches).map(|_| if self.wide.chance(30) { self.deletes() } else { self.batch() }).collect()
    }

    /// Many of one table: a tombstone that was dropped too early shows where what it deleted is in older runs.
    fn deletes(&mut self) -> Vec<Change> {
        let table = self.table();
        (0..=self.wide.below(40)).map(|_| self.delete(table)).collect()
    }

    pub(super) fn altered(&mut self) -> Altered {
        Altered {
            node_bytes: [2 << 10, 8 << 10, 64 << 10][self.wide.index(3)],
            fan_out: [2, 4, 16][self.wide.index(3)],
            fast_per_slow: [0, 1, 8][self.wide.index(3)],
            lists_max: [2, 8, 128][self.wide.index(3)],
            repeats_max: [1.2, 2.0, 100.0][self.wide.index(3)],
            filter_bits_per_key: [0, 4, 12][self.wide.index(3)],
            prefix_filter: draw_prefix_filter(&mut self.wide.clone().fork()),
            codec: [Codec::None, Codec::Lz4][self.wide.index(2)],
            values_apart: [1, 60, 300][self.wide.index(3)],
            reclaim_interval: Duration::from_secs([10, 20][self.wide.index(2)]),
            max_space_amplification: [1.25, 2.0][self.wide.index(2)],
        }
    }

    pub(super) fn stale(&mut self, table: usize) -> Stale {
        match self.wide.below(5) {
            0 => Stale::Commit(self.batch()),
            1 => Stale::Commit(vec![self.put(table)]),
            2 => Stale::Ingest(self.entries()),
            3 => Stale::SetLayout(draw_layout(&mut self.wide)),
            _ => Stale::Compact(table),
        }
    }
}
