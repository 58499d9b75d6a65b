//! Aggregators against a map: in memory, packed, in files; more than memory holds, and more added after finalising.

use std::collections::HashMap;

use forebay::GroupFiles;
use forebay_aggregate::functions::{Distinct, SumInt};
use forebay_aggregate::{
    Aggregate, Aggregator, AggregatorOptions, CompressedAggregator, HashAggregator, RunFiles, SortAggregator,
};
use forebay_env::fs::MemoryFs;
use forebay_env::{Env, Rng};

use crate::damage::DIR;
use crate::draws::{self, one_of};

/// Long enough for few keys, and too short for many.
const MEMORY_BYTES: usize = 1600 << 10;

pub(crate) fn fuzz(rng: &mut Rng) {
    if rng.chance(50) {
        let value = |rng: &mut Rng| lifted(&SumInt, rng.next_u64() as i64 >> rng.below(64));
        fuzz_function(rng, SumInt, value);
    } else {
        let value = |rng: &mut Rng| lifted(&Distinct, &draws::key(rng, 20));
        fuzz_function(rng, Distinct, value);
    }
}

fn lifted<A: Aggregate>(function: &A, value: A::Input<'_>) -> Vec<u8> {
    let mut state = Vec::new();
    function.lift(value, &mut state).expect("it is taken");
    state
}

fn fuzz_function<A: Aggregate + Copy>(rng: &mut Rng, function: A, value: impl Fn(&mut Rng) -> Vec<u8>) {
    let (count, keys) = one_of(rng, &[(10, 3), (2000, 90), (5000, 4000), (60_000, 1 << 30)]);
    let states: Vec<_> = (0..count).map(|_| (draws::key(rng, keys), value(rng))).collect();
    let threads = one_of(rng, &[1, 3]);
    let env = Env::memory(rng.next_u64());
    let options = AggregatorOptions::default().threads(threads).jobs(env.jobs.clone());
    let options = match rng.below(4) {
        0 => options.memory_limit(MEMORY_BYTES).spill_to(GroupFiles::in_env(env, DIR)),
        1 => options.memory_limit(MEMORY_BYTES).spill_to(RunFiles::new(env.fs, DIR)),
        2 => options.memory_limit(32 << 20).colliding(rng.below(12) as u32),
        _ => options.memory_limit(32 << 20),
    };
    let packed = CompressedAggregator::new(function, options).expect("memory suffices");
    let order = draws::order(rng);
    let sorted =
        SortAggregator::new(function, order, MemoryFs::new(), DIR, 1 << 20).expect("memory suffices");
    compare(&function, HashAggregator::new(function, 64 << 20), &states);
    let (packed, map) = compare(&function, packed, &states);
    compare(&function, sorted, &states);
    take(&function, packed, map, &states);
}

/// Adds the same once more, and compares what is taken out then, if it is in memory.
fn take<A: Aggregate>(
    function: &A,
    mut packed: CompressedAggregator<A>,
    mut map: HashMap<Vec<u8>, Vec<u8>>,
    states: &[(Vec<u8>, Vec<u8>)],
) {
    for (key, state) in states {
        packed.add_state(key, state).expect("there is room");
        merge(function, &mut map, key, state);
    }
    let Some(taken) = packed.take_groups().expect("there is room") else { return };
    let mut seen = HashMap::new();
    let visit = &mut |key: &[u8], state: &[u8]| {
        assert_eq!(seen.insert(key.to_vec(), state.to_vec()), None, "each key once");
        Ok(())
    };
    taken.show(0..taken.leaves(), visit).expect("it is in memory");
    taken.told().expect("no group is lost");
    assert!(seen == map, "what is taken out differs from a map");
}

fn merge<A: Aggregate>(function: &A, map: &mut HashMap<Vec<u8>, Vec<u8>>, key: &[u8], state: &[u8]) {
    let entry = map.entry(key.to_vec()).or_default();
    let mut merged = Vec::new();
    match entry.is_empty() {
        true => merged.extend_from_slice(state),
        false => function.merge(&[entry, state], &mut merged),
    }
    *entry = merged;
}

/// Adds the same to an aggregator and to a map, in two rounds, and compares after each.
fn compare<A: Aggregate, G: Aggregator<A>>(
    function: &A,
    mut aggregator: G,
    states: &[(Vec<u8>, Vec<u8>)],
) -> (G, HashMap<Vec<u8>, Vec<u8>>) {
    let mut map: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    for round in states.chunks(states.len().div_ceil(2)) {
        for (key, state) in round {
            aggregator.add_state(key, state).expect("there is room");
            merge(function, &mut map, key, state);
        }
        aggregator.finalize().expect("there is room");
        let mut seen = HashMap::new();
        let visit = &mut |key: &[u8], state: &[u8]| {
            assert_eq!(seen.insert(key.to_vec(), state.to_vec()), None, "each key once");
            Ok(())
        };
        aggregator.for_each(visit).expect("it is finalised");
        assert!(seen == map, "an aggregator differs from a map");
        for key in map.keys().take(50) {
            assert_eq!(aggregator.get(key).expect("it is finalised").as_ref(), map.get(key));
        }
        assert_eq!(aggregator.get(b"no such key").expect("it is finalised"), None);
    }
    (aggregator, map)
}
