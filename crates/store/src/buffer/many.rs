//! Lookups of many keys at a time in a table of states: what is not [taken in](super::states) yet is looked through once
//! for all of them.

use forebay_base::Record;
use forebay_base::sort::{Pieces, piece_of};
use smallvec::SmallVec;

use super::run::place_in;
use super::states::{Found, Latest};
use super::{TableRows, WriteBuffer};

/// Longer lists are looked up in parts: what was found is in memory until nothing is locked.
const KEYS_MAX: usize = 8192;
/// Bits for each key: of so many pieces that nobody looks for, one is looked for by bisection.
const SIEVE_BITS: usize = 32;

/// Which pieces are looked for, in ascending order.
struct Sought {
    pieces: Vec<u32>,
    sieve: Vec<u64>,
    /// How far a piece is shifted to find its bit.
    shift: u32,
}

impl Sought {
    fn new(pieces: Vec<u32>) -> Self {
        let bits = (SIEVE_BITS * pieces.len()).next_power_of_two().max(64);
        debug_assert!(bits <= 1 << 32 && pieces.is_sorted(), "a piece has a bit, and is found by bisection");
        let (shift, mut sieve) = (32 - bits.trailing_zeros(), vec![0_u64; bits / 64]);
        for piece in &pieces {
            sieve[(piece >> shift) as usize / 64] |= 1 << ((piece >> shift) % 64);
        }
        Self { pieces, sieve, shift }
    }

    /// The places of this piece.
    #[inline]
    fn of(&self, piece: u32) -> impl Iterator<Item = usize> {
        let bit = piece >> self.shift;
        let may = self.sieve[bit as usize / 64] >> (bit % 64) & 1 == 1;
        let from = if may { self.pieces.partition_point(|other| *other < piece) } else { self.pieces.len() };
        (from..self.pieces.len()).take_while(move |at| self.pieces[*at] == piece)
    }
}

/// The keys in order, each once, and for each of all its place among those.
fn distinct<'k>(keys: &[(u64, &'k [u8])]) -> (Vec<(u64, &'k [u8])>, Vec<usize>) {
    let mut by_key: Vec<usize> = (0..keys.len()).collect();
    by_key.sort_unstable_by_key(|at| keys[*at]);
    let (mut once, mut places) = (Vec::with_capacity(keys.len()), vec![0; keys.len()]);
    for at in by_key {
        if once.last() != Some(&keys[at]) {
            once.push(keys[at]);
        }
        places[at] = once.len() - 1;
    }
    (once, places)
}

impl Latest {
    /// As [`find`](Self::find) of each of some keys, which are in order.
    fn find_many(
        &self,
        words: &[u64],
        buffer: &WriteBuffer,
        keys: &[(u64, &[u8])],
        limit: usize,
    ) -> Vec<Found> {
        let sought = Sought::new(keys.iter().map(|(prefix, _)| Pieces::WHOLE.of(*prefix)).collect());
        let found = keys.iter().zip(&sought.pieces).map(|((_, key), piece)| Found {
            places: SmallVec::new(),
            state: self.state(buffer, *piece, key),
        });
        let mut found: Vec<Found> = found.collect();
        for (place, piece) in
            self.untaken(words, limit).iter().rev().map(|&word| (place_in(word), piece_of(word)))
        {
            for at in sought.of(piece).filter(|&at| buffer.record(place).key == keys[at].1) {
                found[at].places.push(place);
            }
        }
        found
    }
}

impl WriteBuffer {
    /// As [`find`](Self::find) of each of some keys, given with their prefixes; `each` is told which of them.
    pub fn find_many(
        &self,
        rows: &TableRows<'_>,
        keys: &[(u64, &[u8])],
        limit: usize,
        mut each: impl FnMut(usize, &Record<'_>) -> bool,
    ) {
        if rows.rule.is_none() {
            return self.find_newest(rows, keys, limit, &mut each);
        }
        let rule = rows.states().filter(|_| keys.len() > 1);
        let Some(rule) = rule else { return self.find_singly(rows, keys, limit, each) };
        for (part, keys) in keys.chunks(KEYS_MAX).enumerate() {
            let first = part * KEYS_MAX;
            let (distinct, places) = distinct(keys);
            let look =
                |latest: &Latest, words: &[u64], limit| latest.find_many(words, self, &distinct, limit);
            let Some(found) = self.with_states(rows, rule, limit, look) else {
                self.find_singly(rows, keys, limit, |at, record| each(first + at, record));
                continue;
            };
            // The rule is asked when nothing is locked.
            for (at, ((_, key), place)) in keys.iter().zip(places).enumerate() {
                if let Some(found) = found.as_ref().and_then(|found| found.get(place)) {
                    found.show(self, key, &mut |record| each(first + at, record));
                }
            }
        }
    }

    /// The same, of one key after the other.
    fn find_singly(
        &self,
        rows: &TableRows<'_>,
        keys: &[(u64, &[u8])],
        limit: usize,
        mut each: impl FnMut(usize, &Record<'_>) -> bool,
    ) {
        for (at, (prefix, key)) in keys.iter().enumerate() {
            self.find(rows, *prefix, key, limit, |record| each(at, record));
        }
    }
}
