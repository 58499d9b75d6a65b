//! What a get costs, counted where it happens: at the files.

use std::sync::Arc;
use std::time::Duration;

use forebay::{Batch, Database, Durability, Options, Table};
use forebay_env::Env;
use forebay_env::fs::{MemoryFs, TracedFs};

const RECORDS: u64 = 400_000;
const GETS: u64 = 5_000;

/// Spreads numbers over all keys; a bijection, so that no key repeats.
fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

/// In no order of time or place, so that neither helps the cache.
fn scattered(i: u64) -> u64 {
    i * 237_861 % RECORDS
}

struct Files(Arc<TracedFs>, Env);

impl Files {
    fn new() -> Self {
        let files = TracedFs::new(MemoryFs::new());
        Self(Arc::clone(&files), Env::simulated(files, 7))
    }

    fn open(&self, options: Options) -> (Database, Table) {
        let db = Database::open("/db", options.env(self.1.clone())).unwrap();
        let table = db.table("t").open().unwrap();
        (db, table)
    }

    fn load(&self, options: Options) -> Database {
        let (db, table) = self.open(options);
        let mut batch = Batch::new();
        for number in 0..RECORDS {
            batch.put(&table, key(number), number.to_le_bytes());
            if batch.len() == 1000 {
                db.write(&mut batch, Durability::Os).unwrap();
            }
        }
        db.flush().unwrap();
        db
    }

    /// Lets background work do what there is, in no time.
    fn work(&self) {
        self.1.jobs.step_some(10_000);
    }

    /// Device reads a get, for present keys and for absent ones, each by itself or in groups.
    fn reads(&self, table: &Table, group: u64) -> (f64, f64) {
        let reads = |first: u64| {
            let before = self.0.reads_of("list");
            for start in (0..GETS).step_by(group as usize) {
                let numbers: Vec<u64> = (start..start + group).map(|i| first + scattered(i)).collect();
                let keys: Vec<_> = numbers.iter().map(|&number| key(number)).collect();
                let found = match group {
                    1 => vec![table.get(keys[0]).unwrap()],
                    _ => table.multi_get(&keys).unwrap(),
                };
                for (number, value) in numbers.iter().zip(found) {
                    let expected = (first == 0).then(|| number.to_le_bytes().to_vec());
                    assert_eq!(value, expected, "{number}");
                }
            }
            (self.0.reads_of("list") - before) as f64 / GETS as f64
        };
        (reads(0), reads(RECORDS))
    }
}

/// The most lists that a lookup may have to ask.
fn lists(db: &Database) -> usize {
    db.stats().tables[0].levels.iter().map(|level| level.lists_max).sum()
}

#[test]
fn a_cold_get_costs_one_device_read_and_an_absent_key_nearly_none() {
    let files = Files::new();
    // A cache too small to help.
    let options = || Options::default().memory_limit(4 << 20).write_buffer(512 << 10);
    let db = files.load(options());
    assert!(lists(&db) >= 5, "{} lists on a path prove little", lists(&db));
    let bytes = db.stats().memory_bytes_per_record;
    assert!(bytes <= 1.5, "{bytes} bytes a record");
    db.close().unwrap();
    for group in [1, 40] {
        let (db, table) = files.open(options());
        let (present, absent) = files.reads(&table, group);
        assert!((0.8..=1.05).contains(&present), "{present} device reads for a present key");
        // Each list's filter lets about one absent key in 230 through.
        assert!(absent <= 0.005 * lists(&db) as f64, "{absent} device reads for an absent key");
        println!("device reads: {present} present, {absent} absent");
    }
}

