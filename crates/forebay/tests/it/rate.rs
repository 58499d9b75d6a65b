//! A limit on background bytes a second: merges keep to it by the environment's clock, flushes go first, and it changes
//! in use.

use std::time::Duration;

use forebay::{Database, Error, Layout, Options, Pool, Table};
use forebay_env::Env;

const RATE: u64 = 128 << 10;

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(16 << 10).env(env.clone())
}

/// Rounds over the same keys: what merges have to do.
fn fill(table: &Table) {
    for round in 0..3_u8 {
        (0..1000_u32).for_each(|n| table.put(n.to_be_bytes(), [round; 100]).unwrap());
    }
}

/// What flushes and merges go through takes as long as the rate says: a tenth of a second's worth may be had at once,
/// and what flushes take beyond the rate keeps merges waiting for a second at most.
#[test]
fn merges_keep_to_the_rate() {
    for layout in [Layout::wb_tree(), Layout::leveling(4), "jungle".parse().unwrap()] {
        let env = Env::memory(1);
        let db = Database::open("/db", options(&env).background_rate(RATE)).unwrap();
        let table = db.table("t").layout(layout).open().unwrap();
        fill(&table);
        db.flush().unwrap();
        // What was taken beforehand is over.
        env.jobs.advance(Duration::from_secs(2));
        let (began, before) = (env.clock.now(), db.stats().background_bytes);
        table.compact().unwrap();
        let (took, stats) = (env.clock.now() - began, db.stats());
        let bytes = stats.background_bytes - before;
        let least = (bytes as f64 / RATE as f64 - 0.3).max(0.0);
        assert!(bytes > RATE && took.as_secs_f64() >= least, "{layout}: {bytes} bytes in {took:?}");
        assert!(stats.merge_wait_seconds >= least / 2.0, "{layout}: {}", stats.merge_wait_seconds);
        assert_eq!(stats.background_rate_bytes, RATE);
        assert_eq!(table.get(7_u32.to_be_bytes()).unwrap(), Some(vec![2; 100]));
    }
}

#[test]
fn no_limit_keeps_nobody_waiting() {
    let env = Env::memory(1);
    let db = Database::open("/db", options(&env)).unwrap();
    let table = db.table("t").open().unwrap();
    fill(&table);
    table.compact().unwrap();
    let stats = db.stats();
    assert!(stats.background_bytes > 300_000 && stats.merge_wait_seconds == 0.0, "{stats:?}");
}

/// A merge that waits is told at once that it need not any more.
#[test]
fn the_rate_changes_in_use() {
    let env = Env::memory(1);
    let db = Database::open("/db", options(&env)).unwrap();
    let table = db.table("t").open().unwrap();
    fill(&table);
    db.flush().unwrap();
    db.set_background_rate(64 << 10).unwrap();
    let compacting = env.jobs.fork("compacting", {
        let table = table.clone();
        move || table.compact().unwrap()
    });
    env.jobs.step_some(200);
    let began = env.clock.now();
    db.set_background_rate(0).unwrap();
    compacting.join();
    assert!(env.clock.now() - began < Duration::from_secs(1), "{:?}", env.clock.now() - began);
    let refused = db.set_background_rate(1000);
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    assert!(Database::open("/other", options(&env).background_rate(1000)).is_err());
}

/// One limit for all, which is the pool's to say.
#[test]
fn databases_of_a_pool_share_a_rate() {
    let (pool, env) = (Pool::new(16 << 20, 2).unwrap(), Env::memory(1));
    let pooled = || Options::default().pool(&pool).write_buffer(16 << 10).env(env.clone());
    let databases = ["/one", "/other"].map(|dir| Database::open(dir, pooled()).unwrap());
    let tables = [0, 1].map(|number: usize| databases[number].table("t").open().unwrap());
    tables.iter().for_each(fill);
    databases.iter().for_each(|db| db.flush().unwrap());
    pool.set_background_rate(RATE).unwrap();
    let bytes = || databases.iter().map(|db| db.stats().background_bytes).sum::<u64>();
    let (began, before) = (env.clock.now(), bytes());
    tables.iter().for_each(|table| table.compact().unwrap());
    let (took, bytes) = ((env.clock.now() - began).as_secs_f64(), bytes() - before);
    assert!(bytes > RATE && took >= bytes as f64 / RATE as f64 - 0.5, "{bytes} bytes in {took} s");
    assert_eq!(pool.stats().background_rate_bytes, RATE);
    let refused = databases[0].set_background_rate(RATE).unwrap_err().to_string();
    assert!(refused.contains("Pool::set_background_rate"), "{refused}");
    let refused = Database::open("/third", pooled().background_rate(RATE)).unwrap_err().to_string();
    assert!(refused.contains("background_rate"), "{refused}");
    assert!(pool.set_background_rate(1).is_err());
}

/// Writers that outrun what merges may do wait for them, and for no flush longer than without a limit; and all goes on.
#[test]
fn writers_wait_and_are_told() {
    let stall = |rate| {
        let env = Env::memory(1);
        let db = Database::open("/db", options(&env).background_rate(rate)).unwrap();
        let table = db.table("t").layout(Layout::leveling(4)).open().unwrap();
        (0..4).for_each(|_| fill(&table));
        db.stats().stall_seconds
    };
    let (limited, free) = (stall(RATE), stall(0));
    assert!(limited > free, "{limited} s by a limit, {free} s without");
}
