//! Every policy over counts: its promises, the structure after every edit, the bytes of sets and edits, and damage to
//! them.

use std::collections::BTreeSet;

use forebay_base::codec::Codec;
use forebay_base::merge::Direction;
use forebay_base::wire::Reader;
use forebay_base::{Bound, Order, Range};
use forebay_buffer_tree::{Counted, Fragment as _};
use forebay_env::Rng;
use forebay_store::Cause;
use forebay_store::list::{ListOptions, ResidentRoom};

mod dialogue;
mod evictions;
mod jungle;
mod lag;

use self::evictions::{ingest, part};
use super::plan::Made;
use super::set::Underway;
use super::simulate::CountedFile;
use super::*;
use crate::inventory::{Inventory, Keys, ListModel};
use crate::simulation::Simulated;

const RECORD_BYTES: u64 = 16;
/// Records of a write buffer.
const UNIT: u64 = 10_000;
const FILE_BYTES: u64 = 2 * UNIT * RECORD_BYTES;
/// Of the size of two write buffers, one of which may come at any moment.
const ROOM: ResidentBudget = ResidentBudget::of(ResidentRoom {
    bytes: 2 * UNIT * RECORD_BYTES,
    buffer_bytes: UNIT * RECORD_BYTES,
    buffers_max: 8,
});

fn simulated(policy: Policy, keys: Keys) -> SimulatedRuns {
    let options = ListOptions {
        order: Order::Lexical,
        filter_bits_per_key: 10,
        prefix_filter: None,
        codec: Codec::None,
        apart_bytes_min: None,
    };
    let lists = ListModel {
        options,
        record_bytes: RECORD_BYTES,
        key_bytes: 8,
        pointed_bytes: 0,
        filter_memory_bytes_max: u64::MAX,
    };
    SimulatedRuns::new(policy, FILE_BYTES, lists, keys, ROOM)
}

fn policies() -> Vec<Policy> {
    let names = [
        "no-merge",
        "immediate",
        "geometric:r=2",
        "geometric:r=3",
        "geometric:p=1",
        "geometric:p=2",
        "geometric:p=3",
        "leveling:t=4",
        "leveling",
        "tiering:t=2",
        "tiering:t=4",
        "tiering",
        "stacks:t=2",
        "stacks:t=4",
        "lazy-leveling:t=3",
        "lazy-leveling",
        "range-merge",
        "range-merge:c=1.5",
        "range-merge:c=4,inline=0",
        "jungle:c=1.15",
        "jungle:c=2",
        "jungle",
        "jungle:c=10",
        "jungle:c=2.5,t=4",
        "jungle:levels=live",
        "jungle:c=10,t=4,levels=live",
        "jungle:c=2,t=4,upper=12",
        "jungle:c=2,t=4,inline=4",
    ];
    names.map(|name| name.parse().unwrap()).to_vec()
}

fn bytes_of(set: &RunSet<CountedFile>) -> Vec<u8> {
    let mut bytes = Vec::new();
    set.map(|fragment| Ok(fragment.id())).unwrap().encode(&mut bytes);
    bytes
}

fn moved(inventory: &Inventory) -> f64 {
    let traffic = inventory.traffic();
    traffic.bytes_written.iter().chain(&traffic.bytes_read).sum::<u64>() as f64
}

#[test]
fn the_structure_holds_after_every_write_buffer() {
    for policy in policies() {
        let skewed = Keys::Zipf { keys: 30 * UNIT, exponent_percent: 99 };
        for keys in [Keys::Unique, Keys::DrawnFrom(30 * UNIT), skewed] {
            let mut runs = simulated(policy, keys);
            for _ in 0..150 {
                runs.flush(UNIT).unwrap();
                runs.check().unwrap();
                let on_disk = runs.set.runs().iter().filter(|run| !run.is_resident);
                let parts = on_disk.flat_map(|run| run.parts());
                let live: BTreeSet<u64> = parts.map(|part| part.fragment.id()).collect();
                assert_eq!(runs.inventory().holdings().files, live.len() as u64, "{policy}");
            }
            let records: u64 = runs.levels().iter().map(|level| level.records).sum();
            match keys {
                Keys::Unique => {
                    assert!(records.abs_diff(150 * UNIT) < 3000, "{policy}: {records} records are left")
                }
                Keys::DrawnFrom(keys) => {
                    let found = runs.paths().keys;
                    assert!((found / keys as f64 - 0.99).abs() < 0.02, "{policy}: {found} of {keys} keys");
                }
                Keys::Zipf { .. } => {
                    let (found, met) = (runs.paths().keys, keys.collapse(150 * UNIT).0 as f64);
                    // Within a file low keys are taken to be as many as others.
                    assert!((found / met - 1.0).abs() < 0.1, "{policy}: {found} of {met} keys");
                }
            }
        }
    }
}

