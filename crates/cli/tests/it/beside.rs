//! Commands that only look, beside a process that has the database open to write.

use std::process::{Child, ChildStdin, Stdio};

use crate::tool::Folder;

/// A load that has the database open and waits for more input.
fn loading(folder: &Folder) -> (Child, ChildStdin) {
    let mut loading = folder
        .command(&["load", "db", "t", "-", "--batch", "1"])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let input = loading.stdin.take().unwrap();
    while std::fs::read_to_string(folder.path("db/LOCK")).unwrap().trim() != loading.id().to_string() {
        std::thread::yield_now();
    }
    (loading, input)
}

#[test]
fn commands_that_look_work_beside_one_that_writes() {
    let folder = Folder::new("beside");
    folder.ok("put db t a 1");
    folder.ok("put db t b 2");
    folder.ok("savepoint db then");
    let (mut loading, input) = loading(&folder);
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
