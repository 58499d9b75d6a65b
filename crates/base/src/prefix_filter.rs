//! Prefix filters: of tables in key order, the first bytes of keys that filters know beside the keys themselves.
//!
//! **Invariant:** a key that begins with the key prefix of another one has the same. So, in key order, the keys of one
//! lie side by side.

use std::fmt;
use std::str::FromStr;

use crate::hash::key_hash;
use crate::wire::{Reader, put_varint};
use crate::{Bound, Error, Range, Result};

/// Filters know keys by their hash of seed 0, and key prefixes by that of this one: a key that is one tells nothing of it.
const SEED: u64 = 0xa24b_aed4_963e_e407;
const KIND_BYTES: u8 = 0;
const KIND_UNTIL: u8 = 1;
/// What the text of one begins with that ends with a byte.
const UNTIL: &str = "until:";

/// Which first bytes of a key are its *key prefix*. Filters of a table with one know which key prefixes a list has, so
/// that a scan of one passes over the lists that have none of its keys. As text: a number of bytes, or `until:` and the
/// byte that ends it, such as `until:/`; `\x` with two hexadecimal digits, as in `until:\x00`, stands for any byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrefixFilter {
    /// This many bytes, at least one. Shorter keys have no key prefix.
    Bytes(u16),
    /// All up to the first such byte, and that. Keys without it have no key prefix.
    Until(u8),
}

impl PrefixFilter {
    /// The key prefix of a key, if it has one.
    #[inline]
    pub fn key_prefix<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        let bytes = match *self {
            Self::Bytes(bytes) => bytes.into(),
            Self::Until(last) => key.iter().position(|byte| *byte == last)? + 1,
        };
        key.get(..bytes)
    }

    /// The hash of the key prefix of a key, by which filters know it.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> Option<u64> {
        self.key_prefix(key).map(|key_prefix| key_hash(key_prefix, SEED))
    }

    /// The same of all keys of a range in key order; `None` where they may have several, or none.
    pub fn hash_in(&self, range: &Range) -> Option<u64> {
        let word = range.low.prefix.to_be_bytes();
        let low = first_key(&range.low, &word);
        let key_prefix = self.key_prefix(low)?;
        let is_one = match &range.high {
            None => key_prefix.iter().all(|byte| *byte == 0xff),
            Some(high) => {
                let word = high.prefix.to_be_bytes();
                let high = first_key(high, &word);
                high.starts_with(key_prefix) || follows(high, key_prefix)
            }
        };
        is_one.then(|| key_hash(key_prefix, SEED))
    }

    /// Appends its bytes: `docs/format/manifest.md` and `docs/format/list_file.md`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (kind, number) = match *self {
            Self::Bytes(bytes) => (KIND_BYTES, bytes.into()),
            Self::Until(byte) => (KIND_UNTIL, byte.into()),
        };
        out.push(kind);
        put_varint(out, number);
    }

    /// Reads one that is valid.
    pub fn decode(from: &mut Reader<'_>) -> Option<Self> {
        let (kind, number) = (from.u8()?, from.varint()?);
        let filter = match kind {
            KIND_BYTES => Self::Bytes(u16::try_from(number).ok()?),
            KIND_UNTIL => Self::Until(u8::try_from(number).ok()?),
            _ => return None,
        };
        filter.validate().is_ok().then_some(filter)
    }

    /// Reads the text of one, or `none`.
    pub fn or_none(text: &str) -> Result<Option<Self>> {
        if text == "none" { Ok(None) } else { text.parse().map(Some) }
    }

    /// Refuses one by which all keys would be alike.
    pub fn validate(&self) -> Result<()> {
        match self {
            Self::Bytes(0) => Err(Error::invalid("prefix_filter is 0 bytes; a key prefix has at least one")),
            _ => Ok(()),
        }
    }
}

/// The first key that stands at a bound in key order; `word` are the bytes of the bound's prefix.
fn first_key<'b>(bound: &'b Bound, word: &'b [u8; 8]) -> &'b [u8] {
    match *bound.key {
        [] => &word[..word.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)],
        _ => &bound.key,
    }
}

/// Whether a key is the first behind all that begin with some bytes: those up to the last one that can grow, grown.
fn follows(key: &[u8], bytes: &[u8]) -> bool {
    let grown = bytes.iter().rposition(|byte| *byte < 0xff);
    grown.is_some_and(|last| {
        key.split_last().is_some_and(|(end, begin)| *begin == bytes[..last] && *end == bytes[last] + 1)
    })
}

