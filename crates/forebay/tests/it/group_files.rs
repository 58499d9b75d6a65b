//! Groups beyond memory, against a map: read amid adds, by many threads, through faults and panics.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use forebay::aggregate::functions::{Count, Distinct};
use forebay::aggregate::{Aggregate, Aggregator, AggregatorOptions, CompressedAggregator, StateType};
use forebay::{Database, Error, GroupFiles, Options, Result};
use forebay_base::hash::{key_hash, mix, short_key};
use forebay_env::Env;
use forebay_env::fs::{FaultyFs, MemoryFs, TracedFs};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

const DIRECTORY: &str = "/groups";
const LIMIT: usize = 1700 << 10;

fn options(env: &Env, threads: usize) -> AggregatorOptions {
    let options = AggregatorOptions::default().memory_limit(LIMIT).threads(threads);
    options.jobs(env.jobs.clone()).spill_to(GroupFiles::in_env(env.clone(), DIRECTORY))
}

fn contents<A: Aggregate>(groups: &CompressedAggregator<A>) -> Result<Map> {
    let (mut map, mut last) = (Map::new(), None);
    groups.for_each(&mut |key, state| {
        let place = Some((key_hash(key, 0), key.to_vec()));
        assert!(last < place, "groups come in the order of hashes");
        last = place;
        map.insert(key.to_vec(), state.to_vec());
        Ok(())
    })?;
    Ok(map)
}

fn add_to<A: Aggregate>(function: &A, map: &mut Map, key: &[u8], state: &[u8]) {
    let entry = map.entry(key.to_vec()).or_default();
    let mut merged = Vec::new();
    match entry.is_empty() {
        true => merged.extend_from_slice(state),
        false => function.merge(&[entry, state], &mut merged),
    }
    *entry = merged;
}

/// A long key, or the short one of the same hash.
fn key_of(id: u64) -> Vec<u8> {
    let long = format!("a key that is long enough {:x}", mix(id / 3)).into_bytes();
    match id % 3 {
        0 => short_key(key_hash(&long, 0), 8, 0).to_vec(),
        1 => long,
        _ => id.to_le_bytes().into(),
    }
}

/// Adds states, looks at some between, and at all now and then.
fn compare<A: Aggregate + Copy>(function: A, seed: u64, threads: usize, state: impl Fn(u64) -> Vec<u8>) {
    let env = Env::memory(seed);
    let groups = CompressedAggregator::new(function, options(&env, threads)).unwrap();
    let mut map = Map::new();
    for number in 0..90_000 {
        let draw = mix(seed << 32 | number);
        // Now few keys that come again and again, now many.
        let keys = [200_000, 200_000, 300][(number / 9000 % 3) as usize];
        let (key, state) = (key_of(draw % keys), state(draw));
        groups.add_state(&key, &state).unwrap();
        add_to(&function, &mut map, &key, &state);
        if draw >> 56 < 3 {
            let key = key_of(mix(draw) % keys);
            assert_eq!(groups.get(&key).unwrap().as_ref(), map.get(&key), "seed {seed}, {number} added");
        }
        if number % 29_000 == 15_000 {
            assert!(contents(&groups).unwrap() == map, "seed {seed}, {number} added");
            assert_eq!(groups.keys().unwrap(), map.len() as u64);
        }
        if number % 13_000 == 3 {
            groups.finalize().unwrap();
        }
        assert!(groups.memory_bytes() <= LIMIT, "{} bytes", groups.memory_bytes());
    }
    assert!(groups.is_spilled(), "it was not filled");
    assert!(contents(&groups).unwrap() == map, "seed {seed}, all added");
    drop(groups);
    assert!(env.fs.list(Path::new(DIRECTORY)).unwrap().is_empty(), "nothing is left");
    assert!(!env.fs.exists(&Path::new(DIRECTORY).join("groups")).unwrap());
}

#[test]
fn they_equal_a_map_at_every_moment() {
    for (seed, threads) in [(1, 1), (2, 2)] {
        compare(Count, seed, threads, |draw| (draw % 5).to_le_bytes().to_vec());
        compare(Distinct, seed, threads, |draw| {
            let mut state = Vec::new();
            Distinct.lift(&(draw >> 20).to_le_bytes()[..(draw % 7) as usize], &mut state).unwrap();
            state
        });
    }
}

#[test]
fn a_get_reads_about_once() {
    let mut env = Env::memory(3);
    let fs = TracedFs::new(Arc::clone(&env.fs));
    env.fs = fs.clone();
    let counts = CompressedAggregator::new(Count, options(&env, 1)).unwrap();
    let key = |number: u64| mix(number).to_le_bytes();
    for number in 0..400_000 {
        counts.add(&key(number), ()).unwrap();
    }
    counts.finalize().unwrap();
    let (mut reads, mut most, before) = (0, 0, fs.reads_of("list"));
    for number in (0..400_000).step_by(401) {
        let before = fs.reads_of("list");
        assert_eq!(counts.get(&key(number)).unwrap(), Some(1u64.to_le_bytes().to_vec()));
        most = most.max(fs.reads_of("list") - before);
        reads += 1;
    }
    let mean = (fs.reads_of("list") - before) as f64 / f64::from(reads);
    assert!(mean <= 2.0 && most <= 6, "{mean} reads, {most} at most");
}

