//! Values of key columns as words of 64 bits: two values of one kind of lane have the same word where they have the
//! same text.
//!
//! A number is its own word. A text has two: of up to fifteen bytes they are its bytes below its length; a longer one is
//! the number under which it is remembered. A row's words are those of its key columns, behind one whose bits tell which
//! are nulls.

use forebay_base::hash::{key_hash, mix};
use forebay_base::limits::KEY_BYTES_MAX;
use forebay_env::hash_secret;
use hashbrown::HashTable;

use super::Rows;
use super::lane::{Items, Kind, Lane, plain, plain_single};

/// More key columns than this have no words.
pub(super) const KEYS_MAX: usize = 64;
/// The words of a text, the low one first.
type TextWords = [u64; 2];
/// Texts of no more bytes are their own words.
const SHORT_BYTES: usize = 15;
/// What stands above the number of a longer one.
const LONG: u64 = 0xff << 56;
/// The words of each text that is too long for a key. No group has them, and none of these is remembered.
const TOO_LONG: TextWords = [u64::MAX; 2];

/// See the module.
#[derive(Default)]
pub(super) struct Words {
    texts: Interner,
    /// For each key column the dictionary it had last, and the words of those of its texts that came; 0 for others.
    dictionaries: Vec<(u64, Vec<TextWords>)>,
    /// The words of the rows, row by row.
    pub(super) rows: Vec<u64>,
    /// How many a row has.
    pub(super) width: usize,
}

/// How many words a value of this kind has.
fn words_of(kind: Kind) -> usize {
    if kind == Kind::Bytes { 2 } else { 1 }
}

/// How many words a row has with keys of these kinds.
pub(super) fn width(keys: impl Iterator<Item = Kind>) -> usize {
    1 + keys.map(words_of).sum::<usize>()
}

impl Words {
    /// Puts the words of these rows in place of those of others; any for rows of group 0.
    pub(super) fn fill(&mut self, rows: &Rows<'_>, groups: &[u32]) {
        debug_assert!(rows.keys().len() <= KEYS_MAX, "a bit for each");
        debug_assert_eq!(groups.len(), rows.len(), "each row has a group or none");
        self.width = width(rows.keys().iter().map(Lane::kind));
        self.rows.clear();
        self.rows.resize(rows.len() * self.width, 0);
        self.dictionaries.resize_with(rows.keys().len(), Default::default);
        let mut at = 1;
        for (place, lane) in rows.keys().iter().enumerate() {
            self.column(lane, groups, place, at);
            let end = at + words_of(lane.kind());
            if lane.has_nulls() {
                for (row, words) in self.rows.chunks_exact_mut(self.width).enumerate() {
                    if !lane.is_present(row) {
                        words[0] |= 1 << place;
                        words[at..end].fill(0);
                    }
                }
            }
            at = end;
        }
    }

    /// Fills in the words of the column at `place`, the first at `first`; any under nulls.
    fn column(&mut self, lane: &Lane<'_>, groups: &[u32], place: usize, first: usize) {
        let Self { texts: known, dictionaries, rows, width } = self;
        debug_assert_eq!(rows.len(), lane.len() * *width, "a row of words for each value");
        let rows = rows.chunks_exact_mut(*width).map(|words| &mut words[first..]);
        match lane.items() {
            Items::I64(values) => put(rows, values.iter().map(|value| [value.cast_unsigned()])),
            Items::F64(values) => put(rows, values.iter().map(|value| [plain(*value).to_bits()])),
            Items::F32(values) => {
                put(rows, values.iter().map(|value| [plain_single(*value).to_bits().into()]));
            }
            Items::Bool(bits, len) => put(rows, (0..len).map(|at| [bits.get(at).into()])),
            Items::Bytes(texts) => put(
                rows,
                groups.iter().enumerate().map(|(at, group)| {
                    if *group > 0 && lane.is_present(at) { known.words(texts.get(at)) } else { [0; 2] }
                }),
            ),
            Items::Codes { codes, texts, dictionary } => {
                let (number, cached) = &mut dictionaries[place];
                if dictionary == 0 || dictionary != *number || cached.len() != texts.len() {
                    cached.clear();
                    cached.resize(texts.len(), [0; 2]);
                    *number = dictionary;
                }
                let words = codes.iter().zip(groups).map(|(code, group)| {
                    let code = *code as usize;
                    // Under a null a place may be any.
                    let Some(cached) = cached.get_mut(code).filter(|_| *group > 0) else { return [0; 2] };
                    if cached[1] == 0 {
                        *cached = known.words(texts.get(code));
                    }
                    *cached
                });
                put(rows, words);
            }
            Items::Null(_) => {}
        }
    }

    /// Forgets all texts: words of other rows are no longer these rows'.
    pub(super) fn forget(&mut self) {
        self.texts = Interner::default();
        self.dictionaries.clear();
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let cached: usize = self.dictionaries.iter().map(|(_, cached)| cached.capacity()).sum();
        size_of::<u64>() * self.rows.capacity() + size_of::<TextWords>() * cached + self.texts.memory_bytes()
    }
}

