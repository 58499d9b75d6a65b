//! How fast words are counted that come as record batches: `word_rate [ROWS [GROUPS [MEMORY_MIB [THREADS [DIR]]]]]`. It
//! prints the seconds until all groups were seen, and how many there were. `bench/python/words.py` runs it beside Python,
//! over words of the same kind.

#![expect(
    clippy::disallowed_methods,
    reason = "a program that measures, on the machine's own files and threads"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use forebay::aggregate::AggregatorOptions;
use forebay::aggregate::arrow::RecordBatchAggregator;
use forebay::{GroupFiles, Result};

const BATCH_ROWS: usize = 1 << 16;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |at: usize, usual: usize| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(usual);
    let (rows, groups) = (number(0, 20_000_000), number(1, 2_500_000));
    let (memory_mib, threads) = (number(2, 4096), number(3, 2));
    let place = arguments.get(4).map_or_else(std::env::temp_dir, Into::into);
    let batches = batches(rows, groups);
    let start = Instant::now();
    let dir = place.join(format!("forebay-word-rate-{}", std::process::id()));
    let options =
        AggregatorOptions::default().memory_limit(memory_mib << 20).threads(threads).adders(threads);
    let made = RecordBatchAggregator::new(
        &batches[0].schema(),
        &["word"],
        "count",
        options.spill_to(GroupFiles::new(&dir)),
    )?;
    let next = AtomicUsize::new(0);
    let add = || {
        while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
            made.add_batch(batch)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let adders: Vec<_> = (0..threads).map(|_| scope.spawn(add)).collect();
        adders.into_iter().try_for_each(|adder| adder.join().expect("a thread that adds"))
    })?;
    let mut found = 0;
    for answers in made.answers()? {
        found += answers?.num_rows();
    }
    println!("{} {found}", start.elapsed().as_secs_f64());
    drop(made);
    std::fs::remove_dir_all(&dir).ok();
    Ok(())
}

/// Words in no order.
fn batches(rows: usize, groups: usize) -> Vec<RecordBatch> {
    let words: Vec<String> =
        (0..groups as u64).map(|at| format!("w{:08x}", at * 2_654_435_761 % (1 << 32))).collect();
    let mut drawn = 3_u64;
    let mut draw = || {
        drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        &words[((u128::from(drawn) * groups as u128) >> 64) as usize]
    };
    let lengths = (0..rows).step_by(BATCH_ROWS).map(|at| BATCH_ROWS.min(rows - at));
    let batch = |length| {
        let column: ArrayRef = Arc::new(StringArray::from_iter_values((0..length).map(|_| draw())));
        RecordBatch::try_from_iter([("word", column)]).expect("a column")
    };
    lengths.map(batch).collect()
}
