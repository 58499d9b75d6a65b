//! Windows: every tier has every value once, whatever is rolled up, dropped, late, or cut off by a crash.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay::aggregate::Aggregate;
use forebay::aggregate::functions::{Count, SumInt};
use forebay::{
    Batch, Database, Durability, Error, Expired, Layout, Options, Period, Result, Tiers, Windows,
    WindowsSnapshot,
};
use forebay_env::fs::{CrashFs, FaultyFs, MemoryFs};
use forebay_env::{Env, FileSystem, Rng};
use forebay_testkit::{Merging, Multiset, Trip, Tripping};

const DIR: &str = "/db";

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(8 << 10).env(env.clone())
}

/// Windows of 10, of 40 and of 160 ms.
const LENGTHS: [u64; 3] = [10, 40, 160];
const KEEP: [u32; 3] = [3, 2, 2];

fn tiers() -> Tiers {
    let [finest, middle, coarsest] = LENGTHS.map(Period::milliseconds);
    Tiers::new(finest, KEEP[0]).then(middle, KEEP[1]).then(coarsest, KEEP[2])
}

/// Where the tiers' windows begin that are kept.
fn floors(now: u64) -> [u64; 3] {
    std::array::from_fn(|tier| {
        let length = LENGTHS[tier];
        (now / length * length).saturating_sub(u64::from(KEEP[tier]) * length)
    })
}

/// The values by window of the finest tier and key, and how late it is.
#[derive(Clone, Default, PartialEq, Debug)]
struct Model {
    sums: BTreeMap<(u64, Vec<u8>), i128>,
    /// The latest time of which it is known that it is over.
    now: u64,
}

impl Model {
    fn over(&self, times: &Range<u64>) -> BTreeMap<Vec<u8>, i128> {
        let mut sums = BTreeMap::new();
        let from = times.start.max(floors(self.now)[2]);
        for ((_, key), sum) in self.sums.iter().filter(|((start, _), _)| (from..times.end).contains(start)) {
            *sums.entry(key.clone()).or_default() += sum;
        }
        sums
    }

    /// Ranges of time that can be asked, whatever is being rolled up: of each tier, of windows that are kept, and such
    /// as go over several tiers. And whether one may be refused: it ends amid a window of which finer ones may be gone.
    fn ranges(&self, rng: &mut Rng) -> Vec<(Range<u64>, bool)> {
        let (kept, mut ranges) = (floors(self.now), vec![(0..u64::MAX, false)]);
        for tier in 0..3 {
            let length = LENGTHS[tier];
            let start = kept[tier] + rng.below(3) * length;
            // Where a window is not past, finer ones have the rest of it.
            ranges.push((start..start + length, false));
            ranges.push((kept[2]..start, !start.is_multiple_of(LENGTHS[2])));
            ranges.push((start..u64::MAX, false));
        }
        ranges
    }
}

fn check(windows: &WindowsSnapshot<SumInt>, model: &Model, rng: &mut Rng, what: &str) {
    for (times, may_be_refused) in model.ranges(rng) {
        let wanted = model.over(&times);
        let scan = match windows.iter(times.clone()) {
            Err(_) if may_be_refused => continue,
            scan => scan.unwrap(),
        };
        let found: Vec<_> = scan.map(Result::unwrap).collect();
        assert!(found.iter().cloned().eq(wanted.clone()), "{what}, {times:?}: {found:?}, not {wanted:?}");
        let key = key(rng);
        let sum = windows.get(times.clone(), &key).unwrap();
        assert_eq!(sum, wanted.get(&key).copied(), "{what}, {times:?}");
        let found: Vec<_> = windows.range(times.clone(), &key..).unwrap().map(Result::unwrap).collect();
        let wanted: Vec<_> = wanted.into_iter().filter(|(other, _)| *other >= key).collect();
        assert_eq!(found, wanted, "{what}, {times:?} from {key:?}");
    }
    check_listed(windows, model, what);
}