#[test]
fn runs_are_as_many_as_the_policy_says() {
    for policy in policies() {
        let mut runs = simulated(policy, Keys::Unique);
        for flushed in 1..=100 {
            runs.flush(UNIT).unwrap();
            let counts: Vec<usize> = runs.set.levels().map(<[_]>::len).collect();
            let total: usize = counts.iter().sum();
            match policy {
                Policy::NoMerge => assert_eq!(total, flushed),
                Policy::Immediate => assert_eq!(total, 1),
                Policy::Partitions { runs_max } => assert!(total <= runs_max as usize, "{policy}: {total}"),
                Policy::Geometric { ratio } => {
                    // Of each size from one write buffer to all of them, at most one.
                    let sizes = (flushed as f64).log(f64::from(ratio)).floor() as usize + 1;
                    assert!(total <= sizes, "{policy}: {total} runs of {flushed} write buffers");
                }
                Policy::RangeMerge { .. } => {
                    let on_disk = runs.set.runs().iter().filter(|run| !run.is_resident).count();
                    assert!(on_disk <= 1, "{on_disk} runs on disk");
                    let most = ROOM.room.kept_bytes_max();
                    assert!(runs.set.resident_bytes() <= most, "{most}");
                    assert!(total <= ROOM.room.buffers_max as usize + on_disk, "{total}");
                }
                Policy::Leveling { .. } | Policy::Jungle { .. } => {
                    let below = &counts[usize::from(runs.set.runs()[0].level == 0)..];
                    assert!(below.iter().all(|&runs| runs == 1), "{policy}: {counts:?}");
                    let gathered = if matches!(policy, Policy::Jungle { .. }) { 8 } else { 4 };
                    assert!(counts[0] <= gathered, "{policy}: {counts:?}");
                }
                Policy::Stacks { pieces_max, is_lazy } => {
                    let highest: Vec<usize> = runs.set.levels().map(pieces).collect();
                    assert!(
                        highest.iter().all(|&pieces| pieces < pieces_max as usize),
                        "{policy}: {highest:?}"
                    );
                    let last = runs.set.runs().last().unwrap().level;
                    assert!(!is_lazy || last == 0 || counts.last() == Some(&1), "{policy}: {counts:?}");
                }
                Policy::Tiering { runs_max } => {
                    assert!(counts.iter().all(|&runs| runs < runs_max as usize), "{policy}: {counts:?}");
                }
            }
            assert_eq!(policy.debt_bytes(&runs.set, ROOM), 0, "{policy}");
        }
    }
}

/// The most pieces one upon the other, of the runs of a level.
fn pieces(runs: &[Arc<Run<CountedFile>>]) -> usize {
    let lows = runs.iter().flat_map(|run| run.parts()).map(|part| part.range.low.prefix);
    lows.map(|low| runs.iter().filter(|run| run.find(low, b"").is_some()).count()).max().unwrap_or(0)
}

/// It was the most that any had brought: after one of short values a table of long ones had too few levels for ever.
#[test]
fn what_is_known_of_write_buffers_falls_as_shorter_ones_come() {
    let mut runs = simulated("leveling".parse().unwrap(), Keys::Unique);
    let mut flush = |times: u64, records: u64| {
        (0..times).for_each(|_| assert!(runs.flush(records).is_ok()));
        runs.set.unit_bytes
    };
    let whole = flush(1, UNIT);
    assert_eq!(whole, UNIT * RECORD_BYTES);
    // A few that were flushed early say little.
    assert!(flush(10, UNIT / 100) > whole * 98 / 100);
    assert!((whole / 4..whole * 3 / 10).contains(&flush(200, UNIT / 4)));
    assert_eq!(flush(1, UNIT), whole);
    let bytes = bytes_of(&runs.set);
    let decoded = RunSet::decode(&mut Reader::new(&bytes), runs.set.policy, FILE_BYTES).unwrap();
    assert_eq!(decoded.unit_bytes, whole, "the manifest has it");
}

