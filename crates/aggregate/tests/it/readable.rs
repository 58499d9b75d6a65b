//! The compressed buffer tree is read in the midst of adding, against a map.

use std::collections::BTreeMap;

use forebay_aggregate::functions::{Count, Distinct};
use forebay_aggregate::{Aggregate, Aggregator, AggregatorOptions, CompressedAggregator};
use forebay_base::Result;
use forebay_base::hash::mix;
use forebay_env::Env;

use crate::aggregators::{add_to_map, contents};
use crate::place::Place;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn options(seed: u64, threads: usize) -> AggregatorOptions {
    AggregatorOptions::default().memory_limit(4 << 20).threads(threads).jobs(Env::memory(seed).jobs)
}

/// Adds states of keys drawn from a few, some, or many, and compares at moments drawn too.
fn compare<A: Aggregate + Copy>(
    function: A,
    options: AggregatorOptions,
    seed: u64,
    state: impl Fn(u64) -> Vec<u8>,
) -> Result<bool> {
    let aggregator = CompressedAggregator::new(function, options)?;
    let mut map = Map::new();
    for number in 0..40_000 {
        let draw = mix(seed ^ number);
        let keys = [10, 1000, 10_000][(number / 1000 % 3) as usize];
        let id = mix(draw % keys);
        let key =
            if id.is_multiple_of(3) { format!("key {id}").into_bytes() } else { id.to_le_bytes().into() };
        let state = state(draw);
        aggregator.add_state(&key, &state)?;
        add_to_map(&function, &mut map, &key, &state);
        if draw >> 56 < 6 {
            assert_eq!(aggregator.get(&key)?.as_ref(), map.get(&key), "seed {seed}, {number} added");
            if let Some((key, state)) = map.range(draw.to_le_bytes().to_vec()..).next() {
                assert_eq!(aggregator.get(key)?.as_ref(), Some(state), "seed {seed}, {number} added");
            }
            assert_eq!(aggregator.get(&draw.to_be_bytes())?, None);
        }
        if number % 11_000 == 5_000 {
            assert!(contents(&aggregator) == map, "seed {seed}, {number} added");
            assert_eq!(aggregator.keys()?, map.len() as u64);
        }
        if number % 17_000 == 3 {
            aggregator.finalize()?;
        }
    }
    assert!(contents(&aggregator) == map, "seed {seed}, all added");
    Ok(aggregator.is_spilled())
}

#[test]
fn it_equals_a_map_at_every_moment() -> Result<()> {
    let count = |draw: u64| (draw % 5).to_le_bytes().to_vec();
    let text = |draw: u64| {
        let mut state = Vec::new();
        Distinct.lift(&(draw >> 20).to_le_bytes()[..(draw % 3) as usize], &mut state).map(|()| state)
    };
    for (seed, threads) in [(1, 1), (2, 3)] {
        compare(Count, options(seed, threads), seed, count)?;
        compare(Distinct, options(seed, threads), seed, |draw| text(draw).expect("it is taken"))?;
        compare(Count, options(seed, threads).colliding(3), seed, count)?;
    }
    // A state takes at least 72 bytes: they do not fit.
    let long = |draw: u64| {
        let mut state = Vec::new();
        Distinct.lift(&mix(draw).to_le_bytes().repeat(9), &mut state).map(|()| state)
    };
    let spilling = options(3, 2).colliding(4).memory_limit(1800 << 10).spill_to(Place::colliding(4));
    assert!(compare(Distinct, spilling, 3, |draw| long(draw).expect("it is taken"))?, "it did not spill");
    Ok(())
}

#[test]
fn who_is_shown_groups_may_look_at_others() -> Result<()> {
    let counts = CompressedAggregator::new(Count, options(5, 2))?;
    for number in 0..60_000u64 {
        counts.add(&mix(number % 20_000).to_le_bytes(), ())?;
    }
    let mut shown = 0;
    counts.for_each(&mut |key, state| {
        shown += 1;
        assert_eq!(state, 3u64.to_le_bytes());
        if shown % 100 == 0 {
            assert_eq!(counts.get(key)?.as_deref(), Some(state));
        }
        Ok(())
    })?;
    assert_eq!(shown, 20_000);
    Ok(())
}
