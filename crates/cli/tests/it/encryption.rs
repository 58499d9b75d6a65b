//! Commands on encrypted databases: each opens them by `--key-file`, and none without.

use std::fs;

use crate::tool::Folder;

/// Whether any file of a directory has this text.
fn has(folder: &Folder, dir: &str, text: &str) -> bool {
    fs::read_dir(folder.path(dir)).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file()).any(
        |entry| {
            let bytes = fs::read(entry.path()).unwrap();
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        },
    )
}

#[test]
fn commands_open_by_a_key_file() {
    let folder = Folder::new("encrypted");
    fs::write(folder.path("key"), "00fF".repeat(16) + "\n").unwrap();
    fs::write(folder.path("raw"), [7; 32]).unwrap();
    fs::write(folder.path("none"), "secret\n").unwrap();
    folder.ok("put db planted hidden-key hidden-value --key-file key");
    folder.ok("put plain planted hidden-key hidden-value");
    assert!(has(&folder, "plain", "hidden-") && !has(&folder, "db", "hidden-"));
    for command in
        ["stats db", "get db planted hidden-key", "verify db", "rescue db saved", "put db planted a b"]
    {
        folder.run(command).refused(2, &["db is encrypted", "--key-file"]);
        folder
            .run(&format!("{command} --key-file raw"))
            .refused(2, &["db is encrypted", "`key` is not the one"]);
        folder.run(&format!("{command} --key-file none")).refused(2, &["none has no key", "64 hexadecimal"]);
        folder.run(&format!("{command} --key-file gone")).refused(1, &["gone"]);
    }
    folder.run("stats plain --key-file key").refused(2, &["plain", "without encryption"]);
    let ok = |command: &str| folder.ok(&format!("{command} --key-file key"));
    assert_eq!(ok("get db planted hidden-key"), "hidden-value\n");
    assert!(ok("scan db planted").contains("hidden-value"));
    for command in ["stats db", "describe db", "savepoint db then", "changes db", "compact db", "verify db"] {
        ok(command);
    }
    assert!(folder.ok("dump db").contains("encrypted") && !folder.ok("dump db").contains("planted"));
    assert!(ok("dump db").contains("planted"));
    ok("checkpoint db copy");
    ok("backup db backups");
    // Backups are checked and restored as they are stored.
    folder.ok("backups backups --verify");
    folder.ok("restore backups restored");
    // A key that is given anyway is tried: it was not looked at, and a wrong one seemed right.
    ok("restore backups tried");
    folder
        .run("restore backups mistaken --key-file raw")
        .refused(1, &["`key` is not the one", "mistaken is the backup all the same"]);
    // A rescue tells of savepoints that it leaves out.
    ok("savepoint db then --drop");
    ok("rescue db saved");
    for copy in ["copy", "restored", "saved"] {
        assert!(!has(&folder, copy, "hidden-"), "{copy}");
        assert_eq!(ok(&format!("get {copy} planted hidden-key")), "hidden-value\n");
    }
    fs::write(folder.path("words"), "hidden hidden other\n").unwrap();
    ok("aggregate words --by word --store groups");
    assert!(!has(&folder, "groups", "hidden"));
    assert!(ok("aggregate --store groups").contains("hidden"));
    folder.ok("destroy db");
}
