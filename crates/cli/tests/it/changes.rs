//! `changes`, and `--keep-changes`.

use serde_json::{Value, json};

use crate::tool::Folder;

#[test]
fn changes_come_in_the_order_of_commits() {
    let folder = Folder::new("changes");
    folder.ok_on("load db t - --layout tiering --format csv --batch 2 --keep-changes 1M", b"a,1\nb,2\nc,3\n");
    folder.ok("put db other k v --keep-changes 1M");
    folder.ok("delete db t a --keep-changes 1M");
    folder.ok("delete db t --from b --to c --keep-changes 1M");
    folder.ok("delete db t --prefix c --keep-changes 1M");
    folder.ok("compact db --keep-changes 1M");
    let all = "2\tt\tput\ta\t1\n2\tt\tput\tb\t2\n3\tt\tput\tc\t3\n4\tother\tput\tk\tv\n5\tt\tdelete\ta\n\
        6\tt\tdelete-range\tb\tc\n7\tt\tdelete-range\tc\td\n";
    assert_eq!(folder.ok("changes db"), all);
    assert_eq!(
        folder.ok("changes db --since 4 --hex"),
        "5\tt\tdelete\t61\n6\tt\tdelete-range\t62\t63\n7\tt\tdelete-range\t63\t64\n"
    );
    assert_eq!(folder.ok("changes db --since 7"), "");
    assert_eq!(
        folder.object("changes db --table other --json"),
        json!({ "type": "change", "batch": 4, "sequence": 4, "table": "other", "operation": "put", "key": "k", "value": "v" })
    );
    let json = folder.ok("changes db --json");
    let first: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((&first["batch"], &first["sequence"]), (&json!(2), &json!(1)));
    folder.run("changes db --table none").refused(1, &["`none`"]);
    folder.run("changes db --since 8").refused(1, &["after 8", "number 7"]);
    assert_eq!(folder.run("changes db --since x").code, 2);
    assert!(folder.object("stats db --json")["kept_log_bytes"].as_u64().unwrap() > 0);

    // A command that says nothing of it leaves it as it is.
    folder.ok("put db other k w");
    folder.ok("compact db");
    assert_eq!(folder.ok("changes db --since 7"), "8\tother\tput\tk\tw\n");
    folder.ok("put db other k w --keep-changes 0");
    folder.ok("compact db");
    assert_eq!(folder.ok("changes db"), "");
    folder.run("changes db --since 7").refused(1, &["after 7", "number 10", "keep_changes"]);
}

#[test]
fn entries_that_expire_say_when() {
    let folder = Folder::new("changes-ttl");
    folder.ok("put db t k v --ttl 7d");
    assert_eq!(folder.ok("changes db"), "1\tt\tput\tk\tv\n");
    assert!(folder.object("changes db --json")["expiry_milliseconds"].as_u64().unwrap() > 1_700_000_000_000);
}
