//! Values of key columns as words of 64 bits: two values of one kind of lane have the same word where they have the
//! same text.
//!
//! A number is its own word. A text of up to seven bytes is its bytes below its length; a longer one is the number
//! under which it is remembered. A row's words are one for each key column, behind one whose bits tell which are nulls.

use forebay_base::hash::key_hash;
use forebay_base::limits::KEY_BYTES_MAX;
use hashbrown::HashTable;

use super::Rows;
use super::lane::{Items, Lane, Texts, plain, plain_single};
use crate::compressed::SEED;

/// More key columns than this have no words.
pub(super) const KEYS_MAX: usize = 64;
/// Texts of no more bytes are their own words.
const SHORT_BYTES: usize = 7;
/// What stands above the number of a longer one.
const LONG: u64 = 0xff << 56;
/// The word of each text that is too long for a key. No group has it, and none of these is remembered.
const TOO_LONG: u64 = u64::MAX;

/// See the module.
#[derive(Default)]
pub(super) struct Words {
    texts: Interner,
    /// For each key column the dictionary it had last, and the words of those of its texts that came; 0 for others.
    dictionaries: Vec<(u64, Vec<u64>)>,
    /// The words of the rows, row by row.
    pub(super) rows: Vec<u64>,
}

impl Words {
    /// Puts the words of these rows in place of those of others; any for rows of group 0.
    pub(super) fn fill(&mut self, rows: &Rows<'_>, groups: &[u32]) {
        let width = rows.keys().len() + 1;
        debug_assert!(width <= KEYS_MAX + 1, "a bit for each");
        debug_assert_eq!(groups.len(), rows.len(), "each row has a group or none");
        self.rows.clear();
        self.rows.resize(rows.len() * width, 0);
        self.dictionaries.resize_with(rows.keys().len(), Default::default);
        for (place, lane) in rows.keys().iter().enumerate() {
            self.column(lane, groups, place, width);
            if lane.has_nulls() {
                for (at, words) in self.rows.chunks_exact_mut(width).enumerate() {
                    if !lane.is_present(at) {
                        words[0] |= 1 << place;
                        words[place + 1] = 0;
                    }
                }
            }
        }
    }

    /// Fills in the words of a column; any under nulls.
    fn column(&mut self, lane: &Lane<'_>, groups: &[u32], place: usize, width: usize) {
        let Self { texts: known, dictionaries, rows } = self;
        debug_assert_eq!(rows.len(), lane.len() * width, "a row of words for each value");
        let words = rows.iter_mut().skip(place + 1).step_by(width);
        match lane.items() {
            Items::I64(values) => words.zip(values).for_each(|(word, value)| *word = value.cast_unsigned()),
            Items::F64(values) => {
                words.zip(values).for_each(|(word, value)| *word = plain(*value).to_bits());
            }
            Items::F32(values) => {
                words.zip(values).for_each(|(word, value)| *word = plain_single(*value).to_bits().into());
            }
            Items::Bool(bits, _) => {
                words.enumerate().for_each(|(at, word)| *word = bits.get(at).into());
            }
            Items::Bytes(texts) => {
                for (at, word) in words.enumerate() {
                    *word = if groups[at] > 0 && lane.is_present(at) { known.word(texts.get(at)) } else { 0 };
                }
            }
            Items::Codes { codes, texts, dictionary } => {
                let (number, cached) = &mut dictionaries[place];
                if dictionary == 0 || dictionary != *number || cached.len() != texts.len() {
                    cached.clear();
                    cached.resize(texts.len(), 0);
                    *number = dictionary;
                }
                codes_of(known, cached, (codes, groups), texts, words);
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
        size_of::<u64>() * (self.rows.capacity() + cached) + self.texts.memory_bytes()
    }
}

/// A hash of some words.
#[inline]
pub(super) fn hash<const W: usize>(words: &[u64]) -> u64 {
    let words = if W > 0 && words.len() >= W { &words[..W] } else { words };
    words.iter().fold(0, |hash, word| {
        let product = u128::from(hash ^ word ^ 0x9e37_79b9_7f4a_7c15) * 0xe703_7ed1_a0b4_28db;
        product as u64 ^ (product >> 64) as u64
    })
}

/// Fills in the words of places in a dictionary.
fn codes_of<'w>(
    known: &mut Interner,
    cached: &mut [u64],
    (codes, groups): (&[i32], &[u32]),
    texts: Texts<'_>,
    words: impl Iterator<Item = &'w mut u64>,
) {
    for ((word, code), group) in words.zip(codes).zip(groups) {
        if *group == 0 {
            continue;
        }
        let code = *code as usize;
        // Under a null a place may be any.
        let Some(cached) = cached.get_mut(code) else { continue };
        if *cached == 0 {
            *cached = known.word(texts.get(code));
        }
        *word = *cached;
    }
}

/// Longer texts, each under a number.
#[derive(Default)]
struct Interner {
    table: HashTable<u32>,
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl Interner {
    /// The word of a text, which is not 0.
    #[inline]
    fn word(&mut self, text: &[u8]) -> u64 {
        if text.len() > SHORT_BYTES {
            let is_key = text.len() <= KEY_BYTES_MAX;
            return if is_key { LONG | u64::from(self.number(text)) } else { TOO_LONG };
        }
        let mut word = [0; 8];
        word[..text.len()].copy_from_slice(text);
        word[SHORT_BYTES] = text.len() as u8 + 1;
        u64::from_le_bytes(word)
    }

    fn number(&mut self, text: &[u8]) -> u32 {
        let Self { table, ends, bytes } = self;
        let hash = key_hash(text, SEED);
        if let Some(number) = table.find(hash, |number| of(ends, bytes, *number) == text) {
            return *number;
        }
        debug_assert!(ends.len() < u32::MAX as usize, "numbers are of 32 bits");
        let number = ends.len() as u32;
        bytes.extend_from_slice(text);
        ends.push(bytes.len());
        table.insert_unique(hash, number, |number| key_hash(of(ends, bytes, *number), SEED));
        number
    }

    fn memory_bytes(&self) -> usize {
        self.table.allocation_size() + size_of::<usize>() * self.ends.capacity() + self.bytes.capacity()
    }
}

/// The text of a number.
fn of<'b>(ends: &[usize], bytes: &'b [u8], number: u32) -> &'b [u8] {
    let at = number as usize;
    let start = at.checked_sub(1).map_or(0, |before| ends[before]);
    &bytes[start..ends[at]]
}
