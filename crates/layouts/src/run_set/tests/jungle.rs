//! Jungle's promises, over counts: what is written, what is kept, and that nothing is done over and over.

use super::super::rules::length_of;
use super::*;

/// A write buffer, and a file.
const BYTES: u64 = 16 << 20;
/// 44 times as much as level 0; the paper loads 88 times as much as its own.
const UNITS: u64 = 352;

/// A table of `units` of distinct records, each twice overwritten.
struct Load {
    runs: SimulatedRuns,
    records: u64,
    units: u64,
    done: Done,
}

/// What was done beside what comes down from above.
#[derive(Clone, Copy, Default, Debug)]
struct Done {
    compactions: u64,
    splits: u64,
    joins: u64,
}

impl Load {
    /// Keys come again as often as `units` have it; 0 for never.
    fn new(policy: &str, record_bytes: u64, units: u64) -> Self {
        let records = BYTES / record_bytes;
        let keys = if units == 0 { Keys::Unique } else { Keys::DrawnFrom(units * records) };
        Self { runs: Self::runs(policy, record_bytes, keys), records, units, done: Done::default() }
    }

    fn runs(policy: &str, record_bytes: u64, keys: Keys) -> SimulatedRuns {
        let options = ListOptions {
            order: Order::Lexical,
            filter_bits_per_key: 10,
            prefix_filter: None,
            codec: Codec::None,
            apart_bytes_min: None,
        };
        let lists = ListModel {
            options,
            record_bytes,
            key_bytes: 8,
            pointed_bytes: 0,
            filter_memory_bytes_max: u64::MAX,
        };
        SimulatedRuns::new(policy.parse().unwrap(), BYTES, lists, keys, ROOM)
    }

    fn filled(policy: &str, record_bytes: u64, units: u64) -> Self {
        let mut load = Self::new(policy, record_bytes, units);
        (0..3 * units).for_each(|_| load.flush());
        load
    }

    fn flush(&mut self) {
        self.flush_in(Range::all());
    }

    fn flush_in(&mut self, range: Range) {
        let done = &mut self.done;
        let mut count = |set: &RunSet<CountedFile>, next: &Next<CountedFile>| {
            let Next::Merge(slice) = next else { return };
            let [(run, range)] = &slice.taken[..] else { return };
            if slice.act == (Act::Rewrite { run: *run }) {
                let run = set.run(*run).unwrap();
                match &run.parts[run.overlapping(range)] {
                    [part] if part.portion.bytes > 3 * BYTES / 2 => done.splits += 1,
                    [_] => done.compactions += 1,
                    _ => done.joins += 1,
                }
            }
        };
        self.runs.flush_in(self.records, range, &mut count).unwrap();
        self.runs.check().unwrap();
    }

    fn written(&self) -> u64 {
        self.runs.inventory().traffic().bytes_written.iter().sum()
    }

    /// Files by what one record for each key takes.
    fn space(&self) -> f64 {
        self.runs.inventory().holdings().file_bytes as f64 / (self.units * BYTES) as f64
    }

    /// What this many more rounds over all keys write by what they bring, and the most space meanwhile.
    fn cost(&mut self, rounds: u64) -> (f64, f64) {
        let (before, mut most) = (self.written(), 0.0);
        for _ in 0..rounds * self.units {
            self.flush();
            most = f64::max(most, self.space());
        }
        ((self.written() - before) as f64 / (rounds * self.units * BYTES) as f64, most)
    }

    fn trees(&self) -> impl Iterator<Item = (&Part<CountedFile>, u64)> {
        self.runs.set.parts().filter_map(|part| Some((&**part, part.fragment.grown_bytes()?)))
    }
}

