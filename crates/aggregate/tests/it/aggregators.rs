//! Every aggregator against a plain map: few keys and many, empty and long ones, states of fixed and of any
//! length, spills, merges of many runs, and more added after finalising.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use forebay_aggregate::functions::{Collect, Count, Distinct, SumInt};
use forebay_aggregate::{
    Aggregate, Aggregator, AggregatorOptions, BufferTreeAggregator, CompressedAggregator,
};
use forebay_aggregate::{HashAggregator, Packing, SortAggregator, TreeShape};
use forebay_base::codec::Codec;
use forebay_base::hash::mix;
use forebay_base::{Error, Order, Result};
use forebay_env::fs::{FaultyFs, MemoryFs};
use forebay_env::{Env, FileSystem};
use proptest::prelude::*;

pub(super) type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn sorter<A: Aggregate>(function: A, order: Order) -> SortAggregator<A> {
    SortAggregator::new(function, order, Env::memory(1).fs, "/sorted", 1 << 20).expect("a directory")
}

pub(super) fn contents<A: Aggregate>(aggregator: &impl Aggregator<A>) -> Map {
    let mut map = Map::new();
    let seen = &mut |key: &[u8], state: &[u8]| {
        assert_eq!(map.insert(key.to_vec(), state.to_vec()), None, "every key comes once");
        Ok(())
    };
    aggregator.for_each(seen).expect("it can be read");
    map
}

pub(super) fn add_to_map<A: Aggregate>(function: &A, map: &mut Map, key: &[u8], state: &[u8]) {
    let entry = map.entry(key.to_vec()).or_default();
    if entry.is_empty() {
        entry.extend_from_slice(state);
    } else {
        let mut merged = Vec::new();
        function.merge(&[entry, state], &mut merged);
        *entry = merged;
    }
}

/// Keys of 0 to 3,000 bytes, most of them short, with many repeats.
fn key_of(word: u64) -> Vec<u8> {
    let (id, kind) = (mix(word % 97), word % 97);
    match kind {
        0 => Vec::new(),
        1..4 => id.to_le_bytes().repeat(1 + kind as usize * 120),
        4..20 => id.to_le_bytes()[..kind as usize % 9].to_vec(),
        _ => format!("key {id}").into_bytes(),
    }
}

/// Adds the same to an aggregator and to a map, in two rounds, and compares after each.
fn compare<A: Aggregate>(
    function: &A,
    mut aggregator: impl Aggregator<A>,
    states: &[(Vec<u8>, Vec<u8>)],
) -> Result<()> {
    let mut map = Map::new();
    for round in states.chunks(states.len().div_ceil(2).max(1)) {
        for (key, state) in round {
            aggregator.add_state(key, state)?;
            add_to_map(function, &mut map, key, state);
        }
        aggregator.finalize()?;
        assert_eq!(contents(&aggregator), map);
        for key in map.keys() {
            assert_eq!(aggregator.get(key)?.as_ref(), map.get(key));
        }
        assert_eq!(aggregator.get(b"no such key")?, None);
    }
    Ok(())
}

fn compare_all<A: Aggregate + Copy>(function: A, states: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
    compare(&function, HashAggregator::new(function, 64 << 20), states)?;
    for threads in [1, 3] {
        let options = AggregatorOptions::default().memory_limit(16 << 20).threads(threads);
        let options = options.jobs(Env::memory(threads as u64).jobs);
        for options in [options.clone(), options.clone().colliding(2), options.colliding(0)] {
            compare(&function, CompressedAggregator::new(function, options)?, states)?;
        }
    }
    for shape in shapes() {
        compare(&function, BufferTreeAggregator::new(function, shape)?, states)?;
    }
    for order in [Order::Lexical, Order::Hashed { seed: 5 }, Order::Colliding { bits: 2 }] {
        compare(&function, sorter(function, order), states)?;
    }
    Ok(())
}

