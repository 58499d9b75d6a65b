//! Sums of decimal numbers that come by columns: integers are added up as such for as long as they stay together.
//!
//! **Invariant:** 128 bits hold any sum of 2^64 integers of 64.

use super::decimal::Wide;
use crate::columns::{Accumulator, Folding, Items, Lane, Rows, integer, numbers, present, resize};
use crate::optional::{MISSING, PRESENT};

/// The sum of integers.
pub(super) struct Integers;

impl Folding for Integers {
    type Value = i64;
    type Kept = i128;
    const BYTES: usize = Wide::BYTES;

    fn read(&self, lane: &Lane<'_>, values: &mut Vec<i64>, _refused: &mut Vec<u32>) {
        values.clear();
        values.extend_from_slice(if let Items::I64(values) = lane.items() { values } else { &[] });
    }
    #[inline]
    fn of(&self, value: i64) -> i128 {
        value.into()
    }
    #[inline]
    fn join(&self, kept: i128, value: i64) -> i128 {
        kept.wrapping_add(value.into())
    }
    fn write(&self, kept: i128, state: &mut [u8]) {
        Wide::whole(kept).write(state);
    }
}

/// The sum of what texts say, or floating-point numbers: most are short integers.
pub(super) struct Texts {
    lane: usize,
    values: Vec<i64>,
    /// The rows of other numbers, which are 0 among `values`.
    odd: Vec<(u32, Wide)>,
    sums: Vec<Option<i128>>,
    /// What groups have besides, as soon as one has.
    odd_sums: Vec<Wide>,
}

impl Texts {
    pub(super) fn new(lane: usize) -> Self {
        let (values, odd, sums, odd_sums) = Default::default();
        Self { lane, values, odd, sums, odd_sums }
    }
}

impl Accumulator for Texts {
    fn read(&mut self, rows: &Rows<'_>, refused: &mut Vec<u32>) {
        let Self { values, odd, .. } = self;
        let lane = rows.lane(self.lane);
        odd.clear();
        numbers(&lane, values, refused, |at| {
            integer(lane.text(at)).or_else(|| {
                odd.push((at as u32, Wide::of(lane.value(at).as_exact_number()?)?));
                Some(0)
            })
        });
    }

    fn resize(&mut self, groups: usize) {
        resize(&mut self.sums, groups, None);
        let odd = if self.odd_sums.is_empty() { 0 } else { groups };
        resize(&mut self.odd_sums, odd, Wide::default());
    }

    fn add(&mut self, rows: &Rows<'_>, groups: &[u32]) {
        debug_assert_eq!(self.values.len(), rows.len(), "the rows that were read are added");
        for (group, value) in present(&rows.lane(self.lane), groups).zip(&self.values) {
            let sum = &mut self.sums[group];
            *sum = Some(sum.unwrap_or(0).wrapping_add((*value).into()));
        }
        if !self.odd.is_empty() {
            self.odd_sums.resize(self.sums.len(), Wide::default());
        }
        for (row, value) in &self.odd {
            let sum = &mut self.odd_sums[groups[*row as usize] as usize];
            *sum = sum.plus(*value);
        }
    }

    fn write_state(&self, group: usize, state: &mut Vec<u8>) {
        let start = state.len();
        state.resize(start + 1 + Wide::BYTES, MISSING);
        if let Some(sum) = self.sums[group] {
            let odd = self.odd_sums.get(group).copied().unwrap_or_default();
            state[start] = PRESENT;
            Wide::whole(sum).plus(odd).write(&mut state[start + 1..]);
        }
    }

    fn memory_bytes(&self) -> usize {
        size_of::<i64>() * self.values.capacity()
            + size_of::<(u32, Wide)>() * self.odd.capacity()
            + size_of::<Option<i128>>() * self.sums.capacity()
            + size_of::<Wide>() * self.odd_sums.capacity()
    }
}
