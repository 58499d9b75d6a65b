//! What was added to a leaf since it was last merged: records in the order they came, side by side in segments.
//!
//! `varint key bytes | varint state bytes | key | state`. States of a fixed length are shortened: small numbers are
//! short. Of one of up to 16 bytes, what is zero at its end is left out. A longer one is squeezed, eight bytes after
//! the other: `4 bits length | ...`, rounded up to bytes, and then as many bytes of each eight as that says, behind
//! which they are zero.

use forebay_base::wire::{get_varint, put_varint};

use super::chunk::number;
use super::stream::{SEGMENT_BYTES, Segment, Stream};

/// Records not yet merged.
#[derive(Default)]
pub(super) struct Tail {
    stream: Stream,
    lengths: Lengths,
}

impl Tail {
    /// Bytes of its records.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.stream.end()
    }

    /// Appends a record. `false`, and nothing is done, where it does not fit the segment that is begun.
    #[inline]
    pub(super) fn append(&mut self, key: &[u8], state: &[u8]) -> bool {
        if key.len() >= 0x80 || state.len() >= 0x80 {
            return false;
        }
        let Some(place) = self.stream.extend(2 + key.len() + state.len()) else { return false };
        self.lengths.count(key);
        place[0] = key.len() as u8;
        place[1] = state.len() as u8;
        debug_assert_eq!(place.len(), 2 + key.len() + state.len());
        let (key_place, state_place) = place[2..].split_at_mut(key.len());
        key_place.copy_from_slice(key);
        match (&mut *state_place, state) {
            // Most are counts of a few: a copy of a length that is not known would be a call.
            ([place], [byte]) => *place = *byte,
            _ => state_place.copy_from_slice(state),
        }
        true
    }

    /// Asks for the place where the next record goes.
    #[inline]
    pub(super) fn prefetch(&self) {
        self.stream.prefetch_end();
    }

    /// How many segments a record needs besides those that are there.
    pub(super) fn missing(&self, key: &[u8], state: &[u8]) -> usize {
        (MAX_HEADER_BYTES + key.len() + state.len())
            .saturating_sub(self.stream.room())
            .div_ceil(SEGMENT_BYTES)
    }

    /// Appends a record over as many segments as it needs; `next` gives empty ones.
    pub(super) fn append_over(&mut self, key: &[u8], state: &[u8], mut next: impl FnMut() -> Segment) {
        let mut header = Vec::with_capacity(MAX_HEADER_BYTES);
        put_header(&mut header, key, state);
        self.lengths.count(key);
        for piece in [&header[..], key, state] {
            self.stream.append(piece, &mut next);
        }
    }

    /// What its records are like.
    pub(super) fn lengths(&self) -> Lengths {
        self.lengths
    }

    /// Gives all segments to `free`.
    pub(super) fn give_up(self, free: &mut Vec<Segment>) {
        self.stream.give_up(free);
    }

    /// Appends all records to `raw`.
    pub(super) fn copy(&self, raw: &mut Vec<u8>) {
        self.stream.copy(raw);
    }

    /// Appends all records to `raw`, and gives the segments to `free`.
    pub(super) fn drain(self, raw: &mut Vec<u8>, free: &mut Vec<Segment>) {
        self.stream.drain(raw, free);
    }
}

/// How many records there are, and of which lengths their keys are.
#[derive(Clone, Copy, Default)]
pub(super) struct Lengths {
    pub(super) records: u64,
    /// Bits that the length of any key has, and those that it lacks.
    set: u32,
    clear: u32,
}

impl Lengths {
    #[inline]
    fn count(&mut self, key: &[u8]) {
        self.add(key.len(), 1);
    }

    /// Adds so many records with keys of this length.
    #[inline]
    pub(super) fn add(&mut self, key_bytes: usize, records: u64) {
        self.records += records;
        self.set |= key_bytes as u32;
        self.clear |= !(key_bytes as u32);
    }

    /// Adds records that are counted.
    pub(super) fn join(&mut self, other: Self) {
        self.records += other.records;
        self.set |= other.set;
        self.clear |= other.clear;
    }

    /// The length of all keys, where there are any and it is one.
    pub(super) fn key_bytes(&self) -> Option<u32> {
        (self.set ^ self.clear == u32::MAX).then_some(self.set)
    }
}

/// Two varints of lengths below 2^32.
pub(super) const MAX_HEADER_BYTES: usize = 10;

fn put_header(out: &mut Vec<u8>, key: &[u8], state: &[u8]) {
    let start = out.len();
    put_varint(out, key.len() as u64);
    put_varint(out, state.len() as u64);
    debug_assert!(out.len() - start <= MAX_HEADER_BYTES, "room was asked for before");
}

/// Appends a record to bytes that have room for it.
#[inline]
pub(super) fn put_record(out: &mut Vec<u8>, key: &[u8], state: &[u8]) {
    if key.len() < 0x80 && state.len() < 0x80 {
        out.extend_from_slice(&[key.len() as u8, state.len() as u8]);
    } else {
        put_header(out, key, state);
    }
    out.extend_from_slice(key);
    match state {
        [byte] => out.push(*byte),
        _ => out.extend_from_slice(state),
    }
}

