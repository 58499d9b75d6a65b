//! Many databases of a process on one memory and few threads: `pool [DIRECTORY [DATABASES [MEGABYTES [RECORDS]]]]`.
//!
//! Opens the databases, loads this many thousand records of 100 bytes into five at a time, in turn, and tells what that
//! takes beside one database with all the memory.

#![expect(clippy::disallowed_methods, reason = "a program that measures, on the machine's own files")]

use std::path::Path;
use std::time::{Duration, Instant};

use forebay::{Batch, Database, Durability, Options, Pool, Result, Table};

const AT_A_TIME: usize = 5;
const TURNS: usize = 8;
const BATCH: u64 = 1000;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |at: usize, usual: u64| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(usual);
    let temporary = std::env::temp_dir().join(format!("forebay-pool-{}", std::process::id()));
    let dir = arguments.first().map_or(temporary.as_path(), Path::new);
    let (count, memory_bytes) = (number(1, 200) as usize, number(2, 256) << 20);
    let records = number(3, 1000) * 1000;

    load_alone(&dir.join("before"), memory_bytes, records * AT_A_TIME as u64)?;
    let before = (status("RssAnon:"), status("Threads:"));
    let pool = Pool::new(memory_bytes, 2)?;
    let started = Instant::now();
    let open = |number: usize| Database::open(dir.join(number.to_string()), Options::default().pool(&pool));
    let databases = (0..count).map(open).collect::<Result<Vec<_>>>()?;
    println!("{count} databases opened in {:.2} s", started.elapsed().as_secs_f64());
    let idle = (status("RssAnon:") - before.0) as f64 / count as f64;
    println!("each takes {idle:.0} KiB; all have {} threads", status("Threads:") - before.1);
    for turn in 0..TURNS {
        let started = Instant::now();
        let chosen: Vec<_> = (0..AT_A_TIME).map(|k| &databases[(turn * AT_A_TIME + k) % count]).collect();
        let tables =
            chosen.into_iter().map(|db| Ok((db, db.table("t").open()?))).collect::<Result<Vec<_>>>()?;
        load(&tables, turn as u64, records)?;
        tell(&format!("five of them, turn {turn}"), started, records * AT_A_TIME as u64);
        assert!(tables.iter().all(|(_, table)| table.contains_key(7u64.to_be_bytes()).unwrap_or(false)));
    }
    println!("peak {} MiB of anonymous memory now {}", status("VmHWM:") >> 10, status("RssAnon:") >> 10);
    std::thread::sleep(Duration::from_secs(12));
    let before = processor_seconds();
    std::thread::sleep(Duration::from_secs(10));
    let rests = processor_seconds() - before;
    println!(
        "at rest {rests:.2} s of a processor in ten; {} MiB of anonymous memory",
        status("RssAnon:") >> 10
    );
    let stats = pool.stats();
    let asleep = stats.databases.iter().filter(|database| database.wanted_bytes == 0);
    let (sleepers, held) = asleep.fold((0, 0), |(n, sum), database| (n + 1, sum + database.held_bytes));
    println!(
        "{sleepers} sleep and hold {} KiB each; the pool: {} MiB taken",
        (held / sleepers.max(1)) >> 10,
        stats.taken_bytes >> 20
    );
    databases.into_iter().try_for_each(Database::close)?;
    let started = Instant::now();
    let databases = (0..count).map(open).collect::<Result<Vec<_>>>()?;
    println!("{count} databases opened again in {:.2} s", started.elapsed().as_secs_f64());
    databases.into_iter().try_for_each(Database::close)?;
    // The device may not be as fast by now.
    load_alone(&dir.join("behind"), memory_bytes, records * AT_A_TIME as u64)?;
    std::fs::remove_dir_all(dir).map_err(|error| forebay::Error::invalid(error.to_string()))
}

fn load_alone(dir: &Path, memory_bytes: u64, records: u64) -> Result<()> {
    let alone = Database::open(dir, Options::default().memory_limit(memory_bytes))?;
    let started = Instant::now();
    load(&[(&alone, alone.table("t").open()?)], 0, records)?;
    tell("one database, all the memory", started, records);
    alone.close()
}

/// As many records into each, a batch at a time.
fn load(tables: &[(&Database, Table)], seed: u64, records: u64) -> Result<()> {
    let mut batch = Batch::new();
    for first in (0..records).step_by(BATCH as usize) {
        for (db, table) in tables {
            for key in first..first + BATCH {
                // In no order, but for the one that is asked for again.
                let key = if key == 7 { 7 } else { key.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed };
                batch.put(table, key.to_be_bytes(), [key as u8; 92]);
            }
            db.write(&mut batch, Durability::Os)?;
        }
    }
    Ok(())
}

fn tell(what: &str, started: Instant, records: u64) {
    let seconds = started.elapsed().as_secs_f64();
    let rate = records as f64 / seconds / 1e6;
    println!("{what:30} {seconds:6.2} s, {rate:.2} M records a second, {} MiB", status("RssAnon:") >> 10);
}

/// What all threads have taken of the processors, which the system counts in hundredths of a second.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok());
    ticks.sum::<u64>() as f64 / 100.0
}

/// A number of the process's status, in KiB where it is memory.
fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