/// Each window of the finest tier that is kept and has values is listed, and can be asked by itself.
fn check_listed(windows: &WindowsSnapshot<SumInt>, model: &Model, what: &str) {
    let listed = windows.windows(..).unwrap();
    assert!(listed.is_sorted_by(|window, next| window.end <= next.start), "{what}: {listed:?}");
    let kept = model.sums.keys().map(|(start, _)| *start).filter(|start| *start >= floors(model.now)[0]);
    for start in kept {
        assert!(listed.contains(&(start..start + LENGTHS[0])), "{what}: no {start} in {listed:?}");
    }
    for window in listed {
        let mut scan = windows.iter(window.clone()).unwrap();
        let states = std::iter::from_fn(|| scan.next_state()).map(Result::unwrap);
        let sums = states.map(|(key, state)| (key, SumInt.finish(&state).unwrap()));
        assert!(sums.eq(model.over(&window)), "{what}, the window {window:?}");
        assert_eq!(windows.windows(window.start..=window.start).unwrap(), [window]);
    }
}

fn key(rng: &mut Rng) -> Vec<u8> {
    format!("key {}", rng.below(12)).into_bytes()
}

/// Adds some values to both; late ones, too.
fn add(
    windows: &Windows<SumInt>,
    model: &mut Model,
    rng: &mut Rng,
    durability: Durability,
    number: u64,
) -> Result<()> {
    let mut batch = windows.batch();
    for _ in 0..rng.below(20) {
        let oldest = floors(model.now)[2];
        let time = match rng.below(3) {
            0 => oldest + rng.below(model.now + 20 - oldest),
            _ => model.now.saturating_sub(15) + rng.below(40),
        };
        let (key, value) = (key(rng), rng.next_u64() as i64);
        batch.add(time, &key, value).unwrap();
        *model.sums.entry((time / 10 * 10, key)).or_default() += i128::from(value);
    }
    batch.commit(durability, number.to_le_bytes()).map(drop)
}

#[test]
fn windows_equal_a_model() {
    for seed in 0..8 {
        let (env, mut rng, mut model) = (Env::memory(seed), Rng::new(seed), Model::default());
        let db = Database::open(DIR, options(&env)).unwrap();
        let windows = db.windows("w", SumInt, tiers()).open().unwrap();
        let mut snapshots = Vec::new();
        for number in 0..150 {
            add(&windows, &mut model, &mut rng, Durability::Memory, number).unwrap();
            if rng.chance(40) {
                model.now += rng.below(30);
                windows.expire(model.now).unwrap();
                assert_eq!(windows.expire(model.now).unwrap(), Expired::default());
                assert_eq!(windows.expire(model.now / 2).unwrap(), Expired::default());
                assert_eq!(windows.kept_from().unwrap(), floors(model.now)[2]);
            }
            if rng.chance(10) {
                snapshots.push((db.snapshot(), model.clone()));
            }
            if rng.chance(10) {
                db.flush().unwrap();
            }
            env.jobs.step_some(rng.index(20));
            check(&windows.at(&db.snapshot()), &model, &mut rng, &format!("seed {seed}, batch {number}"));
        }
        for (snapshot, model) in &snapshots {
            check(&windows.at(snapshot), model, &mut rng, &format!("a snapshot of seed {seed}"));
        }
        // The windows that are kept, and that of now, of each tier; and the declaration.
        let most = 1 + KEEP.iter().map(|keep| *keep as usize + 3).sum::<usize>();
        assert!(db.tables().len() <= most, "seed {seed}: {:?}", db.tables());
        let old = floors(model.now)[2];
        if old > 0 {
            let mut batch = windows.batch();
            batch.add(old - 1, b"late", 1).unwrap();
            batch.add(model.now, b"in time", 1).unwrap();
            let refused = batch.commit(Durability::Os, b"").unwrap_err();
            assert!(refused.to_string().contains(&old.to_string()), "{refused}");
            assert_eq!(windows.get(.., b"in time").unwrap(), None, "nothing of the batch is written");
            assert_eq!(batch.forget_before(windows.kept_from().unwrap()), 1);
            batch.commit(Durability::Os, b"").unwrap();
            assert_eq!(windows.get(.., b"in time").unwrap(), Some(1));
        }
    }
}

