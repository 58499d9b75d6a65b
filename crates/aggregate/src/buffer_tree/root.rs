//! A root's buffer: what was added, one behind the other, neither sorted nor packed [5.3.3].
//!
//! `u32 hash | u32 key bytes | u32 state bytes, where states have any length | key | state`

use std::cmp::Ordering;

use forebay_base::Result;
use forebay_base::sort::{pack, place_of, sort_words};
use forebay_base::wire::u32_at;

use super::fold::Fold;
use super::meter::{Held, Meter};
use super::records::{Record, Records};
use crate::aggregate::Aggregate;
use crate::stages::{Stage, Stages, timed};

const LOOK_AHEAD: usize = 32;

/// See the module.
#[derive(Default)]
pub(super) struct RootBuffer {
    rows: Vec<u8>,
    records: usize,
    held: Held,
}

impl RootBuffer {
    /// With memory for so many bytes.
    pub(super) fn new(bytes: usize, meter: &Meter) -> Self {
        let rows = Vec::with_capacity(bytes);
        let held = meter.hold(rows.capacity());
        Self { rows, records: 0, held }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records == 0
    }

    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.records = 0;
    }

    /// Appends a record; `false` where there is no room. An empty one that has memory takes any.
    #[inline]
    pub(super) fn push(&mut self, record: &Record<'_>, is_fixed: bool) -> bool {
        let room = self.rows.capacity() - self.rows.len();
        let bytes = 12 + record.key.len() + record.state.len();
        if bytes > room && (self.records > 0 || self.rows.capacity() == 0) {
            return false;
        }
        self.rows.extend_from_slice(&record.hash.to_le_bytes());
        self.rows.extend_from_slice(&(record.key.len() as u32).to_le_bytes());
        if !is_fixed {
            self.rows.extend_from_slice(&(record.state.len() as u32).to_le_bytes());
        }
        self.rows.extend_from_slice(record.key);
        self.rows.extend_from_slice(record.state);
        self.records += 1;
        if bytes > room {
            self.held.set(self.rows.capacity());
        }
        true
    }

    /// Its records in the order of hashes, one for each key.
    pub(super) fn sorted<A: Aggregate>(
        &self,
        function: &A,
        meter: &Meter,
        stages: Option<&Stages>,
    ) -> Result<Records> {
        let state_bytes = function.state_bytes();
        let mut words: Vec<u64> = Vec::with_capacity(self.records);
        let _held = meter.hold(size_of::<u64>() * words.capacity());
        timed(stages, Stage::Sort, || {
            let mut place = 0;
            while let Some((record, end)) = record_at(&self.rows, place, state_bytes) {
                words.push(pack(record.hash, place as u32));
                place = end;
            }
            sort_words(&mut words, &mut |_, _| Ordering::Equal);
        });
        timed(stages, Stage::Merge, || {
            let mut fold = Fold::new(function, words.len(), self.rows.len() - 8 * words.len());
            let mut next = Vec::with_capacity(LOOK_AHEAD);
            for words in words.chunks(LOOK_AHEAD) {
                // Records lie anywhere: this many are asked for at a time.
                next.extend(
                    words.iter().map_while(|&word| {
                        Some(record_at(&self.rows, place_of(word) as usize, state_bytes)?.0)
                    }),
                );
                next.drain(..).try_for_each(|record| fold.push(record))?;
            }
            fold.finish()
        })
    }
}

#[inline]
fn record_at(rows: &[u8], place: usize, state_bytes: Option<usize>) -> Option<(Record<'_>, usize)> {
    let head = if state_bytes.is_some() { 8 } else { 12 };
    let row = rows.get(place..).filter(|row| row.len() >= head)?;
    let key_end = head + u32_at(row, 4) as usize;
    let end = key_end + state_bytes.unwrap_or_else(|| u32_at(row, 8) as usize);
    let record = Record { hash: u32_at(row, 0), key: row.get(head..key_end)?, state: row.get(key_end..end)? };
    Some((record, place + end))
}
