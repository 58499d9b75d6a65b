//! Cubes: all groupings agree with a model, at every commit and after any crash.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use forebay::aggregate::functions::{Collect, Count, SumInt};
use forebay::aggregate::{Grouping, Groupings, group_key};
use forebay::{Batch, Cube, CubeSnapshot, Database, Durability, Error, Layout, Options, Result};
use forebay_env::fs::CrashFs;
use forebay_env::{Env, FileSystem, Rng};
use forebay_testkit::{Trip, Tripping};

const DIR: &str = "/db";

type Columns = [Option<&'static str>; 3];
/// What each finest group came to after each batch.
type Finest = BTreeMap<Columns, i128>;

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(8 << 10).env(env.clone())
}

fn column(rng: &mut Rng) -> Option<&'static str> {
    [Some("a"), Some("b"), Some(""), Some("a\0b"), None][rng.index(5)]
}

/// What a grouping must show.
fn grouped(finest: &Finest, grouping: Grouping) -> BTreeMap<Vec<u8>, i128> {
    let mut groups = BTreeMap::new();
    for (columns, value) in finest {
        let kept = |at: usize| columns[at].filter(|_| grouping.bits() >> (2 - at) & 1 == 0);
        *groups.entry(group_key::of([kept(0), kept(1), kept(2)])).or_default() += value;
    }
    groups
}

fn check(cube: &CubeSnapshot<SumInt>, groupings: &Groupings, finest: &Finest, rng: &mut Rng, what: &str) {
    for grouping in groupings.iter() {
        let wanted = grouped(finest, grouping);
        let found: Vec<_> = cube.iter(grouping).unwrap().map(Result::unwrap).collect();
        assert!(found.iter().cloned().eq(wanted.clone()), "{what}, {grouping:?}: {found:?}");
        let back: Vec<_> = cube.iter(grouping).unwrap().rev().map(Result::unwrap).collect();
        assert!(back.iter().rev().eq(&found), "{what}, {grouping:?} from the end");
        let columns = [column(rng), column(rng), column(rng)];
        let key = group_key::of(columns);
        let masked = grouped(&BTreeMap::from([(columns, 0)]), grouping).into_keys().next().unwrap();
        assert_eq!(cube.get(grouping, &key).unwrap(), wanted.get(&masked).copied(), "{what}, {grouping:?}");
        let from: Vec<_> = cube.range(grouping, &key..).unwrap().map(Result::unwrap).collect();
        let wanted_from: Vec<_> = wanted.range(masked..).map(|(key, sum)| (key.clone(), *sum)).collect();
        assert_eq!(from, wanted_from, "{what}, {grouping:?} from {columns:?}");
        let first = group_key::of(columns.first().copied());
        let mut begins =
            group_key::of(columns.first().map(|first| first.filter(|_| grouping.bits() & 4 == 0)));
        let found: Vec<_> = cube.prefix(grouping, &first).unwrap().map(|entry| entry.unwrap().0).collect();
        let wanted: Vec<_> = wanted.into_keys().filter(|key| key.starts_with(&begins)).collect();
        assert_eq!(found, wanted, "{what}, {grouping:?} under {columns:?}");
        begins.clear();
    }
}

fn drawn(seed: u64) -> Groupings {
    match seed % 3 {
        0 => Groupings::cube(3).unwrap(),
        1 => Groupings::rollup(3).unwrap(),
        _ => Groupings::sets(3, [&[2][..], &[0, 1], &[]]).unwrap(),
    }
}

/// Adds a batch, and to the model what it has.
fn add(
    cube: &Cube<SumInt>,
    finest: &mut Finest,
    rng: &mut Rng,
    durability: Durability,
    number: u64,
) -> Result<()> {
    let mut batch = cube.batch();
    let before = finest.clone();
    for _ in 0..rng.below(40) {
        let (columns, value) = ([column(rng), column(rng), column(rng)], rng.next_u64() as i64);
        batch.add(group_key::of(columns), value).unwrap();
        *finest.entry(columns).or_default() += i128::from(value);
    }
    let outcome = batch.commit(durability, number.to_le_bytes());
    if outcome.is_err() {
        *finest = before;
    }
    outcome.map(drop)
}

