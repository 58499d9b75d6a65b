//! About how many distinct texts each group has: one is added to a group's state where that lies.

use super::accumulate::resize;
use super::{Accumulator, Rows};
use crate::functions::ApproxDistinct;
use crate::optional::{MISSING, PRESENT};

/// See the module.
pub(crate) struct DistinctTexts {
    function: ApproxDistinct,
    lane: usize,
    /// Nothing for a group without values.
    states: Vec<Vec<u8>>,
    states_bytes: usize,
    text: Vec<u8>,
}

impl DistinctTexts {
    /// Those of the texts of a lane's values.
    pub(crate) fn over(function: ApproxDistinct, lane: usize) -> Box<dyn Accumulator> {
        let (states, states_bytes, text) = Default::default();
        Box::new(Self { function, lane, states, states_bytes, text })
    }
}

impl Accumulator for DistinctTexts {
    fn read(&mut self, _rows: &Rows<'_>, _refused: &mut Vec<u32>) {}

    fn resize(&mut self, groups: usize) {
        let gone = self.states.drain(groups.min(self.states.len())..);
        self.states_bytes -= gone.map(|state| state.capacity()).sum::<usize>();
        resize(&mut self.states, groups, Vec::new());
    }

    fn add(&mut self, rows: &Rows<'_>, groups: &[u32]) {
        let lane = rows.lane(self.lane);
        for (at, group) in groups.iter().enumerate() {
            self.text.clear();
            if *group == 0 || !lane.write_text(at, &mut self.text) {
                continue;
            }
            let state = &mut self.states[*group as usize];
            let before = state.capacity();
            self.function.add(&self.text, state);
            self.states_bytes = self.states_bytes + state.capacity() - before;
        }
    }

    fn write_state(&self, group: usize, state: &mut Vec<u8>) {
        let kept = &self.states[group];
        state.push(if kept.is_empty() { MISSING } else { PRESENT });
        state.extend_from_slice(kept);
    }

    fn memory_bytes(&self) -> usize {
        self.states_bytes + size_of::<Vec<u8>>() * self.states.capacity() + self.text.capacity()
    }
}
