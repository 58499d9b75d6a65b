//! What the device below the scratch directory does at its best: large writes one behind the other, with a sync each and
//! without, and reads of a page at random places, one and many at a time. All go around the kernel's cache.
//!
//! No engine gets more out of it, so its figures are told as shares of these.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::log::{BLOCK_BYTES, DIRECT, aligned};

const FILE_BYTES: u64 = 1 << 30;
const CHUNK_BYTES: usize = 1 << 20;
const READERS: u64 = 32;
/// Of each measurement but the first.
const SECONDS: Duration = Duration::from_secs(2);
/// Of the generator of places: a prime, and the golden part of 2^64.
const SEED: u64 = 1_000_003;
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A line of results, all of it for a second.
pub(super) fn measure(folder: &Path) -> Result<Value, String> {
    let path = folder.join("device");
    let told = |error: std::io::Error| format!("cannot measure {}: {error}", path.display());
    let line = all(&path).map_err(told);
    std::fs::remove_file(&path).map_err(told)?;
    line
}

fn all(path: &Path) -> std::io::Result<Value> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(true).read(true).write(true).custom_flags(DIRECT);
    let file = options.open(path)?;
    let write_bytes = writes(&file)?;
    let (synced_write_bytes, _) = synced(&file, CHUNK_BYTES)?;
    let (_, syncs) = synced(&file, BLOCK_BYTES)?;
    Ok(json!({
        "type": "device", "write_bytes": write_bytes, "synced_write_bytes": synced_write_bytes, "syncs": syncs,
        "reads_alone": reads(&file, 1)?, "reads_together": reads(&file, READERS)?,
    }))
}

/// Fills the file. Bytes a second.
fn writes(mut file: &File) -> std::io::Result<f64> {
    let memory = aligned(CHUNK_BYTES);
    let chunk = memory.bytes();
    let started = Instant::now();
    for _ in 0..FILE_BYTES / CHUNK_BYTES as u64 {
        file.write_all(chunk)?;
    }
    file.sync_data()?;
    Ok(FILE_BYTES as f64 / started.elapsed().as_secs_f64())
}

/// Over the file from its beginning, a sync behind each. Bytes and writes a second.
fn synced(file: &File, bytes: usize) -> std::io::Result<(f64, f64)> {
    let memory = aligned(bytes);
    let started = Instant::now();
    let mut count = 0u64;
    while started.elapsed() < SECONDS {
        file.write_all_at(memory.bytes(), count * bytes as u64 % FILE_BYTES)?;
        file.sync_data()?;
        count += 1;
    }
    let rate = count as f64 / started.elapsed().as_secs_f64();
    Ok((rate * bytes as f64, rate))
}

/// Pages a second, by so many readers.
fn reads(file: &File, readers: u64) -> std::io::Result<f64> {
    let started = Instant::now();
    let read = |reader: u64| {
        let mut memory = aligned(BLOCK_BYTES);
        let mut place = SEED * (reader + 1);
        let mut count = 0u64;
        while started.elapsed() < SECONDS {
            place = place.wrapping_mul(SEED).wrapping_add(STEP);
            let block = (place >> 24) % (FILE_BYTES / BLOCK_BYTES as u64);
            file.read_exact_at(memory.bytes_mut(), block * BLOCK_BYTES as u64)?;
            count += 1;
        }
        Ok::<u64, std::io::Error>(count)
    };
    let counts = std::thread::scope(|scope| {
        let read = &read;
        let threads: Vec<_> = (0..readers).map(|reader| scope.spawn(move || read(reader))).collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended
            .map(|count| count.unwrap_or_else(|_| Err(std::io::Error::other("a reader panicked"))))
            .collect::<std::io::Result<Vec<u64>>>()
    })?;
    Ok(counts.iter().sum::<u64>() as f64 / started.elapsed().as_secs_f64())
}
