//! Batches, which are written all or not at all, and how durable a write is when it returns.

use forebay::{Batch, Database, Durability, Options};

fn main() -> forebay::Result<()> {
    let dir = std::env::temp_dir().join(format!("forebay-batches-{}", std::process::id()));
    let db = Database::open(&dir, Options::default().memory_limit(64 << 20).durability(Durability::Os))?;
    let accounts = db.table("accounts").open()?;
    let journal = db.table("journal").open()?;

    // What `put` writes survives a crash of this process: `Durability::Os` is the default of this database.
    accounts.put("ada", 100_u64.to_le_bytes())?;

    // A batch may span tables. `Durability::Disk` returns once it survives a power loss.
    let mut batch = Batch::new();
    batch.put(&accounts, "ada", 70_u64.to_le_bytes());
    batch.put(&accounts, "bob", 30_u64.to_le_bytes());
    batch.put(&journal, 1_u64.to_be_bytes(), "ada gives bob 30");
    let number = db.commit(batch, Durability::Disk)?;
    assert!(db.durable_sequence() >= number);

    // Many records, as fast as they can be taken: `Durability::Memory`, and one sync at the end.
    let mut batch = Batch::new();
    for n in 2..10_000_u64 {
        batch.put(&journal, n.to_be_bytes(), "nothing happens");
        if batch.encoded_bytes() > 64 << 10 {
            db.write(&mut batch, Durability::Memory)?;
        }
    }
    db.write(&mut batch, Durability::Memory)?;
    db.sync()?;

    assert_eq!(journal.iter()?.count(), 9999);
    db.close()?;
    Database::destroy(&dir)
}
