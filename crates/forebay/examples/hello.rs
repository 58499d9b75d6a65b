//! A table: put, get, delete, and everything again after it was closed.

use forebay::{Database, Options};

fn main() -> forebay::Result<()> {
    let dir = std::env::temp_dir().join(format!("forebay-hello-{}", std::process::id()));
    let options = || Options::default().memory_limit(64 << 20);

    let db = Database::open(&dir, options())?;
    let users = db.table("users").open()?;
    users.put("ada", "1815")?;
    users.put("bob", "1931")?;
    users.delete("bob")?;
    assert_eq!(users.get("ada")?.as_deref(), Some(&b"1815"[..]));
    assert!(!users.contains_key("bob")?);
    db.close()?;

    let db = Database::open(&dir, options())?;
    let users = db.table("users").open()?;
    for entry in users.iter()? {
        let (name, year) = entry?;
        println!("{}: {}", name.escape_ascii(), year.escape_ascii());
    }
    assert_eq!(users.iter()?.count(), 1);
    db.close()?;
    Database::destroy(&dir)
}
