//! Dividing at bounds: by a fragment's own estimate of its shares, and by exact counts while a fragment is
//! being written.

use forebay_base::{Block, Bound, Order, Range};

use crate::{Division, Fragment, Portion};

/// Divides the part of a fragment inside `range` at a bound strictly inside.
pub(crate) fn divide<F: Fragment>(fragment: &F, range: &Range, whole: Portion, at: &Bound) -> Division {
    let share = fragment.share_below(range, at);
    debug_assert!(range.can_split_at(at), "{at:?} lies strictly inside {range:?}");
    if share <= 0.0 {
        return Division { below: None, above: Some(whole) };
    }
    if share >= 1.0 {
        return Division { below: Some(whole), above: None };
    }
    let part = |of: u64| ((of as f64 * share).round() as u64).min(of);
    let below = Portion { bytes: part(whole.bytes), records: part(whole.records) };
    let above = Portion { bytes: whole.bytes - below.bytes, records: whole.records - below.records };
    debug_assert_eq!(below.checked_add(above), Some(whole), "nothing is lost by dividing");
    Division { below: Some(below), above: Some(above) }
}

/// Counts what falls to each child while one fragment is written for all of them.
pub(crate) struct Tally {
    /// Where each child but the last ends.
    ends: Vec<Bound>,
    /// What fell to the children that are behind.
    done: Vec<Portion>,
    /// Bytes written and records counted when the current child began.
    begin_bytes: u64,
    records: u64,
}

impl Tally {
    pub(crate) fn new(ends: Vec<Bound>) -> Self {
        Self { done: Vec::with_capacity(ends.len() + 1), ends, begin_bytes: 0, records: 0 }
    }

    /// Counts the record that is about to be written behind this many bytes.
    #[inline]
    pub(crate) fn count(&mut self, prefix: u64, key: &[u8], bytes: u64) {
        while self.ends.get(self.done.len()).is_some_and(|end| end.place(prefix, key).is_ge()) {
            self.close(bytes);
        }
        self.records += 1;
    }

    /// Counts the records of a block.
    pub(crate) fn count_block(&mut self, block: &Block, bytes: u64) {
        let (mut at, len) = (0, block.len());
        while at < len {
            let is_behind =
                |end: &Bound, index: usize| end.place(block.prefixes()[index], block.key(index)).is_ge();
            let here = match self.ends.get(self.done.len()) {
                Some(end) if is_behind(end, len - 1) => {
                    let (mut low, mut high) = (at, len - 1);
                    while low < high {
                        let middle = low + (high - low) / 2;
                        if is_behind(end, middle) { high = middle } else { low = middle + 1 }
                    }
                    low
                }
                _ => len,
            };
            self.records += (here - at) as u64;
            at = here;
            if at < len {
                self.close(bytes + block.offset(at) as u64);
            }
        }
    }

    fn close(&mut self, bytes: u64) {
        debug_assert!(bytes >= self.begin_bytes && self.done.len() <= self.ends.len());
        self.done.push(Portion { bytes: bytes - self.begin_bytes, records: self.records });
        self.begin_bytes = bytes;
        self.records = 0;
    }

    /// What fell to each child, in order.
    pub(crate) fn finish(mut self, bytes: u64) -> Vec<Portion> {
        while self.done.len() <= self.ends.len() {
            self.close(bytes);
        }
        debug_assert_eq!(self.done.len(), self.ends.len() + 1, "each child has its part");
        self.done
    }
}

/// A place between two records where a fragment could be split, and what lies below it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Candidate {
    pub(crate) at: Bound,
    pub(crate) below: Portion,
}

/// This many candidates are kept: half as many lie evenly over what was written, however much that is.
const CANDIDATES_MAX: usize = 128;

const _: () = assert!(CANDIDATES_MAX >= 2 && CANDIDATES_MAX.is_multiple_of(2), "every other one is kept");

/// Finds the record boundary nearest to half of a fragment whose size is known only at its end.
pub(crate) struct Halving {
    order: Order,
    candidates: Vec<Candidate>,
    step_bytes: u64,
    next_bytes: u64,
    records: u64,
    /// The last record's key, where the next boundary is a candidate.
    before: Option<Vec<u8>>,
}

