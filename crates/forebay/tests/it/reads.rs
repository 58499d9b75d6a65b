//! What a get costs, counted where it happens: at the files.

use std::sync::Arc;

use forebay::env::Env;
use forebay::env::fs::{MemoryFs, TracedFs};
use forebay::{Batch, Database, Durability, Options};

const RECORDS: u64 = 400_000;
const GETS: u64 = 5_000;

/// Spreads numbers over all keys; a bijection, so that no key repeats.
fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

#[test]
fn a_cold_get_costs_one_device_read_and_an_absent_key_nearly_none() {
    let files = TracedFs::new(MemoryFs::new());
    let options = || {
        let env = Env::simulated(Arc::clone(&files) as _, 7);
        // A cache too small to help.
        Options::default().memory_limit(4 << 20).write_buffer(512 << 10).env(env)
    };
    {
        let db = Database::open("/db", options()).unwrap();
        let table = db.table("t").open().unwrap();
        let mut batch = Batch::new();
        for number in 0..RECORDS {
            batch.put(&table, &key(number), &number.to_le_bytes());
            if batch.len() == 1000 {
                db.write(&mut batch, Durability::Os).unwrap();
            }
        }
        db.flush().unwrap();
        let stats = db.stats();
        let lists: usize = stats.tables[0].levels.iter().map(|level| level.lists_max).sum();
        assert!(lists >= 5, "{lists} lists on a path prove little");
        assert!(stats.memory_bytes_per_record <= 2.0, "{} bytes a record", stats.memory_bytes_per_record);
        db.close().unwrap();
    }
    let db = Database::open("/db", options()).unwrap();
    let table = db.table("t").open().unwrap();
    // In no order of time or place, so that neither helps the cache.
    let scattered = |i: u64| i * 237_861 % RECORDS;
    let reads = |numbers: &mut dyn Iterator<Item = u64>, present: bool| {
        let before = files.reads_of("list");
        for number in numbers {
            assert_eq!(table.get(&key(number)).unwrap().is_some(), present, "{number}");
        }
        (files.reads_of("list") - before) as f64 / GETS as f64
    };
    let present = reads(&mut (0..GETS).map(scattered), true);
    let absent = reads(&mut (0..GETS).map(|i| RECORDS + scattered(i)), false);
    assert!((0.8..=1.1).contains(&present), "{present} device reads for a present key");
    assert!(absent <= 0.05, "{absent} device reads for an absent key");
    println!("device reads: {present} present, {absent} absent");
}