/// Small trees of every kind: several levels, equal hashes, every packing, several trees.
fn shapes() -> [TreeShape; 4] {
    let small = TreeShape::default().buffer_bytes(4 << 10).fan_out(4);
    let shape =
        |shape: TreeShape, threads: usize| shape.threads(threads).jobs(Env::memory(threads as u64).jobs);
    [
        shape(small.clone().roots(1), 1),
        shape(small.clone().roots(2).trees(3).packing(Packing::Off), 3),
        shape(small.clone().hash_bits(3).packing(Packing::Rows(Codec::Lz4)), 2),
        shape(small.fan_out(16).packing(Packing::Apart { keys: Codec::Lz4, states: Codec::None }), 1),
    ]
}

fn lift<A: Aggregate>(function: &A, value: A::Input<'_>) -> Vec<u8> {
    let mut state = Vec::new();
    function.lift(value, &mut state).expect("it is taken");
    state
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn they_equal_a_map(words in proptest::collection::vec(any::<u64>(), 0..2000)) {
        let fixed: Vec<_> =
            words.iter().map(|&word| (key_of(word), lift(&SumInt, (word >> 40) as i64))).collect();
        compare_all(SumInt, &fixed).expect("no call fails");
        let values = words.iter().map(|word| (word >> 32).to_string());
        let loose: Vec<_> = words
            .iter()
            .zip(values)
            .map(|(&word, value)| (key_of(word), lift(&Distinct, &value.as_bytes()[..value.len() / 3])))
            .collect();
        compare_all(Distinct, &loose).expect("no call fails");
    }
}

#[test]
fn runs_spill_and_merge_in_several_passes() -> Result<()> {
    // Long states and little memory: some forty runs, with eight merged at once.
    let list = Collect::list(1000)?;
    let pad = "x".repeat(700);
    let states: Vec<_> = (0..30_000u64)
        .map(|i| {
            let key = (mix(i) % 9000).to_be_bytes().to_vec();
            (key, lift(&list, format!("{i}{pad}").as_bytes()))
        })
        .collect();
    compare(&list, sorter(list, Order::Hashed { seed: 1 }), &states)
}

#[test]
fn sorted_keys_come_in_order_and_files_have_no_names() -> Result<()> {
    let fs = MemoryFs::new();
    let mut sorter = SortAggregator::new(Count, Order::Lexical, fs.clone(), "/sorted", 1 << 20)?;
    let keys: Vec<[u8; 8]> = (0..200_000u64).map(|i| (mix(i) % 150_000).to_be_bytes()).collect();
    sorter.add_batch(keys.iter().map(|key| (&key[..], ())))?;
    assert!(sorter.get(&keys[0]).is_err(), "it is not finalised");
    assert!(sorter.memory_bytes() <= 1 << 20);
    sorter.finalize()?;
    assert!(sorter.disk_bytes() > 0);
    let mut last = None;
    sorter.for_each(&mut |key, _| {
        assert!(last.as_deref() < Some(key));
        last = Some(key.to_vec());
        Ok(())
    })?;
    assert!(
        fs.list(Path::new("/sorted"))?.is_empty(),
        "files have no names, so that nothing outlives the process"
    );
    Ok(())
}

/// Adds one to the key that `key` gives for each number, some of which must fail for want of a file. Returns how many
/// did not.
pub(super) fn add_through_failures(
    counts: &mut impl Aggregator<Count>,
    numbers: Range<u64>,
    key: impl Fn(u64) -> Result<u64>,
) -> Result<u64> {
    let (mut added, mut failed) = (0, 0);
    for number in numbers {
        match counts.add(&key(number)?.to_le_bytes(), ()) {
            Ok(()) => added += 1,
            Err(error) => {
                assert!(matches!(error, Error::Io { .. }), "{error}");
                failed += 1;
            }
        }
    }
    assert!(failed > 0);
    Ok(added)
}