/// They only became more: a table whose write buffers were short for a while had too many levels for ever.
#[test]
fn levels_become_fewer_once_write_buffers_are_longer() {
    for (name, many) in [("leveling:t=4", 4), ("jungle:c=3,t=4", 3)] {
        let mut runs = simulated(name.parse().unwrap(), Keys::Unique);
        let deepest = |runs: &SimulatedRuns| runs.set.runs().last().unwrap().level();
        (0..400).for_each(|_| assert!(runs.flush(UNIT / 20).is_ok()));
        assert_eq!(deepest(&runs), many, "{name}");
        for _ in 0..8 {
            runs.flush(UNIT).unwrap();
            runs.check().unwrap();
            let levels: Vec<u32> = runs.set.runs().iter().map(|run| run.level()).collect();
            assert!(levels.iter().all(|&level| level <= 2), "{name}: {levels:?}");
        }
        let records: u64 = runs.levels().iter().map(|level| level.records).sum();
        assert!(records.abs_diff(28 * UNIT) < 1000, "{name}: {records} records are left");
    }
}

/// As a layout that has many levels leaves them.
#[test]
fn levels_of_another_layout_become_as_few_as_are_needed() {
    for to in ["leveling:t=4", "jungle:c=3,t=4"] {
        let mut runs = simulated("tiering:t=2".parse().unwrap(), Keys::Unique);
        (0..15).for_each(|_| assert!(runs.flush(UNIT).is_ok()));
        assert!(runs.set.runs().last().unwrap().level() >= 3);
        runs.set.policy = to.parse().unwrap();
        runs.flush(UNIT).unwrap();
        runs.check().unwrap();
        let levels: Vec<u32> = runs.set.runs().iter().map(|run| run.level()).collect();
        assert!(levels.iter().all(|&level| level <= 2), "{to}: {levels:?}");
    }
}

/// The analysis of section III.B: immediate merge moves N^2/M, no merge N.
#[test]
fn bytes_moved_are_as_analysed() {
    let units = 80;
    let whole = (units * UNIT * RECORD_BYTES) as f64;
    let of = |policy: Policy| {
        let mut runs = simulated(policy, Keys::Unique);
        (0..units).for_each(|_| assert!(runs.flush(UNIT).is_ok()));
        moved(runs.inventory()) / whole
    };
    // Pages and filters add a tenth or two.
    let no_merge = of(Policy::NoMerge);
    assert!((1.0..1.3).contains(&no_merge), "{no_merge}");
    let immediate = of(Policy::Immediate) / no_merge;
    assert!((immediate / units as f64 - 1.0).abs() < 0.1, "{immediate} of {units}");
    let costs: Vec<f64> = ["tiering:t=4", "geometric:r=3", "geometric:r=2", "leveling:t=4", "geometric:p=2"]
        .iter()
        .map(|name| of(name.parse().unwrap()) / no_merge)
        .collect();
    assert!(costs.iter().all(|&cost| cost > 2.0 && cost < immediate / 2.0), "{costs:?}");
    let range_merge = of(Policy::RANGE_MERGE) / no_merge;
    assert!((0.25..0.5).contains(&(range_merge / immediate)), "{range_merge} of {immediate}");
    assert!(costs[0] < costs[3], "tiering writes less than leveling: {costs:?}");
    assert!(costs[2] < costs[4], "the more runs, the less is moved: {costs:?}");
}

/// Even where each run is a single part over all keys.
#[test]
fn a_merge_of_very_many_runs_takes_many_slices() {
    let mut runs = simulated(Policy::NoMerge, Keys::Unique);
    (0..80).for_each(|_| assert!(runs.flush(UNIT).is_ok()));
    runs.set.policy = "leveling".parse().unwrap();
    runs.flush(UNIT).unwrap();
    assert_eq!(runs.set.runs().len(), 1);
    let slices = runs.inventory().traffic().jobs[Cause::Merge as usize];
    assert!((8..=16).contains(&slices), "{slices} slices of four of forty files");
}

/// From any organisation, and on with the next write buffers.
#[test]
fn geometric_ends_whatever_was_there() {
    for (from, to) in policies().into_iter().flat_map(|from| policies().into_iter().map(move |to| (from, to)))
    {
        let most = match to {
            Policy::Geometric { .. } => 7,
            Policy::Partitions { runs_max } => runs_max as usize,
            _ => continue,
        };
        let mut runs = simulated(from, Keys::Unique);
        (0..37).for_each(|_| assert!(runs.flush(UNIT).is_ok()));
        runs.set.policy = to;
        for flushed in 0..20 {
            runs.flush(UNIT).unwrap_or_else(|error| panic!("{from} to {to}, {flushed}: {error}"));
            runs.check().unwrap();
            assert_eq!(to.debt_bytes(&runs.set, ROOM), 0, "{from} to {to}");
            assert!(runs.set.runs().len() <= most, "{from} to {to}");
        }
    }
}

