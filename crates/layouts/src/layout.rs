//! Layouts: how a table's records are organised, by name.

use std::fmt;
use std::str::FromStr;

use forebay_base::wire::Reader;
use forebay_base::{Error, Order, Result};

use crate::run_set::Policy;

/// How a table's records are organised on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// The WB tree: fastest to write; in hash order, or in key order for ranges.
    WbTree {
        /// Whether keys are kept in their own order.
        ordered: bool,
    },
    /// Sorted runs in key order, merged by this policy.
    RunSet(Policy),
}

impl Layout {
    /// The WB tree in hash order.
    pub fn wb_tree() -> Self {
        Self::WbTree { ordered: false }
    }

    /// The WB tree in key order.
    pub fn wb_tree_ordered() -> Self {
        Self::WbTree { ordered: true }
    }

    /// Every write buffer a run forever.
    pub fn no_merge() -> Self {
        Self::RunSet(Policy::NoMerge)
    }

    /// One run for each key range, with write buffers in memory until their range is merged.
    pub fn range_merge() -> Self {
        Self::RunSet(Policy::RANGE_MERGE)
    }

    /// As [`range_merge`](Self::range_merge), but each key range is a tree that what comes is appended to, until its file
    /// is `factor` times as long as what lives of it.
    pub fn range_merge_of_trees(factor: f64) -> Self {
        Self::RunSet(Policy::range_merge_of_trees(factor))
    }

    /// Levels of one run each, each `ratio` times as large as the one above.
    pub fn leveling(ratio: u32) -> Self {
        Self::RunSet(Policy::Leveling { ratio })
    }

    /// Levels of up to `runs_max` runs, which are merged into one of the next level.
    pub fn tiering(runs_max: u32) -> Self {
        Self::RunSet(Policy::Tiering { runs_max })
    }

    /// As tiering, but each range of keys of a level, once it has `pieces_max` pieces, is merged by itself and divided among
    /// those below.
    pub fn stacks(pieces_max: u32) -> Self {
        Self::RunSet(Policy::Stacks { pieces_max, is_lazy: false })
    }

    /// As [`stacks`](Self::stacks), but the last level is one run, which what comes down is merged with.
    pub fn lazy_leveling(pieces_max: u32) -> Self {
        Self::RunSet(Policy::Stacks { pieces_max, is_lazy: true })
    }

    /// As leveling with T = 10, of trees that are appended to until their files are `factor` times as long as what
    /// lives of them.
    pub fn jungle(factor: f64) -> Self {
        Self::RunSet(Policy::jungle(factor))
    }

    /// Whether it is one tree of nodes, each with lists of its own, rather than runs of files.
    pub fn has_nodes(&self) -> bool {
        matches!(self, Self::WbTree { .. })
    }

    /// Whether it keeps records in trees that grow.
    pub fn grows_trees(&self) -> bool {
        matches!(self, Self::RunSet(policy) if policy.grows_trees())
    }

    /// Up to how many bytes values lie in the leaves of its trees, if it has any.
    pub fn inline_bytes(&self) -> u32 {
        match self {
            Self::RunSet(policy) => policy.inline_bytes(),
            Self::WbTree { .. } => Policy::RANGE_MERGE.inline_bytes(),
        }
    }

    /// Whether it keeps records in memory that no file has.
    pub fn keeps_in_memory(&self) -> bool {
        matches!(self, Self::RunSet(policy) if policy.keeps_new_records_resident())
    }

    /// Whether it has a place for what another layout keeps in memory, until that is in files.
    pub fn takes_residents(&self) -> bool {
        matches!(self, Self::RunSet(_))
    }

    /// Whether it has a use for trees that another layout has left.
    pub fn takes_trees(&self) -> bool {
        matches!(self, Self::RunSet(_))
    }

    /// Whether ranges of keys can be scanned.
    pub fn is_ordered(&self) -> bool {
        !matches!(self, Self::WbTree { ordered: false })
    }

    /// The order of its records in a database with this seed.
    pub fn order(&self, seed: u64) -> Order {
        if self.is_ordered() { Order::Lexical } else { Order::Hashed { seed } }
    }

    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        match self {
            Self::WbTree { ordered } => out.push(ordered.into()),
            Self::RunSet(policy) => {
                out.push(RUN_SET);
                policy.encode(out);
            }
        }
    }

    pub(crate) fn decode(from: &mut Reader<'_>) -> Option<Self> {
        match from.u8()? {
            ordered @ (0 | 1) => Some(Self::WbTree { ordered: ordered == 1 }),
            RUN_SET => Policy::decode(from).map(Self::RunSet),
            _ => None,
        }
    }
}

const RUN_SET: u8 = 2;

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WbTree { ordered: false } => f.write_str("wb-tree"),
            Self::WbTree { ordered: true } => f.write_str("wb-tree:ordered"),
            Self::RunSet(policy) => policy.fmt(f),
        }
    }
}

impl FromStr for Layout {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "wb-tree" | "write-buffer" => Ok(Self::wb_tree()),
            "wb-tree:ordered" | "write-buffer:ordered" => Ok(Self::wb_tree_ordered()),
            _ => text
                .parse()
                .map(Self::RunSet)
                .map_err(|error: Error| Error::invalid(format!("layout: {error}"))),
        }
    }
}
