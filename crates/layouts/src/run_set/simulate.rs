//! Runs over counts: the policies' own plans, rebased and applied as ever, with merges that move no records.
//!
//! **Model:** every write buffer's records are spread evenly over all prefixes, and a merge is done before the next
//! write buffer arrives, or [lags behind](lag).

mod append;
mod file;
mod lag;
mod stretch;

use std::collections::BTreeSet;

use forebay_base::{Bound, Range, Result};
use forebay_buffer_tree::{Counted, Portion};
use forebay_store::{Cause, ListFile};

use super::describe;
use super::job::{BOUND_BYTES_MIN, FileSizes};
use super::key_ranges;
use super::plan::{Act, Made, Next, Slice};
use super::policy::Policy;
use super::set::{Edit, Part, Run, RunSet};
use crate::files::{Fragment, ResidentBudget};
use crate::inventory::{Filters, Inventory, Keys, ListModel};
use crate::seam::LevelDescription;
use crate::simulation::{Path, Paths, Simulated, Sums};

pub(super) use file::CountedFile;
use file::CountedTree;
use lag::Lag;
use stretch::{Stretch, WHOLE, Zones, bounds, density, stretches, width};

/// The runs of one table that nobody fills.
pub struct SimulatedRuns {
    pub(super) set: RunSet<CountedFile>,
    inventory: Inventory,
    keys: Keys,
    zones: Zones,
    room: ResidentBudget,
    /// Write buffers so far.
    segment: u64,
    free_edits: u64,
    /// Where merges lag behind.
    lag: Option<Lag>,
    disk_bytes_max: u64,
}

impl SimulatedRuns {
    /// No runs yet.
    pub fn new(policy: Policy, file_bytes: u64, lists: ListModel, keys: Keys, room: ResidentBudget) -> Self {
        let (set, inventory) = (RunSet::new(policy, file_bytes), Inventory::new(lists));
        let zones = Zones::of(keys);
        Self { set, inventory, keys, zones, room, segment: 0, free_edits: 0, lag: None, disk_bytes_max: 0 }
    }

    /// What records take in a run of this level.
    fn bytes_of(&self, records: u64, level: u32) -> u64 {
        match self.set.policy.grows(level) {
            true => self.tree_of(records as f64).bytes,
            false => records * self.inventory.model().record_bytes,
        }
    }

    /// A new tree of this many records: as long as what lives of any, however it came to have them.
    fn tree_of(&self, records: f64) -> CountedTree {
        CountedTree::built(self.inventory.model(), self.set.policy.inline_bytes(), records)
    }

    pub(super) fn apply(&mut self, edit: &Edit<CountedFile>) -> Result<()> {
        let (set, references) = self.set.apply(edit)?;
        references.into_iter().for_each(|(file, by)| self.inventory.refer(file.counts.number(), by));
        self.set = set;
        Ok(())
    }

    /// Merges a slice, and the write buffer that may come with it.
    pub(super) fn merge(&mut self, slice: Slice, cause: Cause) -> Result<()> {
        let flushed =
            slice.act.buffer().map_or(0, |buffer| buffer.bytes) / self.inventory.model().put_bytes();
        let (newest, coverage) = self.keys.collapse(flushed);
        if let Act::KeepInMemory { .. } = slice.act {
            return self.reside(slice, newest, coverage);
        }
        if slice.act.appends() {
            return self.append(slice, cause);
        }
        let buffer = (newest as f64 / width(&slice.range), coverage);
        let set = self.set.clone();
        let runs = taken(&set, &slice);
        let ends = set.file_ends(&slice);
        let stretches = stretches(&runs, &slice.range, &ends, (flushed > 0).then_some(buffer), &self.zones);
        let input = self.read(&runs, cause) + flushed;
        self.inventory.job(cause, input);
        let parts = self.write(&slice, &slice.range, &stretches, input, cause);
        let edit = self.set.rebase(Made::new(slice, parts))?;
        self.apply(&edit)
    }

    /// Reads what runs have of ranges, and says how many records that is.
    fn read(&mut self, runs: &[(&Run<CountedFile>, Range)], cause: Cause) -> u64 {
        let mut sum = 0;
        for (run, range) in runs {
            for part in &run.parts[run.overlapping(range)] {
                let records = density(part) * width(&part.range.intersect(range));
                sum += records as u64;
                match part.fragment.tree {
                    _ if run.is_resident => {}
                    Some(_) => {
                        let live = self.tree_of(records).bytes;
                        self.inventory.read_tree(cause, live);
                    }
                    None => self.inventory.read(cause, records as u64),
                }
            }
        }
        sum
    }

