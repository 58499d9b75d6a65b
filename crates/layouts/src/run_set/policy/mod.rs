//! The organisations of key-ordered runs. Each is a pure rule over a [`RunSet`]: what a write buffer is merged with as
//! it is written, and what is merged after that.

mod geometric;
mod leveling;
pub(super) mod range_merge;
mod tiering;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use forebay_base::wire::{Reader, put_varint};
use forebay_base::{Error, Range, Result};
use forebay_buffer_tree::{Fragment, NodeId};

use super::set::{Run, RunSet};
use geometric::Shape;

/// Which organisation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Every write buffer is a run for ever: the cheapest writes (Rangemerge paper, section III.B).
    NoMerge,
    /// Every write buffer is merged with the one run that there is: the cheapest reads (section III.B).
    Immediate,
    /// Runs grow geometrically: the k-th has between r^(k-1) and (r-1) r^(k-1) write buffers (section III.B).
    Geometric {
        /// r
        ratio: u32,
    },
    /// As geometric, with r chosen so that there are at most so many runs.
    Partitions {
        /// p
        runs_max: u32,
    },
    /// Write buffers stay in memory until their key range is merged: one run for each key range, for half of what
    /// immediate merge writes (section IV).
    RangeMerge,
    /// Levels of one run each, each so many times as large as the one above (Jungle paper, section 2.1).
    Leveling {
        /// T
        ratio: u32,
    },
    /// Levels of up to so many runs, which are merged into one of the next level (section 2.1).
    Tiering {
        /// T
        runs_max: u32,
    },
}

/// Where write buffers stay that a policy keeps in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// Whether they do: the records of a table that merges go to disk at once, and are merged from there.
    pub resides: bool,
    /// Bytes of records.
    pub bytes: u64,
    /// The most write buffers that something of is kept: the log is as long.
    pub runs_max: usize,
}

/// A write buffer's way into the runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Flush {
    /// With how many of the newest runs it is merged.
    pub(super) runs: usize,
    /// The level of the run that this makes.
    pub(super) level: u32,
}

/// What a policy wants done next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// These runs become one, slice by slice: one that is there, or a new one.
    Merge { inputs: Vec<NodeId>, into: Option<NodeId>, level: u32 },
    /// A run's part of this number goes to the next level.
    Push { run: NodeId, part: usize },
    /// A run goes to another level as it is.
    Relabel { run: NodeId, level: u32 },
    /// All that runs have of a range becomes part of the oldest.
    Evict(Range),
}

impl Policy {
    /// How a write buffer of so many bytes is written; at least so many runs in front are resident and go with it.
    pub(super) fn flush<F>(self, set: &RunSet<F>, bytes: u64, residents: usize) -> Flush {
        match self {
            Self::NoMerge | Self::RangeMerge | Self::Leveling { .. } | Self::Tiering { .. } => {
                Flush { runs: residents, level: 0 }
            }
            Self::Immediate => Flush { runs: set.runs.len(), level: 0 },
            Self::Geometric { ratio } => geometric::flush(set, bytes, residents, Shape::Ratio(ratio)),
            Self::Partitions { runs_max } => geometric::flush(set, bytes, residents, Shape::Runs(runs_max)),
        }
    }

    /// Whether no write buffer can be taken into memory.
    pub(super) fn is_full<F>(self, set: &RunSet<F>, room: Room) -> bool {
        self == Self::RangeMerge && range_merge::is_full(set, room)
    }

    /// What should be done next with runs that `is_free` says yes to.
    pub(super) fn next<F: Fragment>(
        self,
        set: &RunSet<F>,
        room: Room,
        is_free: impl Fn(NodeId) -> bool,
    ) -> Option<Step> {
        match self {
            Self::NoMerge => None,
            Self::Immediate => merge_into_one(set, is_free),
            Self::Geometric { ratio } => geometric::next(set, Shape::Ratio(ratio), is_free),
            Self::Partitions { runs_max } => geometric::next(set, Shape::Runs(runs_max), is_free),
            Self::RangeMerge => range_merge::victim(set, room, is_free).map(Step::Evict),
            Self::Leveling { ratio } => leveling::next(set, ratio, is_free),
            Self::Tiering { runs_max } => tiering::next(set, runs_max as usize, is_free),
        }
    }

    /// Bytes above the policy's limits.
    pub(super) fn debt_bytes<F>(self, set: &RunSet<F>, room: Room) -> u64 {
        match self {
            Self::RangeMerge => range_merge::debt_bytes(set, room),
            Self::Geometric { ratio } => geometric::debt_bytes(set, Shape::Ratio(ratio)),
            Self::Partitions { runs_max } => geometric::debt_bytes(set, Shape::Runs(runs_max)),
            Self::Leveling { ratio } => leveling::debt_bytes(set, ratio),
            Self::Tiering { runs_max } => tiering::debt_bytes(set, runs_max as usize),
            _ => 0,
        }
    }

