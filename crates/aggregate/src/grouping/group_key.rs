//! The group key of several columns: one after the other, each with an end.
//!
//! A value's bytes stand as they are, but for zero, which is `00 FF`; its end is `00 01`. No value is `00 00`.
//!
//! **Invariant:** different columns give different keys, and keys are ordered by the first column, then the
//! next, each by its bytes; no value comes before every value.

use std::borrow::Cow;

use super::Grouping;
use memchr::memchr;

const MARK: u8 = 0x00;
const NOTHING: u8 = 0x00;
const END: u8 = 0x01;
const ZERO: u8 = 0xff;
/// How long the end of a value is.
pub const END_BYTES: usize = 2;
/// Fewer bytes are searched word by word.
const SHORT_BYTES_MAX: usize = 64;

/// The key of these columns.
///
/// ```
/// use forebay_aggregate::group_key;
///
/// let key = group_key::of([Some("de"), None]);
/// let columns = group_key::split(&key).map(group_key::column);
/// assert!(columns.eq([Some((&b"de"[..]).into()), None]));
/// ```
pub fn of<C: AsRef<[u8]>>(columns: impl IntoIterator<Item = Option<C>>) -> Vec<u8> {
    let mut key = Vec::new();
    columns.into_iter().for_each(|column| push(&mut key, column.as_ref().map(AsRef::as_ref)));
    key
}

/// Appends a column.
#[inline]
pub fn push(key: &mut Vec<u8>, column: Option<&[u8]>) {
    push_written(key, |text| column.inspect(|column| text.extend_from_slice(column)).is_some());
}

/// Appends a column whose value `write` appends, or for which it returns `false` where there is none.
#[inline]
pub(crate) fn push_written(key: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> bool) {
    let start = key.len();
    if !write(key) {
        key.extend_from_slice(&[MARK, NOTHING]);
        return;
    }
    if zero_of(&key[start..]).is_some() {
        let text = key.split_off(start);
        for byte in text {
            key.push(byte);
            if byte == MARK {
                key.push(ZERO);
            }
        }
    }
    key.extend_from_slice(&[MARK, END]);
}

/// The columns of a key, each still as it was pushed.
pub fn split(key: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (mut start, mut at) = (0, 0);
    std::iter::from_fn(move || {
        while let Some(length) = memchr(MARK, &key[at..]) {
            at = (at + length + 2).min(key.len());
            if key[at - 1] != ZERO {
                return Some(&key[std::mem::replace(&mut start, at)..at]);
            }
        }
        None
    })
}

/// Whether a column that [`split`] gave was pushed: it has a value's end, or no value.
pub fn is_column(pushed: &[u8]) -> bool {
    pushed.ends_with(&[MARK, END]) || pushed == [MARK, NOTHING]
}

/// What a column is that [`split`] gave.
pub fn column(pushed: &[u8]) -> Option<Cow<'_, [u8]>> {
    let (value, end) = pushed.split_at(pushed.len().saturating_sub(2));
    if end.last() != Some(&END) {
        return None;
    }
    let Some(mut zero) = memchr(MARK, value) else { return Some(Cow::Borrowed(value)) };
    let (mut text, mut rest) = (Vec::with_capacity(value.len()), value);
    loop {
        text.extend_from_slice(&rest[..=zero]);
        rest = rest.get(zero + 2..).unwrap_or_default();
        match memchr(MARK, rest) {
            Some(next) => zero = next,
            None => {
                text.extend_from_slice(rest);
                return Some(Cow::Owned(text));
            }
        }
    }
}

/// Shows what each column of a key is: as [`split`] and [`column`], in less time where columns are short and have no
/// zeros.
pub fn for_each_column(key: &[u8], mut show: impl FnMut(Option<&[u8]>)) {
    let mut rest = key;
    while let Some(at) = zero_of(rest) {
        let (value, end) = rest.split_at(at);
        let length = match end.get(1) {
            Some(&END) => {
                show(Some(value));
                at + END_BYTES
            }
            Some(&ZERO) => {
                let Some(pushed) = split(rest).next() else { return };
                show(column(pushed).as_deref());
                pushed.len()
            }
            _ => {
                show(None);
                at + END_BYTES
            }
        };
        rest = rest.get(length..).unwrap_or_default();
    }
}

