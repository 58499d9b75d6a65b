//! Which organisations of runs there are, and what sets them apart: by [name](names) and as [bytes](bytes). What each
//! decides is in [rules](super::rules).

mod bytes;
mod names;

use forebay_base::{Error, Result};

/// Which organisation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Every write buffer is a run forever: the cheapest writes (Rangemerge paper, section III.B).
    NoMerge,
    /// Every write buffer is merged with the one run that there is: the cheapest reads (section III.B).
    Immediate,
    /// Runs grow geometrically: the k-th has between r^(k-1) and (r-1) r^(k-1) write buffers (section III.B).
    Geometric {
        /// r
        ratio: u32,
    },
    /// As geometric, with r chosen so that there are at most this many runs.
    Partitions {
        /// p
        runs_max: u32,
    },
    /// Write buffers stay in memory until their key range is merged: one run for each key range, for half of what
    /// immediate merge writes (section IV).
    RangeMerge {
        /// Where each key range is a tree that what comes is appended to (Jungle paper, section 3), how that is; else it is a
        /// file that is written anew.
        trees: Option<KeyRangeTrees>,
    },
    /// Levels of one run each, each this many times as large as the one above (Jungle paper, section 2.1).
    Leveling {
        /// T
        ratio: u32,
    },
    /// Levels of up to this many runs, which are merged into one of the next level (section 2.1).
    Tiering {
        /// T
        runs_max: u32,
    },
    /// As tiering, but each range of keys of a level is full by itself, with this many pieces, and is merged by itself
    /// (section 2.1).
    Stacks {
        /// T
        pieces_max: u32,
        /// Whether the last level is one run, as in leveling (Dostoevsky's lazy leveling).
        is_lazy: bool,
    },
    /// As leveling, but runs are trees that what comes down is appended to, until they are this many times as long as
    /// what lives of them (Jungle paper, section 3).
    Jungle {
        /// T
        ratio: u32,
        /// C of the last level, in hundredths.
        factor_percent: u32,
        /// That of the levels above it.
        upper_percent: u32,
        /// What counts against a level's share.
        levels: LevelSizes,
        /// Longer values stand beside their leaves.
        inline_bytes: u32,
    },
}

/// Trees that are key ranges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyRangeTrees {
    /// C, in hundredths.
    pub factor_percent: u32,
    /// Longer values stand beside their leaves.
    pub inline_bytes: u32,
}

impl KeyRangeTrees {
    fn new(factor_percent: u32) -> Self {
        Self { factor_percent, inline_bytes: INLINE_BYTES }
    }
}

/// What counts against the share that a level of trees has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LevelSizes {
    /// What lives of it may be as much as leveling allows.
    Live,
    /// Its files may be C times as long as leveling allows (Jungle paper, section 3).
    #[default]
    Total,
}

impl Policy {
    /// Rangemerge over files.
    pub const RANGE_MERGE: Self = Self::RangeMerge { trees: None };

    /// Rangemerge over trees of this C.
    pub(crate) fn range_merge_of_trees(factor: f64) -> Self {
        Self::RangeMerge { trees: Some(KeyRangeTrees::new(percent_of(factor))) }
    }

    /// Jungle of this C, and the rest as usual.
    pub(crate) fn jungle(factor: f64) -> Self {
        let percent = percent_of(factor);
        let levels = LevelSizes::default();
        let (factor_percent, upper_percent) = (percent, percent);
        Self::Jungle { ratio: RATIO, factor_percent, upper_percent, levels, inline_bytes: INLINE_BYTES }
    }

    /// Whether write buffers stay in memory as long as there is room: no file has their records until then.
    pub(crate) fn keeps_new_records_resident(self) -> bool {
        matches!(self, Self::RangeMerge { .. })
    }

    /// Whether one key range is merged at a time, of all runs, rather than some runs. Jobs hold key ranges then.
    pub(crate) fn merges_key_ranges(self) -> bool {
        matches!(self, Self::RangeMerge { .. })
    }

    /// Whether what is merged into a level ends where files of it do, so that each piece lies in one stack.
    pub(crate) fn divides_among_files(self) -> bool {
        matches!(self, Self::Stacks { .. })
    }

    /// Whether there are runs of trees, to which records can be appended.
    pub(crate) fn grows_trees(self) -> bool {
        matches!(self, Self::Jungle { .. } | Self::RangeMerge { trees: Some(_) })
    }