#[test]
fn where_filters_do_not_fit_they_are_thinner_and_none_is_given_up() {
    let files = Files::new();
    let limit = 2 << 20;
    let options = || Options::default().memory_limit(limit).write_buffer(128 << 10);
    let db = files.load(options());
    files.work();
    let lists = lists(&db);
    assert!(lists >= 15, "{lists} lists on a path prove little");
    // As the database was written, and as it is opened again.
    let mut all = vec![db.stats().memory.filters];
    db.close().unwrap();
    let (db, table) = files.open(options());
    files.work();
    all.push(db.stats().memory.filters);
    // Nobody has written since: merges at rest have read some with what spare buffers lend.
    let lent = (128 << 10) / 2 * 5;
    // And what is thinned as it is read fills no whole pages.
    let rest = 4096 * db.stats().list_files;
    let allowed = [limit / 16 * 5, limit / 16 * 5 + lent + rest];
    assert!(all.iter().zip(allowed).all(|(&filters, most)| filters <= most), "{all:?} bytes of filters");
    let (present, absent) = files.reads(&table, 1);
    println!("device reads with {all:?} bytes of filters: {present} present, {absent} absent, {lists} lists");
    assert!(absent <= 0.3 * lists as f64, "{absent} device reads for an absent key in {lists} lists");
    assert!(present <= 1.0 + 0.2 * lists as f64, "{present} device reads for a present key");
}

#[test]
fn lookups_pay_for_merges() {
    let files = Files::new();
    let options = || Options::default().memory_limit(4 << 20).write_buffer(512 << 10);
    // They never do at 0.
    let db = files.load(options().read_compaction_ratio(0.0));
    let before = lists(&db);
    assert!(before >= 5, "{before} lists on a path prove little");
    let table = db.table("t").open().unwrap();
    db.wait_until_idle().unwrap();
    files.reads(&table, 1);
    assert_eq!(lists(&db), before);
    db.close().unwrap();
    // What they have spent in vain pays for merges, and merges leave nothing to spend in vain.
    let (db, table) = files.open(options().read_compaction_ratio(1e3));
    let mut rounds = 0;
    while lists(&db) > 2 && rounds < 20 {
        files.reads(&table, 40);
        // Somebody writes all the while: this is not a matter of rest.
        table.put(key(0), 0u64.to_le_bytes()).unwrap();
        db.flush().unwrap();
        rounds += 1;
    }
    println!("{before} lists, {} after {rounds} rounds", lists(&db));
    assert!((1..20).contains(&rounds), "{} lists after {rounds} rounds", lists(&db));
}

#[test]
fn idle_time_leaves_one_list_a_leaf_and_lends_memory_to_the_page_cache() {
    let files = Files::new();
    let limit = 8 << 20;
    let db = files.load(Options::default().memory_limit(limit).write_buffer(512 << 10));
    assert!(lists(&db) >= 5, "{} lists on a path prove little", lists(&db));
    let table = db.table("t").open().unwrap();
    db.wait_until_idle().unwrap();
    assert_eq!(lists(&db), 1);
    // Once it is idle, there is nothing more to do; and a few new records are not worth rewriting all of them.
    let merges = db.stats().jobs_done["merge"];
    table.put(key(0), 0u64.to_le_bytes()).unwrap();
    db.wait_until_idle().unwrap();
    assert_eq!((db.stats().jobs_done["merge"], lists(&db)), (merges, 2));
    // The page cache has what spare buffers do not use, until somebody writes again.
    let cached = || {
        files.reads(&table, 40);
        db.stats().memory.page_cache
    };
    let kept = limit / 3 - db.stats().memory.filters;
    let lent = cached();
    assert!(lent > kept + kept / 4 && lent < kept + limit / 4, "{lent} bytes cached, {kept} without loans");
    // Not for a write now and then, but once half a buffer was written: before another one is begun.
    let pass = || {
        files.1.jobs.step_some(2000);
        files.1.jobs.advance(Duration::from_secs(2));
        files.1.jobs.step_some(2000);
        db.stats().memory.page_cache
    };
    for number in 0..3u64 {
        table.put(key(number), number.to_le_bytes()).unwrap();
        assert!(pass() > kept + kept / 4, "{} bytes cached, {kept} without loans", pass());
    }
    let mut batch = Batch::new();
    (0..9000u64).for_each(|number| batch.put(&table, key(number), number.to_le_bytes()));
    db.write(&mut batch, Durability::Os).unwrap();
    files.1.jobs.step_some(2000);
    assert!(db.stats().memory.page_cache <= kept, "{} bytes cached", db.stats().memory.page_cache);
    table.put(key(1), 1u64.to_le_bytes()).unwrap();
    db.flush().unwrap();
    assert!(cached() <= kept, "{} bytes cached, {kept} without loans", cached());
}