/// Puts words at the start of what is left of each row.
fn put<'r, const N: usize>(rows: impl Iterator<Item = &'r mut [u64]>, words: impl Iterator<Item = [u64; N]>) {
    for (row, words) in rows.zip(words) {
        if let Some(place) = row.first_chunk_mut() {
            *place = words;
        }
    }
}

/// What the hashes of a table hang on: nobody can choose rows that fall together there. No group hangs on it.
#[derive(Clone, Copy)]
pub(super) struct Secret {
    start: u64,
    factor: u64,
}

impl Default for Secret {
    fn default() -> Self {
        Self::new(hash_secret())
    }
}

impl Secret {
    fn new(start: u64) -> Self {
        Self { start, factor: mix(start) | 1 }
    }

    /// A hash of some words.
    #[inline]
    pub(super) fn hash<const W: usize>(self, words: &[u64]) -> u64 {
        let words = if W > 0 && words.len() >= W { &words[..W] } else { words };
        words.iter().fold(self.start, |hash, word| {
            let product = u128::from(hash ^ word) * u128::from(self.factor);
            product as u64 ^ (product >> 64) as u64
        })
    }
}

/// Longer texts, each under a number.
#[derive(Default)]
struct Interner {
    secret: Secret,
    table: HashTable<u32>,
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl Interner {
    /// The words of a text, of which the high one is not 0.
    #[inline]
    fn words(&mut self, text: &[u8]) -> TextWords {
        if text.len() > SHORT_BYTES {
            let is_key = text.len() <= KEY_BYTES_MAX;
            return if is_key { [self.number(text).into(), LONG] } else { TOO_LONG };
        }
        let (low, high) = match (text.first_chunk(), text.last_chunk()) {
            // The last eight bytes begin before the eighth, so many bits as are shifted out.
            (Some(head), Some(tail)) => {
                let behind = 8 * (text.len() as u32 - 8);
                let tail = u64::from_le_bytes(*tail).unbounded_shr(64 - behind);
                (u64::from_le_bytes(*head), tail)
            }
            _ => (few_bytes(text), 0),
        };
        [low, high | (text.len() as u64 + 1) << 56]
    }

    fn number(&mut self, text: &[u8]) -> u32 {
        let Self { secret: Secret { start, .. }, table, ends, bytes } = self;
        let hash = key_hash(text, *start);
        if let Some(number) = table.find(hash, |number| of(ends, bytes, *number) == text) {
            return *number;
        }
        debug_assert!(ends.len() < u32::MAX as usize, "numbers are of 32 bits");
        let number = ends.len() as u32;
        bytes.extend_from_slice(text);
        ends.push(bytes.len());
        table.insert_unique(hash, number, |number| key_hash(of(ends, bytes, *number), *start));
        number
    }

    fn memory_bytes(&self) -> usize {
        self.table.allocation_size() + size_of::<usize>() * self.ends.capacity() + self.bytes.capacity()
    }
}

/// Up to seven bytes as a number, by reads of fixed lengths.
#[inline]
fn few_bytes(text: &[u8]) -> u64 {
    let len = text.len();
    debug_assert!(len < 8, "eight are read at once");
    match (text.first_chunk(), text.last_chunk(), text) {
        (Some(head), Some(tail), _) => {
            u64::from(u32::from_le_bytes(*head)) | u64::from(u32::from_le_bytes(*tail)) << (8 * (len - 4))
        }
        (_, _, [first, .., last]) => {
            u64::from(*first)
                | u64::from(text[len / 2]) << (8 * (len / 2))
                | u64::from(*last) << (8 * (len - 1))
        }
        (_, _, [only]) => u64::from(*only),
        _ => 0,
    }
}

/// The text of a number.
fn of<'b>(ends: &[usize], bytes: &'b [u8], number: u32) -> &'b [u8] {
    let at = number as usize;
    let start = at.checked_sub(1).map_or(0, |before| ends[before]);
    &bytes[start..ends[at]]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Interner, SHORT_BYTES, Secret};

    /// The bytes of a short text below its length.
    #[test]
    fn short_texts_are_their_own_words() {
        let texts: Vec<u8> = (1..=SHORT_BYTES as u8).map(|at| at * 17).collect();
        for len in 0..=SHORT_BYTES {
            let mut bytes = [0; 16];
            bytes[..len].copy_from_slice(&texts[..len]);
            bytes[15] = len as u8 + 1;
            let [low, high] = Interner::default().words(&texts[..len]);
            assert_eq!([low.to_le_bytes(), high.to_le_bytes()].concat(), bytes, "{len}");
        }
    }

    /// There was one hash for all: whoever knew it could have each row look through all that came before.
    #[test]
    fn rows_that_fall_together_by_one_secret_do_not_by_another() {
        let (one, other) = (Secret::new(1), Secret::new(2));
        let rows: Vec<[u64; 2]> = (0..1000).map(|word| [word, one.hash::<1>(&[word])]).collect();
        let places = |secret: Secret| -> usize {
            rows.iter().map(|row| secret.hash::<2>(row) % 1024).collect::<BTreeSet<_>>().len()
        };
        assert_eq!(places(one), 1);
        assert!(places(other) > 550, "{} places of 1024", places(other));
    }
}
