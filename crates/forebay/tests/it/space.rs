//! The space of tables: what it is said to be, who holds it, and that what is dead goes.

use std::path::Path;
use std::time::Duration;

use forebay::{Database, Layout, Options, OrderedTable, Stats, Table, TableSpaceStats};
use forebay_env::{Access, Env};
use forebay_testkit::ordered_layouts;

const DIR: &str = "/db";

fn open(env: &Env) -> Database {
    let options = Options::default().memory_limit(2 << 20).write_buffer(64 << 10).read_compaction_ratio(0.0);
    Database::open(Path::new(DIR), options.env(env.clone())).unwrap()
}

fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn put_all(table: &Table, numbers: std::ops::Range<u64>, value: u64) {
    for number in numbers {
        table.put(key(number), format!("{value:032}").as_bytes()).unwrap();
    }
}

/// Bytes of all lists and trees, as the file system has them.
pub(super) fn list_bytes(env: &Env) -> u64 {
    let names = env.fs.list(Path::new(DIR)).unwrap();
    let files = names.iter().filter(|name| name.ends_with(".list") || name.ends_with(".tree"));
    files
        .map(|name| env.fs.open_read(&Path::new(DIR).join(name), Access::Buffered).unwrap().len().unwrap())
        .sum()
}

fn space(stats: &Stats) -> TableSpaceStats {
    stats.tables[0].space
}

/// Those that write out what is flushed: most.
fn flushing_layouts() -> impl Iterator<Item = Layout> {
    layouts().filter(|layout| !layout.keeps_in_memory())
}

fn layouts() -> impl Iterator<Item = Layout> {
    ordered_layouts().into_iter().chain([Layout::wb_tree()])
}

#[test]
fn what_tables_are_said_to_take_is_what_their_files_take() {
    for layout in flushing_layouts() {
        let env = Env::memory(7);
        let db = open(&env);
        let table = db.table("t").layout(layout).open().unwrap();
        for round in 0..8 {
            put_all(&table, 0..4_000, round);
            let stats = db.stats();
            assert_eq!(space(&stats).disk_bytes, list_bytes(&env), "{layout}: {:?}", space(&stats));
        }
        db.flush().unwrap();
        let full = space(&db.stats());
        table.compact().unwrap();
        let least = space(&db.stats());
        assert_eq!(least.live_bytes, least.live_file_bytes, "{layout}: nothing is left but what lives");
        // Samples of few records are few, and short files have more around their records.
        let guess = full.live_bytes as f64 / least.live_bytes as f64;
        assert!((0.8..1.6).contains(&guess), "{layout}: {full:?}, {least:?}");
        assert_eq!(full.space_amplification, full.disk_bytes as f64 / full.live_bytes as f64);
        for number in 0..2_000 {
            table.delete(key(number)).unwrap();
        }
        db.flush().unwrap();
        let deleted = space(&db.stats());
        let left = deleted.live_bytes as f64 / least.live_bytes as f64;
        assert!((0.3..0.7).contains(&left), "{layout}: half of all keys live: {deleted:?}, {least:?}");
        drop(table);
        db.close().unwrap();
        let stats = open(&env).stats();
        assert_eq!(space(&stats).disk_bytes, list_bytes(&env), "{layout}: opened again");
    }
}

#[test]
fn snapshots_are_listed_with_what_they_hold_until_they_go() {
    // Where trees are appended to, snapshots share their files.
    for layout in layouts().filter(|layout| layout.inline_bytes() >= 64) {
        let env = Env::memory(8);
        let db = open(&env);
        let table = db.table("t").layout(layout).open().unwrap();
        let rewrite = |value| {
            put_all(&table, 0..4_000, value);
            table.compact().unwrap();
        };
        rewrite(0);
        let whole = space(&db.stats()).live_file_bytes;
        let (first, again) = (db.snapshot(), db.snapshot());
        assert_eq!((first.number(), again.number()), (1, 2));
        rewrite(1);
        let second = db.snapshot();
        rewrite(2);
        env.jobs.advance(Duration::from_secs(5));
        let stats = db.stats();
        let [one, two, three] = &stats.snapshots[..] else { panic!("{:?}", stats.snapshots) };
        assert_eq!((one.held_bytes, one.own_bytes), (whole, 0), "{layout}: two see the same");
        assert_eq!((two.number, two.held_bytes, two.own_bytes), (2, whole, 0));
        assert!(three.own_bytes == three.held_bytes && three.own_bytes > whole / 2, "{layout}: {three:?}");
        assert!(three.age_seconds >= 5 && one.age_seconds >= three.age_seconds);
        assert_eq!(space(&stats).held_bytes, whole + three.held_bytes);
        assert_eq!(space(&stats).snapshot_bytes, space(&stats).held_bytes);
        drop(again);
        assert_eq!(db.stats().snapshots[0].own_bytes, whole, "{layout}: now it is the only one");
        let scan = first.iter(&table).unwrap();
        drop(first);
        assert_eq!(db.stats().snapshots[0].number, 1, "a scan of it holds as much");
        drop(scan);
        let stats = db.stats();
        assert_eq!((stats.snapshots.len(), space(&stats).held_bytes), (1, three.held_bytes), "{layout}");
        assert!(space(&stats).leaving_bytes >= whole);
        let scan = table.iter().unwrap();
        drop(second);
        rewrite(3);
        let stats = db.stats();
        assert!(
            space(&stats).held_bytes > whole / 2 && space(&stats).snapshot_bytes == 0,
            "{layout}: a scan's"
        );
        drop(scan);
        db.wait_until_idle().unwrap();
        let limit = space(&db.stats()).live_file_bytes;
        env.jobs.wait(&mut || space(&db.stats()).disk_bytes == limit);
        assert_eq!(list_bytes(&env), limit, "{layout}");
    }
}

