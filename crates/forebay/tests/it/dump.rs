//! Looking into the files of a database.

use forebay::{Batch, Database, DumpedEntry, Durability, Layout, Options};
use forebay_env::{Access, Env};

const DIR: &str = "/db";

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(4 << 10).env(env.clone())
}

/// A database, of which some is in lists and some in the log only.
fn left(env: &Env) {
    let db = Database::open(DIR, options(env)).unwrap();
    let users = db.table("users").open().unwrap();
    let events = db.table("events").layout(Layout::leveling(4)).node_bytes(8 << 10).open_ordered().unwrap();
    let mut batch = Batch::new();
    batch.put(&users, "ada", "1");
    batch.delete(&users, "bob");
    db.write(&mut batch, Durability::Disk).unwrap();
    db.flush().unwrap();
    db.savepoint("monday").unwrap();
    events.put([0, 255], "value").unwrap();
    events.delete_range("a".."c").unwrap();
    db.drop_table("users").unwrap();
    let mut batch = Batch::new();
    batch.put(&events, "last", "");
    db.write(&mut batch, Durability::Disk).unwrap();
}

fn dumped(env: &Env) -> Vec<String> {
    let mut lines = Vec::new();
    Database::dump_in(env, DIR.as_ref(), &mut |entry| {
        // Drawn anew for each database.
        let is_drawn = matches!(entry.entry, DumpedEntry::Superblock { .. });
        lines.push(if is_drawn { entry.file } else { entry.to_string() });
        Ok(())
    })
    .unwrap();
    lines
}

/// What a person is shown is reviewed as text.
#[test]
#[expect(clippy::disallowed_methods, reason = "the text is a file of the repository")]
fn all_entries_are_shown_in_order() {
    let env = Env::memory(1);
    left(&env);
    let lines = dumped(&env);
    let path = "tests/it/dump.txt";
    if std::env::var_os("FOREBAY_REWRITE").is_some() {
        std::fs::write(path, lines.join("\n") + "\n").unwrap();
    }
    assert_eq!(lines.join("\n") + "\n", std::fs::read_to_string(path).unwrap());
    // Nothing was changed, and it opens as it was.
    let db = Database::open(DIR, options(&env)).unwrap();
    assert_eq!(db.tables().len(), 1);
}

#[test]
fn damage_is_shown_where_it_stands() {
    let env = Env::memory(1);
    left(&env);
    for name in ["CURRENT", "00000001.manifest"] {
        let file = env.fs.open(format!("{DIR}/{name}").as_ref(), Access::Buffered).unwrap();
        file.write_at(4, &[0xaa; 8]).unwrap();
    }
    let lines = dumped(&env);
    for name in ["CURRENT", "00000001.manifest"] {
        let of_it: Vec<&String> = lines.iter().filter(|line| line.starts_with(name)).collect();
        assert!(of_it.len() == 1 && of_it[0].contains("Unreadable"), "{of_it:?}");
    }
    assert!(lines.iter().any(|line| line.contains("key: \"last\"")), "the log is shown all the same");
}

#[test]
fn who_sees_may_stop_it() {
    let env = Env::memory(1);
    left(&env);
    let mut seen = 0;
    let stopped = Database::dump_in(&env, DIR.as_ref(), &mut |_| {
        seen += 1;
        if seen < 6 { Ok(()) } else { Err(forebay::Error::Invalid("enough".into())) }
    });
    assert!(matches!(stopped, Err(forebay::Error::Invalid(reason)) if reason == "enough"));
}
