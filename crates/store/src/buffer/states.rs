//! States by key: where all states of a table have one length, and merge to that length, a lookup of the newest finds
//! what the buffer has of a key in a hash table, in which each key comes once. What was appended since the last
//! lookup is taken in first, so much at a time that no lookup waits long; the rest it looks through.
//!
//! 1. A word goes to the [slot](super::slots) of its piece.
//! 2. Where a word of the same piece is met and its record has the same key, the two states merge in a record of the
//!    table's own.
//!
//! **Invariant:** what is found is the merge of all records of the key before `covers`, and of no others.

use forebay_base::sort::{pack, piece_of};
use forebay_base::{Combine, Kind, Record};
use forebay_env::guest;

use smallvec::SmallVec;

use super::WriteBuffer;
use super::run::{FOLDED_PLACE, place_in, record_in};
use super::slots::Slots;

/// A lookup takes in so many words, some tens of microseconds, or this share of those that wait where that is more: that
/// takes as long as to look through all of them, which it does anyway. So few lookups meet many that wait.
const TAKEN_MIN: usize = 2048;
const TAKEN_SHARE: usize = 32;

/// States of what lookups have taken in so far. The words that wait are the index's.
#[derive(Debug, Default)]
pub(super) struct Latest {
    /// From the first lookup on.
    states: Option<States>,
    /// So many words are taken in that are still among those that wait.
    taken: usize,
    /// A record was found that states cannot have.
    odd: bool,
}

/// See the module.
#[derive(Debug, Default)]
struct States {
    slots: Slots,
    merges: Merges,
    /// How much of the buffer is taken in.
    covers: usize,
}

/// What several records of a key came to.
#[derive(Debug, Default)]
struct Merges {
    /// One behind the other.
    records: Vec<u8>,
    /// Memory for a state.
    spare: Vec<u8>,
}

/// The table cannot be used: a record is of another length than its key's others.
#[derive(Debug)]
struct Odd;

impl Latest {
    /// Whether a lookup has asked.
    pub(super) fn is_begun(&self) -> bool {
        self.states.is_some()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.states.as_ref().map_or(0, States::memory_bytes)
    }

    /// Words before this place that are not taken in, oldest first.
    pub(super) fn untaken<'w>(&self, words: &'w [u64], limit: usize) -> &'w [u64] {
        let words = words.get(self.taken..).unwrap_or_default();
        &words[..words.partition_point(|&word| place_in(word) < limit)]
    }

    /// Whether all before this place is taken in, and nothing beyond.
    pub(super) fn tells(&self, words: &[u64], limit: usize) -> bool {
        let covers = |states: &States| states.covers <= limit;
        !self.odd && self.states.as_ref().is_some_and(covers) && self.untaken(words, limit).is_empty()
    }

    /// Takes some of what was appended before this place in. Says whether what was the case at this length can be
    /// found.
    pub(super) fn take_in(
        &mut self,
        words: &mut Vec<u64>,
        buffer: &WriteBuffer,
        rule: &dyn Combine,
        limit: usize,
    ) -> bool {
        debug_assert!(self.taken <= words.len(), "what is taken in was there");
        let waiting = self.untaken(words, limit).len();
        let end = self.taken + waiting.min(TAKEN_MIN.max(waiting / TAKEN_SHARE));
        let states = self.states.get_or_insert_default();
        if self.odd || states.covers > limit {
            return false;
        }
        let mut some = words[self.taken..end].iter();
        self.odd = some.any(|&word| states.add(buffer, rule, word).is_err());
        states.covers = words.get(end).map_or(limit, |&word| limit.min(place_in(word)));
        self.taken = end;
        if end == words.len() {
            words.clear();
            self.taken = 0;
        }
        !self.odd
    }

    /// What there was of a key of this piece.
    pub(super) fn find(
        &self,
        words: &[u64],
        buffer: &WriteBuffer,
        (piece, key): (u32, &[u8]),
        limit: usize,
    ) -> Found {
        let untaken = self.untaken(words, limit).iter().rev().filter(|&&word| piece_of(word) == piece);
        let places = untaken.map(|&word| place_in(word)).filter(|&place| buffer.record(place).key == key);
        Found { places: places.collect(), state: self.state(buffer, piece, key) }
    }

    /// What all that is taken in comes to.
    pub(super) fn state(&self, buffer: &WriteBuffer, piece: u32, key: &[u8]) -> Option<State> {
        let record = self.states.as_ref()?.find(buffer, piece, key)?;
        Some((record.kind, record.value.into()))
    }
}