#[test]
fn what_comes_while_geometric_merges_goes_to_places_before() {
    let mut runs = simulated("geometric:r=2".parse().unwrap(), Keys::Unique);
    (0..31).for_each(|_| assert!(runs.flush(UNIT).is_ok()));
    assert_eq!(runs.set.levels().count(), 5);
    let flush = |runs: &mut SimulatedRuns, number: u64| {
        let slice = runs.set.flush(100 + number, UNIT * RECORD_BYTES, &BTreeSet::new(), ROOM);
        assert!(slice.taken.is_empty(), "its writer waits for no merge");
        runs.merge(slice, Cause::Flush).unwrap();
    };
    let next = |runs: &SimulatedRuns| match runs.set.next_work(&BTreeSet::new(), ROOM) {
        Some(Next::Merge(slice)) => Some(slice),
        Some(Next::Edit(edit)) => panic!("{edit:?}"),
        None => None,
    };
    flush(&mut runs, 0);
    let slice = next(&runs).unwrap();
    assert!(slice.level == 6 && slice.act.goes_on(), "{slice:?}");
    runs.merge(slice, Cause::Merge).unwrap();
    for number in 1..=11 {
        flush(&mut runs, number);
        while let Some(slice) = next(&runs).filter(|slice| slice.level < 6) {
            runs.merge(slice, Cause::Merge).unwrap();
        }
        runs.check().unwrap();
        let in_front = runs.set.runs().iter().take_while(|run| runs.set.is_free(run.id, &BTreeSet::new()));
        let sizes: Vec<u64> = in_front.map(|run| run.bytes().div_ceil(UNIT * RECORD_BYTES)).collect();
        assert_eq!(sizes.len() as u32, u64::count_ones(number), "{sizes:?}");
        assert_eq!(runs.set.policy.debt_bytes(&runs.set, ROOM), 0);
    }
    while let Some(slice) = next(&runs) {
        runs.merge(slice, Cause::Merge).unwrap();
    }
    // 43 write buffers: 32, 8, 2, 1.
    assert_eq!(runs.set.runs().len(), 4);
}

#[test]
fn sets_round_trip_and_no_cut_of_their_bytes_is_accepted() {
    for policy in policies() {
        let mut runs = simulated(policy, Keys::DrawnFrom(20 * UNIT));
        let mut twin: RunSet<u64> = RunSet::new(policy, FILE_BYTES);
        for _ in 0..40 {
            runs.flush(UNIT).unwrap();
            let bytes = bytes_of(&runs.set);
            twin = RunSet::decode(&mut Reader::new(&bytes), policy, FILE_BYTES).unwrap();
            let mut again = Vec::new();
            twin.encode(&mut again);
            assert_eq!(again, bytes);
        }
        let mut bytes = Vec::new();
        twin.encode(&mut bytes);
        for cut in 0..bytes.len() {
            assert!(RunSet::decode(&mut Reader::new(&bytes[..cut]), policy, FILE_BYTES).is_none());
        }
        // What comes down from there would have no level.
        let part = Arc::clone(twin.parts().next().unwrap());
        twin.push_run(u32::MAX, vec![part]);
        let mut deep = Vec::new();
        twin.put(&mut deep);
        assert!(RunSet::decode(&mut Reader::new(&deep), policy, FILE_BYTES).is_none());
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x41;
            let decoded = RunSet::decode(&mut Reader::new(&damaged), policy, FILE_BYTES);
            assert!(decoded.is_none_or(|set| set.check().is_ok()));
        }
    }
}

