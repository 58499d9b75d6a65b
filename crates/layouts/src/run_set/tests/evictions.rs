//! Evictions of key ranges, side by side and beside what else comes in.

use super::*;

/// A file of no inventory, with so many records.
fn part_of(range: Range, records: u64) -> Part<CountedFile> {
    let counts = Counted::new(u32::MAX, 0.5);
    let fragment = CountedFile { counts, tree: None, pointed_bytes: 0, memory_bytes: 0 };
    let portion = Portion { bytes: records * RECORD_BYTES, records };
    Part { range, fragment, portion, is_bottom: false }
}

pub(super) fn part(low: u64, high: u64) -> Part<CountedFile> {
    part_of(Range { low: Bound::at_prefix(low), high: Some(Bound::at_prefix(high)) }, 100)
}

/// Whether an eviction comes in that has merged all that it takes.
fn takes(runs: &SimulatedRuns, slice: &Slice) -> bool {
    runs.set.takes(&Made::new(slice.clone(), Vec::new()))
}

/// Room for so many bytes of records.
fn room(bytes: u64) -> ResidentBudget {
    ResidentBudget::of(ResidentRoom { bytes, buffer_bytes: 0, buffers_max: 8 })
}

fn busy(slice: &Slice) -> BTreeSet<NodeId> {
    slice.nodes().into_iter().collect()
}

/// What comes by itself.
pub(super) fn ingest(runs: &mut SimulatedRuns, part: Part<CountedFile>) {
    let edit = runs.set.rebase(Made::new(Slice::default(), vec![part])).unwrap();
    runs.apply(&edit).unwrap();
}

/// Key ranges are evicted side by side. Whatever ranges go or come meanwhile, of two jobs that meet one comes in at most:
/// the other had read what is gone.
#[test]
fn evictions_side_by_side_never_meet() {
    let (mut most, mut done, mut lost, mut appended) = (0, 0, 0, 0);
    for seed in 0..40 {
        let policy = if seed % 2 == 0 { Policy::RANGE_MERGE } else { Policy::range_merge_of_trees(3.0) };
        let (mut rng, mut runs) = (Rng::new(seed), simulated(policy, Keys::Unique));
        (0..30).for_each(|_| assert!(runs.flush(UNIT).is_ok()));
        let mut under_way: Vec<Slice> = Vec::new();
        for round in 0..300 {
            let busy: BTreeSet<NodeId> = under_way.iter().flat_map(Slice::nodes).collect();
            // Where ranges begin and end, and at times elsewhere.
            let bounds = key_ranges::bounds(&runs.set);
            let (mut low, mut high) = (Bound::at_prefix(rng.next_u64()), Bound::at_prefix(rng.next_u64()));
            if rng.chance(70) && bounds.len() > 1 {
                let at = rng.index(bounds.len() - 1);
                (low, high) = (bounds[at].clone(), bounds[at + 1].clone());
                low = if at == 0 { Bound::least() } else { low };
            }
            let range = Range { low: low.clone().min(high.clone()), high: Some(low.max(high)) };
            match rng.index(100) {
                0..40 => {
                    let flush = runs.set.flush(100 + round, UNIT * RECORD_BYTES, &busy, ROOM);
                    runs.merge(flush, Cause::Flush).unwrap();
                }
                40..50 => {
                    let edit = runs.set.drop_range(&range);
                    runs.apply(&edit).unwrap();
                }
                50..55 => {
                    ingest(&mut runs, part_of(range, 1000));
                }
                55..80 if !under_way.is_empty() => {
                    let slice = under_way.swap_remove(rng.index(under_way.len()));
                    if takes(&runs, &slice) {
                        appended += u64::from(slice.act.appends());
                        runs.merge(slice, Cause::Merge).unwrap();
                        done += 1;
                    } else {
                        lost += 1;
                    }
                }
                _ if under_way.len() < 6 => under_way.extend(runs.set.next_eviction(&busy, ROOM)),
                _ => {}
            }
            most = most.max(under_way.len());
            let trees = under_way.iter().filter_map(|slice| match slice.act {
                Act::Evict { tree, .. } => tree,
                _ => None,
            });
            let mut appended_to = BTreeSet::new();
            assert!(
                trees.into_iter().all(|tree| appended_to.insert(tree)),
                "a file has one tail: {under_way:?}"
            );
            let wanted: Vec<&Slice> = under_way.iter().filter(|slice| takes(&runs, slice)).collect();
            for (at, slice) in wanted.iter().enumerate() {
                let meets = |other: &&&Slice| !other.range.intersect(&slice.range).is_empty();
                assert!(
                    !wanted[..at].iter().any(|other| meets(&other)),
                    "seed {seed}, round {round}: {wanted:?}"
                );
            }
            runs.check().unwrap();
        }
    }
    assert!(most > 3 && done > 500 && lost > 100, "{most} at a time, {done} came in and {lost} did not");
    assert!(appended > 100, "{appended} went to trees");
}

/// An eviction may leave the front of its key range alone, where nothing waits. What comes there is a key range of its
/// own from then on, which reaches as far as the other did.
#[test]
fn what_comes_into_the_rest_of_a_key_range_ends_its_eviction() {
    let mut runs = simulated(Policy::RANGE_MERGE, Keys::Unique);
    ingest(&mut runs, part(0, 100));
    runs.apply(&Edit::Reside(Reside { below: 7, parts: vec![part(500, 600)] })).unwrap();
    let first = runs.set.next_eviction(&BTreeSet::new(), room(0)).unwrap();
    assert_eq!(first.range.low, Bound::at_prefix(500));
    ingest(&mut runs, part(200, 300));
    let second = runs.set.next_eviction(&busy(&first), room(0)).unwrap();
    assert_eq!(
        (takes(&runs, &first), takes(&runs, &second), second.range.low.clone()),
        (false, true, Bound::at_prefix(500))
    );
}