#[test]
fn all_are_shown_in_long_reads() {
    let mut env = Env::memory(4);
    let fs = TracedFs::new(Arc::clone(&env.fs));
    env.fs = fs.clone();
    let counts = CompressedAggregator::new(Count, options(&env, 1)).unwrap();
    for number in 0..600_000u64 {
        counts.add(&mix(number % 400_000).to_le_bytes(), ()).unwrap();
    }
    assert_eq!(counts.keys().unwrap(), 400_000);
    let before = (fs.reads_of("list"), counts.device_reads());
    let all = contents(&counts).unwrap();
    assert!((0..400_000u64).all(|number| {
        all[&mix(number).to_le_bytes()[..]] == (1 + u64::from(number < 200_000)).to_le_bytes()
    }));
    // At most 600,000 records of 16 bytes, in pieces of two pages at least, and one more of each list of a node.
    let reads = fs.reads_of("list") - before.0;
    assert!((500..1500).contains(&reads), "{reads} reads");
    assert_eq!(reads, counts.device_reads() - before.1);
}

#[test]
fn what_is_added_amid_a_walk_disturbs_nothing() {
    let env = Env::memory(9);
    let counts = CompressedAggregator::new(Count, options(&env, 1)).unwrap();
    let key = |number: u64| mix(number).to_le_bytes();
    for number in 0..150_000 {
        counts.add(&key(number % 100_000), ()).unwrap();
    }
    assert!(counts.is_spilled());
    let (mut shown, mut added) = (Map::new(), 0);
    counts
        .for_each(&mut |group, state| {
            counts.add(&key(200_000 + added), ())?;
            counts.add(group, ())?;
            added += 1;
            assert_eq!(shown.insert(group.to_vec(), state.to_vec()), None, "each is shown once");
            Ok(())
        })
        .unwrap();
    assert_eq!((shown.len(), added), (100_000, 100_000));
    for number in 0..100_000 {
        let before: u64 = if number < 50_000 { 2 } else { 1 };
        assert_eq!(shown[&key(number)[..]], before.to_le_bytes());
        if number % 997 == 0 {
            assert_eq!(counts.get(&key(number)).unwrap(), Some((before + 1).to_le_bytes().to_vec()));
        }
    }
    assert_eq!(counts.keys().unwrap(), 200_000);
}

#[test]
fn faults_lose_nothing() {
    for (seed, rule) in
        ["write *.list #9 no-space", "create *.list #3 io-error", "write *.manifest #4 no-space"]
            .iter()
            .enumerate()
    {
        let mut env = Env::memory(seed as u64);
        let fs = FaultyFs::new(MemoryFs::new());
        env.fs = fs.clone();
        let counts = CompressedAggregator::new(Count, options(&env, 1)).unwrap();
        fs.rule(rule).unwrap();
        let (mut map, mut failed) = (Map::new(), 0);
        for number in 0..400_000u64 {
            let key = mix(number % 150_000).to_le_bytes();
            match counts.add(&key, ()) {
                Ok(()) => add_to(&Count, &mut map, &key, &1u64.to_le_bytes()),
                Err(error) => {
                    assert!(matches!(error, Error::Io { .. } | Error::NoSpace(_)), "{error}");
                    failed += 1;
                    assert_eq!(counts.get(&key).unwrap(), map.get(&key[..]).cloned());
                }
            }
        }
        assert!(failed > 0 || fs.fired() > 0, "nothing failed by {rule}");
        assert!(contents(&counts).unwrap() == map, "by {rule}");
    }
}

#[test]
fn a_full_disk_is_an_error_as_long_as_it_is_full() {
    let mut env = Env::memory(7);
    let fs = FaultyFs::new(MemoryFs::new());
    env.fs = fs.clone();
    let counts = CompressedAggregator::new(Count, options(&env, 1)).unwrap();
    let mut added = 0u64;
    while !counts.is_spilled() {
        counts.add(&mix(added).to_le_bytes(), ()).unwrap();
        added += 1;
    }
    fs.rule("write *.list all no-space").unwrap();
    let error = loop {
        match counts.add(&mix(added).to_le_bytes(), ()) {
            Ok(()) => added += 1,
            Err(error) => break error,
        }
    };
    assert!(error.is_no_space(), "{error}");
    for number in (0..added).step_by(997) {
        assert!(counts.get(&mix(number).to_le_bytes()).unwrap().is_some(), "{number} of {added}");
    }
    assert!(counts.keys().is_err());
    fs.clear();
    counts.add(&mix(added).to_le_bytes(), ()).unwrap();
    assert_eq!(counts.keys().unwrap(), added + 1);
}

