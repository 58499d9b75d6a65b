//! Numbers as bytes that are ordered as the numbers are, and [`Number`], which is an integer or a
//! floating-point number.

use std::cmp::Ordering;
use std::fmt;

use crate::Plain;
use crate::functions::Scalar;

const SIGN: u64 = 1 << 63;

/// An integer as ordered bytes.
#[inline]
pub fn int(value: i64) -> [u8; 8] {
    (value as u64 ^ SIGN).to_be_bytes()
}

/// A floating-point number as bytes in the total order: `-0.0 < 0.0`, NaN at the ends.
#[inline]
pub fn float(value: f64) -> [u8; 8] {
    let bits = value.to_bits();
    (if bits & SIGN == 0 { bits ^ SIGN } else { !bits }).to_be_bytes()
}

#[inline]
fn from_float(bytes: [u8; 8]) -> f64 {
    let bits = u64::from_be_bytes(bytes);
    f64::from_bits(if bits & SIGN == 0 { !bits } else { bits ^ SIGN })
}

/// An integer or a floating-point number, in ten bytes that are ordered as numbers are: the nearest
/// floating-point number, then what an integer has beyond it, which is at most 512. Equal numbers have equal
/// bytes, whatever they came as.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Number([u8; 10]);

impl Number {
    fn new(near: f64, beyond: i16) -> Self {
        let mut bytes = [0; 10];
        bytes[..8].copy_from_slice(&float(near));
        bytes[8..].copy_from_slice(&(beyond as u16 ^ 0x8000).to_be_bytes());
        Self(bytes)
    }

    /// The number of this text, if it is one.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<i64>().map(Self::from).or_else(|_| text.parse::<f64>().map(Self::from)).ok()
    }

    /// Its ordered bytes.
    pub fn as_bytes(&self) -> &[u8; 10] {
        &self.0
    }

    fn parts(self) -> (f64, i16) {
        let [a, b, c, d, e, f, g, h, high, low] = self.0;
        (from_float([a, b, c, d, e, f, g, h]), (u16::from_be_bytes([high, low]) ^ 0x8000) as i16)
    }

    /// The number, where it is an integer of 64 bits.
    pub fn as_i64(self) -> Option<i64> {
        let (near, beyond) = self.parts();
        let is_whole = near.is_finite() && near == near.trunc() && near.abs() <= SIGN as f64;
        let whole = is_whole.then(|| near as i128 + i128::from(beyond))?;
        i64::try_from(whole).ok()
    }

    /// The nearest floating-point number.
    pub fn as_f64(self) -> f64 {
        self.parts().0
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        let near = value as f64;
        Self::new(near, (i128::from(value) - near as i128) as i16)
    }
}

impl From<f64> for Number {
    /// Minus zero is zero.
    fn from(value: f64) -> Self {
        Self::new(value + 0.0, 0)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_i64() {
            Some(whole) => whole.fmt(f),
            None => self.as_f64().fmt(f),
        }
    }
}

impl Plain for Number {
    const BYTES: usize = 10;
    #[inline]
    fn write(self, into: &mut [u8]) {
        self.0.write(into);
    }
    #[inline]
    fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (bytes, rest) = <[u8; 10]>::read(bytes)?;
        Some((Self(bytes), rest))
    }
}

impl Scalar for Number {
    const NAME: &'static str = "number";
    #[inline]
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_are_ordered_as_numbers(a: i64, b: i64, x: f64, y: f64) {
            prop_assert_eq!(int(a).cmp(&int(b)), a.cmp(&b));
            prop_assert_eq!(float(x).cmp(&float(y)), x.total_cmp(&y));
            prop_assert_eq!(Number::from(a).cmp(&Number::from(b)), a.cmp(&b));
            prop_assert_eq!(Number::from(a).as_i64(), Some(a));
            prop_assert_eq!(Number::from(x).as_f64().to_bits(), (x + 0.0).to_bits());
        }

        #[test]
        fn integers_and_floats_compare_exactly(near in any::<i64>(), step in -2000i64..2000) {
            let (whole, float) = (near.saturating_add(step), near as f64);
            let exact = i128::from(whole).cmp(&(float as i128));
            prop_assert_eq!(Number::from(whole).cmp(&Number::from(float)), exact);
        }
    }

    #[test]
    fn equal_numbers_are_equal_bytes() {
        assert_eq!(Number::from(3), Number::from(3.0));
        assert_eq!(Number::from(-0.0), Number::from(0));
        assert_eq!(Number::parse("9223372036854775807").and_then(Number::as_i64), Some(i64::MAX));
        assert_eq!(Number::parse("1e3").map(|number| number.to_string()), Some("1000".into()));
        assert_eq!(Number::parse("0.5").map(|number| number.to_string()), Some("0.5".into()));
    }
}
