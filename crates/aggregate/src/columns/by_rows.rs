//! Functions that know nothing of columns: they are given the values of one row after the other, and what they keep of
//! a group is its state.

use super::accumulate::resize;
use crate::function::Function;
use crate::value::Value;

/// Rows that were read keep no more memory than this for others.
const LIFTED_BYTES_MAX: usize = 1 << 20;

/// One function's states.
#[derive(Default)]
pub(super) struct ByRows {
    /// The states of the rows that were read, one behind the other.
    lifted: Vec<u8>,
    ends: Vec<usize>,
    /// The states of groups: behind each other where all have one length, else each by itself.
    states: Vec<u8>,
    long: Vec<Vec<u8>>,
    is_present: Vec<bool>,
}

impl ByRows {
    pub(super) fn clear(&mut self) {
        self.lifted.clear();
        self.lifted.shrink_to(LIFTED_BYTES_MAX);
        self.ends.clear();
    }

    /// Takes the next row. `false` where the function refuses it.
    pub(super) fn read(&mut self, function: &dyn Function, row: &[Value<'_>]) -> bool {
        let start = self.lifted.len();
        let is_taken = function.lift(row, &mut self.lifted).is_ok();
        if !is_taken {
            self.lifted.truncate(start);
        }
        self.ends.push(self.lifted.len());
        is_taken
    }

    pub(super) fn resize(&mut self, groups: usize, state_bytes: Option<usize>) {
        resize(&mut self.is_present, groups, false);
        match state_bytes {
            Some(bytes) => resize(&mut self.states, groups * bytes, 0),
            None => resize(&mut self.long, groups, Vec::new()),
        }
    }

    pub(super) fn add(&mut self, function: &dyn Function, state_bytes: Option<usize>, groups: &[u32]) {
        debug_assert_eq!(self.ends.len(), groups.len(), "the rows that were read are added");
        let mut start = 0;
        for (group, end) in groups.iter().zip(&self.ends) {
            let (group, lifted) = (*group as usize, &self.lifted[start..*end]);
            start = *end;
            if group == 0 {
                continue;
            }
            let was_present = std::mem::replace(&mut self.is_present[group], true);
            match state_bytes {
                Some(bytes) => {
                    let state = &mut self.states[group * bytes..][..bytes];
                    if was_present {
                        function.merge_in_place(state, lifted);
                    } else {
                        state.copy_from_slice(lifted);
                    }
                }
                None if was_present => {
                    let mut merged = Vec::new();
                    function.merge(&[&self.long[group], lifted], &mut merged);
                    self.long[group] = merged;
                }
                None => {
                    self.long[group].clear();
                    self.long[group].extend_from_slice(lifted);
                }
            }
        }
    }

    pub(super) fn write_state(&self, group: usize, state_bytes: Option<usize>, state: &mut Vec<u8>) {
        state.extend_from_slice(match state_bytes {
            Some(bytes) => &self.states[group * bytes..][..bytes],
            None => &self.long[group],
        });
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let long: usize = self.long.iter().map(Vec::capacity).sum();
        self.lifted.capacity()
            + size_of::<usize>() * self.ends.capacity()
            + self.states.capacity()
            + size_of::<Vec<u8>>() * self.long.capacity()
            + long
            + self.is_present.capacity()
    }
}
