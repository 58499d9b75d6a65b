//! Groups of rows that came by columns, taken out of their aggregator: those of a map, however much room there is.

use std::collections::BTreeMap;

use forebay_aggregate::columns::{Items, Lane, Rows};
use forebay_aggregate::{
    Aggregate, Aggregator, AggregatorOptions, Composite, CompressedAggregator, HASH_SEED, TakenGroups, Value,
    group_key,
};
use forebay_base::Result;
use forebay_base::hash::{key_hash, mix};

use crate::place::Place;

const COLUMNS: [&str; 2] = ["k", "v"];
/// Rows that a thread adds at a time.
const BATCH: usize = 3000;

/// How many rows a group has, and their sum.
type Map = BTreeMap<Vec<u8>, (i64, i128)>;

/// Adds rows by as many threads as are told, some thousand at a time. Each hands over what it has at its end.
fn add(groups: &CompressedAggregator<Composite>, rows: &[(i64, i64)], threads: usize) -> Result<()> {
    let share = rows.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let adder = |rows: &'_ [(i64, i64)]| {
            let mut refused = Vec::new();
            for batch in rows.chunks(BATCH) {
                let (keys, values): (Vec<i64>, Vec<i64>) = batch.iter().copied().unzip();
                let lane = |items| Lane::new(Items::I64(items), None).expect("a lane");
                let rows = Rows::new(vec![lane(&keys), lane(&values)], 1).expect("rows");
                groups.add_rows(&rows, &mut refused)?;
                assert!(refused.is_empty(), "no row is refused");
            }
            groups.hand_over_rows()
        };
        let adders: Vec<_> = rows.chunks(share).map(|rows| scope.spawn(move || adder(rows))).collect();
        adders.into_iter().try_for_each(|adder| adder.join().expect("it does not panic"))
    })
}

fn count(map: &mut Map, rows: &[(i64, i64)]) {
    for (key, value) in rows {
        let key = group_key::of([Some(key.to_string())]);
        let (count, sum) = map.entry(key).or_default();
        (*count, *sum) = (*count + 1, *sum + i128::from(*value));
    }
}

/// What a state stands for: a count, a sum, and the same sum once more, that nothing was rounded of.
fn answer(functions: &Composite, state: &[u8]) -> Result<(i64, i128)> {
    match functions.finish(state)?[..] {
        [Value::I64(count), Value::I128(sum), Value::F64(float)] if float == sum as f64 => Ok((count, sum)),
        ref other => panic!("{other:?}"),
    }
}

fn functions() -> Composite {
    Composite::parse("count,sum:v,fsum:v", &COLUMNS).expect("functions")
}

/// All that a walk over groups shows.
fn walked(groups: &CompressedAggregator<Composite>) -> Result<Map> {
    let mut seen = Map::new();
    groups.for_each(&mut |key, state| {
        seen.insert(key.to_vec(), answer(&functions(), state)?);
        Ok(())
    })?;
    Ok(seen)
}

/// All that leaves show, in the order of hashes of so many bits.
fn shown(taken: &TakenGroups<Composite>, bits: u32) -> Result<Map> {
    let (functions, mut map, mut last) = (functions(), Map::new(), None);
    let kept = !u64::MAX.checked_shr(bits).unwrap_or(0);
    for leaf in 0..taken.leaves() {
        let before = map.len();
        taken.show(leaf..leaf + 1, &mut |key, state| {
            let place = Some((key_hash(key, HASH_SEED) & kept, key.to_vec()));
            assert!(last.replace(place.clone()) < Some(place), "groups come in order, each once");
            map.insert(key.to_vec(), answer(&functions, state)?);
            Ok(())
        })?;
        assert!((map.len() - before) as u64 <= taken.groups_max(leaf), "no more than was told");
    }
    taken.told().map(|()| map)
}

/// Rows of which the next key is drawn by its number.
fn rows(count: u64, key: impl Fn(u64) -> u64) -> Vec<(i64, i64)> {
    (0..count).map(|row| (key(row) as i64, (mix(row) % 2000) as i64 - 1000)).collect()
}

