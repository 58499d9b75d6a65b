//! The aggregation pass: of all records that come in the order of hashes, one for each key is left [5.3.3].

use forebay_base::Result;

use super::records::{Part, Record, Records, Walk};
use crate::aggregate::Aggregate;
use crate::aggregator::check_state;

/// Takes records in the order of hashes.
pub(super) struct Fold<'a, A> {
    function: &'a A,
    merged: Records,
    /// Those of one hash.
    equal: Vec<Record<'a>>,
    states: Vec<&'a [u8]>,
    state: Vec<u8>,
}

impl<'a, A: Aggregate> Fold<'a, A> {
    /// For at most so many records of so many bytes.
    pub(super) fn new(function: &'a A, records: usize, pair_bytes: usize) -> Self {
        let merged = Records::with_capacity(function.state_bytes(), records, pair_bytes);
        Self { function, merged, equal: Vec::new(), states: Vec::new(), state: Vec::new() }
    }

    #[inline]
    pub(super) fn push(&mut self, record: Record<'a>) -> Result<()> {
        if self.equal.first().is_some_and(|first| first.hash != record.hash) {
            self.close()?;
        }
        self.equal.push(record);
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Records> {
        self.close()?;
        Ok(self.merged)
    }

    /// Keys of equal hashes may alternate; in order of key those of one come together. The thesis has an accumulator
    /// for each in a table instead.
    fn close(&mut self) -> Result<()> {
        let Self { function, merged, equal, states, state } = self;
        if let [record] = equal[..] {
            merged.push(&record);
            equal.clear();
            return Ok(());
        }
        if equal.iter().any(|record| record.key != equal[0].key) {
            equal.sort_by_key(|record| record.key);
        }
        debug_assert!(equal.iter().all(|record| record.hash == equal[0].hash), "they are of one hash");
        for of_key in equal.chunk_by(|one, other| one.key == other.key) {
            let first = of_key[0];
            match (of_key, function.state_bytes()) {
                (&[_], _) => merged.push(&first),
                (_, Some(bytes)) => {
                    merged.push(&first);
                    let last = merged.last_state(bytes);
                    of_key[1..].iter().for_each(|other| function.merge_in_place(last, other.state));
                }
                (_, None) => {
                    states.clear();
                    states.extend(of_key.iter().map(|record| record.state));
                    state.clear();
                    function.merge(states, state);
                    check_state(first.key, state)?;
                    merged.push(&Record { state, ..first });
                }
            }
        }
        equal.clear();
        Ok(())
    }
}

/// Merges what is in order part by part.
pub(super) fn merge<'a, A: Aggregate>(function: &'a A, parts: &[Part<'a>]) -> Result<Records> {
    let records = parts.iter().map(|part| part.hashes.len()).sum();
    let mut fold = Fold::new(function, records, parts.iter().map(|part| part.pairs.len()).sum());
    let mut walks: Vec<Walk<'a>> = parts.iter().map(|part| part.walk()).collect();
    // A heap of the next hash of each with its number, the least on top.
    let mut heap: Vec<u64> = walks.iter().enumerate().filter_map(word_of).collect();
    heap.sort_unstable();
    while let Some(&top) = heap.first() {
        let number = top as u32 as usize;
        // Whoever comes next; up to there this one goes on.
        let other = heap[1..].iter().take(2).min().copied().unwrap_or(u64::MAX);
        let mut next = Some(top);
        while next.is_some_and(|word| word < other)
            && let Some(record) = walks[number].next()
        {
            fold.push(record)?;
            next = word_of((number, &walks[number]));
        }
        replace_top(&mut heap, next);
    }
    fold.finish()
}

#[inline]
fn word_of((number, walk): (usize, &Walk<'_>)) -> Option<u64> {
    walk.hash().map(|hash| u64::from(hash) << 32 | number as u64)
}

/// Puts a word in the top's place, or the last where there is none, and lets it sink.
#[inline]
fn replace_top(heap: &mut Vec<u64>, word: Option<u64>) {
    match word {
        Some(word) => heap[0] = word,
        None => drop(heap.swap_remove(0)),
    }
    let mut at = 0;
    loop {
        let left = 2 * at + 1;
        let Some(mut least) = heap.get(left).map(|_| left) else { return };
        if heap.get(left + 1).is_some_and(|&right| right < heap[left]) {
            least = left + 1;
        }
        if heap[at] <= heap[least] {
            return;
        }
        heap.swap(at, least);
        at = least;
    }
}
