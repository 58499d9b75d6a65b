//! What becomes of keys: puts, deletes, merges, and batches of them.

use std::ops::Bound;
use std::time::Duration;

use super::{Generator, OPS_PER_STRETCH, STAMP_BITS};
use crate::config::ASIDE;
use crate::{Change, Values, Write};

impl Generator {
    pub(super) fn put(&mut self, table: usize) -> Change {
        self.stamp += 1;
        let (key, stamp) = (self.key(), self.stamp);
        let value = self.values.value(&mut self.rng, stamp);
        if table == ASIDE && self.expires && self.wide.chance(30) {
            let ttl = Duration::from_millis(self.wide.below([500, 5_000, 500_000][stamp as usize % 3]));
            return Change { table, key, write: Write::PutFor(value, ttl) };
        }
        let write = if self.merging[table].has_states() { Write::Merge(value) } else { Write::Put(value) };
        Change { table, key, write }
    }

    /// A merge where the table has a rule; else a put.
    pub(super) fn merge(&mut self, table: usize) -> Change {
        let Change { key, write, .. } = self.put(table);
        let write = match write {
            Write::Put(value) if self.merging[table].has_operands() => Write::Merge(value),
            write => write,
        };
        Change { table, key, write }
    }

    /// A delete where the table has such.
    pub(super) fn delete(&mut self, table: usize) -> Change {
        match !self.deletes[table] || self.puts_alone() {
            true => self.put(table),
            false => {
                let key = self.key();
                let write = match self.cut[table] && self.cuts.chance(self.cut_percent) {
                    true => self.cut_at(&key),
                    false => Write::Delete,
                };
                Change { table, key, write }
            }
        }
    }

    /// Whether nothing is deleted for now.
    fn puts_alone(&self) -> bool {
        let stretch = (self.stamp >> STAMP_BITS) / OPS_PER_STRETCH;
        self.values == Values::Even && !stretch.is_multiple_of(4)
    }

    /// The deletion of a range from a key on: mostly a short one.
    fn cut_at(&mut self, key: &[u8]) -> Write {
        let (low, mut high) = (key.to_vec(), self.key());
        let cuts = &mut self.cuts;
        if !low.is_empty() && cuts.chance(80) {
            high.clone_from(&low);
            high.iter_mut()
                .last()
                .into_iter()
                .for_each(|last| *last = last.saturating_add(1 + cuts.below(40) as u8));
        }
        let low = if cuts.chance(80) { Bound::Included(low) } else { Bound::Excluded(low) };
        match cuts.below(20) {
            0 => Write::DeleteRange(low, Bound::Unbounded),
            1 => Write::DeleteRange(Bound::Unbounded, Bound::Included(high)),
            2..8 => Write::DeleteRange(low, Bound::Included(high)),
            8..11 if !key.is_empty() => {
                Write::DeletePrefix(key[..key.len() - cuts.index(key.len().min(2))].to_vec())
            }
            _ => Write::DeleteRange(low, Bound::Excluded(high)),
        }
    }

    pub(super) fn batch(&mut self) -> Vec<Change> {
        let length = self.rng.below(self.batch_max + 1);
        let mut changes: Vec<Change> = (0..length)
            .map(|_| {
                let table = self.table();
                match self.rng.below(10) {
                    0..5 => self.put(table),
                    5..8 => self.merge(table),
                    _ => self.delete(table),
                }
            })
            .collect();
        let table = self.rng.index(2);
        if self.merging[table].has_states() && self.rng.chance(50) {
            let write = Write::Metadata(self.stamp.to_le_bytes().to_vec());
            changes.push(Change { table, key: Vec::new(), write });
        }
        changes
    }
}