/// The power goes at any operation. What is left is what some batch left, and all of it once, whether the windows were
/// rolled up or dropped.
#[test]
fn every_value_counts_once_after_any_crash() {
    let mut has_rolled_up = 0;
    for seed in 0..120 {
        let (mut fs, mut rng) = (CrashFs::new(seed), Rng::new(seed));
        let mut after_batches = vec![Model::default()];
        for _ in 0..4 {
            fs.crash_at(fs.operations() + 1 + rng.below(200));
            let env = Env::simulated(fs.clone() as Arc<dyn FileSystem>, seed);
            let (durable, now) = work_until_the_power_goes(&env, &mut after_batches, &mut rng);
            fs = fs.power_cycle();
            env.jobs.abandon();

            let env = Env::simulated(fs.clone() as Arc<dyn FileSystem>, seed);
            let db = Database::open(DIR, options(&env)).unwrap();
            let windows = db.windows("w", SumInt, tiers()).open().unwrap();
            let number = windows.metadata().unwrap();
            let batches =
                number.map_or(0, |number| 1 + u64::from_le_bytes(number.try_into().unwrap()) as usize);
            let what = format!("seed {seed}: {batches} of {} batches", after_batches.len() - 1);
            assert!(batches >= durable, "{what}, {durable} of which were durable");
            after_batches.truncate(batches + 1);
            // Of what was dropped already there is nothing; of what was not, everything.
            let mut model = after_batches[batches].clone();
            let kept_from = windows.kept_from().unwrap();
            assert!(kept_from <= floors(now)[2], "{what}");
            let wanted = |model: &Model| {
                let mut model = model.clone();
                model.sums.retain(|(start, _), _| *start >= kept_from);
                model.over(&(0..u64::MAX))
            };
            let found: BTreeMap<_, _> = windows.iter(..).unwrap().map(Result::unwrap).collect();
            assert_eq!(found, wanted(&model), "{what}");
            // And so once it goes on.
            model.now = now;
            has_rolled_up += windows.expire(now).unwrap().rolled_up;
            check(&windows.at(&db.snapshot()), &model, &mut rng, &what);
            add(&windows, &mut model, &mut rng, Durability::Disk, batches as u64).unwrap();
            check(&windows.at(&db.snapshot()), &model, &mut rng, &what);
            after_batches.push(model);
            drop(windows);
            db.close().unwrap();
        }
    }
    assert!(has_rolled_up > 50, "crashes left nothing to be rolled up: {has_rolled_up}");
}

/// Returns how many batches must survive, and how late it is.
fn work_until_the_power_goes(env: &Env, after_batches: &mut Vec<Model>, rng: &mut Rng) -> (usize, u64) {
    let mut model = after_batches.last().unwrap().clone();
    let mut durable = after_batches.len() - 1;
    let Ok(db) = Database::open(DIR, options(env)) else { return (durable, model.now) };
    let Ok(windows) = db.windows("w", SumInt, tiers()).open() else { return (durable, model.now) };
    for _ in 0..60 {
        let number = after_batches.len() as u64 - 1;
        let durability = if rng.chance(20) { Durability::Disk } else { Durability::Os };
        let is_written = add(&windows, &mut model, rng, durability, number).is_ok();
        after_batches.push(model.clone());
        if !is_written {
            return (durable, model.now);
        }
        if durability == Durability::Disk {
            durable = after_batches.len() - 1;
        }
        if rng.chance(50) {
            model.now += rng.below(40);
            if windows.expire(model.now).is_err() {
                return (durable, model.now);
            }
        }
        env.jobs.step_some(rng.index(20));
    }
    (durable, model.now)
}

