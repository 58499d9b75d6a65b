//! Replication: a follower takes in what its source commits, is read meanwhile, and is promoted when the source is lost.

use forebay::{Database, Follower, Options};

fn main() -> forebay::Result<()> {
    let [dir, other] = ["primary", "standby"]
        .map(|name| std::env::temp_dir().join(format!("forebay-{name}-{}", std::process::id())));
    // How far back a follower may be.
    let db = Database::open(&dir, Options::default().memory_limit(64 << 20).keep_changes(64 << 20))?;
    let mut follower = Follower::open(&other, Options::default().memory_limit(16 << 20))?;
    let users = db.table("users").open()?;

    for (name, born) in [("ada", "1815"), ("alan", "1912"), ("grace", "1906")] {
        users.put(name, born)?;
        // What goes over the wire: here it is memory.
        let mut stream = db.stream_changes(follower.position(), Vec::new())?;
        stream.advance()?;
        let bytes = stream.finish()?;
        follower.apply(&bytes[..])?;
        assert_eq!(follower.position(), db.last_sequence());
    }
    assert!(follower.database().table("users").open()?.put("own", "1").is_err());
    db.close()?;

    // The source is lost: from here on the copy takes writes.
    let standby = follower.promote()?;
    let users = standby.table("users").open()?;
    users.put("edsger", "1930")?;
    assert_eq!(users.get("ada")?.as_deref(), Some(&b"1815"[..]));
    standby.close()?;
    Database::destroy(&dir).and_then(|()| Database::destroy(&other))
}