    /// A write buffer stays in memory, in a piece for each key range. None of them is a file of the inventory's.
    fn reside(&mut self, slice: Slice, records: u64, coverage: f64) -> Result<()> {
        let bounds = key_ranges::bounds(&self.set);
        let lows = [Bound::least()].into_iter().chain(bounds.iter().cloned());
        let highs = bounds.iter().cloned().map(Some).chain([None]);
        let part = |(at, range): (usize, Range)| {
            let even = records as f64 * width(&range) / WHOLE;
            let met = self.zones.met(range.low.prefix, width(&range), coverage);
            let records = met.unwrap_or(even).round() as u64;
            let portion = Portion { bytes: self.bytes_of(records, 0), records };
            // Each is a list of its own.
            let counts = Counted::new(u32::MAX - at as u32, coverage);
            let memory_bytes = self.inventory.memory_bytes_of(records, BOUND_BYTES_MIN);
            let fragment = CountedFile { counts, tree: None, pointed_bytes: 0, memory_bytes };
            Part { range, fragment, portion, is_bottom: false }
        };
        let parts = lows.zip(highs).map(|(low, high)| Range { low, high }).enumerate().map(part);
        let parts = parts.filter(|part| part.portion.records > 0).collect();
        let edit = self.set.rebase(Made::new(slice, parts))?;
        self.apply(&edit)
    }

