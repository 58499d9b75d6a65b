//! `savepoint`, `savepoints`, `rollback`, and reading at a savepoint.

use crate::tool::Folder;

#[test]
fn what_was_overwritten_is_read_at_a_savepoint_and_brought_back() {
    let folder = Folder::new("savepoints");
    folder.ok_on("load db t - --format csv --layout leveling --memory 8M", b"a,1\nb,2\n");
    folder.ok("put db h k then");
    let taken = folder.object("savepoint db monday --json");
    assert_eq!((&taken["savepoint"], &taken["sequence"]), (&"monday".into(), &3.into()));
    folder.run("savepoint db monday").refused(1, &["monday"]);
    folder.ok_on("load db t - --format csv --quiet", b"a,one\nc,3\n");
    folder.ok("destroy db h");
    assert_eq!(folder.ok("get db t a --savepoint monday"), "1\n");
    assert_eq!(folder.ok("get db h k --savepoint monday"), "then\n");
    assert_eq!(folder.ok("scan db t --savepoint monday --from b"), "b\t2\n");
    assert_eq!(folder.ok("scan db h --savepoint monday"), "k\tthen\n");
    folder.run("scan db t --savepoint tuesday").refused(1, &["tuesday"]);
    let listed = folder.object("savepoints db --json");
    assert_eq!((&listed["name"], &listed["tables"]), (&"monday".into(), &2.into()));
    let told = folder.ok("savepoints db");
    assert!(told.starts_with("monday: 2 tables up to record 3"), "{told}");
    let (_, time) = told.trim_end().rsplit_once("; of ").unwrap();
    assert!(time.starts_with("20") && time.ends_with('Z'), "as --until takes it: {told}");
    assert!(folder.ok("stats db").contains("savepoint monday"));
    folder.run("rollback db monday").refused(2, &["--yes", "record 3"]);
    folder.run("rollback db tuesday --yes").refused(1, &["tuesday"]);
    assert_eq!(folder.ok("get db t a"), "one\n");
    assert_eq!(folder.object("rollback db monday --yes --json")["sequence"], 3);
    assert_eq!(folder.ok("scan db t"), "a\t1\nb\t2\n");
    assert_eq!(folder.ok("get db h k"), "then\n");
    assert_eq!(folder.object("savepoint db monday --drop --json")["dropped"], "monday");
    assert_eq!(folder.ok("savepoints db"), "");
    folder.ok("verify db");
}
