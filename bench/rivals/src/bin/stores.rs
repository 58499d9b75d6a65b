//! Many RocksDB databases of one process under one memory: `stores [DIRECTORY [DATABASES [MEGABYTES [RECORDS]]]]`, as
//! Forebay's example `pool`.

#![expect(clippy::disallowed_methods, reason = "a program that measures, on the machine's own files")]

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use forebay_bench::Failure;
use forebay_bench_rivals::Stores;

const AT_A_TIME: usize = 5;
const TURNS: usize = 8;
const BATCH: u64 = 1000;
const MIB: usize = 1 << 20;
/// RocksDB's own default.
const WRITE_BUFFER_BYTES: usize = 64 * MIB;

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("stores: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |at: usize, usual: u64| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(usual);
    let temporary = std::env::temp_dir().join(format!("rocksdb-stores-{}", std::process::id()));
    let dir = arguments.first().map_or(temporary.as_path(), Path::new);
    std::fs::create_dir_all(dir)?;
    let (count, memory_bytes) = (number(1, 200) as usize, number(2, 256) as usize * MIB);
    let records = number(3, 1000) * 1000;

    let started = Instant::now();
    let mut alone = Stores::open(&dir.join("alone"), 1, memory_bytes, WRITE_BUFFER_BYTES, 2)?;
    alone.load(&[0], 0, records * AT_A_TIME as u64, BATCH)?;
    tell("one database, all the memory", started, records * AT_A_TIME as u64);
    drop(alone);

    let before = (status("RssAnon:"), status("Threads:"));
    let started = Instant::now();
    let mut stores = Stores::open(&dir.join("many"), count, memory_bytes, WRITE_BUFFER_BYTES, 2)?;
    println!("{count} databases opened in {:.2} s", started.elapsed().as_secs_f64());
    let idle = status("RssAnon:").saturating_sub(before.0) as f64 / count as f64;
    println!("each takes {idle:.0} KiB; all have {} threads", status("Threads:").saturating_sub(before.1));
    for turn in 0..TURNS {
        let started = Instant::now();
        let chosen: Vec<usize> = (0..AT_A_TIME).map(|k| (turn * AT_A_TIME + k) % count).collect();
        stores.load(&chosen, turn as u64, records, BATCH)?;
        tell(&format!("five of them, turn {turn}"), started, records * AT_A_TIME as u64);
        for number in chosen {
            if !stores.has(number, 7)? {
                return Err("a record is missing".into());
            }
        }
    }
    println!("peak {} MiB, of anonymous memory {} MiB now", status("VmHWM:") >> 10, status("RssAnon:") >> 10);
    drop(stores);
    std::fs::remove_dir_all(dir)?;
    Ok(())
}

fn tell(what: &str, started: Instant, records: u64) {
    let seconds = started.elapsed().as_secs_f64();
    let rate = records as f64 / seconds / 1e6;
    println!("{what:30} {seconds:6.2} s, {rate:.2} M records a second, {} MiB", status("RssAnon:") >> 10);
}

/// A number of the process's status, in KiB where it is memory.
fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