impl fmt::Display for PrefixFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Until(byte) if byte.is_ascii_graphic() => write!(f, "{UNTIL}{}", char::from(byte)),
            Self::Until(byte) => write!(f, "{UNTIL}\\x{byte:02x}"),
        }
    }
}

impl FromStr for PrefixFilter {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        let filter = match text.strip_prefix(UNTIL).map(str::as_bytes) {
            // Numbers may have a plus sign elsewhere.
            None => text.parse().ok().filter(|_| !text.starts_with('+')).map(Self::Bytes),
            Some([byte]) => Some(Self::Until(*byte)),
            Some([b'\\', b'x', high, low]) => {
                digit(*high).zip(digit(*low)).map(|(high, low)| Self::Until((high << 4 | low) as u8))
            }
            Some(_) => None,
        };
        filter.filter(|filter| filter.validate().is_ok()).ok_or_else(|| {
            Error::invalid(format!(
                "`{text}` is no prefix filter; give a number of bytes up to {}, such as 8, or the byte that ends a key \
                 prefix, such as until:/ or until:\\x00",
                u16::MAX
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Order;

    const FILTERS: [PrefixFilter; 5] = [
        PrefixFilter::Bytes(1),
        PrefixFilter::Bytes(2),
        PrefixFilter::Bytes(9),
        PrefixFilter::Until(b'b'),
        PrefixFilter::Until(0xff),
    ];

    /// Keys that begin alike, with all that carries and pads.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(proptest::sample::select(&[0, 1, b'a', b'b', 0xfe, 0xff][..]), 0..11)
    }

    fn bound(key: &[u8], is_cut: bool) -> Bound {
        let bound = Order::Lexical.bound(key);
        if is_cut { Bound::at_prefix(bound.prefix) } else { bound }
    }

    proptest! {
        /// What is said of a range holds for each of its keys.
        #[test]
        fn a_range_of_one_key_prefix_has_no_key_of_another(
            low in key(), high in proptest::option::of(key()), inside in key(), is_cut: [bool; 2], of in 0..5usize,
        ) {
            let filter = FILTERS[of];
            let high = high.map(|high| bound(&high, is_cut[1]));
            let range = Range { low: bound(&low, is_cut[0]), high };
            if range.contains(Order::Lexical.prefix(&inside), &inside) && let Some(hash) = filter.hash_in(&range) {
                prop_assert_eq!(filter.hash(&inside), Some(hash), "{:?} in {:?}", inside, range);
            }
        }

        /// And it is said wherever a scan of a key prefix, or of more, is asked for.
        #[test]
        fn a_scan_of_a_key_prefix_is_known_for_one(key in key(), more in key(), of in 0..5usize) {
            let filter = FILTERS[of];
            if let Some(key_prefix) = filter.key_prefix(&key) {
                let begin = [key_prefix, &more].concat();
                let grown = begin.iter().rposition(|byte| *byte < 0xff);
                let high = grown.map(|last| [&begin[..last], &[begin[last] + 1]].concat());
                let range = Range { low: bound(&begin, false), high: high.map(|high| bound(&high, false)) };
                let is_open = range.high.is_none() && key_prefix.iter().any(|byte| *byte < 0xff);
                prop_assert_eq!(filter.hash_in(&range), filter.hash(&key).filter(|_| !is_open));
            }
        }

        #[test]
        fn text_and_bytes_are_read_back(bytes in 1..=u16::MAX, byte: u8) {
            for filter in [PrefixFilter::Bytes(bytes), PrefixFilter::Until(byte)] {
                prop_assert_eq!(filter.to_string().parse::<PrefixFilter>().ok(), Some(filter));
                let mut out = Vec::new();
                filter.encode(&mut out);
                prop_assert_eq!(PrefixFilter::decode(&mut Reader::new(&out)), Some(filter));
            }
        }
    }

    #[test]
    fn what_is_no_prefix_filter_is_refused() {
        let texts =
            ["", "0", "-1", "+8", "70000", "until:", "until:ab", "until:\\x0", "until:\\xzz", "after:/"];
        for text in texts {
            let error = text.parse::<PrefixFilter>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
        for bytes in [&[0, 0][..], &[0, 0x80, 0x80, 4], &[1, 0x80, 2], &[2, 1], &[0], &[]] {
            assert_eq!(PrefixFilter::decode(&mut Reader::new(bytes)), None, "{bytes:?}");
        }
    }
}
