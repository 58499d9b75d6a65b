//! Functions of pairs of numbers: those of rows in which two lanes have a value.

use super::accumulate::resize;
use super::read::floats;
use super::{Accumulator, Rows};
use crate::fixed::{FixedAggregate, Plain};
use crate::optional::{MISSING, PRESENT};

/// See the module.
pub(crate) struct Paired<A: FixedAggregate> {
    function: A,
    lanes: [usize; 2],
    values: [Vec<f64>; 2],
    kept: Vec<Option<A::State>>,
}

impl<A> Paired<A>
where
    A: for<'a> FixedAggregate<Input<'a> = (f64, f64)>,
    A::State: Send + Sync,
{
    /// What a function keeps of the values of two lanes.
    pub(crate) fn over(function: A, lanes: [usize; 2]) -> Box<dyn Accumulator> {
        Box::new(Self { function, lanes, values: Default::default(), kept: Vec::new() })
    }
}

impl<A> Accumulator for Paired<A>
where
    A: for<'a> FixedAggregate<Input<'a> = (f64, f64)>,
    A::State: Send + Sync,
{
    fn read(&mut self, rows: &Rows<'_>, refused: &mut Vec<u32>) {
        for (values, lane) in self.values.iter_mut().zip(self.lanes) {
            floats(&rows.lane(lane), values, refused);
        }
    }

    fn resize(&mut self, groups: usize) {
        resize(&mut self.kept, groups, None);
    }

    fn add(&mut self, rows: &Rows<'_>, groups: &[u32]) {
        let lanes = self.lanes.map(|lane| rows.lane(lane));
        let has_nulls = lanes.iter().any(|lane| lane.has_nulls());
        let [ones, others] = &self.values;
        debug_assert_eq!((ones.len(), groups.len()), (rows.len(), rows.len()), "what was read is added");
        for (at, ((one, other), group)) in ones.iter().zip(others).zip(groups).enumerate() {
            let is_missing = has_nulls && !lanes.iter().all(|lane| lane.is_present(at));
            let kept = &mut self.kept[if is_missing { 0 } else { *group as usize }];
            let added = self.function.of((*one, *other));
            *kept = Some(match *kept {
                Some(kept) => self.function.join(kept, added),
                None => added,
            });
        }
    }

    fn write_state(&self, group: usize, state: &mut Vec<u8>) {
        let start = state.len();
        state.resize(start + 1 + A::State::BYTES, MISSING);
        if let Some(kept) = self.kept[group] {
            state[start] = PRESENT;
            kept.write(&mut state[start + 1..]);
        }
    }

    fn memory_bytes(&self) -> usize {
        let values: usize = self.values.iter().map(Vec::capacity).sum();
        size_of::<f64>() * values + size_of::<Option<A::State>>() * self.kept.capacity()
    }
}
