//! Policies by name.

use std::fmt;
use std::str::FromStr;

use forebay_base::{Error, Result};

use super::{FACTOR_PERCENT, INLINE_BYTES, KeyRangeTrees, LevelSizes, Policy, RATIO, factor_of};

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMerge => f.write_str("no-merge"),
            Self::Immediate => f.write_str("immediate"),
            Self::Geometric { ratio } => write!(f, "geometric:r={ratio}"),
            Self::Partitions { runs_max } => write!(f, "geometric:p={runs_max}"),
            Self::RangeMerge { trees: None } => f.write_str("range-merge"),
            Self::RangeMerge { trees: Some(KeyRangeTrees { factor_percent, inline_bytes }) } => {
                write!(f, "range-merge:c={}", factor_of(*factor_percent))?;
                write_inline(f, *inline_bytes)
            }
            Self::Leveling { ratio } => write!(f, "leveling:t={ratio}"),
            Self::Tiering { runs_max } => write!(f, "tiering:t={runs_max}"),
            Self::Stacks { pieces_max, is_lazy: false } => write!(f, "stacks:t={pieces_max}"),
            Self::Stacks { pieces_max, is_lazy: true } => write!(f, "lazy-leveling:t={pieces_max}"),
            Self::Jungle { ratio, factor_percent, upper_percent, levels, inline_bytes } => {
                write!(f, "jungle:c={}", factor_of(*factor_percent))?;
                if *ratio != RATIO {
                    write!(f, ",t={ratio}")?;
                }
                if upper_percent != factor_percent {
                    write!(f, ",upper={}", factor_of(*upper_percent))?;
                }
                if *levels != LevelSizes::default() {
                    write!(f, ",levels={levels}")?;
                }
                write_inline(f, *inline_bytes)
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
            ("range-merge", []) => Self::RANGE_MERGE,
            ("range-merge", parameters) => trees(parameters).ok_or_else(unknown)?,
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
                     range-merge[:c=X,inline=N], leveling[:t=N], tiering[:t=N], stacks[:t=N], lazy-leveling[:t=N], \
                     jungle[:c=X,t=N,upper=X,levels=live|total,inline=N]";

/// Jungle with these parameters, each of which comes once at most.
fn jungle(parameters: &[(&str, &str)]) -> Option<Policy> {
    let (mut ratio, mut factor_percent, mut upper_percent) = (None, None, None);
    let (mut levels, mut inline_bytes) = (None, None);
    for (name, value) in parameters {
        let before = match *name {
            "inline" => inline_bytes.replace(value.parse().ok()?).is_some(),
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
        inline_bytes: inline_bytes.unwrap_or(INLINE_BYTES),
    })
}

/// Rangemerge over trees with those of Jungle's parameters that say what trees are like.
fn trees(parameters: &[(&str, &str)]) -> Option<Policy> {
    let are_of_trees = parameters.iter().all(|(name, _)| ["c", "inline"].contains(name));
    let Policy::Jungle { factor_percent, inline_bytes, .. } = jungle(parameters).filter(|_| are_of_trees)?
    else {
        return None;
    };
    Some(Policy::RangeMerge { trees: Some(KeyRangeTrees { factor_percent, inline_bytes }) })
}

fn write_inline(f: &mut fmt::Formatter<'_>, inline_bytes: u32) -> fmt::Result {
    if inline_bytes == INLINE_BYTES { Ok(()) } else { write!(f, ",inline={inline_bytes}") }
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
