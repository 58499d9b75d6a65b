//! The values of a lane as the numbers that functions take.

use super::lane::{Items, Lane, plain, plain_single};
use crate::value::Value;

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

/// What the texts of a lane say: most are short numbers, and others are kept by their rows.
#[derive(Default)]
pub(crate) struct ShortOrOdd<S, O> {
    /// Of each row; of another text what stands for none.
    pub(crate) short: Vec<S>,
    pub(crate) odd: Vec<(u32, O)>,
}

impl<S: Copy + Default, O> ShortOrOdd<S, O> {
    /// Puts those of a lane in place of others; `none` stands for what `short` does not read and `odd` does.
    pub(crate) fn read(
        &mut self,
        lane: &Lane<'_>,
        none: S,
        short: impl Fn(&[u8]) -> Option<S>,
        odd: impl Fn(Value<'_>) -> Option<O>,
        refused: &mut Vec<u32>,
    ) {
        let Self { short: values, odd: others } = self;
        others.clear();
        numbers(lane, values, refused, |at| {
            short(lane.text(at)).or_else(|| {
                others.push((at as u32, odd(lane.value(at))?));
                Some(none)
            })
        });
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<S>() * self.short.capacity() + size_of::<(u32, O)>() * self.odd.capacity()
    }
}

/// Puts what `read` makes of each place in place of what `numbers` holds; anything under nulls.
pub(super) fn numbers<T: Copy + Default>(
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

/// The number of a text that is the shortest one of it, as [`decimal`] reads it: the number gives the text back.
#[inline]
pub(super) fn shortest(text: &[u8]) -> Option<f64> {
    let number = decimal(text)?;
    let begins = match text.strip_prefix(b"-").unwrap_or(text) {
        [b'0'] | [b'0', b'.', ..] => true,
        [first, ..] => matches!(first, b'1'..=b'9'),
        [] => false,
    };
    let ends = match text {
        [.., b'.'] => false,
        [.., b'0'] => !text.contains(&b'.'),
        _ => true,
    };
    (begins && ends).then_some(number)
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

#[cfg(test)]
mod tests {
    use forebay_base::hash::mix;

    use super::*;

    #[test]
    fn the_shortest_text_of_a_number_is_told_from_others() {
        let shortest_ones =
            ["0", "7", "-7", "10", "0.5", "-0.25", "47.122215", "123456789012345", "0.00000000000001"];
        for text in shortest_ones {
            let number = shortest(text.as_bytes()).expect(text);
            assert_eq!(&*Value::F64(number).to_text(), text.as_bytes());
        }
        let others = [
            "", "-", ".", "-0", "00", "01", "-01", "1.", "1.0", "0.0", ".5", "-.5", "+1", " 1", "1e3", "nan",
            "inf",
        ];
        for text in others.into_iter().chain(["1234567890123456", "0.50", "100.00", "1.2.3", "--1", "text"]) {
            assert_eq!(shortest(text.as_bytes()), None, "{text}");
        }
        for seed in 0..20_000_u64 {
            let digits = mix(seed) % 10_u64.pow(1 + seed as u32 % 15);
            let (text, place) = (digits.to_string(), (mix(!seed) % 17) as usize);
            let text = match text.split_at_checked(place) {
                Some((whole, fraction)) => format!("{whole}.{fraction}"),
                None => text,
            };
            if let Some(number) = shortest(text.as_bytes()) {
                assert_eq!(&*Value::F64(number).to_text(), text.as_bytes(), "seed {seed}");
            }
        }
    }
}