    /// Up to how many bytes values lie in the leaves of trees.
    pub(crate) fn inline_bytes(self) -> u32 {
        match self {
            Self::Jungle { inline_bytes, .. }
            | Self::RangeMerge { trees: Some(KeyRangeTrees { inline_bytes, .. }) } => inline_bytes,
            _ => INLINE_BYTES,
        }
    }

    /// How long a run's files are where nothing is said of that, with write buffers of this size.
    pub(crate) fn usual_file_bytes(self, write_buffer_bytes: u64) -> u64 {
        let bytes = match self {
            // Each eviction makes one, and has a piece of each write buffer: of shorter files there are too many of both.
            Self::RangeMerge { trees: None } => write_buffer_bytes.saturating_mul(2),
            // A tree gets longer before it is several.
            _ => write_buffer_bytes,
        };
        bytes.min(FILE_BYTES)
    }

    /// Says which parameter is out of its bounds.
    pub fn validate(&self) -> Result<()> {
        let (name, value, least) = match *self {
            Self::NoMerge | Self::Immediate | Self::RangeMerge { trees: None } => return Ok(()),
            Self::RangeMerge { trees: Some(KeyRangeTrees { factor_percent, inline_bytes }) } => {
                validate_factor("range-merge: c", factor_percent)?;
                return validate_inline("range-merge: inline", inline_bytes);
            }
            Self::Geometric { ratio } => ("geometric: r", ratio, 2),
            Self::Partitions { runs_max } => ("geometric: p", runs_max, 1),
            Self::Leveling { ratio } => ("leveling: t", ratio, 2),
            Self::Tiering { runs_max } => ("tiering: t", runs_max, 2),
            Self::Stacks { pieces_max, is_lazy: false } => ("stacks: t", pieces_max, 2),
            Self::Stacks { pieces_max, is_lazy: true } => ("lazy-leveling: t", pieces_max, 2),
            Self::Jungle { ratio, factor_percent, upper_percent, inline_bytes, .. } => {
                validate_factor("jungle: c", factor_percent)?;
                validate_factor("jungle: upper", upper_percent)?;
                validate_inline("jungle: inline", inline_bytes)?;
                ("jungle: t", ratio, 2)
            }
        };
        if (least..=PARAMETER_MAX).contains(&value) {
            return Ok(());
        }
        Err(Error::invalid(format!("{name} is {value}; it must be between {least} and {PARAMETER_MAX}")))
    }
}

/// A run's files are no longer than this by default.
const FILE_BYTES: u64 = 64 << 20;
/// More than this is none of the organisations any more.
const PARAMETER_MAX: u32 = 1000;
/// T where none is given.
const RATIO: u32 = 10;
/// C where none is given, and what it may be: with less, trees are written anew for every batch.
const FACTOR_PERCENT: u32 = 300;
pub(super) const FACTOR_PERCENT_MIN: u32 = 110;
pub(super) const FACTOR_PERCENT_MAX: u32 = 100_000;

/// Values up to this length lie in leaves where nothing is said of that, and what may be said: a node has 4 KiB.
const INLINE_BYTES: u32 = 64;
const INLINE_BYTES_MAX: u32 = 1024;

const _: () = assert!(
    RATIO <= PARAMETER_MAX && FACTOR_PERCENT >= FACTOR_PERCENT_MIN && FACTOR_PERCENT <= FACTOR_PERCENT_MAX,
    "what is usual is within bounds"
);

fn validate_inline(name: &str, inline_bytes: u32) -> Result<()> {
    if inline_bytes <= INLINE_BYTES_MAX {
        return Ok(());
    }
    Err(Error::invalid(format!("{name} is {inline_bytes}; it must be between 0 and {INLINE_BYTES_MAX}")))
}

fn percent_of(factor: f64) -> u32 {
    (factor * 100.0).round() as u32
}

fn validate_factor(name: &str, percent: u32) -> Result<()> {
    let [least, most] = [FACTOR_PERCENT_MIN, FACTOR_PERCENT_MAX];
    if (least..=most).contains(&percent) {
        return Ok(());
    }
    let [least, most, found] = [least, most, percent].map(factor_of);
    Err(Error::invalid(format!("{name} is {found}; it must be between {least} and {most}")))
}

pub(super) fn factor_of(percent: u32) -> f64 {
    f64::from(percent) / 100.0
}
