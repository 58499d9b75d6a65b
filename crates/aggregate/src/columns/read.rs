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
            let text = lane.text(at);
            integer(text).map(|value| value as f64).or_else(|| lane.value(at).as_f64())
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

/// The integer that a text is, where it is nothing but up to 15 digits behind a sign or none: one that every kind of
/// number holds. Minus zero is not one.
#[inline]
fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if digits.is_empty() || digits.len() > 15 {
        return None;
    }
    let mut size = 0_i64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        size = 10 * size + i64::from(digit);
    }
    match digits.len() < text.len() {
        true => (size != 0).then_some(-size),
        false => Some(size),
    }
}
