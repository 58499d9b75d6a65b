//! Whether what the command line asks for goes together, and what the work may use.

use std::path::PathBuf;
use std::thread;

use forebay_aggregate::COLUMNS_MAX;
use forebay_units::sizes;

use super::args::AggregateArgs;
use super::by::By;
use super::means::{MEMORY_BYTES_MIN, Means};
use super::row_format::RowFormat;
use super::shape::Shape;
use super::sheet::Style;
use crate::args::Common;
use crate::failure::Failure;

const MEMORY_BYTES: u64 = 512 << 20;
/// What the program takes besides groups, measured: itself, its threads, what it reads and writes with,
const PROGRAM_BYTES: u64 = 4 << 20;
/// what each thread more reads with,
const READER_BYTES: u64 = 2 << 20;
/// pages of Parquet that each of them reads,
const PARQUET_READ_BYTES: u64 = 4 << 20;
/// row groups that are written, each by a thread.
const PARQUET_WRITTEN_BYTES: u64 = 20 << 20;
/// and a batch of partial states.
const PARTIAL_BYTES: u64 = 4 << 20;
/// A thread more reads, or makes what is written, for so much memory.
const READER_MEMORY_BYTES: u64 = 24 << 20;
const ENCODER_MEMORY_BYTES: u64 = 128 << 20;
/// The least memory that a store works in.
const STORE_BYTES_MIN: u64 = 64 << 20;
/// Where one thread reads and adds, it keeps no more than these busy.
const THREADS_OF_USE: usize = 4;

/// Whether these groups go together with everything else that is asked.
pub(super) fn check(args: &AggregateArgs, shape: &Shape) -> Result<(), Failure> {
    let usage = |reason: &str| Err(Failure::Usage(reason.into()));
    let columns = if let By::Columns(names) = &shape.by { names.len() } else { 0 };
    if columns == 0 && !shape.counts() {
        return usage("only count goes with words, n-grams and k-mers: --fn is for columns");
    }
    if columns == 0 && (args.format.is_some() || args.header || args.cube || args.rollup) {
        return usage("--format, --header, --cube and --rollup are for columns");
    }
    if args.fold_case && !matches!(shape.by, By::Word | By::Ngram(_)) {
        return usage("--fold-case is for words and n-grams");
    }
    if columns > COLUMNS_MAX && (args.cube || args.rollup) {
        return usage(&format!("a cube or rollup has at most {} columns", COLUMNS_MAX));
    }
    if args.store.is_some() && args.files.iter().any(|path| path.as_os_str() == "-") {
        return usage("--store takes files: reading standard input cannot be resumed");
    }
    Ok(())
}

/// What the work may use.
pub(super) fn means(args: &AggregateArgs, common: &Common) -> Result<Means, Failure> {
    let memory = common.memory.unwrap_or(MEMORY_BYTES);
    let least = if args.store.is_some() { STORE_BYTES_MIN } else { MEMORY_BYTES_MIN };
    if memory < least {
        return Err(Failure::Usage(format!(
            "aggregating takes a --memory of at least {}",
            sizes::human(least)
        )));
    }
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let reads_beside = args.store.is_none() && !args.merge;
    let of_use = if reads_beside { cores } else { cores.min(THREADS_OF_USE) };
    let threads = args.threads.map_or(of_use, usize::from);
    let for_each = |bytes: u64| usize::try_from(memory / bytes).unwrap_or(usize::MAX);
    let readers = if reads_beside { threads } else { 1 };
    let readers = readers.min(for_each(READER_MEMORY_BYTES)).max(1);
    let encoders = (threads - 1).min(for_each(ENCODER_MEMORY_BYTES));
    // Groups have the least memory in any case, though the program takes more than what is left.
    let program_bytes = program_bytes(args, readers as u64, encoders as u64);
    let groups = memory.saturating_sub(program_bytes).max(MEMORY_BYTES_MIN);
    Ok(Means {
        memory_bytes: usize::try_from(groups).unwrap_or(usize::MAX),
        threads,
        readers,
        encoders,
        temp: args.temp.clone().unwrap_or_else(std::env::temp_dir),
    })
}

/// What the program takes besides groups.
fn program_bytes(args: &AggregateArgs, readers: u64, encoders: u64) -> u64 {
    let format = |path: &PathBuf| args.format.or_else(|| RowFormat::of(path));
    let is_read = args.files.iter().any(|path| format(path) == Some(RowFormat::Parquet));
    let is_written = args.out.as_deref().and_then(Style::of) == Some(Style::Parquet);
    let used = |is_used, bytes| if is_used { bytes } else { 0 };
    PROGRAM_BYTES
        + (readers - 1) * READER_BYTES
        + used(is_read, readers * PARQUET_READ_BYTES)
        + used(is_written, (1 + encoders) * PARQUET_WRITTEN_BYTES)
        + used(args.partial || args.merge, PARTIAL_BYTES)
}