/// The sum of all counts.
pub(super) fn counted(counts: &impl Aggregator<Count>) -> Result<u64> {
    let mut sum = 0;
    counts.for_each(&mut |_, state| {
        sum += Count.finish(state)?;
        Ok(())
    })?;
    Ok(sum)
}

#[test]
fn a_failed_write_loses_nothing() -> Result<()> {
    let fs = FaultyFs::new(MemoryFs::new());
    let mut sorter = SortAggregator::new(Count, Order::Hashed { seed: 2 }, fs.clone(), "/sorted", 1 << 20)?;
    let added = add_through_failures(&mut sorter, 0..300_000, |i| {
        if i % 50_000 == 40_000 {
            fs.rule("write run-* #1 no-space")?;
        }
        Ok(i % 200_000)
    })?;
    fs.rule("write run-* #1 io-error")?;
    assert!(sorter.finalize().is_err());
    fs.rule("read run-* #3 io-error")?;
    assert!(sorter.finalize().is_err());
    sorter.finalize()?;
    assert_eq!(counted(&sorter)?, added);
    Ok(())
}

#[test]
fn a_hash_table_fails_before_its_limit() -> Result<()> {
    for limit in [0, 2 << 10].into_iter().chain((1..40).map(|step| step * 70_000)) {
        let mut hash = HashAggregator::new(Count, limit);
        let mut key = 0u64;
        let error = loop {
            match hash.add(&key.to_le_bytes(), ()) {
                Ok(()) => key += 1,
                Err(error) => break error,
            }
            assert!(hash.memory_bytes() <= limit);
        };
        assert!(error.to_string().contains("memory limit"), "{error}");
        assert_eq!(hash.len() as u64, key);
        assert_eq!(key > 0, limit > 0);
        if key > 0 {
            hash.add(&0u64.to_le_bytes(), ())?;
            assert_eq!(hash.get(&0u64.to_le_bytes())?, Some(2u64.to_le_bytes().to_vec()));
        }
        assert_eq!(hash.get(&key.to_le_bytes())?, None, "what failed is not there");
    }
    let mut hash = HashAggregator::new(Distinct, 1 << 20);
    let failed = (0..1u64 << 20).find_map(|i| hash.add(b"key", &mix(i).to_le_bytes()).err());
    assert!(failed.is_some_and(|error| error.to_string().contains("memory limit")));
    assert!(hash.memory_bytes() <= 1 << 20);
    hash.finalize()?;
    Ok(())
}

#[test]
fn what_is_no_key_or_state_is_refused() -> Result<()> {
    let mut hash = HashAggregator::new(Count, 1 << 20);
    let mut sorter = sorter(Count, Order::Lexical);
    for (key, state) in [(vec![0; (64 << 10) + 1], vec![0; 8]), (vec![], vec![0; 7])] {
        assert!(hash.add_state(&key, &state).is_err());
        assert!(sorter.add_state(&key, &state).is_err());
    }
    let longest = vec![7; 64 << 10];
    hash.add(&longest, ())?;
    sorter.add(&longest, ())?;
    sorter.finalize()?;
    assert_eq!(contents(&hash), contents(&sorter));
    assert!(SortAggregator::new(Count, Order::Lexical, Env::memory(1).fs, "/sorted", 1000).is_err());
    Ok(())
}

#[test]
fn keys_of_equal_hashes_stay_apart() -> Result<()> {
    // The table keeps 32 bits of a hash: among this many keys some twenty pairs share them.
    let keys = 400_000u64;
    let mut hash = HashAggregator::new(Count, 64 << 20);
    for key in 0..keys {
        hash.add(&key.to_le_bytes(), ())?;
    }
    assert_eq!(hash.len() as u64, keys);
    hash.for_each(&mut |key, state| {
        assert_eq!(Count.finish(state)?, 1, "{key:?}");
        Ok(())
    })
}