#[test]
fn many_threads_add_and_read() {
    let dir = std::env::temp_dir().join(format!("forebay-group-files-{}", std::process::id()));
    let place = GroupFiles::new(&dir);
    let options = AggregatorOptions::default().memory_limit(8 << 20).threads(2).adders(3).spill_to(place);
    let counts = CompressedAggregator::new(Count, options).unwrap();
    std::thread::scope(|scope| {
        for adder in 0..3u64 {
            let counts = &counts;
            scope.spawn(move || {
                for number in 0..300_000u64 {
                    counts.add(&mix(number).to_le_bytes(), ()).unwrap();
                    if number % 5000 == adder {
                        let state = counts.get(&mix(number / 2).to_le_bytes()).unwrap().unwrap();
                        assert!((1..=3).contains(&Count.finish(&state).unwrap()));
                    }
                }
            });
        }
    });
    assert!(counts.is_spilled());
    let mut keys = 0;
    counts
        .for_each(&mut |_, state| {
            keys += 1;
            assert_eq!(Count.finish(state)?, 3);
            Ok(())
        })
        .unwrap();
    assert_eq!(keys, 300_000);
    drop(counts);
    Env::real().fs.remove_dir(&dir).expect("nothing is left there");
}

#[test]
fn a_state_that_becomes_too_long_is_its_groups_error() {
    let env = Env::memory(5);
    let texts = CompressedAggregator::new(Distinct, options(&env, 2).state_bytes_max(3000)).unwrap();
    let keys = 30_000u64;
    for number in 0..90_000u64 {
        texts.add(&mix(number % keys).to_le_bytes(), &mix(number).to_le_bytes().repeat(3)).unwrap();
        if number % 100 == 0 {
            texts.add(b"giant", &mix(number).to_le_bytes()).unwrap();
        }
    }
    assert!(texts.is_spilled());
    assert!(texts.get(b"giant").is_err());
    let mut shown = 0;
    let all = texts.for_each(&mut |key, state| {
        assert_ne!(key, b"giant");
        shown += 1;
        assert_eq!(Distinct.finish(state)?, 3);
        Ok(())
    });
    assert_eq!(shown, keys);
    assert!(all.unwrap_err().to_string().contains("giant"));
}

/// Counts, and panics at the first state of a key that has two.
#[derive(Clone, Copy)]
struct Panics;

impl Aggregate for Panics {
    type Input<'a> = ();
    type Output = ();

    fn state_type(&self) -> StateType {
        StateType::new("panics", 1)
    }
    fn lift(&self, (): (), state: &mut Vec<u8>) -> Result<()> {
        state.push(1);
        Ok(())
    }
    fn merge(&self, _: &[&[u8]], _: &mut Vec<u8>) {
        panic!("no luck");
    }
    fn finish(&self, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_function_that_panics_keeps_nobody_waiting() {
    let env = Env::memory(6);
    let groups = CompressedAggregator::new(Panics, options(&env, 1)).unwrap();
    for number in 0..120_000u64 {
        groups.add(&mix(number).to_le_bytes(), ()).unwrap();
    }
    assert!(groups.is_spilled());
    groups.finalize().unwrap();
    groups.add(&mix(1).to_le_bytes(), ()).unwrap();
    for _ in 0..2 {
        let got = catch_unwind(AssertUnwindSafe(|| groups.get(&mix(1).to_le_bytes())));
        assert!(got.is_err() || got.unwrap().is_err(), "it panicked");
        assert!(groups.get(&mix(2).to_le_bytes()).unwrap().is_some(), "others are read");
    }
    let shown = catch_unwind(AssertUnwindSafe(|| groups.for_each(&mut |_, _| Ok(()))));
    assert!(shown.is_err() || shown.unwrap().is_err(), "it panicked");
    drop(groups);
    assert!(env.fs.list(Path::new(DIRECTORY)).unwrap().is_empty(), "nothing is left");
}

#[test]
fn what_another_has_left_is_refused() {
    let env = Env::memory(8);
    let dir = Path::new(DIRECTORY).join("groups");
    env.fs.create_dir_all(Path::new(DIRECTORY)).unwrap();
    let options_of = Options::default().memory_limit(1 << 20).env(env.clone());
    Database::open(&dir, options_of).unwrap().close().unwrap();
    let groups = CompressedAggregator::new(Count, options(&env, 1)).unwrap();
    let error = (0..200_000u64).find_map(|number| groups.add(&mix(number).to_le_bytes(), ()).err());
    assert!(error.unwrap().to_string().contains("another aggregator"), "it is told");
}
