//! Commands that only look, beside a process that has the database open to write.

use crate::tool::Folder;

#[test]
fn commands_that_look_work_beside_one_that_writes() {
    let folder = Folder::new("beside");
    folder.ok("put db t a 1");
    folder.ok("put db t b 2");
    folder.ok("savepoint db then");
    let (mut loading, input) = folder.loading(&["load", "db", "t", "-", "--batch", "1"]);
    assert_eq!(folder.ok("get db t a"), "1\n");
    assert!(folder.ok("scan db t").contains('b'));
    assert!(folder.ok("describe db").contains('t'));
    assert!(folder.ok("savepoints db").contains("then"));
    folder.ok("changes db");
    folder.ok("verify db");
    assert!(folder.ok("dump db").contains("table"));
    // The numbers are those of the process that writes.
    let stats = folder.object("stats db --json");
    assert_eq!(stats["readers"][0]["held_bytes"], 0, "{stats}");
    assert!(folder.ok("stats db").contains("reads: 0 bytes are kept for it"));
    folder.run("destroy db").refused(1, &["LOCK"]);
    loading.kill().unwrap();
    drop(input);
    loading.wait().unwrap();
    assert_eq!(folder.ok("get db t a"), "1\n");
    folder.ok("put db t d 4");
    assert!(!folder.path("db/readers").exists(), "whoever has looked leaves nothing");
}
