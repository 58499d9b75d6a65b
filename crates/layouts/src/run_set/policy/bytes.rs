//! Policies as bytes, in the options of a table.

use forebay_base::wire::{Reader, put_varint};

use super::{INLINE_BYTES, KeyRangeTrees, LevelSizes, Policy};

/// What is said of Jungle beside T and C: that levels go by how long their files are, that those above the last have
/// another C, which follows, and how long values in leaves are, which follows then.
const LEVELS_TOTAL: u8 = 1;
const UPPER: u8 = 2;
const INLINE: u8 = 4;

impl Policy {
    /// Whether it is Jungle with more than T and C.
    fn says_more(self) -> bool {
        matches!(self, Self::Jungle { factor_percent, upper_percent, levels, inline_bytes, .. }
            if upper_percent != factor_percent || levels != LevelSizes::Live || inline_bytes != INLINE_BYTES)
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
            Self::RangeMerge { trees: None } => (6, 0),
            Self::RangeMerge { trees: Some(trees) } => (11, trees.factor_percent),
            Self::Jungle { ratio, .. } => (if self.says_more() { 8 } else { 7 }, ratio),
            Self::Stacks { pieces_max, is_lazy: false } => (9, pieces_max),
            Self::Stacks { pieces_max, is_lazy: true } => (10, pieces_max),
        };
        out.push(kind);
        put_varint(out, parameter.into());
        if let Self::RangeMerge { trees: Some(trees) } = self {
            put_varint(out, trees.inline_bytes.into());
        }
        if let Self::Jungle { factor_percent, upper_percent, levels, inline_bytes, .. } = self {
            put_varint(out, factor_percent.into());
            if kind == 8 {
                let is_total = if levels == LevelSizes::Total { LEVELS_TOTAL } else { 0 };
                let is_inline = if inline_bytes == INLINE_BYTES { 0 } else { INLINE };
                out.push(is_total | UPPER | is_inline);
                put_varint(out, upper_percent.into());
                if is_inline > 0 {
                    put_varint(out, inline_bytes.into());
                }
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
            6 => Self::RANGE_MERGE,
            11 => {
                let inline_bytes = u32::try_from(from.varint()?).ok()?;
                Self::RangeMerge { trees: Some(KeyRangeTrees { factor_percent: parameter, inline_bytes }) }
            }
            7 | 8 => {
                let factor_percent = u32::try_from(from.varint()?).ok()?;
                let said = if kind == 8 { from.u8()? } else { 0 };
                let upper_percent = match said & UPPER {
                    0 => factor_percent,
                    _ => u32::try_from(from.varint()?).ok()?,
                };
                let levels = if said & LEVELS_TOTAL > 0 { LevelSizes::Total } else { LevelSizes::Live };
                let inline_bytes = match said & INLINE {
                    0 => INLINE_BYTES,
                    _ => u32::try_from(from.varint()?).ok()?,
                };
                if said & !(LEVELS_TOTAL | UPPER | INLINE) > 0 {
                    return None;
                }
                Self::Jungle { ratio: parameter, factor_percent, upper_percent, levels, inline_bytes }
            }
            9 | 10 => Self::Stacks { pieces_max: parameter, is_lazy: kind == 10 },
            _ => return None,
        };
        policy.validate().ok()?;
        Some(policy)
    }
}
