//! Several threads add to one compressed buffer tree, and read it meanwhile.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_aggregate::functions::{Count, Distinct};
use forebay_aggregate::{Aggregate, Aggregator, AggregatorOptions, CompressedAggregator, StateType};
use forebay_base::hash::mix;
use forebay_base::{Error, Result};
use forebay_env::{Env, Handle, yield_point};

use crate::aggregators::contents;
use crate::place::Place;

const ADDERS: u64 = 4;

fn count_of(state: Option<Vec<u8>>) -> u64 {
    state.map_or(0, |state| Count.finish(&state).expect("it is a count"))
}

/// Keys that come again and again, and keys that do not; some are long.
fn key_of(adder: u64, number: u64) -> Vec<u8> {
    let draw = mix(adder << 32 | number);
    let id = mix(draw % [5, 800, 1 << 40][(draw >> 60) as usize % 3]);
    match id % 50 {
        0 => id.to_le_bytes().repeat(1 + (id >> 20) as usize % 200),
        1..20 => format!("key {id}").into_bytes(),
        _ => id.to_le_bytes().into(),
    }
}

/// What adders do, in turns that the seed draws, beside one who reads: no count ever falls behind what was added when
/// it was asked for, and each key is shown once.
fn in_turns(
    seed: u64,
    options: AggregatorOptions,
    adds: u64,
    key_of: fn(u64, u64) -> Vec<u8>,
) -> BTreeMap<&'static str, u64> {
    let jobs = Env::memory(seed).jobs;
    jobs.interleave(seed);
    let counts = CompressedAggregator::new(Count, options.jobs(jobs.clone())).expect("memory suffices");
    let counts = Arc::new(counts);
    let (frequent, added) = (5u64.to_le_bytes(), Arc::new(AtomicU64::new(0)));
    let done: Arc<[AtomicU64; ADDERS as usize]> = Arc::default();
    let mut forks = Vec::new();
    for adder in 0..ADDERS {
        let (counts, added, done) = (Arc::clone(&counts), Arc::clone(&added), Arc::clone(&done));
        forks.push(jobs.fork("adder", move || {
            let (mut number, together) = (0, [1, 40, 7, 1][adder as usize]);
            while number < adds {
                let next = adds.min(number + together);
                let keys: Vec<_> = (number..next).map(|number| key_of(adder, number)).collect();
                let pairs: Vec<(&[u8], ())> = keys.iter().map(|key| (&key[..], ())).collect();
                match &pairs[..] {
                    [(key, ())] => counts.add(key, ()),
                    pairs => counts.add_pairs(pairs),
                }
                .expect("there is room");
                done[adder as usize].store(next, Ordering::SeqCst);
                if (number..next).any(|number| number % 10 == 0) {
                    counts.add(&frequent, ()).expect("there is room");
                    added.fetch_add(1, Ordering::SeqCst);
                }
                if (number..next).contains(&(adds / 2)) && adder == 1 {
                    counts.finalize().expect("there is room");
                }
                number = next;
            }
        }));
    }
    let (reader, sum) = (Arc::clone(&counts), Arc::clone(&added));
    forks.push(jobs.fork("reader", move || {
        let mut looks_in_files = 0;
        for round in 0.. {
            yield_point("a reader rests");
            // Until all are added, and a while before that in files.
            let are_done = done.iter().all(|done| done.load(Ordering::SeqCst) == adds);
            if round >= 40 && (are_done || looks_in_files >= 12) {
                break;
            }
            let before = sum.load(Ordering::SeqCst);
            let found = count_of(reader.get(&frequent).expect("it is read"));
            // An adder counts a moment after it has added.
            let after = sum.load(Ordering::SeqCst) + ADDERS;
            assert!((before..=after).contains(&found), "seed {seed}: {found} of {before} to {after}");
            looks_in_files += u64::from(reader.is_spilled());
            if round < 40 && round % 10 == 9 || reader.is_spilled() {
                let mut least: BTreeMap<Vec<u8>, u64> = BTreeMap::from([(frequent.to_vec(), before)]);
                for adder in 0..ADDERS {
                    let numbers = 0..done[adder as usize].load(Ordering::SeqCst);
                    numbers.for_each(|number| *least.entry(key_of(adder, number)).or_default() += 1);
                }
                let shown = contents(&*reader);
                for (key, least) in least {
                    let count = count_of(shown.get(&key).cloned());
                    let is_whole = key == frequent || count >= least;
                    assert!(is_whole, "seed {seed}: {count} of {least} are shown of key {key:?}");
                }
                assert!(count_of(shown.get(&frequent[..]).cloned()) >= before, "seed {seed}");
                assert!(reader.keys().expect("they are counted") >= before.min(1), "seed {seed}");
            }
        }
    }));
    forks.into_iter().for_each(Handle::join);
    let mut map: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    for adder in 0..ADDERS {
        (0..adds).for_each(|number| *map.entry(key_of(adder, number)).or_default() += 1);
    }
    *map.entry(frequent.to_vec()).or_default() += added.load(Ordering::SeqCst);
    for (key, count) in map.iter().step_by(17) {
        assert_eq!(count_of(counts.get(key).expect("it is read")), *count, "seed {seed}, key {key:?}");
    }
    let map: BTreeMap<_, _> =
        map.into_iter().map(|(key, count)| (key, count.to_le_bytes().to_vec())).collect();
    assert!(contents(&*counts) == map, "seed {seed}: the groups are not those that were added");
    assert_eq!(counts.keys().expect("they are counted"), map.len() as u64, "seed {seed}");
    jobs.pauses()
}

