//! Bytes over segments: pieces of memory of one size, which go from hand to hand and are used again. Whatever the sizes
//! of what lies in them, they leave no holes, and whichever thread made them, any other may use them.
//!
//! **Invariant:** a segment is in the pool, in a stream or in the hands of a merge, and nowhere else.

use std::ops::Range;

use forebay_env::prefetch;
use forebay_env::sync::{Mutex, Rank};

pub(super) const SEGMENT_BYTES: usize = 4 << 10;
/// What a segment takes, with what an allocator adds and its place in a vector that may be half empty.
pub(super) const SEGMENT_ENTRY_BYTES: usize = SEGMENT_BYTES + 16 + 2 * size_of::<Segment>();

/// See the module.
pub(super) type Segment = Box<[u8; SEGMENT_BYTES]>;

/// The segments that nobody uses.
pub(super) struct Pool {
    inner: Mutex<Spare>,
}

impl Default for Pool {
    fn default() -> Self {
        Self { inner: Mutex::ranked(Rank::Leaf, Spare::default()) }
    }
}

#[derive(Default)]
struct Spare {
    free: Vec<Segment>,
    made: usize,
}

impl Pool {
    /// Gives a segment, whatever it holds; makes one where none is free.
    pub(super) fn take(&self) -> Segment {
        let mut spare = self.inner.lock();
        let free = spare.free.pop();
        spare.made += usize::from(free.is_none());
        drop(spare);
        free.unwrap_or_else(|| Box::new([0; SEGMENT_BYTES]))
    }

    /// Takes this many segments, whatever they hold, if it `fits` that so many are used then.
    pub(super) fn take_if(
        &self,
        count: usize,
        fits: impl FnOnce(usize) -> bool,
        into: &mut Vec<Segment>,
    ) -> bool {
        let mut spare = self.inner.lock();
        if !fits(spare.made - spare.free.len() + count) {
            return false;
        }
        let kept = spare.free.len().saturating_sub(count);
        let made = count - (spare.free.len() - kept);
        into.extend(spare.free.drain(kept..));
        spare.made += made;
        debug_assert!(spare.free.len() <= spare.made, "a segment is free once");
        drop(spare);
        into.extend((0..made).map(|_| Segment::new([0; SEGMENT_BYTES])));
        true
    }

    /// Takes segments back.
    pub(super) fn give(&self, segments: &mut Vec<Segment>) {
        self.inner.lock().free.append(segments);
    }

    /// How many segments there are that somebody uses.
    pub(super) fn used(&self) -> usize {
        let spare = self.inner.lock();
        debug_assert!(spare.free.len() <= spare.made, "a segment is free once");
        spare.made - spare.free.len()
    }

    /// What all segments take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.inner.lock().made * SEGMENT_ENTRY_BYTES
    }

    /// Gives all that are free to the allocator.
    pub(super) fn release(&self) {
        let mut spare = self.inner.lock();
        debug_assert!(spare.free.len() <= spare.made);
        spare.made -= spare.free.len();
        spare.free = Vec::new();
    }
}

/// Bytes one behind the other.
#[derive(Default)]
pub(super) struct Stream {
    segments: Vec<Segment>,
    /// The place of the first segment's first byte: what lay before was given back.
    start: usize,
    /// Bytes of the last segment behind the end.
    room: usize,
}

impl Stream {
    /// The place of the first byte that is there.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// The place behind the last byte.
    #[inline]
    pub(super) fn end(&self) -> usize {
        self.start + self.segments.len() * SEGMENT_BYTES - self.room
    }

    /// How many bytes fit the segments that are there.
    pub(super) fn room(&self) -> usize {
        self.room
    }

    /// Asks for the place behind the last byte, if the last segment has room there.
    #[inline]
    pub(super) fn prefetch_end(&self) {
        let place = self.segments.last().and_then(|last| last.get(SEGMENT_BYTES - self.room));
        place.into_iter().for_each(prefetch);
    }

    /// Appends this many bytes for the caller to fill, if the last segment has room for them.
    #[inline]
    pub(super) fn extend(&mut self, bytes: usize) -> Option<&mut [u8]> {
        let start = SEGMENT_BYTES - self.room;
        let place = self.segments.last_mut()?.get_mut(start..start + bytes)?;
        self.room -= bytes;
        Some(place)
    }

    /// Appends bytes over as many segments as they need; `next` gives those.
    pub(super) fn append(&mut self, mut bytes: &[u8], next: &mut impl FnMut() -> Segment) {
        while !bytes.is_empty() {
            if self.room == 0 {
                self.segments.push(next());
                self.room = SEGMENT_BYTES;
            }
            let (here, rest) = bytes.split_at(bytes.len().min(self.room));
            debug_assert!(here.len() <= self.room && !self.segments.is_empty());
            if let Some(place) = self.extend(here.len()) {
                place.copy_from_slice(here);
            }
            bytes = rest;
        }
    }

