//! Batches that are appended to trees of counts, by the trees' own model of what that writes.

use std::sync::Arc;

use forebay_base::{Range, Result};
use forebay_buffer_tree::{Counted, Portion};
use forebay_store::Cause;

use super::super::plan::{Made, Slice};
use super::super::set::{Part, Run};
use super::file::{CountedFile, CountedTree};
use super::stretch::{Stretch, stretches};
use super::{SimulatedRuns, taken};

impl SimulatedRuns {
    /// Appends what other runs have of a slice to the trees of the run that it goes into, or writes them anew with it.
    pub(super) fn append(&mut self, slice: Slice, cause: Cause) -> Result<()> {
        let set = self.set.clone();
        let mut inputs = taken(&set, &slice);
        inputs.retain(|(run, _)| Some(run.id) != slice.act.target());
        let mut input = self.read(&inputs, cause);
        let target = slice.act.target().and_then(|id| set.run(id));
        let groups =
            target.map_or_else(|| vec![(slice.range.clone(), None)], |run| groups(run, &slice.range));
        let factors = set.policy.factors(&set);
        let mut parts = Vec::new();
        for (range, part) in groups {
            let current = |run: &'_ Range| run.intersect(&range);
            let mut runs: Vec<(&Run<CountedFile>, Range)> =
                inputs.iter().map(|(run, taken)| (*run, current(taken))).collect();
            runs.retain(|(_, taken)| !taken.is_empty());
            let batch = stretches(&runs, &range, &[], None, &self.zones);
            let records = sum(&batch).round() as u64;
            let Some(part) = part else {
                parts.extend(self.write(&slice, &range, &batch, records, cause));
                continue;
            };
            if records == 0 {
                parts.push(Part::clone(part));
                continue;
            }
            runs.extend(target.map(|run| (&**run, range.clone())));
            let whole = stretches(&runs, &range, &[], None, &self.zones);
            let bytes = records * self.inventory.model().record_bytes;
            match part.fragment.tree {
                Some(tree) if !factors.rebuilds(slice.level, part, bytes) => {
                    parts.push(self.grow(part, tree, slice.is_bottom, records, &whole, cause));
                }
                _ => {
                    let rest: Vec<_> = target.map(|run| (&**run, range.clone())).into_iter().collect();
                    let all = records + self.read(&rest, cause);
                    input += all - records;
                    parts.extend(self.write(&slice, &range, &whole, all, cause));
                }
            }
        }
        self.inventory.job(cause, input);
        let edit = self.set.rebase(Made::new(slice, parts))?;
        self.apply(&edit)
    }

    /// Appends a batch to the tree of a part.
    fn grow(
        &mut self,
        part: &Part<CountedFile>,
        tree: CountedTree,
        is_bottom: bool,
        batch: u64,
        whole: &[Stretch],
        cause: Cause,
    ) -> Part<CountedFile> {
        let records = (sum(whole).round() as u64).max(part.portion.records);
        let fresh = (records - part.portion.records).min(batch);
        let shape = tree.of_records(part.portion.records as f64).shape;
        let appended = shape.append(batch as f64, fresh as f64);
        let bytes = appended.bytes as u64;
        // Nodes that are to change are read.
        let values = (batch as f64 * shape.value_bytes) as u64;
        self.inventory.read_tree(cause, bytes.saturating_sub(values));
        let counts = part.fragment.counts;
        self.inventory.grow(counts.number(), cause, fresh, bytes);
        let (covered, across) = whole.iter().fold((0.0, 0.0), |(covered, across), stretch| {
            (covered + stretch.coverage * stretch.width, across + stretch.width)
        });
        let counts = Counted::new(counts.number(), covered / f64::max(across, 1.0));
        let tree = Some(CountedTree { shape: appended.tree, bytes: tree.bytes + bytes });
        let live = self.tree_of(records as f64).bytes;
        Part {
            range: part.range.clone(),
            fragment: CountedFile { counts, tree, ..part.fragment },
            portion: Portion { bytes: live, records },
            is_bottom: part.is_bottom && is_bottom,
        }
    }
}

fn sum(stretches: &[Stretch]) -> f64 {
    stretches.iter().map(|stretch| stretch.records).sum()
}

/// A range, divided into those of the parts that a run has there, and what lies between.
fn groups<'a>(run: &'a Run<CountedFile>, range: &Range) -> Vec<(Range, Option<&'a Arc<Part<CountedFile>>>)> {
    let mut groups = Vec::new();
    let mut low = Some(range.low.clone());
    for part in &run.parts[run.overlapping(range)] {
        let gap = low.map(|low| Range { low, high: Some(part.range.low.clone()) });
        groups.extend(gap.filter(|gap| !gap.is_empty()).map(|gap| (gap, None)));
        groups.push((part.range.clone(), Some(part)));
        low = part.range.high.clone();
    }
    let gap = low.map(|low| Range { low, high: range.high.clone() });
    groups.extend(gap.filter(|gap| !gap.is_empty()).map(|gap| (gap, None)));
    groups
}
