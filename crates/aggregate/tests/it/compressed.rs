//! The compressed buffer tree with little memory, so that few keys make a deep tree.

use std::collections::BTreeMap;
use std::path::Path;

use forebay_aggregate::functions::{Count, Distinct, SumInt};
use forebay_aggregate::{Aggregate, Aggregator, AggregatorOptions, CompressedAggregator};
use forebay_base::Result;
use forebay_base::hash::mix;
use forebay_env::Env;
use forebay_env::fs::{FaultyFs, MemoryFs};

use crate::aggregators::{add_through_failures, counted};

fn options(seed: u64, threads: usize) -> AggregatorOptions {
    AggregatorOptions::default().memory_limit(6 << 20).threads(threads).jobs(Env::memory(seed).jobs)
}

/// Adds one to each key, as often as it comes, and compares with a map, twice.
fn count<K: AsRef<[u8]> + Ord + Clone>(mut counts: CompressedAggregator<Count>, keys: &[K]) -> Result<()> {
    let mut map: BTreeMap<K, u64> = BTreeMap::new();
    for half in keys.chunks(keys.len().div_ceil(2)) {
        for key in half {
            counts.add(key.as_ref(), ())?;
            *map.entry(key.clone()).or_default() += 1;
        }
        assert!(counts.get(b"").is_err(), "it is not finalised");
        counts.finalize()?;
        assert_eq!(counts.keys(), map.len() as u64);
        let mut seen = 0;
        counts.for_each(&mut |_, _| {
            seen += 1;
            Ok(())
        })?;
        assert_eq!(seen, map.len());
        for (key, times) in map.iter().step_by(37) {
            assert_eq!(counts.get(key.as_ref())?, Some(times.to_le_bytes().to_vec()));
        }
        assert_eq!(counts.get(b"no such key")?, None);
    }
    Ok(())
}

#[test]
fn numbers_are_counted() -> Result<()> {
    let numbers = |groups: u64| (0..400_000).map(|i| mix(mix(i) % groups).to_le_bytes()).collect::<Vec<_>>();
    for (groups, threads) in [(7, 1), (5_000, 2), (150_000, 1), (150_000, 3)] {
        count(CompressedAggregator::new(Count, options(groups, threads))?, &numbers(groups))?;
    }
    Ok(())
}

#[test]
fn words_are_counted_by_threads_too() -> Result<()> {
    let words: Vec<String> =
        (0..300_000).map(|i| format!("w{:x}", mix(mix(i) % 60_000) >> (i % 3 * 16))).collect();
    count(CompressedAggregator::new(Count, options(1, 2))?, &words)?;
    let threads = AggregatorOptions::default().memory_limit(12 << 20).threads(3);
    count(CompressedAggregator::new(Count, threads)?, &words)
}

#[test]
fn keys_may_change_their_length_at_any_time() -> Result<()> {
    let keys: Vec<Vec<u8>> = (0..100_000u64)
        .map(|i| mix(i % 30_000).to_le_bytes()[..if i < 40_000 { 8 } else { (i % 9) as usize }].to_vec())
        .collect();
    count(CompressedAggregator::new(Count, options(2, 2))?, &keys)
}

#[test]
fn states_of_any_length_are_merged() -> Result<()> {
    let mut aggregator = CompressedAggregator::new(Distinct, options(3, 2))?;
    for i in 0..50_000u64 {
        aggregator.add(&(mix(i) % 2_000).to_le_bytes(), &(mix(i) % 10).to_le_bytes())?;
    }
    aggregator.finalize()?;
    aggregator.for_each(&mut |_, state| {
        assert!((1..=10).contains(&Distinct.finish(state)?));
        Ok(())
    })?;
    assert_eq!(aggregator.keys(), 2_000);
    Ok(())
}

#[test]
fn with_a_directory_it_goes_on_in_files() -> Result<()> {
    let env = Env::memory(5);
    let limit = 3 << 20;
    let options = AggregatorOptions::default().memory_limit(limit).threads(2).jobs(env.jobs.clone());
    let mut counts = CompressedAggregator::new(Count, options.spill_to(env.fs.clone(), "/spilled"))?;
    let adds = 500_000u64;
    let key = |add: u64| (mix(add) % 400_000).to_le_bytes();
    for round in 0..2 {
        for add in 0..adds {
            counts.add(&key(add), ())?;
            if add % 1000 == 0 {
                assert!(counts.memory_bytes() <= limit, "{} bytes", counts.memory_bytes());
            }
        }
        counts.finalize()?;
        let (mut keys, mut sum) = (0, 0);
        counts.for_each(&mut |_, state| {
            (keys, sum) = (keys + 1, sum + Count.finish(state)?);
            Ok(())
        })?;
        assert_eq!((keys, sum), (counts.keys(), (round + 1) * adds));
        let expected = (0..adds).filter(|&add| key(add) == key(3)).count() as u64 * (round + 1);
        assert_eq!(counts.get(&key(3))?, Some(expected.to_le_bytes().to_vec()));
        assert_eq!(counts.get(b"no such key")?, None);
    }
    drop(counts);
    assert!(env.fs.list(Path::new("/spilled"))?.is_empty(), "its files are gone");
    Ok(())
}

#[test]
fn a_failed_spill_loses_nothing() -> Result<()> {
    let fs = FaultyFs::new(MemoryFs::new());
    let options = AggregatorOptions::default().memory_limit(3 << 20).jobs(Env::memory(6).jobs);
    let mut counts = CompressedAggregator::new(Count, options.spill_to(fs.clone(), "/spilled"))?;
    let added = add_through_failures(&mut counts, 0..700_000, |add| {
        if add % 150_000 == 0 {
            fs.rule("write run-* #2 no-space")?;
        }
        Ok(mix(add % 600_000))
    })?;
    fs.rule("write run-* #1 io-error")?;
    assert!(counts.finalize().is_err());
    counts.finalize()?;
    assert_eq!(counted(&counts)?, added);
    Ok(())
}

#[test]
fn it_says_so_before_it_takes_more_memory_than_it_may() -> Result<()> {
    let limit = 6 << 20;
    let mut sums = CompressedAggregator::new(SumInt, options(4, 2))?;
    let mut added = 0u64;
    let error = loop {
        match sums.add(&mix(added).to_le_bytes(), 1) {
            Ok(()) => added += 1,
            Err(error) => break error,
        }
        if added.is_multiple_of(1000) {
            assert!(sums.memory_bytes() <= limit, "{} bytes", sums.memory_bytes());
        }
    };
    assert!(error.to_string().contains("memory limit"), "{error}");
    // Every key packed takes some six bytes and its sum hardly any.
    assert!(added > limit as u64 / 20, "{added} keys");
    assert!(sums.add(&mix(added).to_le_bytes(), 1).is_err(), "it is still full");
    sums.finalize()?;
    assert_eq!(sums.keys(), added);
    let mut least = AggregatorOptions::default().memory_limit(80 << 10);
    least = least.threads(1);
    assert!(CompressedAggregator::new(SumInt, least).is_err());
    Ok(())
}
