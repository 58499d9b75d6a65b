//! What encryption costs: `encryption_cost [RECORDS [VALUE_BYTES [MEMORY_MIB [LAYOUT]]]]`. Loads records in batches,
//! puts some by themselves, merges all to the end, opens the database again, gets keys at random and scans; without
//! encryption and with it.

#![expect(
    clippy::disallowed_methods,
    reason = "a program that measures, on the machine's own files and clock"
)]

use std::sync::Arc;
use std::time::Instant;

use forebay::encryption::{KEY_BYTES, Key, OneKey};
use forebay::{Batch, Database, Durability, Layout, Options, Result};

const BATCH: u64 = 1_000;
const SINGLE_PUTS: u64 = 100_000;
const GETS: u64 = 200_000;

fn key_of(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// Does something so many times, and tells how often a second.
fn rate(what: &str, times: u64, act: impl FnOnce() -> Result<()>) -> Result<()> {
    let start = Instant::now();
    act()?;
    println!("  {what}: {:.0} a second", times as f64 / start.elapsed().as_secs_f64());
    Ok(())
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual: u64| words.get(at).and_then(|word| word.parse().ok()).unwrap_or(usual);
    let (records, value_bytes, memory_mib) = (number(0, 2_000_000), number(1, 100), number(2, 64));
    let layout: Layout = words.get(3).map_or(Ok(Layout::wb_tree()), |name| name.parse())?;
    let dir = std::env::temp_dir().join(format!("forebay-encryption-cost-{}", std::process::id()));
    for is_encrypted in [false, true] {
        println!("{}", if is_encrypted { "encrypted" } else { "plain" });
        let provider = Arc::new(OneKey::new("of the measurement", Key::new([7; KEY_BYTES])));
        let open = || {
            let options = Options::default().memory_limit(memory_mib << 20);
            let provider = Arc::clone(&provider);
            Database::open(&dir, if is_encrypted { options.encryption(provider) } else { options })
        };
        let db = open()?;
        let table = db.table("entries").layout(layout).open()?;
        let value: Vec<u8> = (0..value_bytes).map(|at| (at * 31 % 251) as u8).collect();
        let mut batch = Batch::new();
        rate("records loaded", records, || {
            for begin in (0..records).step_by(BATCH as usize) {
                (begin..(begin + BATCH).min(records)).for_each(|one| batch.put(&table, key_of(one), &value));
                db.write(&mut batch, Durability::Memory)?;
            }
            db.flush()
        })?;
        let puts = SINGLE_PUTS.min(records);
        rate("single puts", puts, || (0..puts).try_for_each(|one| table.put(key_of(one), &value)))?;
        rate("records merged", records, || table.compact())?;
        println!("  {} bytes written to files of records", db.stats().disk_bytes);
        drop(table);
        db.close()?;
        let db = open()?;
        let table = db.table("entries").existing(true).open()?;
        for pass in ["gets", "gets again"] {
            rate(pass, GETS, || {
                (0..GETS).try_for_each(|one| {
                    let found = table.get(key_of(one.wrapping_mul(0x2545_f491_4f6c_dd1d) % records))?;
                    assert_eq!(found.map(|value| value.len()), Some(value.len()), "all are there");
                    Ok(())
                })
            })?;
        }
        println!("  {:.2} device reads a get", db.stats().device_reads_per_get);
        rate("records scanned", records, || table.iter()?.try_for_each(|entry| entry.map(drop)))?;
        drop(table);
        db.close()?;
        Database::destroy(&dir)?;
    }
    Ok(())
}