#[test]
fn a_cube_equals_a_model() {
    for seed in 0..6 {
        let (env, mut rng) = (Env::memory(seed), Rng::new(seed));
        let (db, groupings) = (Database::open(DIR, options(&env)).unwrap(), drawn(seed));
        let cube = db.cube("sums", SumInt, groupings.clone()).open().unwrap();
        let (mut finest, mut snapshots) = (Finest::new(), Vec::new());
        for number in 0..60 {
            add(&cube, &mut finest, &mut rng, Durability::Memory, number).unwrap();
            if rng.chance(10) {
                snapshots.push((db.snapshot(), finest.clone()));
            }
            if rng.chance(10) {
                db.flush().unwrap();
            }
            env.jobs.step_some(rng.index(20));
        }
        for (snapshot, finest) in &snapshots {
            check(&cube.at(snapshot), &groupings, finest, &mut rng, &format!("a snapshot of seed {seed}"));
        }
        check(&cube.at(&db.snapshot()), &groupings, &finest, &mut rng, &format!("seed {seed}"));
        assert_eq!(cube.metadata().unwrap().as_deref(), Some(&59_u64.to_le_bytes()[..]));
    }
}

/// The power goes at any operation: what is left is what some batch left, in all groupings.
#[test]
fn all_groupings_agree_after_any_crash() {
    for seed in 0..60 {
        let (groupings, mut rng) = (drawn(seed), Rng::new(seed));
        let mut fs = CrashFs::new(seed);
        let mut after_batches = vec![Finest::new()];
        for _ in 0..3 {
            fs.crash_at(fs.operations() + 1 + rng.below(150));
            let env = Env::simulated(fs.clone() as Arc<dyn FileSystem>, seed);
            let durable = write_until_the_power_goes(&env, &groupings, &mut after_batches, &mut rng);
            fs = fs.power_cycle();
            env.jobs.abandon();

            let env = Env::simulated(fs.clone() as Arc<dyn FileSystem>, seed);
            let db = Database::open(DIR, options(&env)).unwrap();
            let cube = db.cube("sums", SumInt, groupings.clone()).open().unwrap();
            let batches = cube
                .metadata()
                .unwrap()
                .map_or(0, |number| 1 + u64::from_le_bytes(number.try_into().unwrap()) as usize);
            let what = format!("seed {seed}: {batches} of {} batches", after_batches.len() - 1);
            assert!(batches >= durable, "{what}, {durable} of which were durable");
            after_batches.truncate(batches + 1);
            check(&cube.at(&db.snapshot()), &groupings, &after_batches[batches], &mut rng, &what);
            drop(cube);
            db.close().unwrap();
        }
    }
}

/// Returns how many batches must survive.
fn write_until_the_power_goes(
    env: &Env,
    groupings: &Groupings,
    after_batches: &mut Vec<Finest>,
    rng: &mut Rng,
) -> usize {
    let mut durable = after_batches.len() - 1;
    let Ok(db) = Database::open(DIR, options(env)) else { return durable };
    let Ok(cube) = db.cube("sums", SumInt, groupings.clone()).open() else { return durable };
    for _ in 0..40 {
        let mut finest = after_batches.last().unwrap().clone();
        let number = after_batches.len() as u64 - 1;
        let durability = if rng.chance(30) { Durability::Disk } else { Durability::Os };
        // Whether a batch that failed is there is open until the next start.
        let before = rng.clone();
        let is_written = add(&cube, &mut finest, rng, durability, number).is_ok();
        if !is_written {
            let unused = Database::open("/m", options(&Env::memory(1))).unwrap();
            let model = unused.cube("sums", SumInt, groupings.clone()).open().unwrap();
            *rng = before;
            add(&model, &mut finest, rng, Durability::Memory, number).unwrap();
        }
        after_batches.push(finest);
        if !is_written {
            return durable;
        }
        if durability == Durability::Disk {
            durable = after_batches.len() - 1;
        }
        env.jobs.step_some(rng.index(30));
    }
    durable
}