#[test]
fn every_interleaving_counts_each_add_once() {
    let mut pauses = BTreeMap::new();
    for seed in 0..12 {
        let options = AggregatorOptions::default().memory_limit(4 << 20);
        let options = options.threads(1 + seed as usize % 3).adders([1, 2, 4][seed as usize % 3]);
        let options = if seed % 4 == 3 { options.colliding(5) } else { options };
        pauses.extend(in_turns(seed, options, 3000, key_of));
    }
    for seed in 12..16 {
        // With workers, leaves are away while others read.
        let (limit, threads) = [(2400 << 10, 1), (2700 << 10, 3)][seed as usize % 2];
        let options = AggregatorOptions::default().memory_limit(limit).threads(threads).adders(2);
        let options = options.spill_to(Place::default());
        pauses.extend(in_turns(seed, options, 14_000, |adder, number| {
            mix((adder << 32) | (number % 12_000)).to_le_bytes().repeat(3)
        }));
    }
    for place in ["records are handed over", "a record waits", "room is made"] {
        assert!(pauses.contains_key(place), "nobody stopped where {place}: {pauses:?}");
    }
}

/// On threads of the machine: adds to all, and looks at the memory all the time.
fn keeps_to_its_limit<A: Aggregate + Copy>(
    function: A,
    options: AggregatorOptions,
    limit: usize,
    add: impl Fn(&CompressedAggregator<A>, u64) -> Result<()> + Sync,
) -> Result<CompressedAggregator<A>> {
    let aggregator = CompressedAggregator::new(function, options.memory_limit(limit))?;
    let check = || {
        let bytes = aggregator.memory_bytes();
        assert!(bytes <= limit, "{bytes} bytes");
    };
    let adder = |adder: u64| {
        for number in 0..60_000 {
            add(&aggregator, adder << 32 | number)?;
            if number % 16 == 0 {
                check();
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let adder = &adder;
        let adders: Vec<_> = (0..ADDERS).map(|number| scope.spawn(move || adder(number))).collect();
        adders.into_iter().try_for_each(|adder| adder.join().expect("it does not panic"))
    })?;
    aggregator.finalize()?;
    check();
    Ok(aggregator)
}

#[test]
fn many_adders_keep_to_the_limit() -> Result<()> {
    for adders in [1, 4] {
        let options = AggregatorOptions::default().threads(2).adders(adders);
        let options = options.spill_to(Place::default());
        let counts = keeps_to_its_limit(Count, options.clone(), 6 << 20, |counts, number| {
            counts.add(&mix(number).to_le_bytes(), ())
        })?;
        assert_eq!(counts.keys()?, ADDERS * 60_000);
        let texts = keeps_to_its_limit(Distinct, options, 6 << 20, |texts, number| {
            texts.add(&mix(number).to_le_bytes(), &mix(!number).to_le_bytes().repeat(5))
        })?;
        assert!(texts.is_spilled(), "it was not filled");
        assert_eq!(texts.keys()?, ADDERS * 60_000);
    }
    Ok(())
}

#[test]
fn a_refused_add_leaves_no_trace_whoever_adds() -> Result<()> {
    let options = AggregatorOptions::default().threads(2).adders(2).memory_limit(3 << 20);
    let counts = CompressedAggregator::new(Count, options)?;
    let added = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for adder in 0..3u64 {
            let (counts, added) = (&counts, &added);
            scope.spawn(move || {
                for number in 0..400_000 {
                    let taken = counts.add(&mix(adder << 32 | number).to_le_bytes(), ());
                    added.fetch_add(u64::from(taken.is_ok()), Ordering::Relaxed);
                    if taken.is_err() {
                        return;
                    }
                }
            });
        }
    });
    assert!(added.load(Ordering::Relaxed) < 1_200_000, "it was not filled");
    assert_eq!(counts.keys()?, added.load(Ordering::Relaxed));
    assert!(counts.memory_bytes() <= 3 << 20, "{} bytes", counts.memory_bytes());
    Ok(())
}

/// Counts, and panics where groups are merged.
#[derive(Clone, Copy)]
struct Panics;

impl Aggregate for Panics {
    type Input<'a> = ();
    type Output = u64;

    fn state_type(&self) -> StateType {
        StateType::new("panics", 1)
    }

    fn lift(&self, _: (), state: &mut Vec<u8>) -> Result<()> {
        state.push(1);
        Ok(())
    }

    fn merge(&self, _: &[&[u8]], _: &mut Vec<u8>) {
        panic!("no luck");
    }

    fn finish(&self, state: &[u8]) -> Result<u64> {
        Ok(state.len() as u64)
    }
}

/// Whoever waited for a merge in which a function panicked on another thread waited for ever.
#[test]
fn a_function_that_panics_keeps_nobody_waiting() -> Result<()> {
    let options = AggregatorOptions::default().memory_limit(4 << 20).threads(1).adders(2);
    let aggregator = CompressedAggregator::new(Panics, options)?;
    let add = || (0..2).try_for_each(|_| aggregator.add(b"key", ()));
    add()?;
    let finalized = catch_unwind(AssertUnwindSafe(|| aggregator.finalize()));
    assert!(finalized.is_err(), "it panicked here");
    for error in [aggregator.finalize(), aggregator.get(b"key").map(drop), aggregator.keys().map(drop)] {
        assert!(matches!(error, Err(Error::Panicked(_))), "{error:?}");
    }
    Ok(())
}