    /// The bytes of a range: where they lie, or copied together in `scratch`.
    pub(super) fn get<'a>(&'a self, range: Range<usize>, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        debug_assert!(self.start <= range.start && range.end <= self.end());
        let mut at = range.start - self.start;
        let end = range.end - self.start;
        let piece = |at: usize| {
            let (number, start) = (at / SEGMENT_BYTES, at % SEGMENT_BYTES);
            &self.segments[number][start..SEGMENT_BYTES.min(start + end - at)]
        };
        if at % SEGMENT_BYTES + range.len() <= SEGMENT_BYTES {
            return piece(at);
        }
        scratch.clear();
        while at < end {
            scratch.extend_from_slice(piece(at));
            at += piece(at).len();
        }
        scratch
    }

    /// Appends all bytes to `out`, and gives all segments to `free`.
    pub(super) fn drain(self, out: &mut Vec<u8>, free: &mut Vec<Segment>) {
        self.copy(out);
        free.extend(self.segments);
    }

    /// Gives all segments to `free`.
    pub(super) fn give_up(self, free: &mut Vec<Segment>) {
        free.extend(self.segments);
    }

    /// Appends all bytes to `out`.
    pub(super) fn copy(&self, out: &mut Vec<u8>) {
        out.reserve_exact(self.segments.len() * SEGMENT_BYTES);
        self.segments.iter().for_each(|segment| out.extend_from_slice(&segment[..]));
        out.truncate(out.len() - self.room);
    }

    /// Gives the segments that lie before a place to `free`; their bytes are gone.
    pub(super) fn cut_front(&mut self, place: usize, free: &mut Vec<Segment>) {
        debug_assert!((self.start..=self.end()).contains(&place));
        let count = (place - self.start) / SEGMENT_BYTES;
        free.extend(self.segments.drain(..count));
        self.start += count * SEGMENT_BYTES;
    }

    /// Takes off the bytes from a place on, and gives segments that then hold none to `free`.
    pub(super) fn cut_back(&mut self, place: usize, free: &mut Vec<Segment>) {
        debug_assert!((self.start..=self.end()).contains(&place));
        let bytes = place - self.start;
        free.extend(self.segments.drain(bytes.div_ceil(SEGMENT_BYTES)..));
        self.room = self.segments.len() * SEGMENT_BYTES - bytes;
    }

    /// Takes off the bytes from a place on, which keep their places. A segment with bytes on both sides is copied to
    /// what `next` gives.
    pub(super) fn split_off(&mut self, place: usize, next: impl FnOnce() -> Segment) -> Self {
        let number = (place - self.start) / SEGMENT_BYTES;
        let upper = Self {
            segments: self.segments.split_off(number),
            start: self.start + number * SEGMENT_BYTES,
            room: self.room,
        };
        self.segments.shrink_to_fit();
        self.room = 0;
        if let Some(shared) = upper.segments.first().filter(|_| place > upper.start) {
            let mut lower = next();
            lower.copy_from_slice(&shared[..]);
            self.segments.push(lower);
            self.room = SEGMENT_BYTES - (place - upper.start);
        }
        debug_assert!(
            self.end() == place && upper.start <= place,
            "what is below ends where what is above begins"
        );
        upper
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every part of a stream against the bytes it was made of, whose first is at place `start`.
    fn check(stream: &Stream, start: usize, bytes: &[u8]) {
        assert_eq!(stream.end(), start + bytes.len());
        let mut scratch = vec![1];
        for from in [0, bytes.len() / 3, bytes.len() / 2] {
            for to in [bytes.len(), bytes.len() * 2 / 3, (from + 100).min(bytes.len())] {
                if from < to {
                    let found = stream.get(start + from..start + to, &mut scratch);
                    assert_eq!(found, &bytes[from..to]);
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn what_was_appended_is_there(
            lengths in prop::collection::vec(0..3 * SEGMENT_BYTES, 1..8), split: u32, cut: u32,
        ) {
            let pool = Pool::default();
            let mut next = || pool.take();
            let (mut stream, mut bytes) = (Stream::default(), Vec::new());
            for (number, &length) in lengths.iter().enumerate() {
                let more: Vec<u8> = (0..length).map(|at| (at / 7 + number) as u8).collect();
                stream.append(&more, &mut next);
                bytes.extend(more);
            }
            check(&stream, 0, &bytes);
            let split = split as usize % (bytes.len() + 1);
            let mut upper = stream.split_off(split, || pool.take());
            check(&stream, 0, &bytes[..split]);
            check(&upper, split, &bytes[split..]);

            let mut free = Vec::new();
            let cut = split + cut as usize % (bytes.len() - split + 1);
            upper.cut_back(cut, &mut free);
            check(&upper, split, &bytes[split..cut]);
            upper.append(&bytes[cut..], &mut next);
            check(&upper, split, &bytes[split..]);
            upper.cut_front(cut, &mut free);
            check(&upper, cut, &bytes[cut..]);
            let mut out = vec![9];
            stream.drain(&mut out, &mut free);
            prop_assert_eq!(&out[1..], &bytes[..split]);
            free.append(&mut upper.segments);
            pool.give(&mut free);
            prop_assert_eq!(pool.used(), 0, "no segment is lost");
            pool.release();
            prop_assert_eq!(pool.memory_bytes(), 0);
        }
    }
}
