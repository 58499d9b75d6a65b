//! Time to live: entries that are gone after a while, by themselves.

use std::time::Duration;

use forebay::{Database, Options};

fn main() -> forebay::Result<()> {
    let dir = std::env::temp_dir().join(format!("forebay-ttl-{}", std::process::id()));
    let db = Database::open(&dir, Options::default().memory_limit(64 << 20))?;
    // What is put without more lives for an hour here.
    let sessions = db.table("sessions").time_to_live(Duration::from_secs(3600)).open()?;
    sessions.put("ada", "since noon")?;
    sessions.put_with_ttl("root", "never ends", Duration::MAX)?;
    sessions.put_with_ttl("bob", "over at once", Duration::ZERO)?;

    // Readers see no entry whose time is over; merges leave it out of the files when they come by.
    assert!(sessions.contains_key("ada")?);
    assert!(!sessions.contains_key("bob")?);
    assert_eq!(sessions.iter()?.count(), 2);
    drop(sessions);
    db.close()?;
    Database::destroy(&dir)
}
