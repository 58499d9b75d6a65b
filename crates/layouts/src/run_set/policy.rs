//! Which organisations of runs there are, by name and as bytes. What each decides is in [rules](super::rules).

use std::fmt;
use std::str::FromStr;

use forebay_base::wire::{Reader, put_varint};
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
    RangeMerge,
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
    },
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
    /// Jungle of this C, and the rest as usual.
    pub(crate) fn jungle(factor: f64) -> Self {
        let percent = (factor * 100.0).round() as u32;
        let levels = LevelSizes::default();
        Self::Jungle { ratio: RATIO, factor_percent: percent, upper_percent: percent, levels }
    }

    /// Whether write buffers stay in memory as long as there is room: no file has their records until then.
    pub(crate) fn keeps_new_records_resident(self) -> bool {
        self == Self::RangeMerge
    }

    /// Whether one key range is merged at a time, of all runs, rather than some runs. Jobs hold key ranges then.
    pub(crate) fn merges_key_ranges(self) -> bool {
        self == Self::RangeMerge
    }

    /// Whether what is merged into a level ends where files of it do, so that each piece lies in one stack.
    pub(crate) fn divides_among_files(self) -> bool {
        matches!(self, Self::Stacks { .. })
    }

    /// Whether it is Jungle with more than T and C.
    fn says_more(self) -> bool {
        matches!(self, Self::Jungle { factor_percent, upper_percent, levels, .. }
            if upper_percent != factor_percent || levels != LevelSizes::Live)
    }

    /// Whether there are runs of trees, to which records can be appended.
    pub(crate) fn grows_trees(self) -> bool {
        matches!(self, Self::Jungle { .. })
    }

    /// How long a run's files are where nothing is said of that, with write buffers of this size.
    pub(crate) fn usual_file_bytes(self, write_buffer_bytes: u64) -> u64 {
        let bytes = match self.merges_key_ranges() {
            // Each eviction makes one, and has a piece of each write buffer: of shorter files there are too many of both.
            true => write_buffer_bytes.saturating_mul(2),
            false => write_buffer_bytes,
        };
        bytes.min(FILE_BYTES)
    }

    /// Says which parameter is out of its bounds.
    pub fn validate(&self) -> Result<()> {
        let (name, value, least) = match *self {
            Self::NoMerge | Self::Immediate | Self::RangeMerge => return Ok(()),
            Self::Geometric { ratio } => ("geometric: r", ratio, 2),
            Self::Partitions { runs_max } => ("geometric: p", runs_max, 1),
            Self::Leveling { ratio } => ("leveling: t", ratio, 2),
            Self::Tiering { runs_max } => ("tiering: t", runs_max, 2),
            Self::Stacks { pieces_max, is_lazy: false } => ("stacks: t", pieces_max, 2),
            Self::Stacks { pieces_max, is_lazy: true } => ("lazy-leveling: t", pieces_max, 2),
            Self::Jungle { ratio, .. } => ("jungle: t", ratio, 2),
        };
        if let Self::Jungle { factor_percent, upper_percent, .. } = *self {
            let [least, most] = [FACTOR_PERCENT_MIN, FACTOR_PERCENT_MAX];
            let asked = [("c", factor_percent), ("upper", upper_percent)];
            if let Some((name, found)) = asked.into_iter().find(|(_, found)| !(least..=most).contains(found))
            {
                let [least, most, found] = [least, most, found].map(factor_of);
                return Err(Error::invalid(format!(
                    "jungle: {name} is {found}; it must be between {least} and {most}"
                )));
            }
        }
        if (least..=PARAMETER_MAX).contains(&value) {
            return Ok(());
        }
        Err(Error::invalid(format!("{name} is {value}; it must be between {least} and {PARAMETER_MAX}")))
    }

    /// Appends the policy's bytes.
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        let start = out.len();
        let (kind, parameter) = match self {
            Self::NoMerge => (0, 0),
            Self::Immediate => (1, 0),
            Self::Geometric { ratio } => (2, ratio),
            Self::Partitions { runs_max } => (3, runs_max),
            Self::Leveling { ratio } => (4, ratio),
            Self::Tiering { runs_max } => (5, runs_max),
            Self::RangeMerge => (6, 0),
            Self::Jungle { ratio, .. } => (if self.says_more() { 8 } else { 7 }, ratio),
            Self::Stacks { pieces_max, is_lazy: false } => (9, pieces_max),
            Self::Stacks { pieces_max, is_lazy: true } => (10, pieces_max),
        };
        out.push(kind);
        put_varint(out, parameter.into());
        if let Self::Jungle { factor_percent, upper_percent, levels, .. } = self {
            put_varint(out, factor_percent.into());
            if kind == 8 {
                let is_total = if levels == LevelSizes::Total { LEVELS_TOTAL } else { 0 };
                out.push(is_total | UPPER);
                put_varint(out, upper_percent.into());
            }
        }
        debug_assert_eq!(Self::decode(&mut Reader::new(&out[start..])), Some(self), "what is put is read");
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
            7 | 8 => {
                let factor_percent = u32::try_from(from.varint()?).ok()?;
                let said = if kind == 8 { from.u8()? } else { 0 };
                let upper_percent = match said & UPPER {
                    0 => factor_percent,
                    _ => u32::try_from(from.varint()?).ok()?,
                };
                let levels = if said & LEVELS_TOTAL > 0 { LevelSizes::Total } else { LevelSizes::Live };
                if said & !(LEVELS_TOTAL | UPPER) > 0 {
                    return None;
                }
                Self::Jungle { ratio: parameter, factor_percent, upper_percent, levels }
            }
            9 | 10 => Self::Stacks { pieces_max: parameter, is_lazy: kind == 10 },
            _ => return None,
        };
        policy.validate().ok()?;
        Some(policy)
    }
}