/// More groups than are rolled up at one go: reads and late values in between, and a crash amid it.
#[test]
fn a_window_is_rolled_up_some_groups_at_a_time() {
    let keys = 10_000_u32;
    let fill = |windows: &Windows<Count>, time| {
        let mut batch = windows.batch();
        (0..keys).for_each(|key| batch.add(time, key.to_be_bytes(), ()).unwrap());
        batch.commit(Durability::Disk, b"").unwrap();
    };
    let counts = |windows: &Windows<Count>, times: Range<u64>, wanted: u64| {
        let all: Vec<_> = windows.iter(times.clone()).unwrap().map(|entry| entry.unwrap().1).collect();
        assert_eq!(all.len(), keys as usize);
        assert!(all.iter().all(|count| *count == wanted), "{times:?}: {wanted} of each");
        for key in [0, 4095, 4096, keys - 1] {
            assert_eq!(windows.get(times.clone(), key.to_be_bytes()).unwrap(), Some(wanted), "{key}");
        }
    };
    let two_tiers = || Tiers::new(Period::milliseconds(10), 9).then(Period::milliseconds(100), 9);
    let mut middles = 0;
    for step in 0..40 {
        let fs = CrashFs::new(step);
        let env = Env::simulated(fs.clone() as Arc<dyn FileSystem>, step);
        let db = Database::open(DIR, Options::default().memory_limit(16 << 20).env(env.clone())).unwrap();
        let windows = db.windows("w", Count, two_tiers()).open().unwrap();
        fill(&windows, 5);
        fs.crash_at(fs.operations() + 1 + step);
        let is_over = windows.expire(20).is_ok();
        drop(windows);
        env.jobs.abandon();
        drop(db);
        let env = Env::simulated(fs.power_cycle() as Arc<dyn FileSystem>, step);
        let db = Database::open(DIR, Options::default().memory_limit(16 << 20).env(env)).unwrap();
        let windows = db.windows("w", Count, two_tiers()).open().unwrap();
        let rolled_up = db.snapshot().tables().iter().find(|(name, _)| name == "w@1@0").map_or(0, |_| {
            let coarser = db.snapshot().aggregator("w@1@0", Count).unwrap();
            coarser.iter().unwrap().count()
        });
        middles += usize::from((1..keys as usize).contains(&rolled_up));
        counts(&windows, 0..10, 1);
        counts(&windows, 0..100, 1);
        fill(&windows, 6);
        counts(&windows, 0..10, 2);
        counts(&windows, 0..100, 2);
        assert_eq!(windows.expire(20).unwrap().rolled_up, usize::from(rolled_up < keys as usize));
        counts(&windows, 0..100, 2);
        assert_eq!(windows.expire(100_000).unwrap().dropped, 2);
        if is_over || middles > 1 {
            break;
        }
    }
    assert!(middles > 0, "no crash was amid a window");
}

/// The disk fails at any operation, and is well again: what is told to be written counts once.
#[test]
fn every_value_counts_once_after_any_fault() {
    for number in (1..90).step_by(3) {
        let (faults, mut rng) = (FaultyFs::new(MemoryFs::new()), Rng::new(number));
        let env = Env::simulated(faults.clone() as Arc<dyn FileSystem>, number);
        let db = Database::open(DIR, options(&env)).unwrap();
        let windows = db.windows("w", SumInt, tiers()).open().unwrap();
        let mut model = Model::default();
        faults.rule(&format!("any * #{number} io-error")).unwrap();
        let mut is_written = true;
        for batch in 0..40 {
            let mut next = model.clone();
            is_written = add(&windows, &mut next, &mut rng, Durability::Os, batch).is_ok();
            if !is_written {
                break;
            }
            model = next;
            model.now += rng.below(30);
            if windows.expire(model.now).is_err() {
                break;
            }
            env.jobs.step_some(rng.index(20));
        }
        faults.clear();
        drop(windows);
        drop(db);
        env.jobs.abandon();
        let env = Env::simulated(faults.clone() as Arc<dyn FileSystem>, number);
        let db = Database::open(DIR, options(&env)).unwrap();
        let windows = db.windows("w", SumInt, tiers()).open().unwrap();
        windows.expire(model.now).unwrap();
        if is_written {
            check(&windows.at(&db.snapshot()), &model, &mut rng, &format!("fault {number}"));
        }
    }
}

