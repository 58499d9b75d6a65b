//! What the columns of the output hold, where that has to be known before it is written.

use std::ops::RangeInclusive;

use forebay::Error;
use forebay_aggregate::{AnswerKind, Value};

use super::engine::Measure;
use super::groups::{Groups, Held};
use super::labels::{GROUPING, Labels};
use super::taken::{Give, for_each_part, parts};

/// So many groups are looked at together.
const PART_GROUPS: RangeInclusive<u64> = 4 << 10..=16 << 10;

/// What the columns hold: of those of the key, and of every answer.
pub(super) fn kinds<A: Measure>(
    groups: &Groups<A>,
    labels: &Labels,
    key_names: &[String],
) -> Result<Vec<Kind>, Error> {
    let of_key = |name: &String| match labels {
        Labels::Cube(_) if name == GROUPING => Kind::Int,
        _ => Kind::Text,
    };
    let known: Vec<Option<Kind>> = groups.function.names().iter().map(|name| Kind::of(name)).collect();
    let mut extents = vec![Extent::default(); known.len()];
    let (function, known) = (&*groups.function, &known);
    let see = || {
        let mut cells = Vec::new();
        move |extents: &mut [Extent], state: &[u8]| {
            cells.clear();
            function.answer(state, &mut cells)?;
            let unknown = extents.iter_mut().zip(known).zip(&cells).filter(|((_, known), _)| known.is_none());
            unknown.for_each(|((extent, _), cell)| extent.see(cell));
            Ok::<_, Error>(())
        }
    };
    match &groups.held {
        _ if !known.contains(&None) => {}
        Held::Taken(taken) => {
            let threads = groups.means.encoders + 1;
            let worker = || {
                let mut see = see();
                move |leaves, give: &mut Give<'_, Vec<Extent>>| {
                    let mut extents = vec![Extent::default(); known.len()];
                    taken.show(leaves, &mut |_, state| see(&mut extents, state))?;
                    give(extents)
                }
            };
            for_each_part(&parts(taken, threads, PART_GROUPS), threads, worker, &mut |more: Vec<Extent>| {
                extents.iter_mut().zip(&more).for_each(|(extent, more)| extent.join(more));
                Ok(())
            })?;
        }
        held => {
            let mut see = see();
            held.for_each(&mut |_, state| see(&mut extents, state))?;
        }
    }
    let answers = known.iter().zip(&extents).map(|(kind, extent)| kind.unwrap_or(extent.kind()));
    Ok(key_names.iter().map(of_key).chain(answers).collect())
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Int,
    Float,
    Truth,
    /// A decimal of 38 digits, this many of them behind the point.
    Decimal(u8),
}

/// The most digits of a decimal.
pub(super) const DECIMAL_DIGITS: usize = 38;

/// What the answers of a function need to be written as numbers.
#[derive(Debug, Clone, Copy, Default)]
struct Extent {
    has_floats: bool,
    /// Whether some are neither integers of 64 bits nor floating-point numbers.
    has_others: bool,
    /// Whether some are exact, and are not what any floating-point number is.
    has_exact: bool,
    /// Whether some cannot be written with a point and few digits.
    has_special: bool,
    /// Digits before and behind the point.
    whole: usize,
    fraction: usize,
}

impl Extent {
    /// Looks at one more answer.
    fn see(&mut self, cell: &Value<'_>) {
        match cell {
            Value::I64(value) => return self.see_whole((*value).into()),
            Value::I128(value) => return self.see_whole(*value),
            Value::F32(_) | Value::F64(_) => self.has_floats = true,
            // It is the text of what no float is.
            Value::Decimal(_) => (self.has_others, self.has_exact) = (true, true),
            _ => return,
        }
        let text = cell.to_text();
        let text = text.strip_prefix(b"-").unwrap_or(&text);
        self.has_special |= !text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'.'));
        let whole = text.iter().position(|byte| *byte == b'.').unwrap_or(text.len());
        self.whole = self.whole.max(whole);
        self.fraction = self.fraction.max((text.len() - whole).saturating_sub(1));
    }

    fn see_whole(&mut self, value: i128) {
        self.has_others |= i64::try_from(value).is_err();
        self.has_exact |= !is_float(value);
        let digits = value.unsigned_abs().checked_ilog10().map_or(1, |last| 1 + last as usize);
        self.whole = self.whole.max(digits);
    }

    /// Looks at what another has seen.
    fn join(&mut self, other: &Self) {
        self.has_floats |= other.has_floats;
        self.has_others |= other.has_others;
        self.has_exact |= other.has_exact;
        self.has_special |= other.has_special;
        self.whole = self.whole.max(other.whole);
        self.fraction = self.fraction.max(other.fraction);
    }

    /// What holds all of them.
    fn kind(&self) -> Kind {
        let fits = !self.has_special && self.whole + self.fraction <= DECIMAL_DIGITS;
        match self.has_others {
            true if fits || !self.has_floats => Kind::Decimal(self.fraction.min(DECIMAL_DIGITS) as u8),
            // What does not fit is refused as it is written: rounding it would be wrong in silence.
            _ if self.has_floats && self.has_exact => Kind::Decimal(self.fraction.min(DECIMAL_DIGITS) as u8),
            _ if self.has_floats => Kind::Float,
            _ => Kind::Int,
        }
    }
}

/// Whether an integer is what a floating-point number can be.
fn is_float(value: i128) -> bool {
    let bits = u128::BITS - value.unsigned_abs().leading_zeros();
    bits.saturating_sub(value.unsigned_abs().trailing_zeros()) <= f64::MANTISSA_DIGITS
}

impl Kind {
    /// What a function of this name answers; nothing where that depends on its values: integers, or other numbers too.
    fn of(function: &str) -> Option<Self> {
        match AnswerKind::of(function) {
            AnswerKind::Int => Some(Self::Int),
            AnswerKind::Float => Some(Self::Float),
            AnswerKind::Truth => Some(Self::Truth),
            AnswerKind::Number => None,
            AnswerKind::Text => Some(Self::Text),
        }
    }
}
