//! How fast tables are scanned in parts: `scan_parts [RECORDS [VALUE_BYTES [MEMORY_MIB]]]`. For a table in hash order and
//! one in key order each line tells, for one, two and four threads, the entries a second, and as a multiple of one thread.

#![expect(
    clippy::disallowed_methods,
    reason = "a program that measures, on the machine's own files and threads"
)]

use std::time::Instant;

use forebay::{Batch, Database, Durability, Layout, Options, Result, Table};

const BATCH: u64 = 1_000;
const ROUNDS: usize = 3;

fn main() -> Result<()> {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|number| number.parse().ok()).collect();
    let number = |at: usize, usual: u64| numbers.get(at).copied().unwrap_or(usual);
    let (records, value_bytes, memory_mib) = (number(0, 5_000_000), number(1, 100), number(2, 1_024));
    let dir = std::env::temp_dir().join(format!("forebay-scan-parts-{}", std::process::id()));
    let db = Database::open(&dir, Options::default().memory_limit(memory_mib << 20))?;
    for (name, layout) in [("hash order", Layout::wb_tree()), ("key order", Layout::wb_tree_ordered())] {
        let table = db.table(name).layout(layout).open()?;
        load(&db, &table, records, value_bytes)?;
        // From memory what fits there.
        scan(&table, 1)?;
        let mut alone = 0.0;
        for threads in [1, 2, 4] {
            let mut best = f64::MAX;
            for _ in 0..ROUNDS {
                let start = Instant::now();
                assert_eq!(scan(&table, threads)?, records, "each entry once");
                best = best.min(start.elapsed().as_secs_f64());
            }
            let rate = records as f64 / best;
            if threads == 1 {
                alone = rate;
            }
            println!("{name}, {threads} threads: {rate:.0} entries a second, {:.2} times", rate / alone);
        }
        let start = Instant::now();
        assert_eq!(table.count()?, records);
        println!("{name}, count: {:.0} keys a second", records as f64 / start.elapsed().as_secs_f64());
    }
    db.close()?;
    Database::destroy(&dir)
}

fn load(db: &Database, table: &Table, records: u64, value_bytes: u64) -> Result<()> {
    let value = vec![b'v'; value_bytes as usize];
    let mut batch = Batch::new();
    for begin in (0..records).step_by(BATCH as usize) {
        for record in begin..(begin + BATCH).min(records) {
            // Each key once, in no order: the factor is odd.
            batch.put(table, record.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(), &value);
        }
        db.write(&mut batch, Durability::Memory)?;
    }
    db.wait_until_idle()
}

/// Every entry, by so many threads.
fn scan(table: &Table, threads: usize) -> Result<u64> {
    let parts = table.parts(threads)?;
    std::thread::scope(|scope| {
        let walk = |part: forebay::Scan| -> Result<u64> {
            let (mut entries, mut bytes) = (0, 0);
            for entry in part {
                let (key, value) = entry?;
                entries += 1;
                bytes += key.len() + value.len();
            }
            std::hint::black_box(bytes);
            Ok(entries)
        };
        let threads: Vec<_> = parts.into_iter().map(|part| scope.spawn(move || walk(part))).collect();
        threads.into_iter().map(|thread| thread.join().expect("nothing panics")).sum()
    })
}