    /// Says which parameter is out of its bounds.
    pub fn validate(&self) -> Result<()> {
        let (name, value, least) = match *self {
            Self::NoMerge | Self::Immediate | Self::RangeMerge => return Ok(()),
            Self::Geometric { ratio } => ("geometric: r", ratio, 2),
            Self::Partitions { runs_max } => ("geometric: p", runs_max, 1),
            Self::Leveling { ratio } => ("leveling: t", ratio, 2),
            Self::Tiering { runs_max } => ("tiering: t", runs_max, 2),
        };
        if (least..=PARAMETER_MAX).contains(&value) {
            return Ok(());
        }
        Err(Error::invalid(format!("{name} is {value}; it must be between {least} and {PARAMETER_MAX}")))
    }

    /// Appends the policy's bytes.
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        let (kind, parameter) = match self {
            Self::NoMerge => (0, 0),
            Self::Immediate => (1, 0),
            Self::Geometric { ratio } => (2, ratio),
            Self::Partitions { runs_max } => (3, runs_max),
            Self::Leveling { ratio } => (4, ratio),
            Self::Tiering { runs_max } => (5, runs_max),
            Self::RangeMerge => (6, 0),
        };
        out.push(kind);
        put_varint(out, parameter.into());
    }

    /// Reads a policy that is valid.
    pub(crate) fn decode(from: &mut Reader<'_>) -> Option<Self> {
        let kind = from.u8()?;
        let parameter = u32::try_from(from.varint()?).ok()?;
        let policy = match kind {
            0 => Self::NoMerge,
            1 => Self::Immediate,
            2 => Self::Geometric { ratio: parameter },
            3 => Self::Partitions { runs_max: parameter },
            4 => Self::Leveling { ratio: parameter },
            5 => Self::Tiering { runs_max: parameter },
            6 => Self::RangeMerge,
            _ => return None,
        };
        policy.validate().ok()?;
        Some(policy)
    }
}

/// More than this is none of the organisations any more.
const PARAMETER_MAX: u32 = 1000;
/// T where none is given.
const RATIO: u32 = 10;

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMerge => f.write_str("no-merge"),
            Self::Immediate => f.write_str("immediate"),
            Self::Geometric { ratio } => write!(f, "geometric:r={ratio}"),
            Self::Partitions { runs_max } => write!(f, "geometric:p={runs_max}"),
            Self::RangeMerge => f.write_str("range-merge"),
            Self::Leveling { ratio } => write!(f, "leveling:t={ratio}"),
            Self::Tiering { runs_max } => write!(f, "tiering:t={runs_max}"),
        }
    }
}

impl FromStr for Policy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let unknown = || Error::invalid(format!("`{text}` is none of {NAMES}"));
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => {
                let (letter, value) = parameter.split_once('=').ok_or_else(unknown)?;
                (name, Some((letter, value.parse::<u32>().map_err(|_| unknown())?)))
            }
            None => (text, None),
        };
        let policy = match (name, parameter) {
            ("no-merge", None) => Self::NoMerge,
            ("immediate", None) => Self::Immediate,
            ("geometric", Some(("r", ratio))) => Self::Geometric { ratio },
            ("geometric", Some(("p", runs_max))) => Self::Partitions { runs_max },
            ("range-merge", None) => Self::RangeMerge,
            ("leveling", None) => Self::Leveling { ratio: RATIO },
            ("leveling", Some(("t", ratio))) => Self::Leveling { ratio },
            ("tiering", None) => Self::Tiering { runs_max: RATIO },
            ("tiering", Some(("t", runs_max))) => Self::Tiering { runs_max },
            _ => return Err(unknown()),
        };
        policy.validate()?;
        Ok(policy)
    }
}

/// What [`Policy::from_str`] understands.
const NAMES: &str =
    "no-merge, immediate, geometric:r=N, geometric:p=N, range-merge, leveling[:t=N], tiering[:t=N]";

/// Merges what another organisation left behind.
fn merge_into_one<F>(set: &RunSet<F>, is_free: impl Fn(NodeId) -> bool) -> Option<Step> {
    let oldest = set.runs.last().filter(|_| set.runs.len() > 1)?;
    merge(&set.runs, None, oldest.level, is_free)
}

/// The merge of some runs, if all of them are free.
fn merge<F>(
    runs: &[Arc<Run<F>>],
    into: Option<NodeId>,
    level: u32,
    is_free: impl Fn(NodeId) -> bool,
) -> Option<Step> {
    let inputs: Vec<NodeId> = runs.iter().map(|run| run.id).collect();
    inputs.iter().all(|&id| is_free(id)).then_some(Step::Merge { inputs, into, level })
}
