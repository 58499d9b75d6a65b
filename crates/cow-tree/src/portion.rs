//! How much of a version lies where: by the counters of inner nodes, and in the two leaves at a range's ends.

use std::ops::RangeInclusive;

use forebay_base::{Bound, Range, Result};

use crate::file::Reader;
use crate::node::Key;
use crate::packer::Weight;
use crate::tree::Tree;

/// A place between children.
struct Edge {
    /// How many records are before it.
    rank: u64,
    /// `None` at the tree's own ends.
    key: Option<Key>,
}

impl Tree {
    /// How many records lie inside a range, and about how many live bytes: those of leaves whole, but for the two at
    /// the ends by their records, and as much of the filter as they have of all records. Where nothing is outside, all
    /// that the root counts. Device reads: those two leaves, unless the cache has them or the range ends between
    /// leaves.
    pub fn portion(&self, range: &Range) -> Result<(u64, u64)> {
        let root = self.root()?;
        if range.is_empty() {
            return Ok((0, 0));
        }
        let (low, high) = self.ends(range)?;
        Ok(match high.records.saturating_sub(low.records) {
            records if records == root.records => (records, root.live_bytes),
            0 => (0, 0),
            records => {
                let share = root.filter_bytes() as u128 * records as u128 / root.records.max(records) as u128;
                (records, high.live_bytes.saturating_sub(low.live_bytes).saturating_add(share as u64))
            }
        })
    }

    /// A bound inside a range that about as many of its records are below as above: between leaves where that is near
    /// enough, so that at least a quarter is on either side. `None` where there are not two records, or where they
    /// cannot be read.
    pub fn middle(&self, range: &Range) -> Option<Bound> {
        let (low, high) = self.ends(range).ok()?;
        let records = high.records.checked_sub(low.records).filter(|&records| records >= 2)?;
        let far = (records / 4).max(1);
        let near = low.records + far..=high.records - far;
        self.bound_at(low.records + records / 2, &near).ok()?.filter(|at| range.can_split_at(at))
    }

    /// The share of its records inside `range` that lie below `at`. 0.0 and 1.0 are certain; 0.5 where there are none,
    /// or where they cannot be read.
    pub fn share_below(&self, range: &Range, at: &Bound) -> f64 {
        let count = || Ok::<_, forebay_base::Error>((self.ends(range)?, self.before(at)?));
        let Ok(((low, high), at)) = count() else { return 0.5 };
        let (low, high) = (low.records, high.records);
        if high <= low {
            return 0.5;
        }
        (at.records.clamp(low, high) - low) as f64 / (high - low) as f64
    }

    /// What is before either end of a range.
    fn ends(&self, range: &Range) -> Result<(Weight, Weight)> {
        let high = match &range.high {
            Some(high) => self.before(high)?,
            None => {
                let root = self.root()?;
                Weight { records: root.records, live_bytes: root.node_bytes(), ..Weight::default() }
            }
        };
        Ok((self.before(&range.low)?, high))
    }

    /// What is before a bound.
    fn before(&self, at: &Bound) -> Result<Weight> {
        let (order, place) = (self.order(), (at.prefix, &at.key[..]));
        let mut before = Weight::default();
        let root = self.root()?;
        let Some(top) = root.top.filter(|_| *at != Bound::least()) else { return Ok(before) };
        let mut live_bytes = root.node_bytes();
        let mut node = self.node(top.node, top.level, Reader::Lookup)?;
        while node.level() > 0 {
            let index = node.child_at(order, place);
            for earlier in 0..index {
                let child = node.child(earlier);
                before.records = before.records.saturating_add(child.records);
                before.live_bytes = before.live_bytes.saturating_add(child.live_bytes);
            }
            if index > 0 && at.place(order.prefix(&node.key(index)), &node.key(index)).is_eq() {
                return Ok(before);
            }
            let child = node.child(index);
            live_bytes = child.live_bytes;
            node = self.node(child.node, node.level() - 1, Reader::Lookup)?;
        }
        let (index, records) = (node.lower_bound(order, place), node.len());
        before.records = before.records.saturating_add(index as u64);
        let share = live_bytes as u128 * index as u128 / records as u128;
        before.live_bytes = before.live_bytes.saturating_add(share as u64);
        Ok(before)
    }

    /// A bound that as many records are before as wanted; one between leaves instead, where it is near enough.
    fn bound_at(&self, wanted: u64, near: &RangeInclusive<u64>) -> Result<Option<Bound>> {
        let order = self.order();
        let Some(top) = self.top()? else { return Ok(None) };
        let mut node = self.node(top.node, top.level, Reader::Lookup)?;
        let (mut low, mut high) = (Edge { rank: 0, key: None }, Edge { rank: u64::MAX, key: None });
        while node.level() > 0 {
            let (mut index, mut rank) = (0, low.rank);
            let mut child = node.child(0);
            while index + 1 < node.len() && rank.saturating_add(child.records) <= wanted {
                rank = rank.saturating_add(child.records);
                index += 1;
                child = node.child(index);
            }
            if index > 0 {
                low = Edge { rank, key: Some(node.key(index)) };
            }
            high.rank = rank.saturating_add(child.records);
            if index + 1 < node.len() {
                high.key = Some(node.key(index + 1));
            }
            if node.level() == 1 {
                let edges = [&low, &high].into_iter().filter(|edge| near.contains(&edge.rank));
                let nearest = edges.min_by_key(|edge| edge.rank.abs_diff(wanted));
                if let Some(key) = nearest.and_then(|edge| edge.key.as_ref()) {
                    return Ok(Some(order.bound(key)));
                }
            }
            node = self.node(child.node, node.level() - 1, Reader::Lookup)?;
        }
        let index = wanted.saturating_sub(low.rank);
        let Some(before) = index.checked_sub(1).filter(|_| index < node.len() as u64) else {
            return Ok(None);
        };
        Ok(Some(order.separator(&node.key(before as usize), &node.key(index as usize))))
    }
}
