//! Numbers as bytes that are ordered as the numbers are, and [`Number`], which is any decimal number.

pub use crate::number::{Number, NumberBytes};

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_are_ordered_as_numbers(a: i64, b: i64, x: f64, y: f64) {
            prop_assert_eq!(int(a).cmp(&int(b)), a.cmp(&b));
            prop_assert_eq!(float(x).cmp(&float(y)), x.total_cmp(&y));
        }
    }
}
