//! [`Number`]: an exact decimal number, whatever it came as.
//!
//! **Invariant:** a number is what its text says, up to 38 digits; of more digits it is rounded, and
//! [`Number::parse_exact`] refuses it. Equal numbers have equal bytes, and bytes are ordered as numbers are.

#[cfg(test)]
mod tests;
mod text;

use std::cmp::Ordering;

use crate::Plain;
use crate::functions::Scalar;

/// This many digits fit any `u128`.
const DIGITS_MAX: u32 = 38;
/// The bytes of a number.
const BYTES: usize = 20;
/// Those of ten.
pub(crate) const POWERS: [u128; DIGITS_MAX as usize + 1] = {
    let mut powers = [1; DIGITS_MAX as usize + 1];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = 10 * powers[at - 1];
        at += 1;
    }
    powers
};

/// What kind of number, in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Class {
    MinusInfinity,
    Negative,
    Zero,
    Positive,
    Infinity,
    NotANumber,
}

/// A decimal number, infinity, or what is not a number, which is the greatest.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    class: Class,
    /// The number without its sign is `digits * 10^exponent`.
    digits: u128,
    exponent: i32,
}

impl Number {
    const ZERO: Self = Self::special(Class::Zero);

    const fn special(class: Class) -> Self {
        Self { class, digits: 0, exponent: 0 }
    }

    fn new(is_negative: bool, digits: u128, exponent: i32) -> Self {
        let class = if is_negative { Class::Negative } else { Class::Positive };
        if digits == 0 { Self::ZERO } else { Self { class, digits, exponent } }
    }

    /// The number of this text, if it is one: as many digits as there is room for, the last one rounded.
    pub fn parse(text: &str) -> Option<Self> {
        text::parse(text).map(|(number, _)| number)
    }

    /// The number of this text, if it is one that needs no rounding.
    pub fn parse_exact(text: &str) -> Option<Self> {
        text::parse(text).filter(|(_, is_exact)| *is_exact).map(|(number, _)| number)
    }

    fn is_finite(self) -> bool {
        matches!(self.class, Class::Negative | Class::Zero | Class::Positive)
    }

    /// The number, where it is an integer of 128 bits.
    pub fn as_i128(self) -> Option<i128> {
        let power = 10_u128.checked_pow(self.exponent.unsigned_abs());
        let whole = match (self.class, power) {
            (Class::Zero, _) => return Some(0),
            (Class::Negative | Class::Positive, Some(power)) if self.exponent >= 0 => {
                self.digits.checked_mul(power)?
            }
            (Class::Negative | Class::Positive, Some(power)) if self.digits.is_multiple_of(power) => {
                self.digits / power
            }
            _ => return None,
        };
        match self.class {
            Class::Negative => 0_i128.checked_sub_unsigned(whole),
            _ => i128::try_from(whole).ok(),
        }
    }

    /// The number, where it is an integer of 64 bits.
    pub fn as_i64(self) -> Option<i64> {
        self.as_i128().and_then(|whole| whole.try_into().ok())
    }

    /// The nearest floating-point number.
    pub fn as_f64(self) -> f64 {
        let size = match self.class {
            Class::Zero => return 0.0,
            Class::NotANumber => return f64::NAN,
            Class::Infinity | Class::MinusInfinity => f64::INFINITY,
            _ if self.exponent == 0 => self.digits as f64,
            // Both are floating-point numbers, and one division rounds once.
            _ if self.digits < 1 << 53 && (-22..0).contains(&self.exponent) => {
                self.digits as f64 / POWERS[self.exponent.unsigned_abs() as usize] as f64
            }
            // Only the library's reader of text rounds once.
            _ => format!("{}e{}", self.digits, self.exponent).parse().unwrap_or(f64::NAN),
        };
        if matches!(self.class, Class::Negative | Class::MinusInfinity) { -size } else { size }
    }

    /// The sign, and what of it makes units of `10^-scale`: digits, and a power of ten of at most 38; nothing where it
    /// is no such multiple, or has more than 128 bits before the point.
    pub(crate) fn units(self, scale: u32) -> Option<(bool, u128, u32)> {
        if !self.is_finite() {
            return None;
        }
        let is_negative = self.class == Class::Negative;
        if let Some(whole) = self.as_i128() {
            return Some((is_negative, whole.unsigned_abs(), scale));
        }
        let Self { digits, exponent, .. } = self.stripped();
        let power = scale.checked_sub(exponent.unsigned_abs())?;
        (exponent < 0).then_some((is_negative, digits, power))
    }

