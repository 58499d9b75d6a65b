//! Runs over counts: the policies' own plans, settled and applied as ever, with merges that move no records.
//!
//! **Model:** every write buffer's records are spread evenly over all prefixes, and a merge is done before the next
//! write buffer arrives.

use std::collections::BTreeSet;

use forebay_base::{Bound, Range, Result};
use forebay_buffer_tree::{Counted, Portion};
use forebay_store::{Cause, ListFile};

use super::describe;
use super::job::Cuts;
use super::plan::{Made, Next, Slice};
use super::policy::range_merge;
use super::policy::{Policy, Room};
use super::set::{Edit, Part, Run, RunSet};
use crate::files::Fragment;
use crate::inventory::{Inventory, Keys, ListModel};
use crate::simulated::{Path, Paths, Simulated, Sums};
use crate::write_buffer::LevelDescription;

/// The runs of one table that nobody fills.
pub struct SimulatedRuns {
    pub(super) set: RunSet<Counted>,
    inventory: Inventory,
    keys: Keys,
    room: Room,
    /// Write buffers so far.
    segment: u64,
    free_edits: u64,
}

/// All prefixes.
const WHOLE: f64 = 18_446_744_073_709_551_616.0;

/// Records side by side, by prefix, and the share of all keys there that they have.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    low: u64,
    width: f64,
    records: f64,
    coverage: f64,
}

impl SimulatedRuns {
    /// No runs yet.
    pub fn new(policy: Policy, file_bytes: u64, lists: ListModel, keys: Keys, room: Room) -> Self {
        let (set, inventory) = (RunSet::new(policy, file_bytes), Inventory::new(lists));
        Self { set, inventory, keys, room, segment: 0, free_edits: 0 }
    }

    fn bytes_of(&self, records: u64) -> u64 {
        records * self.inventory.model().record_bytes
    }

    fn apply(&mut self, edit: &Edit<Counted>) -> Result<()> {
        let (set, references) = self.set.apply(edit)?;
        references.into_iter().for_each(|(file, by)| self.inventory.refer(file.number(), by));
        self.set = set;
        Ok(())
    }

    /// Merges a slice, and the write buffer that may come with it.
    pub(super) fn merge(&mut self, slice: Slice, cause: Cause) -> Result<()> {
        let flushed = slice.flushed_bytes / self.inventory.model().record_bytes;
        let (newest, coverage) = self.keys.collapse(flushed);
        if slice.resides.is_some() {
            return self.reside(slice, newest, coverage);
        }
        let buffer = (newest as f64 / WHOLE, coverage);
        let runs: Vec<(&Run<Counted>, &Range)> =
            slice.taken.iter().filter_map(|(id, range)| Some((&**self.set.run(*id)?, range))).collect();
        let (mut read, mut resident) = (Vec::new(), 0);
        for (run, range) in &runs {
            let pieces = run.parts[run.overlapping(range)].iter();
            let records = pieces.map(|part| (density(part) * width(&part.range.intersect(range))) as u64);
            match run.is_resident {
                true => resident += records.sum::<u64>(),
                false => read.extend(records),
            }
        }
        let input = read.iter().sum::<u64>() + resident + flushed;
        let stretches = stretches(&runs, &slice.range, (flushed > 0).then_some(buffer));
        read.into_iter().for_each(|records| self.inventory.read(cause, records));
        self.inventory.job(cause, input);
        let cuts = Cuts::of(self.bytes_of(input), input, self.set.file_bytes);
        let parts = self.write(&slice, &stretches, cuts, cause);
        let edit = self.set.settle(Made { slice, parts })?;
        self.apply(&edit)
    }

    /// A write buffer stays in memory, in a piece for each key range. None of them is a file of the inventory's.
    fn reside(&mut self, slice: Slice, records: u64, coverage: f64) -> Result<()> {
        let bounds = range_merge::bounds(&self.set);
        let lows = [Bound::least()].into_iter().chain(bounds.iter().cloned());
        let highs = bounds.iter().cloned().map(Some).chain([None]);
        let part = |range: Range| {
            let records = (records as f64 * width(&range) / WHOLE).round() as u64;
            let portion = Portion { bytes: self.bytes_of(records), records };
            Part { range, fragment: Counted::new(u32::MAX, coverage), portion, is_bottom: false }
        };
        let parts = lows.zip(highs).map(|(low, high)| part(Range { low, high }));
        let parts = parts.filter(|part| part.portion.records > 0).collect();
        let edit = self.set.settle(Made { slice, parts })?;
        self.apply(&edit)
    }