#[test]
fn edits_round_trip_and_no_cut_of_their_bytes_is_accepted() {
    for policy in policies() {
        let mut runs = simulated(policy, Keys::Unique);
        (0..23).for_each(|_| assert!(runs.flush(UNIT).is_ok()));
        let set = &runs.set;
        let middle = Range { low: Bound::at_prefix(1 << 60), high: Some(Bound::at_prefix(u64::MAX / 3)) };
        let on_disk = set.runs().iter().filter(|run| !run.is_resident);
        let merged = Slice {
            taken: on_disk.map(|run| (run.id, middle.clone())).collect(),
            range: middle.clone(),
            act: Act::Merge { into: None, goes_on: true },
            level: set.runs().last().unwrap().level,
            ..Slice::default()
        };
        let parts = vec![Part { range: middle.clone(), ..(**set.parts().next().unwrap()).clone() }];
        let replaced = set.rebase(Made::new(merged, parts)).unwrap();
        let part = (**set.parts().next().unwrap()).clone();
        let resident = Edit::Reside(Reside { below: 77, parts: vec![part] });
        let relabelled = Edit::Relabel { run: set.runs()[0].id, level: 7 };
        for edit in [replaced, set.drop_range(&middle), relabelled, resident] {
            let edit = edit.map(|fragment| fragment.id());
            let mut bytes = Vec::new();
            edit.encode(&mut bytes);
            assert_eq!(Edit::decode(&mut Reader::new(&bytes)), Some(edit), "{policy}");
            for cut in 0..bytes.len() {
                assert_eq!(Edit::decode(&mut Reader::new(&bytes[..cut])), None);
            }
        }
    }
}

/// Stretches lie side by side, cover everything either way, and never cut a part's run in two places at once.
#[test]
fn stretches_cover_a_range_either_way() {
    for policy in policies() {
        let mut runs = simulated(policy, Keys::Unique);
        (0..37).for_each(|_| assert!(runs.flush(UNIT).is_ok()));
        let set = &runs.set;
        for within in [
            Range::all(),
            Range { low: Bound::at_prefix(1 << 60), high: Some(Bound::at_prefix(u64::MAX / 3)) },
            Range { low: Bound::at_prefix(u64::MAX - 7), high: None },
        ] {
            let mut forward = Vec::new();
            let mut from = Some(within.low.clone());
            while let Some(bound) = from {
                let Some(range) = set.stretch(Some(&bound), &within, Direction::Forward) else { break };
                assert_eq!(range.low, bound);
                assert!(set.runs().iter().all(|run| run.overlapping(&range).len() <= 1));
                from = range.high.clone().filter(|_| range.high != within.high);
                forward.push(range);
            }
            assert_eq!(forward.last().map(|range| &range.high), Some(&within.high), "{policy}");
            let mut backward = Vec::new();
            let mut from = within.high.clone();
            while let Some(range) = set.stretch(from.as_ref(), &within, Direction::Backward) {
                assert_eq!(range.high, from);
                assert!(set.runs().iter().all(|run| run.overlapping(&range).len() <= 1));
                from = Some(range.low.clone());
                let is_first = range.low == within.low;
                backward.push(range);
                if is_first {
                    break;
                }
            }
            backward.reverse();
            assert_eq!(backward, forward, "{policy}");
        }
    }
}

#[test]
fn names_and_bytes_round_trip_and_bad_ones_are_refused() {
    for policy in policies() {
        assert_eq!(policy.to_string().parse::<Policy>().unwrap(), policy);
        let mut bytes = Vec::new();
        policy.encode(&mut bytes);
        assert_eq!(Policy::decode(&mut Reader::new(&bytes)), Some(policy));
    }
    for (name, shown) in [
        ("jungle", "jungle:c=3"),
        ("jungle:c=2.50", "jungle:c=2.5"),
        ("jungle:c=2,t=10", "jungle:c=2"),
        ("jungle:t=8", "jungle:c=3,t=8"),
        ("jungle:t=8,c=2", "jungle:c=2,t=8"),
        ("jungle:levels=total", "jungle:c=3"),
        ("jungle:levels=live,t=10", "jungle:c=3,levels=live"),
        ("jungle:upper=3", "jungle:c=3"),
        ("jungle:upper=8,t=4,c=2", "jungle:c=2,t=4,upper=8"),
    ] {
        assert_eq!(name.parse::<Policy>().unwrap().to_string(), shown);
    }
    assert_eq!(Policy::jungle(2.5), "jungle:c=2.5".parse().unwrap());
    assert!(Policy::jungle(f64::NAN).validate().is_err());
    for name in [
        "",
        "leveling:t=1",
        "leveling:r=3",
        "leveling:",
        "leveling:t=3,t=4",
        "geometric",
        "geometric:p=0",
        "tiering:t=",
        "tiering:t=5000",
        "jungle:c=1.09",
        "jungle:c=1000.01",
        "jungle:c=2.555",
        "jungle:c=nan",
        "jungle:c=3,t=1",
        "jungle:c=3,t=8,",
        "jungle:c=3,c=4",
        "jungle:levels=most",
        "jungle:upper=1",
    ] {
        assert!(name.parse::<Policy>().is_err(), "{name}");
    }
}