/// What is said of Jungle beside T and C: that levels go by how long their files are, and that those above the last have
/// another C, which follows.
const LEVELS_TOTAL: u8 = 1;
const UPPER: u8 = 2;
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

const _: () = assert!(
    RATIO <= PARAMETER_MAX && FACTOR_PERCENT >= FACTOR_PERCENT_MIN && FACTOR_PERCENT <= FACTOR_PERCENT_MAX,
    "what is usual is within bounds"
);

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
            Self::Stacks { pieces_max, is_lazy: false } => write!(f, "stacks:t={pieces_max}"),
            Self::Stacks { pieces_max, is_lazy: true } => write!(f, "lazy-leveling:t={pieces_max}"),
            Self::Jungle { ratio, factor_percent, upper_percent, levels } => {
                write!(f, "jungle:c={}", factor_of(*factor_percent))?;
                if *ratio != RATIO {
                    write!(f, ",t={ratio}")?;
                }
                if upper_percent != factor_percent {
                    write!(f, ",upper={}", factor_of(*upper_percent))?;
                }
                if *levels == LevelSizes::default() { Ok(()) } else { write!(f, ",levels={levels}") }
            }
        }
    }
}

impl fmt::Display for LevelSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Live => "live",
            Self::Total => "total",
        })
    }
}

impl FromStr for Policy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let unknown = || Error::invalid(format!("`{text}` is not one of {NAMES}"));
        let (name, parameters) = match text.split_once(':') {
            Some((name, list)) => {
                let pairs: Option<Vec<_>> = list.split(',').map(|pair| pair.split_once('=')).collect();
                (name, pairs.ok_or_else(unknown)?)
            }
            None => (text, Vec::new()),
        };
        let number = |value: &str| value.parse::<u32>().map_err(|_| unknown());
        let policy = match (name, &parameters[..]) {
            ("no-merge", []) => Self::NoMerge,
            ("immediate", []) => Self::Immediate,
            ("geometric", [("r", ratio)]) => Self::Geometric { ratio: number(ratio)? },
            ("geometric", [("p", runs_max)]) => Self::Partitions { runs_max: number(runs_max)? },
            ("range-merge", []) => Self::RangeMerge,
            ("leveling", []) => Self::Leveling { ratio: RATIO },
            ("leveling", [("t", ratio)]) => Self::Leveling { ratio: number(ratio)? },
            ("tiering", []) => Self::Tiering { runs_max: RATIO },
            ("tiering", [("t", runs_max)]) => Self::Tiering { runs_max: number(runs_max)? },
            ("stacks", []) => Self::Stacks { pieces_max: RATIO, is_lazy: false },
            ("stacks", [("t", pieces)]) => Self::Stacks { pieces_max: number(pieces)?, is_lazy: false },
            ("lazy-leveling", []) => Self::Stacks { pieces_max: RATIO, is_lazy: true },
            ("lazy-leveling", [("t", pieces)]) => Self::Stacks { pieces_max: number(pieces)?, is_lazy: true },
            ("jungle", parameters) => jungle(parameters).ok_or_else(unknown)?,
            _ => return Err(unknown()),
        };
        policy.validate()?;
        Ok(policy)
    }
}

/// What a layout may be called: what [`Policy::from_str`] understands is among it.
const NAMES: &str = "wb-tree, wb-tree:ordered, no-merge, immediate, geometric:r=N, geometric:p=N, \
                     range-merge, leveling[:t=N], tiering[:t=N], stacks[:t=N], lazy-leveling[:t=N], \
                     jungle[:c=X,t=N,upper=X,levels=live|total]";

/// Jungle with these parameters, each of which comes once at most.
fn jungle(parameters: &[(&str, &str)]) -> Option<Policy> {
    let (mut ratio, mut factor_percent, mut upper_percent) = (None, None, None);
    let mut levels = None;
    for (name, value) in parameters {
        let before = match *name {
            "t" => ratio.replace(value.parse().ok()?).is_some(),
            "c" => factor_percent.replace(percent(value)?).is_some(),
            "upper" => upper_percent.replace(percent(value)?).is_some(),
            "levels" => levels.replace(one_of(value, [LevelSizes::Live, LevelSizes::Total])?).is_some(),
            _ => true,
        };
        if before {
            return None;
        }
    }
    let factor_percent = factor_percent.unwrap_or(FACTOR_PERCENT);
    Some(Policy::Jungle {
        ratio: ratio.unwrap_or(RATIO),
        factor_percent,
        upper_percent: upper_percent.unwrap_or(factor_percent),
        levels: levels.unwrap_or_default(),
    })
}

fn one_of<T: fmt::Display>(text: &str, all: [T; 2]) -> Option<T> {
    all.into_iter().find(|one| one.to_string() == text)
}

/// A number of at most two places behind the point, in hundredths.
fn percent(value: &str) -> Option<u32> {
    let percent = value.parse::<f64>().ok()? * 100.0;
    let rounded = percent.round();
    let is_whole = (percent - rounded).abs() < 1e-6 && (0.0..=f64::from(u32::MAX)).contains(&rounded);
    is_whole.then_some(rounded as u32)
}

pub(super) fn factor_of(percent: u32) -> f64 {
    f64::from(percent) / 100.0
}