/// "More than 3 times smaller than leveling, even with C = 2" (section 4), and the less the larger C is.
#[test]
fn values_that_are_long_are_written_few_times() {
    let (leveling, _) = Load::filled("leveling:t=10", 1024, UNITS).cost(20);
    let costs: Vec<(f64, f64)> =
        [2, 3, 10].map(|c| Load::filled(&format!("jungle:c={c}"), 1024, UNITS).cost(20)).to_vec();
    assert!(costs[0].0 * 3.0 < leveling, "{costs:?}, leveling {leveling}");
    assert!(costs.is_sorted_by(|left, right| left.0 > right.0 && left.1 < right.1), "{costs:?}");
    // Short records live in leaves, which most batches copy: then that is not done.
    let of_short = |policy: &str| Load::filled(policy, 16, 80).cost(5);
    let (leveling, kept) = of_short("leveling:t=10");
    let (jungle, most) = of_short("jungle:c=10");
    assert!(jungle < 1.05 * leveling && most < 1.1 * kept, "{jungle} of {leveling}, {most} of {kept}");
}

/// "The limit, which is C times bigger than the limit in leveling" (section 3): so more lies in upper levels, what goes
/// down from them is longer and has fewer copied nodes, and less of it was written again meanwhile.
#[test]
fn levels_by_length_hold_more_and_write_less() {
    for factor in [2.0, 5.0, 10.0] {
        let of = |levels: &str| {
            let mut load = Load::filled(&format!("jungle:c={factor},levels={levels}"), 1024, UNITS);
            let (written, most) = load.cost(6);
            let [.., upper, last] = load.runs.set.runs() else { panic!("there are two levels") };
            assert_eq!((upper.level() + 1, last.level()), (last.level(), 2), "{factor}");
            let share = upper.bytes() as f64 / last.bytes() as f64;
            let length = length_of(upper, factor, 64) / last.bytes() as f64;
            (written, most, share, length)
        };
        let (live, total) = (of("live"), of("total"));
        assert!(total.0 < live.0 && total.2 > 1.2 * live.2, "c = {factor}: {live:?}, {total:?}");
        assert!(live.2 < 0.11 && total.3 < 0.11 * factor, "c = {factor}: {live:?}, {total:?}");
        let level_0 = 8.0 / UNITS as f64;
        assert!(total.1 < factor * 10.0 / 9.0 * 1.05 + level_0, "c = {factor}: {total:?}");
    }
}

/// What an upper level may have costs a T-th of its C in space, and spares writes twice: what comes again meanwhile goes
/// down once, and longer batches copy fewer nodes.
#[test]
fn more_above_the_last_level_is_less_written_for_the_same_space() {
    let of = |policy: &str| Load::filled(policy, 1024, UNITS).cost(10);
    let (same, other) = (of("jungle:c=3"), of("jungle:c=2,upper=12"));
    assert!(other.0 < 0.95 * same.0 && other.1 < 1.03 * same.1, "{other:?} beside {same:?}");
}

/// No tree's file is longer than C times what lives of it, by more than its last batch had nodes. All files together
/// are as long as C and the upper levels make them.
#[test]
fn files_are_no_longer_than_c_says() {
    let cases = [(1.5, 1024), (2.0, 1024), (3.0, 128), (10.0, 1024), (10.0, 256), (2.0, 64)];
    let both = cases.iter().flat_map(|case| ["live", "total"].map(|levels| (case, levels)));
    for (&(factor, record_bytes), levels) in both {
        let mut load = Load::new(&format!("jungle:c={factor},levels={levels}"), record_bytes, 100);
        for _ in 0..500 {
            load.flush();
            for (part, grown) in load.trees() {
                let longest = factor * part.portion.bytes as f64 + BYTES as f64 / 100.0;
                assert!(grown as f64 <= longest, "c = {factor}: {grown} of {:?}", part.portion);
            }
            // Level 0 is beside them; leaves and roots take something too.
            let level_0 = 5.0 / 100.0;
            let most = factor * 10.0 / 9.0 * 1.1 + level_0;
            assert!(load.space() < most, "c = {factor}, {record_bytes} B: {}", load.space());
        }
    }
}