#[test]
fn a_cube_opens_only_as_it_was_declared() {
    let env = Env::memory(1);
    let db = Database::open(DIR, options(&env)).unwrap();
    assert!(
        db.cube("c", Count, Groupings::cube(2).unwrap()).existing(true).open().unwrap_err().is_not_found()
    );
    db.cube("c", Count, Groupings::cube(2).unwrap())
        .open()
        .unwrap()
        .add(group_key::of([Some("x"); 2]), ())
        .unwrap();
    let again = db.cube("c", Count, Groupings::cube(2).unwrap()).existing(true).open().unwrap();
    let over_all = again.groupings().by([]).unwrap();
    assert_eq!(again.get(over_all, group_key::of([None::<&str>; 2])).unwrap(), Some(1));
    assert!(again.get(Grouping::from_bits(4), b"").is_err(), "there is no such grouping");
    assert!(again.add(group_key::of([Some("x")]), ()).is_err(), "a column is missing");
    for malformed in [&b"x"[..], b"\0\0x\0\0", b"x\0\x02\0\0", b"\0\0\0"] {
        assert!(again.add(malformed, ()).is_err(), "{malformed:?} is no group key");
    }
    for refused in [
        db.cube("c", Count, Groupings::rollup(2).unwrap()).open().unwrap_err(),
        db.cube("c@1", Count, Groupings::rollup(2).unwrap()).open().unwrap_err(),
        db.cube("c", SumInt, Groupings::cube(2).unwrap()).open().map(drop).unwrap_err(),
        db.cube("d", Count, Groupings::cube(2).unwrap()).layout(Layout::wb_tree()).open().unwrap_err(),
    ] {
        assert!(refused.to_string().contains('c') && !refused.is_corruption(), "{refused}");
    }
    db.table("e@2").open().unwrap();
    let refused = db.cube("e", Count, Groupings::cube(2).unwrap()).open().unwrap_err();
    assert!(refused.to_string().contains("`e@2`"), "{refused}");
    db.drop_table("c@1").unwrap();
    assert!(db.cube("c", Count, Groupings::cube(2).unwrap()).open().is_err(), "a level is missing");
    db.drop_cube("c").unwrap();
    assert_eq!(db.tables().len(), 1, "{:?}", db.tables());
    db.cube("c", Count, Groupings::rollup(2).unwrap()).open().unwrap();
}

/// States of no fixed length, and a batch that has records of other tables.
#[test]
fn a_cubes_batch_goes_into_any_batch() {
    let db = Database::open(DIR, options(&Env::memory(1))).unwrap();
    let table = db.table("t").open().unwrap();
    let lists = db.cube("l", Collect::list(9).unwrap(), Groupings::rollup(1).unwrap()).open().unwrap();
    for round in ["1", "2"] {
        let mut groups = lists.batch();
        groups.add(group_key::of([Some("x")]), round.as_bytes()).unwrap();
        groups.add(group_key::of([Some("y")]), round.as_bytes()).unwrap();
        assert!(groups.len() == 2 && !groups.is_empty() && groups.memory_bytes() > 0);
        let mut batch = Batch::new();
        batch.put(&table, "round", round);
        groups.append_to(&mut batch).unwrap();
        db.commit(batch, Durability::Os).unwrap();
    }
    let over_all = lists.groupings().by([]).unwrap();
    let all = lists.get(over_all, group_key::of([None::<&str>])).unwrap().unwrap();
    let all = format!("{all:?}");
    assert_eq!((all.matches("49").count(), all.matches("50").count()), (2, 2), "{all}");
    assert_eq!(table.get("round").unwrap().as_deref(), Some(&b"2"[..]));
}