    /// Writes what comes of this many records into files of a slice's run.
    fn write(
        &mut self,
        slice: &Slice,
        range: &Range,
        from: &[Stretch],
        input: u64,
        cause: Cause,
    ) -> Vec<Part<CountedFile>> {
        let bytes = self.bytes_of(input, slice.level);
        let file_bytes = self.set.policy.file_bytes(slice.level, bytes, self.set.file_bytes);
        let sizes = FileSizes::of(bytes, input, file_bytes);
        let record_bytes = bytes as f64 / input.max(1) as f64;
        let file_records_max = (sizes.bytes as f64 / record_bytes.max(1.0)).ceil().max(1.0);
        let ends: Vec<u64> = self.set.file_ends(slice).iter().map(|end| end.prefix).collect();
        let bound_bytes_min = self.set.bound_bytes_min() as f64;
        let mut parts: Vec<Part<CountedFile>> = Vec::new();
        let (mut low, mut records) = (range.low.clone(), 0.0);
        let (mut covered, mut across) = (0.0_f64, 0.0_f64);
        let mut close = |low: &Bound, high: Option<Bound>, records: f64, coverage: f64| {
            let records = records.round() as u64;
            if records > 0 {
                let (fragment, bytes) = self.create(slice.level, records, coverage, sizes.records, cause);
                let (range, portion) = (Range { low: low.clone(), high }, Portion { bytes, records });
                parts.push(Part { range, fragment, portion, is_bottom: slice.is_bottom });
            }
        };
        for stretch in from {
            let mut left = *stretch;
            if records * record_bytes >= bound_bytes_min && ends.binary_search(&left.low).is_ok() {
                let bound = Bound::at_prefix(left.low);
                close(&low, Some(bound.clone()), records, covered / across.max(1.0));
                (low, records, covered, across) = (bound, 0.0, 0.0, 0.0);
            }
            while records + left.records > file_records_max && left.records > 0.0 {
                let share = ((file_records_max - records) / left.records).clamp(0.0, 1.0);
                let width = left.width * share;
                let bound = Bound::at_prefix(left.low.saturating_add(width as u64));
                // Shares are rounded, and may end a little behind the range.
                if bound <= low || !range.can_split_at(&bound) {
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
        close(&low, range.high.clone(), records, if across > 0.0 { covered / across } else { 0.0 });
        parts
    }

    /// A file of this many records for a run of this level, and what lives of it.
    fn create(
        &mut self,
        level: u32,
        records: u64,
        coverage: f64,
        records_max: u64,
        cause: Cause,
    ) -> (CountedFile, u64) {
        let counts = Counted::new(self.inventory.next_id(), coverage);
        let (bytes, pointed_bytes) = (self.bytes_of(records, level), self.inventory.model().pointed_bytes);
        if !self.set.policy.grows(level) {
            self.inventory.file(cause, records_max, records);
            return (CountedFile { counts, tree: None, pointed_bytes, memory_bytes: 0 }, bytes);
        }
        let tree = self.tree_of(records as f64);
        self.inventory.tree(cause, records, tree.bytes);
        (CountedFile { counts, tree: Some(tree), pointed_bytes, memory_bytes: 0 }, bytes)
    }

    /// Takes in a write buffer whose keys lie in a range, and does all that it calls for: `each` is told beforehand.
    pub(super) fn flush_in(
        &mut self,
        records: u64,
        range: Range,
        each: &mut dyn FnMut(&RunSet<CountedFile>, &Next<CountedFile>),
    ) -> Result<u64> {
        self.segment += 1;
        let bytes = records * self.inventory.model().put_bytes();
        let mut slice = self.set.flush(self.segment, bytes, &BTreeSet::new(), self.room);
        slice.range = slice.range.intersect(&range);
        self.merge(slice, Cause::Flush)?;
        let before: u64 = self.inventory.traffic().bytes_written.iter().sum();
        match self.lag {
            Some(lag) => self.lag = Some(self.lag_behind(lag, bytes, each)?),
            None => self.catch_up(each)?,
        }
        let after: u64 = self.inventory.traffic().bytes_written.iter().sum();
        Ok(after - before)
    }

    /// Does all that there is to do.
    fn catch_up(&mut self, each: &mut dyn FnMut(&RunSet<CountedFile>, &Next<CountedFile>)) -> Result<()> {
        while self.do_next(each)? {}
        Ok(())
    }

    /// Does what comes next, of which `each` is told beforehand. Says whether there was anything.
    fn do_next(&mut self, each: &mut dyn FnMut(&RunSet<CountedFile>, &Next<CountedFile>)) -> Result<bool> {
        let Some(next) = self.set.next_work(&BTreeSet::new(), self.room) else { return Ok(false) };
        each(&self.set, &next);
        match next {
            Next::Edit(edit) => {
                self.free_edits += 1;
                self.apply(&edit)?;
            }
            Next::Merge(slice) => self.merge(slice, Cause::Merge)?,
        }
        Ok(true)
    }
}

/// What a slice takes from which run.
fn taken<'a>(set: &'a RunSet<CountedFile>, slice: &Slice) -> Vec<(&'a Run<CountedFile>, Range)> {
    let runs = slice.taken.iter();
    runs.filter_map(|(id, range)| Some((&**set.run(*id)?, range.clone()))).collect()
}

impl Simulated for SimulatedRuns {
    fn flush(&mut self, records: u64) -> Result<u64> {
        self.flush_in(records, Range::all(), &mut |_, _| {})
    }

    fn lag(&mut self, free_debt_bytes: u64) {
        self.lag = Some(Lag::new(free_debt_bytes));
    }

    fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    fn file_bytes(&self) -> u64 {
        let bytes = self.inventory.holdings().file_bytes;
        self.lag.map_or(bytes, |lag| lag.disk_bytes(bytes))
    }

    fn file_bytes_max(&self) -> u64 {
        self.inventory.file_bytes_max().max(self.disk_bytes_max)
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

    fn filters(&self) -> Filters {
        let parts = self.set.parts();
        self.inventory.filters(parts.map(|part| (part.fragment.counts.number(), width(&part.range) / WHOLE)))
    }

    fn paths(&self) -> Paths {
        let (all, filters) = (Range::all, self.filters());
        let runs: Vec<(&Run<CountedFile>, Range)> =
            self.set.runs().iter().map(|run| (&**run, all())).collect();
        let mut bounds = bounds(&runs, &all());
        self.zones.divide(&mut bounds, &all());
        let mut sums = Sums::default();
        let highs = bounds[1..].iter().map(|&prefix| Some(Bound::at_prefix(prefix))).chain([None]);
        for (&low, high) in bounds.iter().zip(highs) {
            let width = width(&Range { low: Bound::at_prefix(low), high });
            let share = width / WHOLE;
            let mut path = Path::new();
            for part in runs.iter().filter_map(|(run, _)| run.find(low, b"")) {
                let counts = &part.fragment.counts;
                // Of skewed keys each place has its own share.
                let met = self.zones.met(low, width, counts.coverage());
                let found = self.keys.distinct().zip(met).map(|(keys, met)| met / (keys as f64 * share));
                let (density, coverage) = match found {
                    Some(found) => (found * self.keys.distinct().unwrap_or(1) as f64, found.min(1.0)),
                    None => (density(part) * WHOLE, counts.coverage()),
                };
                path.pass(density, coverage, filters.wasted_reads(counts.number()));
            }
            sums.add(&path, share, self.keys);
        }
        sums.finish()
    }
}