/// A manifest may say anything of its parts, and sums of that went over.
#[test]
fn sizes_that_no_file_has_are_planned_with() {
    for policy in policies() {
        let mut runs = simulated(policy, Keys::Unique);
        (0..25).for_each(|_| assert!(runs.flush(UNIT).is_ok()));
        for run in runs.set.runs.iter_mut().filter(|run| !run.is_resident) {
            for part in &mut Arc::make_mut(run).parts {
                Arc::make_mut(part).portion = Portion { bytes: u64::MAX - 7, records: u64::MAX };
            }
        }
        for unit_bytes in [0, 1, u64::MAX] {
            runs.set.unit_bytes = unit_bytes;
            let (set, nobody) = (&runs.set, BTreeSet::new());
            for room in [ROOM, ResidentBudget { resides: false, ..ROOM }] {
                policy.debt_bytes(set, room);
                let _ = (set.next_work(&nobody, room), set.flush(99, u64::MAX, &nobody, room));
            }
            let _ = set.next_full_compaction(&nobody);
        }
    }
}

/// An edit whose runs are gone is refused and not half applied.
#[test]
fn edits_that_do_not_fit_are_errors() {
    let mut runs = simulated("tiering:t=4".parse().unwrap(), Keys::Unique);
    (0..3).for_each(|_| assert!(runs.flush(UNIT).is_ok()));
    let before = bytes_of(&runs.set);
    let part = (**runs.set.parts().next().unwrap()).clone();
    let replace = |taken: Vec<Taken>, into: u64, level: u32, parts: Vec<Part<CountedFile>>| {
        let (range, into) = (Range::all(), NodeId(into));
        Edit::Replace(Replace {
            flushed_bytes: 0,
            is_ingest: taken.is_empty(),
            below: 0,
            range,
            taken,
            into,
            level,
            parts,
            goes_on: false,
        })
    };
    let taken = Taken { run: NodeId(77), range: Range::all(), below: None, above: None };
    for edit in [
        Edit::Relabel { run: NodeId(77), level: 1 },
        Edit::Relabel { run: runs.set.runs()[0].id, level: 5 },
        replace(vec![taken], 90, 0, vec![part.clone()]),
        replace(vec![], runs.set.runs()[0].id.0, 0, vec![part.clone()]),
        replace(vec![], 90, 3, vec![part]),
    ] {
        assert!(runs.set.apply(&edit).is_err(), "{edit:?}");
        assert_eq!(bytes_of(&runs.set), before);
    }
}

/// What comes by itself while the first write buffer of a table is written lies beneath that. What the buffer deletes was
/// dropped, with nothing beneath when that began, and was there again.
#[test]
fn a_first_flush_and_an_ingest_do_not_both_come_in() {
    for policy in policies() {
        let (mut runs, drained) =
            (simulated(policy, Keys::Unique), ResidentBudget { resides: false, ..ROOM });
        let flush = runs.set.flush(1, UNIT * RECORD_BYTES, &BTreeSet::new(), drained);
        assert!(flush.is_bottom && flush.taken.is_empty(), "{policy}: {flush:?}");
        let part = Part {
            range: Range::all(),
            fragment: CountedFile {
                counts: Counted::new(7, 0.5),
                tree: None,
                pointed_bytes: 0,
                memory_bytes: 0,
            },
            portion: Portion { bytes: 100, records: 10 },
            is_bottom: false,
        };
        let ingested = runs.set.rebase(Made::new(Slice::default(), vec![part])).unwrap();
        runs.set = runs.set.apply(&ingested).unwrap().0;
        let made = Made::new(flush, Vec::new());
        assert!(!runs.set.takes(&made) && runs.set.rebase(made).is_err(), "{policy}");
        let again = runs.set.flush(1, UNIT * RECORD_BYTES, &BTreeSet::new(), drained);
        assert!(runs.set.takes(&Made::new(again, Vec::new())), "{policy}");
    }
}