/// What has such a name and is not of the declaration is somebody else's.
#[test]
fn a_cube_takes_only_tables_of_its_own() {
    let db = Database::open(DIR, options(&Env::memory(1))).unwrap();
    let rollup = || Groupings::rollup(2).unwrap();
    let others = ["c@0", "c@01", "c@13", "c@windows", "c@x", "cc"];
    others.iter().for_each(|name| db.table(name).open().unwrap().put(b"k", b"v").unwrap());
    db.cube("c", Count, rollup()).open().unwrap().add(group_key::of([Some("x"); 2]), ()).unwrap();
    db.drop_cube("c").unwrap();
    let left: Vec<_> = db.tables().into_iter().map(|(name, _)| name).collect();
    assert_eq!(left, others);

    ["d", "d@cube"].iter().for_each(|name| db.table(name).open().unwrap().put(b"k", b"v").unwrap());
    for refused in
        [db.drop_cube("d").unwrap_err(), db.cube("d", Count, rollup()).open().map(drop).unwrap_err()]
    {
        assert!(matches!(refused, Error::Invalid(_)), "{refused}");
    }
    db.drop_table("d").unwrap();
    let refused = db.cube("d", Count, rollup()).open().map(drop).unwrap_err();
    assert!(refused.to_string().contains("`d@cube`"), "{refused}");
    assert_eq!(db.tables().len(), others.len() + 1);

    // A declaration whose tables were not all made yet: somebody made one of them, and wrote to it.
    let text = format!("cube/1({})", rollup());
    db.table("e@cube").open().unwrap().put(b"declaration", &text).unwrap();
    db.aggregator("e@1", Count).layout(Layout::wb_tree_ordered()).open().unwrap();
    let open = || db.cube("e", Count, rollup()).open().map(drop);
    open().unwrap();
    db.drop_cube("e").unwrap();
    db.table("e@cube").open().unwrap().put(b"declaration", &text).unwrap();
    db.aggregator("e@1", Count).open().unwrap().add(b"k", ()).unwrap();
    let refused = open().unwrap_err();
    assert!(refused.to_string().contains("`e@1`"), "{refused}");
}

/// Coarser groups have keys that are two bytes longer.
#[test]
fn a_key_that_coarser_groups_cannot_have_is_refused_at_once() {
    let db = Database::open(DIR, Options::default().env(Env::memory(1))).unwrap();
    let cube = db.cube("c", Count, Groupings::sets(2, [[0]]).unwrap()).open().unwrap();
    let longest = (64 << 10) - 2;
    // A value's end takes two bytes, and so does what is no value.
    let key = |bytes: usize| group_key::of([Some("x".repeat(bytes - 4)), None]);
    let mut batch = cube.batch();
    for bytes in longest + 1..longest + 4 {
        assert!(batch.add(key(bytes), ()).is_err(), "{bytes} bytes");
    }
    batch.add(key(longest), ()).unwrap();
    batch.commit(Durability::Os, b"").unwrap();
    assert_eq!(cube.get(cube.groupings().by([0]).unwrap(), key(longest)).unwrap(), Some(1));
}

/// A function panicked at coarser groups: the finest ones stood in the caller's batch already.
#[test]
fn a_batch_has_all_levels_or_none() {
    let db = Database::open(DIR, options(&Env::memory(1))).unwrap();
    let (trip, table) = (Trip::default(), db.table("t").open().unwrap());
    let function = Tripping(SumInt, trip.clone());
    let cube = db.cube("c", function, Groupings::rollup(1).unwrap()).open().unwrap();
    let (mut groups, mut batch) = (cube.batch(), Batch::new());
    let [x, y] = ["x", "y"].map(|column| group_key::of([Some(column)]));
    groups.add(&x, 1).unwrap();
    groups.add(&y, 2).unwrap();
    batch.put(&table, b"k", b"v");
    trip.set(1, 0);
    assert!(catch_unwind(AssertUnwindSafe(|| groups.append_to(&mut batch))).is_err());
    assert_eq!(batch.len(), 1, "nothing of the cube");
    db.write(&mut batch, Durability::Os).unwrap();
    assert_eq!(cube.iter(Grouping::FINEST).unwrap().count(), 0);
    groups.append_to(&mut batch).unwrap();
    db.write(&mut batch, Durability::Os).unwrap();
    let over_all = cube.groupings().by([]).unwrap();
    assert_eq!(cube.get(over_all, group_key::of([None::<&str>])).unwrap(), Some(3));
    // A group that was left half way is not written.
    trip.set(1, 0);
    assert!(catch_unwind(AssertUnwindSafe(|| groups.add(&x, 4))).is_err());
    groups.add(&y, 4).unwrap();
    for refused in [groups.append_to(&mut batch), groups.commit(Durability::Os, b"").map(drop)] {
        assert!(matches!(refused, Err(Error::Panicked(_))), "{refused:?}");
    }
}