/// Once a table has its size, trees are neither split nor joined often: both ends are far from each other.
#[test]
fn a_steady_load_leaves_trees_their_size() {
    for policy in ["jungle:c=2", "jungle:c=10", "jungle:c=2,t=4"] {
        for record_bytes in [64, 1024] {
            let mut load = Load::filled(policy, record_bytes, 100);
            load.done = Done::default();
            load.cost(10);
            let Done { compactions, splits, joins } = load.done;
            // Of a thousand write buffers, each of which brings down about as many trees as there are levels.
            assert!(compactions < 50 && splits < 300 && joins < 50, "{policy}: {:?}", load.done);
            let trees = load.trees().count();
            assert!((100..300).contains(&trees), "{policy}: {trees} trees");
        }
    }
}

/// What a range delete leaves, and what comes into the gap, comes to an end: no tree is split or joined twice.
#[test]
fn a_range_delete_comes_to_an_end() {
    for policy in ["jungle:c=2", "jungle:c=10"] {
        let mut load = Load::filled(policy, 1024, 60);
        let mut undisturbed = Load::filled(policy, 1024, 60);
        undisturbed.done = Done::default();
        undisturbed.cost(5);
        let trees = load.trees().count() as u64;
        let third = Range { low: Bound::at_prefix(u64::MAX / 5), high: Some(Bound::at_prefix(u64::MAX / 2)) };
        let edit = load.runs.set.drop_range(&third);
        load.runs.apply(&edit).unwrap();
        load.done = Done::default();
        load.cost(5);
        let more = load.done.splits.saturating_sub(undisturbed.done.splits);
        assert!(more < trees && load.done.joins < 10, "{policy}: {:?} of {trees}", load.done);
        assert!((load.runs.paths().keys / (60 * load.records) as f64 - 0.99).abs() < 0.02);
    }
}

/// Of trees of which a range delete leaves little, some join until they have a length again. Then it ends.
#[test]
fn what_is_left_of_many_trees_is_gathered() {
    let mut load = Load::filled("jungle:c=2", 1024, 60);
    let last = load.runs.set.runs().last().unwrap().clone();
    for part in last.parts() {
        let high = part.range.high.clone();
        let width = high.as_ref().map_or(u64::MAX, |high| high.prefix) - part.range.low.prefix;
        let low = Bound::at_prefix(part.range.low.prefix + width / 8);
        let edit = load.runs.set.drop_range(&Range { low, high });
        load.runs.apply(&edit).unwrap();
    }
    load.done = Done::default();
    load.flush();
    let last = load.runs.set.runs().last().unwrap();
    let mean = last.bytes() as f64 / last.parts().len() as f64 / BYTES as f64;
    assert!(mean > 0.2 && load.done.joins < 200 && load.done.splits == 0, "{mean}, {:?}", load.done);
    load.done = Done::default();
    (0..8).for_each(|_| load.flush());
    assert!(load.done.joins < 16 && load.done.splits < 4, "{:?}", load.done);
}

/// Keys that ascend make trees that nothing falls on again: they go down as they are.
#[test]
fn ascending_keys_are_written_few_times() {
    for record_bytes in [64, 1024] {
        let mut load = Load::new("jungle:c=2", record_bytes, 0);
        for unit in 0..300 {
            let high = Some(Bound::at_prefix((unit + 1) << 52));
            let low = if unit == 0 { Bound::least() } else { Bound::at_prefix(unit << 52) };
            load.flush_in(Range { low, high });
        }
        let cost = load.written() as f64 / (300 * BYTES) as f64;
        assert!(cost < 5.0 && load.done.joins < 10 && load.done.splits < 300, "{cost}, {:?}", load.done);
    }
}

