//! The change feed: a second database that follows the first one, and goes on where it was.

use forebay::{Batch, Database, Durability, Operation, Options};

fn number(bytes: Vec<u8>) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// Applies what has changed since the follower looked last. Returns how many batches that were.
fn follow(source: &Database, follower: &Database) -> forebay::Result<usize> {
    let place = follower.table("place").open()?;
    let since = place.get("sequence")?.map_or(0, number);
    let mut batches = 0;
    for changed in source.changes(since)? {
        let changed = changed?;
        let mut batch = Batch::new();
        for change in changed.changes {
            let table = follower.table(&change.table).open()?;
            match change.operation {
                Operation::Put { key, value, .. } => batch.put(&table, key, value),
                Operation::Delete { key } => batch.delete(&table, key),
                other => unreachable!("these tables have puts and deletes only: {other:?}"),
            }
        }
        // The place goes with the changes, so that none is applied twice or left out.
        batch.put(&place, "sequence", changed.last_sequence.to_le_bytes());
        follower.commit(batch, Durability::Os)?;
        batches += 1;
    }
    Ok(batches)
}

fn main() -> forebay::Result<()> {
    let [dir, other] = ["source", "follower"]
        .map(|name| std::env::temp_dir().join(format!("forebay-{name}-{}", std::process::id())));
    // The log is kept for followers as far back as this.
    let db = Database::open(&dir, Options::default().memory_limit(64 << 20).keep_changes(64 << 20))?;
    let follower = Database::open(&other, Options::default().memory_limit(16 << 20))?;
    let users = db.table("users").open()?;

    users.put("ada", "1815")?;
    users.put("bob", "1931")?;
    assert_eq!(follow(&db, &follower)?, 2);
    users.delete("bob")?;
    assert_eq!(follow(&db, &follower)?, 1);

    let copy = follower.table("users").open()?;
    assert_eq!(copy.get("ada")?.as_deref(), Some(&b"1815"[..]));
    assert!(!copy.contains_key("bob")?);
    db.close()?;
    follower.close()?;
    Database::destroy(&dir).and_then(|()| Database::destroy(&other))
}