    /// The number in units of `10^-scale`, where it is a multiple of that, of at most 38 digits.
    #[cfg(feature = "arrow")]
    pub(crate) fn in_units(self, scale: i16) -> Option<i128> {
        let Self { class, digits, exponent } = self.stripped();
        let sign = match class {
            Class::Zero => return Some(0),
            Class::Negative => -1,
            Class::Positive => 1,
            _ => return None,
        };
        debug_assert!(digits > 0, "zero is a class of its own");
        let power = usize::try_from(exponent + i32::from(scale)).ok()?;
        let units = digits.checked_mul(*POWERS.get(power)?)?;
        let units = i128::try_from(units).ok().filter(|_| units < POWERS[DIGITS_MAX as usize])?;
        Some(sign * units)
    }

    /// The same number with no zero at the end of its digits.
    fn stripped(self) -> Self {
        let Self { class, mut digits, mut exponent } = self;
        while digits > 0 && digits.is_multiple_of(10) {
            (digits, exponent) = (digits / 10, exponent + 1);
        }
        Self { class, digits, exponent }
    }

    /// Its ordered bytes: its class; where its digits begin, as a power of ten; the first digit; those behind it, as
    /// many as there is room for. Of a negative number all but the class are complemented.
    pub fn to_bytes(self) -> NumberBytes {
        let mut bytes = [0; BYTES];
        bytes[0] = self.class as u8;
        if let Some(last) = self.digits.checked_ilog10() {
            let power = POWERS[last as usize];
            // Most numbers are of 64 bits, which are divided in a tenth of the time.
            let (first, rest) = match (u64::try_from(self.digits), u64::try_from(power)) {
                (Ok(digits), Ok(power)) => ((digits / power) as u8, u128::from(digits % power)),
                _ => ((self.digits / power) as u8, self.digits % power),
            };
            let begins = (self.exponent + last as i32) as i16;
            bytes[1..3].copy_from_slice(&(begins as u16 ^ 0x8000).to_be_bytes());
            bytes[3] = first;
            bytes[4..].copy_from_slice(&(rest * POWERS[(DIGITS_MAX - last) as usize]).to_be_bytes());
        }
        if self.class == Class::Negative {
            bytes[1..].iter_mut().for_each(|byte| *byte = !*byte);
        }
        NumberBytes(bytes)
    }
}

impl From<NumberBytes> for Number {
    /// What the bytes stand for; some number where they stand for none.
    fn from(NumberBytes(mut bytes): NumberBytes) -> Self {
        let class = match bytes[0] {
            0 => Class::MinusInfinity,
            1 => Class::Negative,
            3 => Class::Positive,
            4 => Class::Infinity,
            5 => Class::NotANumber,
            _ => Class::Zero,
        };
        if !matches!(class, Class::Negative | Class::Positive) {
            return Self::special(class);
        }
        if class == Class::Negative {
            bytes[1..].iter_mut().for_each(|byte| *byte = !*byte);
        }
        let [_, high, low, first, rest @ ..] = bytes;
        let begins = i32::from((u16::from_be_bytes([high, low]) ^ 0x8000) as i16);
        let (first, mut rest) = (u128::from(first), u128::from_be_bytes(rest));
        let mut room = if rest == 0 { 0 } else { DIGITS_MAX };
        for zeros in [32, 16, 8, 4, 2, 1] {
            let power = POWERS[zeros as usize];
            if room >= zeros && rest.is_multiple_of(power) {
                (rest, room) = (rest / power, room - zeros);
            }
        }
        let digits = first.saturating_mul(POWERS[room as usize]).saturating_add(rest);
        Self::new(class == Class::Negative, digits, begins - room as i32)
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Self::from(i128::from(value))
    }
}

impl From<i128> for Number {
    fn from(value: i128) -> Self {
        Self::new(value < 0, value.unsigned_abs(), 0)
    }
}

impl From<f64> for Number {
    /// A whole number as it is; of a fraction the shortest text that tells it from others. Minus zero is zero.
    fn from(value: f64) -> Self {
        const WHOLE_MAX: f64 = (1_u128 << 127) as f64;
        if value.abs() < WHOLE_MAX && value == value.trunc() {
            return Self::from(value as i128);
        }
        Self::parse(&format!("{value:e}")).unwrap_or(Self::special(Class::NotANumber))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        self.to_bytes().cmp(&other.to_bytes())
    }
}

/// A number as bytes that are ordered as numbers are: what states hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct NumberBytes([u8; BYTES]);

impl NumberBytes {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; BYTES] {
        &self.0
    }
}

impl Plain for NumberBytes {
    const BYTES: usize = BYTES;
    #[inline]
    fn write(self, into: &mut [u8]) {
        self.0.write(into);
    }
    #[inline]
    fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (bytes, rest) = <[u8; BYTES]>::read(bytes)?;
        Some((Self(bytes), rest))
    }
}

impl Scalar for NumberBytes {
    const NAME: &'static str = "decimal";
    #[inline]
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }
}