#[test]
fn a_lower_c_brings_space_down() {
    let mut load = Load::filled("jungle:c=10", 1024, 60);
    (0..5 * 60).for_each(|_| load.flush());
    let before = load.space();
    load.runs.set.policy = Policy::jungle(2.0);
    load.flush();
    assert!(before > 4.0 && load.space() < 2.5, "{before} before, {}", load.space());
    let worst = load.trees().map(|(part, grown)| grown as f64 / part.portion.bytes as f64);
    assert!(worst.fold(0.0, f64::max) < 2.1);
}

/// Trees come of lists as batches come to them, and lists of trees where the organisation is another one again.
#[test]
fn organisations_follow_each_other() {
    let mut load = Load::filled("tiering:t=4", 1024, 60);
    for policy in ["jungle:c=3", "leveling:t=4", "jungle:c=2", "immediate", "jungle:c=2,t=3"] {
        load.runs.set.policy = policy.parse().unwrap();
        (0..3 * 60).for_each(|_| load.flush());
        let parts = load.runs.set.runs().iter().filter(|run| run.level > 0).flat_map(|run| run.parts());
        let (trees, all) = (load.trees().count(), parts.count());
        match load.runs.set.policy {
            Policy::Jungle { .. } => assert_eq!(trees, all, "{policy}"),
            _ => assert_eq!(trees, 0, "{policy}"),
        }
        assert!((load.runs.paths().keys / (60 * load.records) as f64 - 0.99).abs() < 0.02, "{policy}");
    }
}

/// A full compaction ends with one run of files that have nothing dead.
#[test]
fn a_full_compaction_leaves_no_garbage() {
    let mut load = Load::filled("jungle:c=10", 1024, 60);
    (0..100).for_each(|_| load.flush());
    let compact = |load: &mut Load| {
        let mut slices = 0;
        while let Some(slice) = load.runs.set.next_full_compaction(&BTreeSet::new()) {
            load.runs.merge(slice, Cause::Merge).unwrap();
            slices += 1;
        }
        slices
    };
    assert!(compact(&mut load) > 10);
    assert!(load.runs.set.runs().len() == 1 && load.space() < 1.05, "{}", load.space());
    // A range delete leaves files that are longer than what lives.
    let edit = load
        .runs
        .set
        .drop_range(&Range { low: Bound::at_prefix(u64::MAX / 3), high: Some(Bound::at_prefix(1 << 63)) });
    load.runs.apply(&edit).unwrap();
    assert!((1..3).contains(&compact(&mut load)));
    assert!(load.space() < 0.9, "{}", load.space());
}

/// A slice of what is appended is as long as four files, however long the trees are that it falls on.
#[test]
fn slices_of_batches_are_counted_by_what_comes() {
    let mut load = Load::filled("jungle:c=2", 1024, 100);
    load.runs.set.policy = Policy::NoMerge;
    (0..20).for_each(|_| load.flush());
    load.runs.set.policy = Policy::jungle(2.0);
    let (mut slices, mut longest) = (0, 0);
    let mut look = |set: &RunSet<CountedFile>, next: &Next<CountedFile>| {
        let Next::Merge(slice) = next else { return };
        let inputs = slice.taken.iter().filter(|(run, _)| Some(*run) != slice.act.target());
        let parts = inputs.flat_map(|(run, range)| {
            let run = set.run(*run).unwrap();
            run.parts[run.overlapping(range)].iter().filter_map(|part| part.portion_in(range))
        });
        if let Act::Append { .. } = slice.act {
            slices += 1;
            longest = longest.max(parts.map(|portion| portion.bytes).sum::<u64>());
            let target = set.run(slice.act.target().unwrap()).unwrap();
            let ends = |high: &Bound| target.parts.iter().any(|part| part.range.high.as_ref() == Some(high));
            assert!(slice.range.high.as_ref().is_none_or(ends), "a tree is cut");
        }
    };
    load.runs.flush_in(load.records, Range::all(), &mut look).unwrap();
    assert!(slices >= 5 && longest < 7 * BYTES, "{slices} slices, {longest} B");
}
