//! Functions that take the values of a group together: all are kept as they come, and put in order by group, and then
//! by size, once states are asked for.

use super::read::floats;
use super::{Accumulator, Rows};
use crate::optional::{MISSING, PRESENT};

/// What makes a state of values.
pub(crate) trait OfRun: Send + Sync {
    /// Whether a value can be in a state.
    fn takes(&self, value: f64) -> bool;
    /// Appends the state of some values, in order, at least one.
    fn write(&self, values: &[f64], state: &mut Vec<u8>);
}

/// See the module.
pub(crate) struct Runs<F> {
    function: F,
    lane: usize,
    read: Vec<f64>,
    /// How many groups there are.
    groups: usize,
    /// The values that came, and the group of each.
    values: Vec<f64>,
    owners: Vec<u32>,
    /// The same once they are in order, and where each group's end.
    ordered: Vec<f64>,
    ends: Vec<usize>,
}

impl<F: OfRun + 'static> Runs<F> {
    /// What a function keeps of the values of a lane.
    pub(crate) fn over(function: F, lane: usize) -> Box<dyn Accumulator> {
        let (read, groups, values, owners, ordered, ends) = Default::default();
        Box::new(Self { function, lane, read, groups, values, owners, ordered, ends })
    }
}

impl<F: OfRun> Accumulator for Runs<F> {
    fn read(&mut self, rows: &Rows<'_>, refused: &mut Vec<u32>) {
        let lane = rows.lane(self.lane);
        floats(&lane, &mut self.read, refused);
        for (at, value) in self.read.iter().enumerate() {
            if !self.function.takes(*value) && lane.is_present(at) {
                refused.push(at as u32);
            }
        }
    }

    fn resize(&mut self, groups: usize) {
        if groups < self.groups {
            (self.ordered, self.ends) = (Vec::new(), Vec::new());
            let is_kept = |group: &u32| (*group as usize) < groups;
            let mut owners = self.owners.iter();
            self.values.retain(|_| owners.next().is_some_and(is_kept));
            self.owners.retain(is_kept);
        }
        if groups == 0 {
            (self.values, self.owners) = (Vec::new(), Vec::new());
        }
        self.groups = groups;
    }

    fn add(&mut self, rows: &Rows<'_>, groups: &[u32]) {
        debug_assert_eq!((self.read.len(), groups.len()), (rows.len(), rows.len()), "what was read is added");
        let lane = rows.lane(self.lane);
        let has_nulls = lane.has_nulls();
        // Room that is not used counts as well.
        if self.values.len() + groups.len() > self.values.capacity() {
            let more = groups.len().max(self.values.len() / 4);
            self.values.reserve_exact(more);
            self.owners.reserve_exact(more);
        }
        for (at, (group, value)) in groups.iter().zip(&self.read).enumerate() {
            if *group > 0 && (!has_nulls || lane.is_present(at)) {
                self.values.push(*value);
                self.owners.push(*group);
            }
        }
    }

    fn gather(&mut self) {
        self.ends.clear();
        self.ends.resize(self.groups + 1, 0);
        self.owners.iter().for_each(|group| self.ends[*group as usize + 1] += 1);
        for group in 1..self.ends.len() {
            self.ends[group] += self.ends[group - 1];
        }
        self.ordered.clear();
        self.ordered.resize(self.values.len(), 0.0);
        let starts = &mut self.ends;
        for (group, value) in self.owners.iter().zip(&self.values) {
            let start = &mut starts[*group as usize];
            self.ordered[*start] = *value;
            *start += 1;
        }
        // Each start has come to its end.
        debug_assert_eq!(self.ends.last(), Some(&self.values.len()), "every value has its place");
        let mut start = 0;
        for end in &self.ends {
            self.ordered[start..*end].sort_unstable_by(f64::total_cmp);
            start = *end;
        }
    }

    fn write_state(&self, group: usize, state: &mut Vec<u8>) {
        debug_assert_eq!(self.ordered.len(), self.values.len(), "values are in order");
        let start = group.checked_sub(1).map_or(0, |before| self.ends[before]);
        debug_assert!(start <= self.ends[group], "a group's values lie side by side");
        match &self.ordered[start..self.ends[group]] {
            [] => state.push(MISSING),
            values => {
                state.push(PRESENT);
                self.function.write(values, state);
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        // Those in order are there for a moment only, but then beside the others.
        let ordered = self.ordered.capacity().max(self.values.len());
        size_of::<f64>() * (self.values.capacity() + self.read.capacity() + ordered)
            + size_of::<u32>() * self.owners.capacity()
            + size_of::<usize>() * self.ends.capacity().max(self.groups)
    }
}