/// Threads add, late values among theirs, while another rolls up and drops.
#[test]
fn threads_add_while_windows_are_rolled_up() {
    let dir = std::env::temp_dir().join(format!("forebay-windows-{}", std::process::id()));
    let db = Database::open(&dir, Options::default().memory_limit(8 << 20)).unwrap();
    let [finest, coarser] = [10, 40].map(Period::milliseconds);
    let windows = db.windows("w", Count, Tiers::new(finest, 2).then(coarser, 1000)).open().unwrap();
    let (rounds, is_over) = (300_u64, AtomicBool::new(false));
    std::thread::scope(|scope| {
        let adders: Vec<_> = (0..3_u64)
            .map(|seed| {
                let windows = windows.clone();
                scope.spawn(move || {
                    let mut rng = Rng::new(seed);
                    for round in 0..rounds {
                        let mut batch = windows.batch();
                        (0..20_u64)
                            .for_each(|key| batch.add(rng.below(round + 1), key.to_be_bytes(), ()).unwrap());
                        batch.commit(Durability::Memory, b"").unwrap();
                    }
                })
            })
            .collect();
        let (windows, is_over) = (&windows, &is_over);
        let expirer = scope.spawn(move || {
            let mut now = 0;
            while !is_over.load(Ordering::Acquire) {
                now = (now + 1) % (rounds + 100);
                windows.expire(now).unwrap();
                let counts: Vec<_> = windows.iter(..).unwrap().map(|entry| entry.unwrap().1).collect();
                assert!(
                    counts.windows(2).all(|pair| pair[0] == pair[1]),
                    "a batch is seen in part: {counts:?}"
                );
            }
        });
        adders.into_iter().for_each(|adder| adder.join().unwrap());
        is_over.store(true, Ordering::Release);
        expirer.join().unwrap();
    });
    windows.expire(rounds).unwrap();
    for key in 0..20_u64 {
        assert_eq!(windows.get(.., key.to_be_bytes()).unwrap(), Some(3 * rounds));
    }
    drop(windows);
    db.close().unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn windows_open_only_as_they_were_declared() {
    let db = Database::open(DIR, options(&Env::memory(1))).unwrap();
    let hours = || Tiers::new(Period::HOUR, 48).then(Period::DAY, 60).then(Period::MONTH, u32::MAX);
    assert!(db.windows("w", Count, hours()).existing(true).open().unwrap_err().is_not_found());
    let windows = db.windows("w", Count, hours()).open().unwrap();
    windows.add(1_764_075_600_000, b"key", ()).unwrap();
    let mut batch = windows.batch();
    let one = 1_u64.to_le_bytes();
    batch.add_state(1_764_075_600_000, b"key", one).unwrap();
    let table = db.table("t").open().unwrap();
    let mut other = Batch::new();
    other.put(&table, b"k", b"v");
    batch.commit_with(other, Durability::Os, b"m").unwrap();
    assert!(batch.len() == 1 && !batch.is_empty() && batch.memory_bytes() > 0);
    assert_eq!(table.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
    assert_eq!(db.windows("w", Count, hours()).open().unwrap().get(.., b"key").unwrap(), Some(2));
    // What has such a name and is no window is somebody else's.
    let others = ["t", "u@0@0", "v@windows", "w", "w@0", "w@0@07", "w@1", "w@cube"];
    others[1..].iter().for_each(|name| db.table(name).open().unwrap().put(b"k", b"v").unwrap());
    for refused in [
        db.windows("w", Count, Tiers::new(Period::HOUR, 48)).open().map(drop).unwrap_err(),
        db.windows("w", SumInt, hours()).open().map(drop).unwrap_err(),
        db.windows("a@b", Count, hours()).open().map(drop).unwrap_err(),
        db.windows("u", Count, hours()).open().map(drop).unwrap_err(),
        db.windows("v", Count, hours()).open().map(drop).unwrap_err(),
        db.drop_windows("v").unwrap_err(),
        db.windows(&"n".repeat(232), Count, hours()).open().map(drop).unwrap_err(),
        db.windows("x", Count, hours()).layout(Layout::wb_tree()).open().map(drop).unwrap_err(),
        db.windows("x", Count, Tiers::new(Period::DAY, 9).then(Period::HOUR, 999))
            .open()
            .map(drop)
            .unwrap_err(),
        windows.get(5..3_600_000, b"key").map(drop).unwrap_err(),
    ] {
        assert!(!refused.is_corruption() && !refused.is_bug(), "{refused}");
    }
    db.drop_windows("w").unwrap();
    let left: Vec<_> = db.tables().into_iter().map(|(name, _)| name).collect();
    assert_eq!(left, others);
    let longest = db.windows(&"n".repeat(231), Count, Tiers::new(Period::milliseconds(1), 1)).open().unwrap();
    longest.add(u64::MAX - 1, b"key", ()).unwrap();
    assert_eq!(longest.get(.., b"key").unwrap(), Some(1));
    assert!(longest.add(u64::MAX, b"key", ()).is_err(), "no range reaches it");
}

/// Values that are refused leave nothing in a batch, not even a window; one at which the function panics ends it.
#[test]
fn a_batch_has_what_was_added_and_nothing_else() {
    let (db, trip) = (Database::open(DIR, options(&Env::memory(1))).unwrap(), Trip::default());
    let windows = db.windows("w", Tripping(SumInt, trip.clone()), tiers()).open().unwrap();
    windows.add(1000, b"key", 1).unwrap();
    windows.expire(1000).unwrap();
    let before = db.tables();
    let mut batch = windows.batch();
    for time in [5, 2000] {
        assert!(batch.add_state(time, b"key", b"no state").is_err());
    }
    batch.add(1000, b"key", 2).unwrap();
    batch.commit(Durability::Os, b"").unwrap();
    assert_eq!(db.tables(), before);
    trip.set(1, 0);
    assert!(catch_unwind(AssertUnwindSafe(|| batch.add(1000, b"key", 4))).is_err());
    batch.add(1000, b"key", 8).unwrap();
    assert!(matches!(batch.commit(Durability::Os, b""), Err(Error::Panicked(_))));
    assert_eq!(windows.get(.., b"key").unwrap(), Some(3));
}

/// Savepoints had neither windows nor what they were rolled up to; windows that a rollback brought back, and those that
/// were declared anew, were dropped.
#[test]
fn windows_are_dropped_beside_whatever_brings_them_back() {
    let mut pauses = BTreeMap::new();
    for seed in 0..150 {
        let env = Env::memory(seed);
        env.jobs.interleave(seed);
        let db = Arc::new(Database::open(DIR, options(&env)).unwrap());
        let open = |db: &Database| {
            let [finer, coarser] = [5, 40].map(Period::milliseconds);
            let windows = db.windows("w", Count, Tiers::new(finer, 1).then(coarser, u32::MAX)).open();
            windows.unwrap()
        };
        let fill = |windows: &Windows<Count>| {
            let mut batch = windows.batch();
            (0..40).for_each(|time| batch.add(time, b"key", ()).unwrap());
            batch.commit(Durability::Os, b"").unwrap();
        };
        let mut windows = open(&db);
        fill(&windows);
        if seed % 3 > 0 {
            db.savepoint("s").unwrap();
        }
        let other: Box<dyn FnOnce() + Send> = Box::new({
            let db = Arc::clone(&db);
            move || match seed % 3 {
                0 => drop(db.savepoint("s").unwrap()),
                1 => db.rollback("s").unwrap(),
                _ => {
                    db.drop_windows("w").unwrap();
                    fill(&open(&db));
                }
            }
        });
        let expire: Box<dyn FnOnce() + Send> = Box::new({
            let windows = windows.clone();
            move || {
                let expired = windows.expire(100);
                assert!(expired.is_ok() || seed % 3 == 2, "seed {seed}: {expired:?}");
            }
        });
        let (forked, here) = if seed % 2 == 0 { (expire, other) } else { (other, expire) };
        let beside = env.jobs.fork("beside", forked);
        env.jobs.step_some(Rng::new(seed).index(300));
        here();
        beside.join();
        if seed % 3 == 2 {
            windows = open(&db);
        } else {
            let seen = windows.at(&db.open_savepoint("s").unwrap()).get(.., b"key").unwrap();
            assert_eq!(seen, Some(40), "seed {seed}: the savepoint");
        }
        assert_eq!(windows.get(.., b"key").unwrap(), Some(40), "seed {seed}");
        if seed % 3 < 2 {
            db.rollback("s").unwrap();
        }
        windows.expire(100).unwrap();
        assert_eq!(windows.get(.., b"key").unwrap(), Some(40), "seed {seed}, once more");
        for (point, count) in env.jobs.pauses() {
            *pauses.entry(point).or_insert(0) += count;
        }
        drop(windows);
        drop(db);
    }
    for point in ["savepoint is flushed", "rollback is durable", "a window is dropped"] {
        assert!(pauses.contains_key(point), "{pauses:?}");
    }
}

/// Going back to a savepoint takes back what was rolled up since, and with it the marks.
#[test]
fn a_rollback_takes_back_what_was_rolled_up() {
    let db = Database::open(DIR, options(&Env::memory(1))).unwrap();
    let (mut model, mut rng) = (Model::default(), Rng::new(1));
    let windows = db.windows("w", SumInt, tiers()).open().unwrap();
    add(&windows, &mut model, &mut rng, Durability::Os, 0).unwrap();
    db.savepoint("s").unwrap();
    windows.expire(35).unwrap();
    add(&windows, &mut model.clone(), &mut rng, Durability::Os, 1).unwrap();
    db.rollback("s").unwrap();
    check(&windows.at(&db.snapshot()), &model, &mut rng, "rolled back");
    add(&windows, &mut model, &mut rng, Durability::Os, 1).unwrap();
    model.now = 35;
    windows.expire(35).unwrap();
    check(&windows.at(&db.snapshot()), &model, &mut rng, "and rolled up again");
}

/// Windows that come back know no function of users: who has it brings it.
#[test]
fn windows_that_come_back_get_their_function() {
    let env = Env::memory(1);
    let open = || {
        let db = Database::open(DIR, options(&env)).unwrap();
        let function = Multiset(Merging::Tally);
        let windows = db.windows("w", function, Tiers::new(Period::milliseconds(10), 1)).open().unwrap();
        (db, windows)
    };
    let (db, windows) = open();
    let add = |windows: &Windows<Multiset>| windows.add(5, b"key", b"value").unwrap();
    add(&windows);
    db.flush().unwrap();
    add(&windows);
    db.savepoint("s").unwrap();
    let wanted = windows.get(.., b"key").unwrap().unwrap();
    assert_eq!(windows.expire(100).unwrap().dropped, 1);
    drop(windows);
    db.close().unwrap();

    let (db, windows) = open();
    assert_eq!(windows.get(.., b"key").unwrap(), None);
    let savepoint = db.open_savepoint("s").unwrap();
    assert_eq!(windows.at(&savepoint).get(.., b"key").unwrap().as_ref(), Some(&wanted));
    db.rollback("s").unwrap();
    assert_eq!(windows.iter(..).unwrap().next().unwrap().unwrap(), (b"key".to_vec(), wanted));
    add(&windows);
    assert_eq!(windows.expire(100).unwrap().dropped, 1);
}

/// A function that panicked at the states of several windows took the reader with it.
#[test]
fn a_function_that_panics_is_an_error_of_who_reads() {
    let (db, trip) = (Database::open(DIR, options(&Env::memory(1))).unwrap(), Trip::default());
    let windows = db.windows("w", Tripping(SumInt, trip.clone()), tiers()).open().unwrap();
    windows.add(5, b"key", 1).unwrap();
    windows.add(15, b"key", 2).unwrap();
    trip.set(1, 1);
    for refused in [windows.get(.., b"key").map(drop), windows.iter(..).unwrap().next().unwrap().map(drop)] {
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("sum_int") && text.contains("key"), "{text}");
    }
    assert_eq!(windows.get(.., b"key").unwrap(), Some(3));
}
