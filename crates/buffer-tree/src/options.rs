//! What a tree can be told. The options are part of its snapshot: thresholds must survive a restart.

use forebay_base::{Error, Result};

use crate::NodeId;

/// The golden ratio's fraction in 64 bits: multiples of it are spread evenly however many there are.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// How big nodes are, and when they are merged rather than split where they stand.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TreeOptions {
    /// The capacity of a node: the paper's *B*.
    pub node_bytes: u64,
    /// The most children of an inner node before it splits; at least 2. See [`Self::children_max`].
    pub fan_out: usize,
    /// How many times a leaf's lineage splits fast before it splits slowly. At 0 all splits are slow,
    /// but for those of a leaf that is fully merged: merging it again would gain nothing.
    pub fast_per_slow: u32,
    /// A leaf with more lists than this, or than a share of it from 0.6 on, is merged.
    pub lists_max: usize,
    /// A node in which a key is held more often than this, on average, is spilled or merged: the bound on
    /// memory amplification of the paper's section 6.
    pub repeats_max: f64,
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self { node_bytes: 64 << 20, fan_out: 256, fast_per_slow: 8, lists_max: 128, repeats_max: 2.0 }
    }
}

impl TreeOptions {
    /// Says which option is out of its bounds.
    pub fn validate(&self) -> Result<()> {
        if self.node_bytes == 0 {
            return Err(Error::invalid("node_bytes is 0; a node must hold something"));
        }
        if self.fan_out < 2 {
            return Err(Error::invalid(format!("fan_out is {}; it must be at least 2", self.fan_out)));
        }
        if self.lists_max == 0 {
            return Err(Error::invalid("lists_max is 0; it must be at least 1"));
        }
        if self.repeats_max.is_nan() || self.repeats_max <= 1.0 {
            return Err(Error::invalid(format!("repeats_max is {}; it must be above 1", self.repeats_max)));
        }
        Ok(())
    }

    /// The most children of an inner node before it splits: `fan_out`, or 3 where that is less. Both halves
    /// of a split must have two children, or chains of only children would make the tree higher and higher.
    pub fn children_max(&self) -> usize {
        self.fan_out.max(3)
    }

    /// The size at which this node is full: between 0.6 and 1.0 of `node_bytes`. Under uniform hashes all
    /// nodes of a level would otherwise fill at the same time, and one flush could set off the
    /// rewriting of the whole tree.
    pub fn threshold_bytes(&self, id: NodeId) -> u64 {
        ((self.node_bytes as f64 * share_of(id)) as u64).max(1)
    }

    /// How many lists this leaf may have: between 0.6 and 1.0 of `lists_max`, for the same reason. Each spill gives
    /// every leaf below a node one more list.
    pub(crate) fn lists_limit(&self, id: NodeId) -> usize {
        ((self.lists_max as f64 * share_of(id)) as usize).max(1)
    }
}

/// Which share of a limit a node has: from 0.6 to 1.0.
fn share_of(id: NodeId) -> f64 {
    let share = 0.6 + 0.4 * (id.0.wrapping_mul(GOLDEN) as f64 / u64::MAX as f64);
    debug_assert!((0.6..=1.0).contains(&share));
    share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_of_siblings_are_spread_over_their_span() {
        let options = TreeOptions { node_bytes: 1000, ..TreeOptions::default() };
        for first in [1, 1000, u64::MAX / 3] {
            let mut thresholds: Vec<u64> =
                (first..first + 16).map(|id| options.threshold_bytes(NodeId(id))).collect();
            thresholds.sort_unstable();
            assert!(thresholds[0] >= 600 && thresholds[15] <= 1000, "{thresholds:?}");
            let gaps = thresholds.windows(2).map(|pair| pair[1] - pair[0]);
            assert!(gaps.clone().min() > Some(8) && gaps.max() < Some(60), "{thresholds:?}");
        }
    }

    #[test]
    fn options_out_of_bounds_are_named() {
        let good = TreeOptions::default();
        assert!(good.validate().is_ok());
        for (bad, name) in [
            (TreeOptions { node_bytes: 0, ..good }, "node_bytes"),
            (TreeOptions { fan_out: 1, ..good }, "fan_out"),
            (TreeOptions { lists_max: 0, ..good }, "lists_max"),
            (TreeOptions { repeats_max: f64::NAN, ..good }, "repeats_max"),
        ] {
            assert!(bad.validate().is_err_and(|error| error.to_string().contains(name)));
        }
    }
}