/// A state without the zeros at its end, if all states are of one length.
#[inline]
pub(super) fn trimmed(state: &[u8], is_fixed: bool) -> &[u8] {
    if !is_fixed {
        return state;
    }
    if let Some(word) = state.first_chunk().filter(|_| state.len() == 8) {
        let zeros = u64::from_le_bytes(*word).leading_zeros() as usize / 8;
        return &state[..8 - zeros];
    }
    &state[..state.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)]
}

/// Puts a trimmed state in place of what `state` holds, at its full length.
#[inline]
pub(super) fn restore(trimmed: &[u8], state: &mut [u8]) {
    if let Some(whole) = state.first_chunk_mut::<8>().filter(|_| trimmed.len() == 1) {
        // Most are counts of a few.
        *whole = u64::from(trimmed[0]).to_le_bytes();
        state[8..].fill(0);
        return;
    }
    debug_assert!(trimmed.len() <= state.len(), "a trimmed state is no longer than it was");
    let (head, rest) = state.split_at_mut(trimmed.len());
    head.copy_from_slice(trimmed);
    rest.fill(0);
}

/// A fixed state is squeezed where it has more bytes than this.
const TRIMMED_BYTES_MAX: usize = 16;

/// A state as it stands in a tail. One of fixed length may be trimmed before; `spare` is memory.
#[inline]
pub(super) fn shorten<'s>(state: &'s [u8], state_bytes: Option<usize>, spare: &'s mut Vec<u8>) -> &'s [u8] {
    match state_bytes {
        Some(bytes) if bytes > TRIMMED_BYTES_MAX => {
            squeeze(state, bytes, spare);
            spare
        }
        state_bytes => trimmed(state, state_bytes.is_some()),
    }
}

/// Puts a fixed state that stands so in a tail in place of what `state` holds, at its full length.
#[inline]
pub(super) fn lengthen(short: &[u8], state: &mut [u8]) {
    if state.len() <= TRIMMED_BYTES_MAX {
        return restore(short, state);
    }
    let mut start = state.len().div_ceil(8).div_ceil(2);
    for (word, place) in state.chunks_mut(8).enumerate() {
        let length = usize::from(short[word / 2] >> (4 * (word % 2)) & 0xf);
        let value = match short[start..].first_chunk() {
            Some(bytes) => {
                u64::from_le_bytes(*bytes) & u64::MAX.checked_shr(64 - 8 * length as u32).unwrap_or(0)
            }
            None => number(&short[start..start + length]),
        };
        match place.first_chunk_mut() {
            Some(place) => *place = value.to_le_bytes(),
            None => place.copy_from_slice(&value.to_le_bytes()[..place.len()]),
        }
        start += length;
    }
    debug_assert_eq!(start, short.len(), "all of it is read");
}

/// Puts a state of so many bytes, or what is left of it when it is trimmed, in place of what `out` holds.
fn squeeze(state: &[u8], bytes: usize, out: &mut Vec<u8>) {
    debug_assert!(state.len() <= bytes, "a state is no longer than all are");
    let words = bytes.div_ceil(8);
    let mut end = words.div_ceil(2);
    out.clear();
    out.resize(end + 8 * words, 0);
    for (at, word) in state.chunks(8).map(number).enumerate() {
        let length = (u64::BITS - word.leading_zeros()).div_ceil(8) as usize;
        out[at / 2] |= (length as u8) << (4 * (at % 2));
        if let Some(place) = out[end..].first_chunk_mut() {
            *place = word.to_le_bytes();
        }
        end += length;
    }
    out.truncate(end);
}

/// The key and the state of the record at this place, and where it ends.
#[inline]
pub(super) fn record_at(raw: &[u8], place: usize) -> Option<(&[u8], &[u8], usize)> {
    let (key_bytes, first) = length_at(raw, place)?;
    let (state_bytes, second) = length_at(raw, place + first)?;
    let key = place + first + second;
    let state = key + key_bytes;
    let end = state + state_bytes;
    Some((raw.get(key..state)?, raw.get(state..end)?, end))
}

#[inline]
fn length_at(raw: &[u8], place: usize) -> Option<(usize, usize)> {
    match *raw.get(place)? {
        short @ 0..0x80 => Some((short as usize, 1)),
        _ => get_varint(&raw[place..]).map(|(length, bytes)| (length as usize, bytes)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shortened_states_come_back(
            mut state in prop::collection::vec(prop::sample::select(vec![0_u8, 0, 0, 1, 0x80, 0xff]), 1..70),
            zeros in 0..70_usize,
        ) {
            let kept = state.len().saturating_sub(zeros);
            state[kept..].fill(0);
            let (mut spare, mut found) = (vec![7; 3], vec![9; state.len()]);
            // One that was trimmed before is the same.
            for from in [&state[..], trimmed(&state, true)] {
                let short = shorten(from, Some(state.len()), &mut spare);
                prop_assert!(short.len() <= state.len() + state.len().div_ceil(16), "{} bytes", short.len());
                lengthen(short, &mut found);
                prop_assert_eq!(&found, &state);
            }
            prop_assert_eq!(shorten(&state, None, &mut spare), &state[..]);
        }
    }

    #[test]
    fn a_sum_and_a_count_are_short() {
        let state = [&[1][..], &47.122215_f64.to_le_bytes(), &[0; 8], &1_u64.to_le_bytes()].concat();
        assert_eq!(shorten(&state, Some(25), &mut Vec::new()).len(), 13);
    }
}
