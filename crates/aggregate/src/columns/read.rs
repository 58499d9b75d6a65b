//! The values of a lane as the numbers that functions take.

use super::lane::{Items, Lane, plain, plain_single};

/// Puts a lane's floating-point numbers in place of what `numbers` holds, any under nulls; the places of values that
/// are none are appended to `refused`.
pub(super) fn floats(lane: &Lane<'_>, numbers: &mut Vec<f64>, refused: &mut Vec<u32>) {
    numbers.clear();
    match lane.items() {
        Items::I64(values) => numbers.extend(values.iter().map(|value| *value as f64)),
        Items::F64(values) => numbers.extend(values.iter().map(|value| plain(*value))),
        Items::F32(values) => numbers.extend(values.iter().map(|value| f64::from(plain_single(*value)))),
        _ => numbers_by(lane, numbers, refused, |at| {
            decimal(lane.text(at)).or_else(|| lane.value(at).as_f64())
        }),
    }
}

/// Puts what `read` makes of each place in place of what `numbers` holds; anything under nulls.
pub(crate) fn numbers<T: Copy + Default>(
    lane: &Lane<'_>,
    numbers: &mut Vec<T>,
    refused: &mut Vec<u32>,
    read: impl FnMut(usize) -> Option<T>,
) {
    numbers.clear();
    numbers_by(lane, numbers, refused, read);
}

fn numbers_by<T: Copy + Default>(
    lane: &Lane<'_>,
    numbers: &mut Vec<T>,
    refused: &mut Vec<u32>,
    mut read: impl FnMut(usize) -> Option<T>,
) {
    numbers.extend((0..lane.len()).map(|at| {
        let number = if lane.is_present(at) { read(at) } else { Some(T::default()) };
        if number.is_none() {
            refused.push(at as u32);
        }
        number.unwrap_or_default()
    }));
}

/// Powers of ten that a floating-point number is.
const POWERS: [f64; 16] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// The number nearest to a text, where that is nothing but up to 15 digits, behind a sign or none, with a point among
/// them or none: digits and power are exact then, and one division rounds as it should. Minus zero is not one.
#[inline]
pub(super) fn decimal(text: &[u8]) -> Option<f64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let (mut size, mut point) = (0_i64, None);
    for (at, byte) in digits.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            size = size.wrapping_mul(10).wrapping_add(i64::from(digit));
        } else if *byte == b'.' && point.is_none() {
            point = Some(at);
        } else {
            return None;
        }
    }
    let (count, fraction) = match point {
        Some(at) => (digits.len() - 1, digits.len() - 1 - at),
        None => (digits.len(), 0),
    };
    let is_negative = digits.len() < text.len();
    if !(1..=15).contains(&count) || is_negative && size == 0 {
        return None;
    }
    let number = size as f64 / POWERS[fraction];
    Some(if is_negative { -number } else { number })
}
