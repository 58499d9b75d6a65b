//! The packed aggregator with little memory, so that few keys make many leaves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_aggregate::functions::{Collect, Count, Distinct, SumInt};
use forebay_aggregate::{Aggregate, Aggregator, AggregatorOptions, CompressedAggregator, HASH_SEED};
use forebay_base::Result;
use forebay_base::hash::{key_hash, mix};
use forebay_env::Env;

use crate::aggregators::{Map, add_through_failures, add_to_map, contents, counted};
use crate::place::{Moment, Place};

fn options(seed: u64, threads: usize) -> AggregatorOptions {
    AggregatorOptions::default().memory_limit(6 << 20).threads(threads).jobs(Env::memory(seed).jobs)
}

/// Adds one to each key, as often as it comes, and compares with a map, twice.
fn count<K: AsRef<[u8]> + Ord + Clone>(mut counts: CompressedAggregator<Count>, keys: &[K]) -> Result<()> {
    let mut map: BTreeMap<K, u64> = BTreeMap::new();
    for half in keys.chunks(keys.len().div_ceil(2)) {
        for key in half {
            Aggregator::add(&mut counts, key.as_ref(), ())?;
            *map.entry(key.clone()).or_default() += 1;
        }

        counts.finalize()?;
        assert_eq!(counts.keys()?, map.len() as u64);
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
    count(CompressedAggregator::new(Count, options(7, 2).colliding(6))?, &numbers(5_000))?;
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
    let aggregator = CompressedAggregator::new(Distinct, options(3, 2))?;
    for i in 0..50_000u64 {
        aggregator.add(&(mix(i) % 2_000).to_le_bytes(), &(mix(i) % 10).to_le_bytes())?;
    }
    aggregator.finalize()?;
    aggregator.for_each(&mut |_, state| {
        assert!((1..=10).contains(&Distinct.finish(state)?));
        Ok(())
    })?;
    assert_eq!(aggregator.keys()?, 2_000);
    Ok(())
}

#[test]
fn with_a_place_for_more_it_goes_on_there() -> Result<()> {
    let (env, place) = (Env::memory(5), Place::default());
    let limit = 3 << 20;
    let options = AggregatorOptions::default().memory_limit(limit).threads(2).jobs(env.jobs.clone());
    let counts = CompressedAggregator::new(Count, options.spill_to(place.clone()))?;
    let adds = 500_000u64;
    let key = |add: u64| (mix(add) % 400_000).to_le_bytes();
    for round in 0..2 {
        for add in 0..adds {
            counts.add(&key(add), ())?;
            assert!(counts.memory_bytes() <= limit, "{} bytes", counts.memory_bytes());
        }
        assert!(counts.is_spilled());
        counts.finalize()?;
        let (mut keys, mut sum, mut last) = (0, 0, None);
        counts.for_each(&mut |key, state| {
            let hash = Some(key_hash(key, HASH_SEED));
            assert!(last.replace(hash) < Some(hash), "keys are in the order of hashes");
            (keys, sum) = (keys + 1, sum + Count.finish(state)?);
            Ok(())
        })?;
        assert_eq!((keys, sum), (counts.keys()?, (round + 1) * adds));
        let expected = (0..adds).filter(|&add| key(add) == key(3)).count() as u64 * (round + 1);
        assert_eq!(counts.get(&key(3))?, Some(expected.to_le_bytes().to_vec()));
        assert_eq!(counts.get(b"no such key")?, None);
    }
    drop(counts);
    assert_eq!(place.users(), 0, "its groups are gone");
    Ok(())
}

/// What waits for a publication waits for a device.
#[test]
fn who_reads_waits_for_no_publication() -> Result<()> {
    let place = Place::default();
    let options = AggregatorOptions::default().memory_limit(3 << 20).threads(1);
    let counts = Arc::new(CompressedAggregator::new(Count, options.spill_to(place.clone()))?);
    let reader = Arc::downgrade(&counts);
    let added = Arc::new(AtomicU64::new(0));
    let (adds, reads) = (Arc::clone(&added), Arc::new(AtomicU64::new(0)));
    let count = Arc::clone(&reads);
    place.watch(move |moment| {
        let Some(counts) = reader.upgrade().filter(|_| moment == Moment::Publishing) else { return };
        let added = adds.load(Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for add in (0..added).step_by(997) {
                    let state = counts.get(&mix(add % 300_000).to_le_bytes()).expect("it is read");
                    let expected = (added - add % 300_000).div_ceil(300_000);
                    assert_eq!(state, Some(expected.to_le_bytes().to_vec()), "{add} of {added}");
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        });
    });
    for add in 0..600_000u64 {
        // The one that is being added is not told of before it is.
        counts.add(&mix(add % 300_000).to_le_bytes(), ())?;
        added.store(add + 1, Ordering::Relaxed);
    }
    assert!(place.publications() > 2 && reads.load(Ordering::Relaxed) > 600);
    Ok(())
}

/// All of a leaf was unpacked to be written: few long groups make few leaves.
#[test]
fn long_groups_leave_memory_some_at_a_time() -> Result<()> {
    let (place, limit) = (Place::default(), 8 << 20);
    let options = AggregatorOptions::default().memory_limit(limit).threads(1);
    let texts = Arc::new(CompressedAggregator::new(Distinct, options.spill_to(place.clone()))?);
    let written = Arc::downgrade(&texts);
    place.watch(move |moment| {
        if let Some(texts) = written.upgrade().filter(|_| moment == Moment::Writing) {
            assert!(texts.memory_bytes() <= limit, "{} bytes", texts.memory_bytes());
        }
    });
    let mut model = Map::new();
    for number in 0..2_000u64 {
        let key = (number % 40).to_le_bytes();
        let text: Vec<u8> = (0..1_000).flat_map(|word| mix(number << 10 | word).to_le_bytes()).collect();
        texts.add(&key, &text)?;
        let mut state = Vec::new();
        Distinct.lift(&text, &mut state)?;
        add_to_map(&Distinct, &mut model, &key, &state);
    }
    assert!(texts.is_spilled());
    assert!(contents(&*texts) == model);
    Ok(())
}

#[test]
fn a_failed_spill_loses_nothing() -> Result<()> {
    let place = Place::default();
    let options = AggregatorOptions::default().memory_limit(3 << 20).jobs(Env::memory(6).jobs);
    let mut counts = CompressedAggregator::new(Count, options.spill_to(place.clone()))?;
    let key = |add: u64| mix(add % 600_000);
    let added = add_through_failures(&mut counts, 0..700_000, |add| {
        if add % 150_000 == 0 {
            place.fail(add / 150_000 % 2 + 1, add / 150_000 % 3);
        }
        Ok(key(add))
    })?;
    // What was sealed is read where it is.
    let last = key(699_999).to_le_bytes();
    let found = counts.get(&last)?;
    place.fail(1, 0);
    assert!(counts.keys().is_err());
    assert_eq!(counts.get(&last)?, found);
    place.fail(0, 1);
    assert!(counts.keys().is_err());
    assert_eq!(counts.get(&last)?, found);
    counts.finalize()?;
    assert_eq!(counted(&counts)?, added);
    Ok(())
}

/// Adds values with threads of the machine, and looks at the memory after each.
fn keeps_to_its_limit<A: Aggregate + Copy>(
    function: A,
    mut add: impl FnMut(&mut CompressedAggregator<A>, u64) -> Result<()>,
) -> Result<()> {
    let limit = 3 << 20;
    for threads in [1, 3] {
        let options = AggregatorOptions::default().memory_limit(limit).threads(threads);
        let options = options.spill_to(Place::default());
        let mut aggregator = CompressedAggregator::new(function, options)?;
        let check = |aggregator: &CompressedAggregator<A>, number| {
            let bytes = aggregator.memory_bytes();
            assert!(bytes <= limit, "{bytes} bytes at {number} with {threads} threads");
        };
        for number in 0..250_000 {
            add(&mut aggregator, number)?;
            check(&aggregator, number);
        }
        assert!(aggregator.is_spilled(), "it was not filled");
        aggregator.finalize()?;
        check(&aggregator, 0);
    }
    Ok(())
}

#[test]
fn no_shape_of_keys_and_states_takes_it_over_its_limit() -> Result<()> {
    let key = |number: u64| mix(number % 220_000).to_le_bytes();
    keeps_to_its_limit(Count, |counts, number| counts.add(&key(number), ()))?;
    // One key of another length makes a whole chunk longer.
    keeps_to_its_limit(Count, |counts, number| {
        let bytes = if number % 400 == 399 { 7 } else { 8 };
        counts.add(&key(number)[..bytes], ())
    })?;
    // First few keys that come again and again, then many.
    keeps_to_its_limit(Count, |counts, number| {
        counts.add(&key(if number < 40_000 { number % 3000 } else { number }), ())
    })?;
    // States that pack well and others that do not.
    keeps_to_its_limit(Distinct, |texts, number| {
        let text = if number < 120_000 { [number as u8; 60].to_vec() } else { key(number).repeat(2) };
        texts.add(&key(number), &text)
    })?;
    // States that grow.
    keeps_to_its_limit(Collect::list(usize::MAX)?, |lists, number| {
        lists.add(&key(number % 900), &mix(number).to_le_bytes())
    })
}

#[test]
fn frequent_keys_are_merged_in_memory_after_a_spill_too() -> Result<()> {
    let place = Place::default();
    let options = AggregatorOptions::default().memory_limit(3 << 20).jobs(Env::memory(7).jobs);
    let texts = CompressedAggregator::new(Distinct, options.spill_to(place.clone()))?;
    // Of four adds one is to a key of its own; the others are to a hundred keys.
    for add in 0..400_000u64 {
        let key = if add % 4 == 0 { add } else { add % 100 };
        texts.add(&mix(key).to_le_bytes(), &mix(!key).to_le_bytes())?;
    }
    assert!(texts.is_spilled());
    // A record takes some 20 bytes. What is still in memory is not written yet.
    let written = place.written_bytes();
    assert!((1 << 20..5 << 19).contains(&written), "{written} bytes");
    texts.finalize()?;
    assert_eq!(texts.keys()?, 100_000 + 75);
    Ok(())
}

#[test]
fn a_record_that_no_buffer_holds_goes_to_files_at_once() -> Result<()> {
    let options = AggregatorOptions::default().memory_limit(1700 << 10).threads(1);
    let texts = CompressedAggregator::new(Distinct, options.clone().spill_to(Place::default()))?;
    let long = vec![7; 700 << 10];
    for round in 0..3u64 {
        for number in 0..1000 {
            texts.add(&mix(round * 1000 + number).to_le_bytes(), b"short")?;
        }
        texts.add(b"key", &long)?;
    }
    assert!(texts.is_spilled());
    texts.finalize()?;
    assert_eq!(texts.keys()?, 3001);
    assert_eq!(texts.get(b"key")?.map(|state| Distinct.finish(&state)).transpose()?, Some(1));

    let texts = CompressedAggregator::new(Distinct, options)?;
    assert!(texts.add(b"key", &vec![7; 2 << 20]).is_err());
    texts.add(b"key", b"short")?;
    texts.finalize()?;
    assert_eq!(texts.keys()?, 1, "what was refused left no trace");
    Ok(())
}

#[test]
fn it_says_so_before_it_takes_more_memory_than_it_may() -> Result<()> {
    let limit = 6 << 20;
    let mut sums = CompressedAggregator::new(SumInt, options(4, 2))?;
    let mut added = 0u64;
    let error = loop {
        match Aggregator::add(&mut sums, &mix(added).to_le_bytes(), 1) {
            Ok(()) => added += 1,
            Err(error) => break error,
        }
        assert!(sums.memory_bytes() <= limit, "{} bytes", sums.memory_bytes());
    };
    assert!(error.to_string().contains("memory limit"), "{error}");
    // Every key packed takes some six bytes and its sum hardly any.
    assert!(added > limit as u64 / 20, "{added} keys");
    let refused = Aggregator::add(&mut sums, &mix(added).to_le_bytes(), 1);
    assert!(refused.is_err(), "it is still full");
    sums.finalize()?;
    assert_eq!(sums.keys()?, added);
    let mut least = AggregatorOptions::default().memory_limit(80 << 10);
    least = least.threads(1);
    assert!(CompressedAggregator::new(SumInt, least).is_err());
    Ok(())
}