#[test]
fn they_are_those_of_a_map() -> Result<()> {
    // Each has a key of its own; keys that come again, soon or late; both.
    type Draw = fn(u64) -> u64;
    let draws: [(&str, Draw); 5] = [
        ("unique", |row| row),
        ("few", |row| mix(row) % 50),
        ("late", |row| row % 60_000),
        ("some", |row| mix(row) % 40_000),
        ("mixed", |row| if row % 3 == 0 { row } else { mix(row) % 700 }),
    ];
    for (number, (what, draw)) in draws.into_iter().enumerate() {
        for (memory, threads) in [(256 << 20, 1), (64 << 20, 3), (20 << 20, 2)] {
            let what = format!("{what} keys, {threads} threads, {memory} bytes");
            let options = AggregatorOptions::default().memory_limit(memory).threads(threads).adders(threads);
            let bits = if number % 2 == 0 { u64::BITS } else { 9 };
            let mut groups = CompressedAggregator::new(functions(), options.colliding(bits))?;
            let (rows, mut map) = (rows(180_000, draw), Map::new());
            for half in rows.chunks(100_000) {
                add(&groups, half, threads)?;
                count(&mut map, half);
                assert!(groups.memory_bytes() <= memory, "{what}: {}", groups.memory_bytes());
            }
            let taken = groups.take_groups()?.expect("nothing is in files");
            assert!(shown(&taken, bits)? == map, "{what}");
            assert!(shown(&taken, bits)? == map, "{what}: once more");
            taken.free(0..taken.leaves());
            let mut left = 0;
            taken.show(0..taken.leaves(), &mut |_, _| {
                left += 1;
                Ok(())
            })?;
            assert_eq!((left, groups.keys()?), (0, 0), "{what}: all are gone");
        }
    }
    Ok(())
}

/// Readers and walks see what is not packed as they see all else.
#[test]
fn what_is_not_packed_is_read_too() -> Result<()> {
    let options = AggregatorOptions::default().memory_limit(128 << 20).threads(2).adders(2);
    let mut groups = CompressedAggregator::new(functions(), options)?;
    let (rows, mut map) = (rows(120_000, |row| mix(row) % 50_000), Map::new());
    for third in rows.chunks(40_000) {
        add(&groups, third, 2)?;
        count(&mut map, third);
        for (key, expected) in map.iter().step_by(997) {
            let state = groups.get(key)?.expect("it was added");
            assert_eq!(answer(&functions(), &state)?, *expected);
        }
        assert!(walked(&groups)? == map, "all are shown");
    }
    assert!(shown(&groups.take_groups()?.expect("nothing is in files"), u64::BITS)? == map);
    Ok(())
}

/// Where memory is short, groups are packed, and then go to files, and are not taken out of these.
#[test]
fn what_is_in_files_stays_there() -> Result<()> {
    let (place, memory) = (Place::default(), 4 << 20);
    let options = AggregatorOptions::default().memory_limit(memory).threads(2).spill_to(place.clone());
    let mut groups = CompressedAggregator::new(functions(), options)?;
    let (rows, mut map) = (rows(300_000, |row| row), Map::new());
    add(&groups, &rows, 1)?;
    count(&mut map, &rows);
    assert!(groups.is_spilled() && groups.memory_bytes() <= memory, "{}", groups.memory_bytes());
    assert!(groups.take_groups()?.is_none());
    assert!(walked(&groups)? == map, "all are shown");
    Ok(())
}

/// A group whose state becomes too long is told of at the end, wherever its leaf was merged.
#[test]
fn a_group_that_is_lost_is_told_of() -> Result<()> {
    let options = AggregatorOptions::default().memory_limit(64 << 20).threads(1).state_bytes_max(20_000);
    let sets = Composite::parse("set:v:1000000", &COLUMNS).expect("a function");
    let mut groups = CompressedAggregator::new(sets, options)?;
    // Every second row is the giant's.
    let rows: Vec<(i64, i64)> =
        (0..80_000).map(|row| (if row % 2 == 0 { 7 } else { 100 + row }, row)).collect();
    add(&groups, &rows, 1)?;
    let taken = groups.take_groups()?.expect("nothing is in files");
    let mut keys = 0;
    taken.show(0..taken.leaves(), &mut |key, _| {
        assert_ne!(key, group_key::of([Some("7")]), "it is lost");
        keys += 1;
        Ok(())
    })?;
    assert_eq!(keys, 40_000, "all others are shown");
    assert!(taken.told().expect_err("it is too long").to_string().contains("of key"));
    Ok(())
}
