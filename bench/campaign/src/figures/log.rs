//! What an append of one batch to the log costs through the kernel's cache and with direct I/O: the reason
//! why the log takes the first.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

/// A batch of 1,000 records of 16 bytes, in whole blocks.
const BATCH_BYTES: usize = 20 << 10;
const BATCHES: usize = 4_000;
pub(super) const BLOCK_BYTES: usize = 4096;
/// `O_DIRECT` on Linux.
pub(super) const DIRECT: i32 = 0o40000;

/// Appends through the cache, and directly where the file system can: a line of results, in microseconds.
pub(super) fn measure(folder: &Path) -> Result<Value, String> {
    let path = folder.join("log");
    let told = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
    preallocate(&path).map_err(told)?;
    let buffered = appends(&path, 0).map_err(told)?;
    let direct = appends(&path, DIRECT).ok();
    std::fs::remove_file(&path).map_err(told)?;
    Ok(json!({ "type": "log", "buffered": buffered, "direct": direct }))
}

/// Memory that begins where a block may, as direct I/O wants it.
pub(super) struct Aligned {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

pub(super) fn aligned(len: usize) -> Aligned {
    let memory = vec![7u8; len + BLOCK_BYTES];
    Aligned { start: memory.as_ptr().align_offset(BLOCK_BYTES), memory, len }
}

impl Aligned {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

/// A recycled segment: its blocks are allocated and written.
fn preallocate(path: &Path) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    let chunk = vec![0; 1 << 20];
    for _ in 0..(BATCHES * BATCH_BYTES).div_ceil(chunk.len()) {
        file.write_all(&chunk)?;
    }
    file.sync_all()
}

fn appends(path: &Path, flags: i32) -> std::io::Result<Value> {
    let file = OpenOptions::new().write(true).custom_flags(flags).open(path)?;
    let memory = aligned(BATCH_BYTES);
    let batch = memory.bytes();
    let mut times = Vec::with_capacity(BATCHES);
    for number in 0..BATCHES {
        let started = Instant::now();
        file.write_all_at(batch, (number * BATCH_BYTES) as u64)?;
        times.push(started.elapsed().as_nanos() as f64 / 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(json!({ "p50": times[BATCHES / 2], "p99": times[BATCHES * 99 / 100] }))
}