/// A part that lies where nothing else does joins the oldest run, but for one that a merge goes on to fill: it cancelled
/// that, and the merge's last slice then met the part.
#[test]
fn an_ingest_stays_out_of_a_run_that_a_merge_fills() {
    for policy in policies() {
        let mut runs = simulated(policy, Keys::Unique);
        ingest(&mut runs, part(0, 100));
        ingest(&mut runs, part(50, 600));
        let ids: Vec<_> = runs.set.runs().iter().map(|run| run.id()).collect();
        assert_eq!(ids.len(), 2, "{policy}");
        // Nor does a first slice come in that it lies in front of.
        let range = Range { low: Bound::at_prefix(20), high: Some(Bound::at_prefix(60)) };
        let first = Slice {
            taken: ids.iter().map(|&id| (id, range.clone())).collect(),
            act: Act::of_merge(None, false, true),
            range,
            breaks: runs.set.breaks.count(),
            ..Slice::default()
        };
        assert!(!runs.set.takes(&Made::new(first, Vec::new())), "{policy}");
        let merge = Underway { inputs: vec![ids[0]], into: ids[1], level: runs.set.runs()[1].level };
        runs.set.underway.push(merge.clone());
        ingest(&mut runs, part(700, 800));
        assert_eq!((runs.set.runs().len(), &runs.set.underway), (3, &vec![merge]), "{policy}");
    }
}

/// What merges of a damaged place fail at is set aside, and all else comes to rest. In `range-merge` whole runs were
/// merged beside a key range that was aside: the others went to and fro between the oldest run and the new one,
/// without end.
#[test]
fn what_is_set_aside_lets_all_else_end() {
    let pairs = policies().into_iter().flat_map(|from| policies().into_iter().map(move |to| (from, to)));
    for ((from, to), place) in pairs.flat_map(|pair| (0..8).map(move |place| (pair, place))) {
        let mut runs = simulated(from, Keys::Unique);
        (0..25).for_each(|_| assert!(runs.flush(UNIT).is_ok()));
        runs.set.policy = to;
        let at = u64::MAX / 8 * place + 1000;
        let is_at = |part: &&Arc<Part<CountedFile>>| part.range.contains(at, &[]);
        let found: Vec<_> = runs.set.runs().iter().filter_map(|run| run.parts().iter().find(is_at)).collect();
        let damaged = found[place as usize % found.len()].fragment.id();
        let meets = |set: &RunSet<CountedFile>, slice: &Slice| {
            slice.taken.iter().filter(|(_, range)| range.contains(at, &[])).any(|(run, _)| {
                let part = set.run(*run).and_then(|run| run.parts().iter().find(is_at));
                part.is_some_and(|part| part.fragment.id() == damaged)
            })
        };
        let (mut busy, room) = (BTreeSet::new(), ResidentBudget { resides: false, ..ROOM });
        let rested = (0..1000).any(|_| {
            let compaction = || runs.set.next_full_compaction(&busy).map(Next::Merge);
            match runs.set.next_work(&busy, room).or_else(compaction) {
                Some(Next::Merge(slice)) if meets(&runs.set, &slice) => busy.extend(slice.nodes()),
                Some(Next::Merge(slice)) => {
                    let is_of_key_ranges = matches!(slice.act, Act::Evict { .. } | Act::Rewrite { .. });
                    assert!(
                        busy.is_empty() || !to.merges_key_ranges() || is_of_key_ranges,
                        "{from}: {slice:?}"
                    );
                    runs.merge(slice, Cause::Merge).unwrap();
                }
                Some(Next::Edit(edit)) => runs.apply(&edit).unwrap(),
                None => return true,
            }
            runs.check().unwrap();
            false
        });
        assert!(rested, "{from} to {to}, damaged in {place}/8");
    }
}

/// What several compactors do at a time comes in whichever of them is done first, and beside write buffers.
#[test]
fn merges_side_by_side_come_in_in_any_order() {
    let (mut most, drained) = (0, ResidentBudget { resides: false, ..ROOM });
    let policies = policies().into_iter().filter(|policy| !policy.merges_key_ranges());
    for (policy, seed) in policies.flat_map(|policy| (0..4).map(move |seed| (policy, seed))) {
        let (mut rng, mut runs) = (Rng::new(seed), simulated(policy, Keys::Unique));
        let mut under_way: Vec<Slice> = Vec::new();
        let busy = |slices: &[Slice]| slices.iter().flat_map(Slice::nodes).collect::<BTreeSet<_>>();
        for round in 0..400 {
            if round < 120 && rng.chance(50) {
                let flush = runs.set.flush(round, UNIT * RECORD_BYTES, &busy(&under_way), drained);
                runs.merge(flush, Cause::Flush).unwrap();
            }
            match runs.set.next_work(&busy(&under_way), drained).filter(|_| under_way.len() < 4) {
                Some(Next::Merge(slice)) => under_way.push(slice),
                Some(Next::Edit(edit)) => runs.apply(&edit).unwrap(),
                None => {}
            }
            most = most.max(under_way.len());
            if !under_way.is_empty() && (round >= 120 || rng.chance(30)) {
                let slice = under_way.swap_remove(rng.index(under_way.len()));
                assert!(runs.set.takes(&Made::new(slice.clone(), Vec::new())), "{policy}: {slice:?}");
                runs.merge(slice, Cause::Merge).unwrap();
            }
            runs.check().unwrap();
        }
    }
    assert!(most > 2, "{most} at a time at most");
}