/// The place of the first zero. Most columns are a few bytes, for which a search by wider words is not worth a call.
#[inline]
fn zero_of(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    if bytes.len() > SHORT_BYTES_MAX {
        return memchr(MARK, bytes);
    }
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // Below the first zero no byte borrows from the next, so its bit is the lowest.
        let zeros = word.wrapping_sub(ONES) & !word & (ONES << 7);
        if zeros > 0 {
            return Some(8 * at + zeros.trailing_zeros() as usize / 8);
        }
    }
    rest.iter().position(|byte| *byte == MARK).map(|at| 8 * words.len() + at)
}

/// Appends the key of a group of several groupings: its grouping, and the key of its columns.
pub fn push_grouping(grouping: Grouping, key: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&grouping.bits().to_be_bytes());
    out.extend_from_slice(key);
}

/// The grouping of such a key, and the key of its columns.
pub fn split_grouping(key: &[u8]) -> (Grouping, &[u8]) {
    match key.split_first_chunk() {
        Some((grouping, columns)) => (Grouping::from_bits(u16::from_be_bytes(*grouping)), columns),
        None => (Grouping::FINEST, key),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    type Columns = Vec<Option<Vec<u8>>>;

    fn key(columns: &Columns) -> Vec<u8> {
        let mut key = Vec::new();
        columns.iter().for_each(|column| push(&mut key, column.as_deref()));
        key
    }

    fn few_bytes() -> impl Strategy<Value = Option<Vec<u8>>> {
        let byte = prop::sample::select(vec![0_u8, 1, 2, 0xfe, 0xff]);
        prop::option::of(prop::collection::vec(byte, 0..4))
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            rng_seed: RngSeed::Fixed(11),
            ..ProptestConfig::with_cases(2000)
        })]

        #[test]
        fn columns_come_back(columns in prop::collection::vec(few_bytes(), 0..4)) {
            let key = key(&columns);
            let back: Columns = split(&key).map(|pushed| column(pushed).map(Cow::into_owned)).collect();
            prop_assert_eq!(back, columns);
            prop_assert!(split(&key).all(is_column));
        }

        #[test]
        fn columns_are_shown_as_they_are(
            columns in prop::collection::vec(prop::option::of(prop::collection::vec(0..3_u8, 0..20)), 0..4),
        ) {
            let mut shown = Columns::new();
            for_each_column(&key(&columns), |column| shown.push(column.map(<[u8]>::to_vec)));
            prop_assert_eq!(shown, columns);
        }

        #[test]
        fn keys_are_ordered_as_their_columns(
            one in prop::collection::vec(few_bytes(), 2),
            other in prop::collection::vec(few_bytes(), 2),
        ) {
            prop_assert_eq!(key(&one).cmp(&key(&other)), one.cmp(&other));
        }

        #[test]
        fn any_bytes_fall_apart_into_columns_and_a_rest(bytes in prop::collection::vec(prop::sample::select(vec![0_u8, 1, 2, 0xff]), 0..9)) {
            let pushed: Vec<&[u8]> = split(&bytes).collect();
            let mut shown = Vec::new();
            for_each_column(&bytes, |column| shown.push(column.map(<[u8]>::to_vec)));
            prop_assert_eq!(shown, pushed.iter().map(|pushed| column(pushed).map(Cow::into_owned)).collect::<Vec<_>>());
            let joined = pushed.concat();
            prop_assert!(bytes.starts_with(&joined), "{joined:?}");
            prop_assert!(split(&bytes[joined.len()..]).next().is_none(), "the rest has no end");
            for pushed in pushed {
                let Some(value) = column(pushed) else { continue };
                // What was pushed like this comes back; other bytes stand for no longer a value.
                let mut again = Vec::new();
                push(&mut again, Some(&value));
                prop_assert!(is_column(&again) && is_column(pushed), "{pushed:?}");
                prop_assert_eq!(column(&again), Some(value.clone()));
                prop_assert!(value.len() + END_BYTES <= pushed.len(), "{value:?} of {pushed:?}");
            }
        }
    }
}
