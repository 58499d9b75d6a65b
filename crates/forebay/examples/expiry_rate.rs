//! How fast entries expire: `expiry_rate [RECORDS [VALUE_BYTES [SECONDS [LAYOUT]]]]`. Puts records that live for so many
//! seconds, then waits until the space of all is back. Tells the puts a second, how long after the last entry's end its
//! space was back, and the entries that went in each second meanwhile.

#![expect(
    clippy::disallowed_methods,
    reason = "a program that measures, on the machine's own files and clock"
)]

use std::time::{Duration, Instant};

use forebay::{Batch, Database, Durability, Layout, Options, Result};

const BATCH: u64 = 1_000;
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual: u64| words.get(at).and_then(|word| word.parse().ok()).unwrap_or(usual);
    let (records, value_bytes, seconds) = (number(0, 10_000_000), number(1, 50), number(2, 10));
    let layout: Layout = words.get(3).map_or(Ok(Layout::wb_tree()), |name| name.parse())?;
    let dir = std::env::temp_dir().join(format!("forebay-expiry-rate-{}", std::process::id()));
    let db = Database::open(&dir, Options::default().memory_limit(512 << 20))?;
    let life = Duration::from_secs(seconds);
    let table = db.table("entries").layout(layout).time_to_live(life).open()?;
    let (start, value) = (Instant::now(), vec![b'v'; value_bytes as usize]);
    let mut batch = Batch::new();
    for begin in (0..records).step_by(BATCH as usize) {
        for record in begin..(begin + BATCH).min(records) {
            batch.put(&table, record.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(), &value);
        }
        db.write(&mut batch, Durability::Memory)?;
    }
    let put = start.elapsed();
    println!("{layout}: {:.0} puts a second", records as f64 / put.as_secs_f64());
    db.flush()?;
    let end = Instant::now().max(start + put) + life;
    let (mut before, mut fastest, mut is_back) = ((Instant::now(), db.stats().list_records), 0.0, None);
    while is_back.is_none() && Instant::now() < end + 10 * life {
        std::thread::sleep(LOOK_INTERVAL);
        let (now, left) = (Instant::now(), db.stats().list_records);
        let passed = now.duration_since(before.0);
        if passed >= Duration::from_secs(1) {
            fastest = f64::max(fastest, before.1.saturating_sub(left) as f64 / passed.as_secs_f64());
            before = (now, left);
        }
        is_back = (left == 0).then_some(now);
    }
    let late = is_back.map(|back| back.saturating_duration_since(end).as_secs_f64());
    match late {
        Some(late) => println!("space of all was back {late:.2} s after the last entry's end"),
        None => println!("{} records are left", db.stats().list_records),
    }
    println!("at most {fastest:.0} entries went in a second; {} are seen", table.iter()?.count());
    drop(table);
    db.close()?;
    Database::destroy(&dir)
}