/// A range that is taken out of all runs ends the merges that it meets, and no others.
#[test]
fn a_range_drop_ends_the_merges_that_it_meets() {
    let bound = |place: u64| Bound { prefix: place, key: (&[][..]).into() };
    let range = |low: u64, high: u64| Range { low: bound(low), high: Some(bound(high)) };
    for policy in policies().into_iter().filter(|policy| !policy.merges_key_ranges()) {
        let mut runs = simulated(policy, Keys::Unique);
        (0..40).for_each(|_| assert!(runs.flush(UNIT).is_ok()));
        let dropped = |runs: &SimulatedRuns, range: &Range| {
            let edit = runs.set.drop_range(range);
            runs.set.apply(&edit).unwrap().0
        };
        let last = runs.set.runs().last().unwrap();
        let slice = runs.set.in_place(last, &range(u64::MAX / 4, u64::MAX / 2));
        let made = Made::new(slice, Vec::new());
        let beside = dropped(&runs, &range(u64::MAX / 2, u64::MAX / 4 * 3));
        assert!(beside.takes(&made) && beside.rebase(made.clone()).is_ok(), "{policy}");
        let meets = dropped(&runs, &range(u64::MAX / 2 - 1, u64::MAX / 4 * 3));
        assert!(!meets.takes(&made), "{policy}");
    }
}

/// What was merged in a gap, as if nothing were beneath, does not come in once what another job made reaches over that.
#[test]
fn what_was_merged_at_the_bottom_is_not_taken_above_something_older() {
    let mut runs = simulated("tiering".parse().unwrap(), Keys::Unique);
    runs.flush(UNIT).unwrap();
    let breaks = runs.set.breaks.count();
    let slice = Slice { is_bottom: true, breaks, ..Slice::default() };
    assert!(!runs.set.takes(&Made::new(slice.clone(), Vec::new())));
    assert!(runs.set.takes(&Made::new(Slice { is_bottom: false, ..slice }, Vec::new())));
}

/// A tree of which two parts of a run are left does not go down in two pieces: in different runs two jobs could append to
/// it.
#[test]
fn a_tree_that_was_cut_goes_down_as_a_new_one() {
    let mut runs = simulated("jungle:t=4".parse().unwrap(), Keys::Unique);
    (0..60).for_each(|_| assert!(runs.flush(UNIT).is_ok()));
    let upper = runs.set.runs().iter().find(|run| run.level() == 1 && !run.parts().is_empty()).unwrap();
    let whole = upper.parts()[0].range.clone();
    let (low, high) = (whole.low.prefix, whole.high.as_ref().map_or(u64::MAX, |high| high.prefix));
    let bound = |eighth: u64| Bound { prefix: low + (high - low) / 8 * eighth, key: (&[][..]).into() };
    let dropped = Range { low: bound(3), high: Some(bound(4)) };
    let beneath = Range { low: Bound::least(), high: None };
    let (id, below) = (upper.id(), runs.set.runs().iter().filter(|run| run.level() > 1).map(|run| run.id()));
    let below: Vec<NodeId> = below.collect();
    let mut set = runs.set.apply(&runs.set.drop_range(&dropped)).unwrap().0;
    // Nothing lies beneath any more: it could be moved.
    set.runs.retain(|run| !below.contains(&run.id()) || run.overlapping(&beneath).is_empty());
    let cut = set.run(id).unwrap();
    assert_eq!(cut.parts()[0].fragment.id(), cut.parts()[1].fragment.id());
    assert!(matches!(set.push(cut, 0), Some(Next::Merge(_))));
    // Nor does it while the table has another policy, for it may get this one again.
    set.policy = "leveling:t=4".parse().unwrap();
    assert!(matches!(set.push(set.run(id).unwrap(), 0), Some(Next::Merge(_))));
}