impl Halving {
    pub(crate) fn new(order: Order, expected_bytes: u64) -> Self {
        let step_bytes = (expected_bytes / (32 * CANDIDATES_MAX as u64)).max(1);
        Self { order, candidates: Vec::new(), step_bytes, next_bytes: 0, records: 0, before: None }
    }

    /// Counts the record of this key, about to be written behind this many bytes.
    #[inline]
    pub(crate) fn count(&mut self, key: &[u8], bytes: u64) {
        if let Some(before) = self.before.take() {
            let below = Portion { bytes, records: self.records };
            self.candidates.push(Candidate { at: self.order.separator(&before, key), below });
            if self.candidates.len() == CANDIDATES_MAX {
                self.thin_out();
            }
            self.next_bytes = bytes + self.step_bytes;
        }
        if bytes >= self.next_bytes {
            self.before = Some(key.to_vec());
        }
        self.records += 1;
    }

    /// Keeps every other candidate: more came than were expected.
    fn thin_out(&mut self) {
        let mut keep = false;
        self.candidates.retain(|_| {
            keep = !keep;
            keep
        });
        self.step_bytes *= 2;
    }

    /// What was counted, and the candidate nearest to its half.
    pub(crate) fn finish(self, bytes: u64) -> (Portion, Option<Candidate>) {
        let nearest =
            self.candidates.into_iter().min_by_key(|candidate| candidate.below.bytes.abs_diff(bytes / 2));
        (Portion { bytes, records: self.records }, nearest)
    }
}

#[cfg(test)]
mod tests {
    use forebay_base::Record;
    use forebay_base::record::Shape;

    use super::*;

    #[test]
    fn a_tally_counts_every_child_even_those_that_get_nothing() {
        let mut tally = Tally::new([10, 20, 30].map(Bound::at_prefix).to_vec());
        for (written, prefix) in [3, 9, 30, 31, 99].into_iter().enumerate() {
            tally.count(prefix, b"", written as u64 * 8);
        }
        let portion = |records| Portion { bytes: records * 8, records };
        assert_eq!(tally.finish(40), [2, 0, 0, 3].map(portion));
    }

    #[test]
    fn a_tally_of_blocks_equals_one_of_records() {
        let Some(mut block) = Block::new(Shape::Fixed { key_bytes: 1, value_bytes: 1 }) else {
            unreachable!()
        };
        let ends = || [10, 20, 30, 90].map(Bound::at_prefix).to_vec();
        let (mut by_block, mut by_record) = (Tally::new(ends()), Tally::new(ends()));
        for (number, prefixes) in
            [&[3, 9, 10, 10, 11][..], &[12], &[30, 31], &[90, 99]].into_iter().enumerate()
        {
            block.clear();
            for (index, &prefix) in prefixes.iter().enumerate() {
                block.push(prefix, &Record::put(b"k", b"v"));
                by_record.count(prefix, b"k", number as u64 * 100 + index as u64 * 2);
            }
            by_block.count_block(&block, number as u64 * 100);
        }
        assert_eq!(by_block.finish(1000), by_record.finish(1000));
    }

    #[test]
    fn halves_are_near_whatever_was_expected() {
        for count in [2u64, 3, 50, 1000, 100_000] {
            for expected in [0, count * 10, count * 300] {
                let mut halving = Halving::new(Order::Lexical, expected);
                (0..count).for_each(|i| halving.count(&i.to_be_bytes(), i * 10));
                let (whole, nearest) = halving.finish(count * 10);
                assert_eq!(whole, Portion { bytes: count * 10, records: count });
                let Candidate { at, below } = nearest.unwrap();
                assert_eq!((at.prefix, below.bytes), (below.records, below.records * 10), "exact counts");
                assert!(
                    below.records.abs_diff(count / 2) <= count / 64 + 1,
                    "{below:?} of {count}, {expected}"
                );
            }
        }
        let mut single = Halving::new(Order::Lexical, 10);
        single.count(b"one", 0);
        assert_eq!(single.finish(10).1, None, "one record has no boundary");
    }
}