/// A run may only reach over a key range: with what lies beside, which another eviction takes, it is gone. An eviction
/// that was to take something of it did not fit its table any more, which was taken for a bug.
#[test]
fn an_eviction_of_which_a_run_is_gone_does_not_come_in() {
    let mut runs = simulated(Policy::RANGE_MERGE, Keys::Unique);
    ingest(&mut runs, part(0, 100));
    ingest(&mut runs, part(50, 600));
    let eviction = runs.set.next_eviction(&BTreeSet::new(), room(0)).unwrap();
    assert!(eviction.taken.len() == 2 && takes(&runs, &eviction), "{eviction:?}");
    let gone = eviction.taken[0].0;
    runs.set.runs.retain(|run| run.id() != gone);
    assert!(!takes(&runs, &eviction));
}

/// All that was ingested went to a tree at one go, however much that was, and with it a key range that nobody else could
/// evict meanwhile.
#[test]
fn much_that_was_ingested_goes_to_disk_piece_by_piece() {
    // Into the only key range, and into one of many.
    for policy in [Policy::range_merge_of_trees(3.0), Policy::RANGE_MERGE] {
        ingest_much(policy, UNIT / 10, Range::all());
        let middle = Range { low: Bound::at_prefix(1 << 62), high: Some(Bound::at_prefix((1 << 62) + 1000)) };
        ingest_much(policy, 400 * FILE_BYTES / RECORD_BYTES, middle);
    }
}

fn ingest_much(policy: Policy, records: u64, range: Range) {
    let mut runs = simulated(policy, Keys::Unique);
    runs.flush(records).unwrap();
    while let Some(slice) = runs.set.next_full_compaction(&BTreeSet::new()) {
        runs.merge(slice, Cause::Merge).unwrap();
    }
    let has_trees = runs.set.parts().all(|part| part.fragment.grown_bytes().is_some());
    assert_eq!(has_trees, policy.grows_trees());
    let much = 100 * FILE_BYTES / RECORD_BYTES;
    ingest(&mut runs, part_of(range, much));
    let (mut jobs, mut longest) = (0, 0);
    while let Some(Next::Merge(slice)) = runs.set.next_work(&BTreeSet::new(), ROOM) {
        let ingested = runs.set.runs()[0].parts().iter().filter_map(|part| part.portion_in(&slice.range));
        longest = longest.max(ingested.map(|portion| portion.bytes).sum());
        runs.merge(slice, Cause::Merge).unwrap();
        runs.check().unwrap();
        jobs += 1;
    }
    assert!(jobs > 20 && longest <= 20 * FILE_BYTES, "{policy}: {jobs} jobs, of {longest} bytes at most");
    assert_eq!(runs.set.runs().len(), 1, "all of it is in the oldest run");
}

/// What evictions under way give back is not asked for once more.
#[test]
fn what_is_leaving_memory_calls_for_no_other_eviction() {
    let mut runs = simulated(Policy::RANGE_MERGE, Keys::Unique);
    (0..2).for_each(|at| ingest(&mut runs, part(100 * at, 100 * at + 100)));
    runs.apply(&Edit::Reside(Reside { below: 7, parts: vec![part(0, 100), part(100, 200)] })).unwrap();
    let kept_bytes = runs.set.kept().record_bytes;
    let first = runs.set.next_eviction(&BTreeSet::new(), room(kept_bytes - 1)).unwrap();
    assert_eq!(runs.set.next_eviction(&busy(&first), room(kept_bytes - 1)), None);
    assert!(runs.set.next_eviction(&busy(&first), room(0)).is_some());
    assert_eq!(runs.set.next_eviction(&BTreeSet::new(), room(kept_bytes)), None);
}

/// A key range of what a write buffer is merged with goes to disk meanwhile: only one of both comes in. Else what the
/// buffer deletes, with nothing on disk beneath when that began, would be there again.
#[test]
fn of_a_flush_and_an_eviction_of_the_same_runs_one_comes_in() {
    for evicts_first in [true, false] {
        let mut runs = simulated(Policy::RANGE_MERGE, Keys::Unique);
        runs.flush(UNIT).unwrap();
        assert!(runs.set.residents().count() == 1 && runs.set.runs().len() == 1, "all of it is in memory");
        let drained = ResidentBudget { resides: false, ..ROOM };
        let flush = runs.set.flush(9, UNIT * RECORD_BYTES, &BTreeSet::new(), drained);
        assert!(flush.is_bottom && flush.taken.len() == 1, "{flush:?}");
        let evict = runs.set.next_full_compaction(&flush.nodes().into_iter().collect()).unwrap();
        let (first, second) = if evicts_first { (evict, flush) } else { (flush, evict) };
        runs.merge(first, Cause::Merge).unwrap();
        assert!(!runs.set.takes(&Made::new(second, Vec::new())), "{evicts_first}");
    }
}

/// A key range is written anew as a whole: short files cost a sync for little, long ones keep writers waiting.
#[test]
fn files_of_key_ranges_are_two_write_buffers_long() {
    const MIB: u64 = 1 << 20;
    for (buffer, expected) in [(4 << 10, 8 << 10), (8 * MIB, 16 * MIB), (1 << 31, 64 * MIB)] {
        assert_eq!(Policy::RANGE_MERGE.usual_file_bytes(buffer), expected, "buffers of {buffer}");
        let others = [Policy::Immediate, Policy::range_merge_of_trees(3.0)];
        assert!(others.iter().all(|policy| policy.usual_file_bytes(buffer) == buffer.min(64 * MIB)));
    }
}
