//! A database without a log, for a program whose input is still there after a crash: nothing is written twice, and the
//! program goes on where the database says.

use forebay::{Batch, Database, Durability, Options};

/// Words of a stream that can be read again from any place.
fn stream(from: u64) -> impl Iterator<Item = (u64, String)> {
    (from..50_000).map(|place| (place + 1, format!("word{}", place % 1000)))
}

fn main() -> forebay::Result<()> {
    let dir = std::env::temp_dir().join(format!("forebay-no-log-{}", std::process::id()));
    for run in 0..3 {
        let db = Database::open(&dir, Options::default().memory_limit(64 << 20).log(false))?;
        let (counts, places) = (db.table("counts").open()?, db.table("places").open()?);
        let from = places
            .get("stream")?
            .map_or(0, |place| u64::from_le_bytes(place[..].try_into().unwrap_or_default()));
        println!("run {run} goes on at {from}");
        for (next, word) in stream(from).take(20_000) {
            let count = counts
                .get(&word)?
                .map_or(0, |count| u64::from_le_bytes(count[..].try_into().unwrap_or_default()));
            // What was read and how far belong together: after a crash both are there, or neither.
            let mut batch = Batch::new();
            batch.put(&counts, word, (count + 1).to_le_bytes());
            batch.put(&places, "stream", next.to_le_bytes());
            db.commit(batch, Durability::Memory)?;
        }
        // Nobody waits for this, but it says how far a crash would go back from here on.
        db.flush()?;
        assert_eq!(db.stats().log_bytes, 0);
        db.close()?;
    }
    Database::destroy(&dir)
}