    /// Writes files of such a length each.
    fn write(&mut self, slice: &Slice, from: &[Stretch], cuts: Cuts, cause: Cause) -> Vec<Part<Counted>> {
        let cut_records = cuts.bytes.div_ceil(self.inventory.model().record_bytes).max(1);
        let mut parts: Vec<Part<Counted>> = Vec::new();
        let (mut low, mut records, mut covered, mut across) = (slice.range.low.clone(), 0.0, 0.0, 0.0);
        let mut close = |low: &Bound, high: Option<Bound>, records: f64, coverage: f64| {
            let records = records.round() as u64;
            if records > 0 {
                let fragment = Counted::new(self.inventory.next_id(), coverage);
                self.inventory.file(cause, cuts.records, records);
                let portion = Portion { bytes: records * self.inventory.model().record_bytes, records };
                let range = Range { low: low.clone(), high };
                parts.push(Part { range, fragment, portion, is_bottom: slice.is_bottom });
            }
        };
        for stretch in from {
            let mut left = *stretch;
            while records + left.records > cut_records as f64 && left.records > 0.0 {
                let share = ((cut_records as f64 - records) / left.records).clamp(0.0, 1.0);
                let width = left.width * share;
                let bound = Bound::at_prefix(left.low.saturating_add(width as u64));
                // Shares are rounded, and may end a little behind the range.
                if bound <= low || !slice.range.can_split_at(&bound) {
                    break;
                }
                let coverage = (covered + left.coverage * width) / (across + width);
                close(&low, Some(bound.clone()), records + left.records * share, coverage);
                left = Stretch {
                    low: bound.prefix,
                    width: left.width - width,
                    records: left.records * (1.0 - share),
                    coverage: left.coverage,
                };
                (low, records, covered, across) = (bound, 0.0, 0.0, 0.0);
            }
            records += left.records;
            covered += left.coverage * left.width;
            across += left.width;
        }
        close(&low, slice.range.high.clone(), records, if across > 0.0 { covered / across } else { 0.0 });
        parts
    }
}

/// Records of a part for each prefix.
fn density(part: &Part<Counted>) -> f64 {
    part.portion.records as f64 / width(&part.range)
}

fn width(range: &Range) -> f64 {
    (range.high.as_ref().map_or(WHOLE, |high| high.prefix as f64) - range.low.prefix as f64).max(1.0)
}

/// What becomes of what runs have of a range, and of a write buffer, each with its records for a prefix and its share
/// of all keys: between bounds across which nothing changes.
fn stretches(runs: &[(&Run<Counted>, &Range)], range: &Range, buffer: Option<(f64, f64)>) -> Vec<Stretch> {
    let bounds = bounds(runs, range);
    let ends = bounds[1..].iter().map(|&prefix| Some(prefix)).chain([None]);
    let mut found = Vec::with_capacity(bounds.len());
    for (&low, high) in bounds.iter().zip(ends) {
        let high = high.map_or_else(|| range.high.clone(), |prefix| Some(Bound::at_prefix(prefix)));
        let width = width(&Range { low: Bound::at_prefix(low), high });
        let here = runs.iter().filter(|(_, range)| range.contains(low, b""));
        let parts = here.filter_map(|(run, _)| run.find(low, b""));
        let sources = parts.map(|part| (density(part), part.fragment.coverage())).chain(buffer);
        let (records, sum, absence) =
            sources.fold((0.0, 0.0, 1.0), |(records, sum, absence), (density, coverage)| {
                (records + density * width, sum + coverage, absence * (1.0 - coverage))
            });
        let coverage = 1.0 - absence;
        let records = if sum > 0.0 { records * coverage / sum } else { records };
        found.push(Stretch { low, width, records, coverage });
    }
    found
}

/// Prefixes at which a part of these runs begins or ends, inside a range, with its own low one in front.
fn bounds(runs: &[(&Run<Counted>, &Range)], range: &Range) -> Vec<u64> {
    let mut bounds = BTreeSet::from([range.low.prefix]);
    for (run, taken) in runs {
        for part in &run.parts[run.overlapping(taken)] {
            let piece = part.range.intersect(taken);
            let ends = [Some(piece.low), piece.high].into_iter().flatten();
            bounds.extend(ends.map(|end| end.prefix).filter(|&prefix| range.contains(prefix, b"")));
        }
    }
    bounds.into_iter().collect()
}

impl Simulated for SimulatedRuns {
    fn absorb(&mut self, records: u64) -> Result<u64> {
        self.segment += 1;
        let slice = self.set.flush(self.segment, self.bytes_of(records), &BTreeSet::new(), self.room);
        self.merge(slice, Cause::RootSpill)?;
        let before: u64 = self.inventory.traffic().bytes_written.iter().sum();
        while let Some(next) = self.set.next_work(&BTreeSet::new(), self.room) {
            match next {
                Next::Edit(edit) => {
                    self.free_edits += 1;
                    self.apply(&edit)?;
                }
                Next::Merge(slice) => self.merge(slice, Cause::Merge)?,
            }
        }
        let after: u64 = self.inventory.traffic().bytes_written.iter().sum();
        Ok(after - before)
    }

    fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    fn free_edits(&self) -> u64 {
        self.free_edits
    }

    fn levels(&self) -> Vec<LevelDescription> {
        describe::levels(&self.set)
    }

    fn check(&self) -> Result<(), String> {
        self.set.check()
    }

    fn tree_memory_bytes(&self) -> u64 {
        let files = self.inventory.holdings().files * size_of::<ListFile>() as u64;
        files + self.set.parts().count() as u64 * size_of::<Part<Fragment>>() as u64
    }

    fn paths(&self) -> Paths {
        let all = Range::all();
        let runs: Vec<(&Run<Counted>, &Range)> = self.set.runs().iter().map(|run| (&**run, &all)).collect();
        let bounds = bounds(&runs, &all);
        let mut sums = Sums::default();
        let highs = bounds[1..].iter().map(|&prefix| Some(Bound::at_prefix(prefix))).chain([None]);
        for (&low, high) in bounds.iter().zip(highs) {
            let share = width(&Range { low: Bound::at_prefix(low), high }) / WHOLE;
            let mut path = Path::new(self.inventory.reads_in_vain());
            for part in runs.iter().filter_map(|(run, _)| run.find(low, b"")) {
                path.pass(density(part) * WHOLE, part.fragment.coverage());
            }
            sums.add(&path, share, self.keys);
        }
        sums.finish()
    }
}