fn ordered(db: &Database, layout: &str) -> OrderedTable {
    db.table("t").layout(layout.parse().unwrap()).node_bytes(64 << 10).open_ordered().unwrap()
}

#[test]
fn parts_of_runs_whose_files_are_mostly_dead_are_written_anew() {
    for layout in ["no-merge", "leveling", "tiering", "geometric:p=2"] {
        let env = Env::memory(9);
        let db = open(&env);
        let table = ordered(&db, layout);
        let entry = |number: u64| Ok((number.to_be_bytes().to_vec(), vec![7; 32]));
        table.ingest((0..8_000).map(entry)).unwrap();
        db.wait_until_idle().unwrap();
        let whole = space(&db.stats());
        assert_eq!(whole.dead_bytes, 0);
        // A sixteenth of each file: that is left.
        let bounds = |low: u64, high: u64| (low.to_be_bytes(), high.to_be_bytes());
        let (low, high) = bounds(700, 800);
        table.delete_range(&low[..]..&high[..]).unwrap();
        db.wait_until_idle().unwrap();
        let little = space(&db.stats());
        assert_eq!(little.live_file_bytes, whole.live_file_bytes, "{layout}: not worth a job");
        assert!(little.dead_bytes > 0 && little.dead_bytes < whole.disk_bytes / 20, "{layout}: {little:?}");
        // Nearly all of each file.
        for start in (0..8_000).step_by(1_000) {
            let (low, high) = bounds(start + 50, start + 1_000);
            table.delete_range(&low[..]..&high[..]).unwrap();
        }
        db.wait_until_idle().unwrap();
        let least = space(&db.stats());
        assert!(least.live_file_bytes < whole.live_file_bytes / 4, "{layout}: {least:?}");
        assert!(least.dead_bytes * 2 <= least.live_file_bytes, "{layout}: {least:?}");
        let left: Vec<u64> = table
            .range(..)
            .unwrap()
            .map(|entry| u64::from_be_bytes(entry.unwrap().0.try_into().unwrap()))
            .collect();
        let expected: Vec<u64> = (0..8_000).filter(|number| number % 1_000 < 50).collect();
        assert_eq!(left, expected, "{layout}");
    }
}

/// Whether a text stands in any file of the database.
fn is_on_disk(env: &Env, text: &[u8]) -> bool {
    let holds = |name: &String| {
        let file = env.fs.open_read(&Path::new(DIR).join(name), Access::Buffered).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(0, &mut bytes).unwrap();
        bytes.windows(text.len()).any(|window| window == text)
    };
    env.fs.list(Path::new(DIR)).unwrap().iter().filter(|name| *name != "LOCK").any(holds)
}

/// Lets time pass, a second at a time, while something is written now and then.
fn pass_seconds(env: &Env, table: &Table, seconds: u64) {
    for second in 0..seconds {
        table.put(key(1_000_000 + second % 7), b"other").unwrap();
        env.jobs.advance(Duration::from_secs(1));
        env.jobs.step_some(3_000);
    }
}

#[test]
fn what_is_deleted_or_overwritten_leaves_the_disk_in_time() {
    for layout in flushing_layouts() {
        for interval in [None, Some(Duration::from_secs(60))] {
            let env = Env::memory(15);
            let db = open(&env);
            let mut builder = db.table("t").layout(layout).node_bytes(32 << 10);
            if let Some(interval) = interval {
                builder = builder.reclaim_interval(interval);
            }
            let table = builder.open().unwrap();
            for secret in [&b"SECRET-ONE"[..], b"SECRET-TWO"] {
                for number in 0..3_000 {
                    table.put(key(number), secret).unwrap();
                }
                // Some is in lists, the rest is buffered.
                pass_seconds(&env, &table, 7);
                assert!(is_on_disk(&env, secret), "{layout}");
                for number in 0..3_000 {
                    match number % 2 {
                        0 => table.delete(key(number)).unwrap(),
                        _ => table.put(key(number), b"no secret").unwrap(),
                    }
                }
                pass_seconds(&env, &table, 60);
                let is_lazy = layout.to_string() == "no-merge";
                assert!(interval.is_none() || !is_on_disk(&env, secret), "{layout}: it is still there");
                assert!(interval.is_some() || !is_lazy || is_on_disk(&env, secret), "the test sees nothing");
            }
            for number in 0..3_000 {
                let expected = (number % 2 == 1).then(|| b"no secret".to_vec());
                assert_eq!(table.get(key(number)).unwrap(), expected, "{layout}");
            }
            let asked = db.table("t").reclaim_interval(Duration::from_secs(61)).open();
            assert!(asked.is_err_and(|error| error.to_string().contains("reclaim_interval")));
        }
    }
}