/// A state, and what it is of.
type State = (Kind, SmallVec<[u8; 32]>);

/// What there is of a key: the places of what is not taken in, newest first, and the state of the rest.
pub(super) struct Found {
    pub(super) places: SmallVec<[usize; 8]>,
    pub(super) state: Option<State>,
}

impl Found {
    /// Shows it, newest first.
    pub(super) fn show(&self, buffer: &WriteBuffer, key: &[u8], each: &mut impl FnMut(&Record<'_>) -> bool) {
        if self.places.iter().all(|&place| each(&buffer.record(place)))
            && let Some((kind, state)) = &self.state
        {
            each(&Record { kind: *kind, key, value: state });
        }
    }
}

impl States {
    fn memory_bytes(&self) -> usize {
        self.slots.memory_bytes() + self.merges.records.capacity()
    }

    /// Takes the next record in.
    #[inline]
    fn add(&mut self, buffer: &WriteBuffer, rule: &dyn Combine, word: u64) -> Result<(), Odd> {
        let Self { slots, merges, .. } = self;
        slots.put(word, |other| merges.merge(buffer, rule, other, &buffer.record(place_in(word))))
    }

    /// What there is of a key.
    fn find<'a>(&'a self, buffer: &'a WriteBuffer, piece: u32, key: &[u8]) -> Option<Record<'a>> {
        let mut records = self.slots.of(piece).map(|word| self.merges.record(buffer, place_in(word)));
        records.find(|record| record.key == key)
    }
}

impl Merges {
    /// Merges a record into the one of `word`, if they have one key. Returns the word of what they come to.
    fn merge(
        &mut self,
        buffer: &WriteBuffer,
        rule: &dyn Combine,
        word: u64,
        newer: &Record<'_>,
    ) -> Result<Option<u64>, Odd> {
        let place = place_in(word);
        let mut state = std::mem::take(&mut self.spare);
        let older = self.record(buffer, place);
        if older.key != newer.key {
            self.spare = state;
            return Ok(None);
        }
        state.clear();
        state.extend_from_slice(newer.value);
        let attempt = guest::attempt();
        // Of deletes, too, all values have one length.
        let are_states = (older.kind, newer.kind) == (Kind::Put, Kind::Put);
        let merges =
            are_states && state.len() == older.value.len() && rule.merge_in_place(&mut state, older.value);
        // Where the rule panics, states come to nothing: records are merged whenever they are looked at.
        let merges = attempt.succeeds() && merges;
        let merged = match (merges, place.checked_sub(FOLDED_PLACE)) {
            (false, _) => Err(Odd),
            (true, Some(at)) => {
                let end = at + record_in(&self.records, at).1;
                debug_assert!(end <= self.records.len() && at + state.len() <= end);
                self.records[end - state.len()..end].copy_from_slice(&state);
                Ok(Some(word))
            }
            (true, None) => {
                let at = self.records.len();
                Record::put(newer.key, &state).encode(&mut self.records);
                Ok(Some(pack(piece_of(word), !((FOLDED_PLACE + at) as u32))))
            }
        };
        self.spare = state;
        merged
    }

    fn record<'a>(&'a self, buffer: &'a WriteBuffer, place: usize) -> Record<'a> {
        match place.checked_sub(FOLDED_PLACE) {
            Some(at) => record_in(&self.records, at).0,
            None => buffer.record(place),
        }
    }
}
