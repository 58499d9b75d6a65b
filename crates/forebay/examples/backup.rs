//! Backup and restore: a checkpoint beside the database, a savepoint inside of it, and the drill that shows that either
//! can be gone back to.

use forebay::{Database, Options};

fn main() -> forebay::Result<()> {
    let [dir, copy] = ["backup", "backup-copy"]
        .map(|name| std::env::temp_dir().join(format!("forebay-{name}-{}", std::process::id())));
    let options = || Options::default().memory_limit(64 << 20);
    let db = Database::open(&dir, options())?;
    let orders = db.table("orders").open()?;
    orders.put("1", "tea")?;

    // A copy that is a database: lists are linked, not copied, so it takes moments. Writes go on meanwhile.
    db.checkpoint(&copy)?;
    // A moment inside the database, under a name. It holds the files that it needs, and nothing else.
    db.savepoint("before the import")?;
    orders.put("1", "coffee")?;
    orders.put("2", "cake")?;

    // The import was wrong: all tables become what they were.
    db.rollback("before the import")?;
    assert_eq!(orders.get("1")?.as_deref(), Some(&b"tea"[..]));
    assert!(!orders.contains_key("2")?);
    db.drop_savepoint("before the import")?;
    drop(orders);
    db.close()?;

    // The machine is lost: the copy is opened in its place, once every byte of it was checked.
    Database::destroy(&dir)?;
    let db = Database::open(&copy, options())?;
    let report = db.verify(&mut |_, _| ())?;
    assert!(report.problems.is_empty(), "{report:?}");
    assert_eq!(db.table("orders").open()?.get("1")?.as_deref(), Some(&b"tea"[..]));
    db.close()?;
    Database::destroy(&copy)
}
