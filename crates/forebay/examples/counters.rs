//! Counters that are right after any crash: what was counted is kept in one batch with how far the input was read.

use forebay::aggregate::functions::Count;
use forebay::{Batch, Database, Durability, Options};

const LINES: [&str; 6] = ["get /", "get /map", "get /", "put /map", "get /", "get /map"];
const LINES_PER_BATCH: usize = 2;

fn number(bytes: Vec<u8>) -> usize {
    bytes.try_into().map_or(0, u64::from_le_bytes) as usize
}

/// Counts from where it was left on. Stops after so many batches, as a crash would.
fn count(db: &Database, batches_max: usize) -> forebay::Result<usize> {
    let hits = db.aggregator("hits", Count).open()?;
    let offset = hits.metadata()?.map_or(0, number);
    for (number, lines) in LINES[offset..].chunks(LINES_PER_BATCH).enumerate().take(batches_max) {
        let mut batch = Batch::new();
        for line in lines {
            batch.add(&hits, line, ());
        }
        let read = offset + number * LINES_PER_BATCH + lines.len();
        hits.commit(batch, Durability::Os, (read as u64).to_le_bytes())?;
    }
    Ok(offset)
}

fn main() -> forebay::Result<()> {
    let dir = std::env::temp_dir().join(format!("forebay-counters-{}", std::process::id()));
    let options = || Options::default().memory_limit(64 << 20);

    let db = Database::open(&dir, options())?;
    assert_eq!(count(&db, 2)?, 0);
    drop(db);

    let db = Database::open(&dir, options())?;
    assert_eq!(count(&db, usize::MAX)?, 4, "no line is counted twice");
    let hits = db.aggregator("hits", Count).open()?;
    assert_eq!(hits.get("get /")?, Some(3));
    for entry in hits.iter()? {
        let (line, times) = entry?;
        println!("{times} x {}", line.escape_ascii());
    }
    drop(hits);
    db.close()?;
    Database::destroy(&dir)
}
