//! `put`, `get`, `delete`, `scan`.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::json;

use crate::tool::{Folder, last_object};

#[test]
fn a_range_is_deleted() {
    let folder = Folder::new("delete-range");
    folder.ok_on("load db t - --layout tiering", b"a\nab\nac\nb\nba\nc\n");
    assert_eq!(folder.ok("delete db t --prefix ab"), "");
    assert_eq!(folder.ok("scan db t"), "a\t\nac\t\nb\t\nba\t\nc\t\n");
    assert_eq!(folder.object("delete db t --from ac --to ba --json")["ranges"], 1);
    assert_eq!(folder.ok("scan db t"), "a\t\nba\t\nc\t\n");
    folder.ok("delete db t --from 63 --hex --durability disk");
    folder.ok("delete db t --to ab");
    assert_eq!(folder.ok("scan db t"), "ba\t\n");
    folder.ok("put db hashed a 1");
    folder.run("delete db hashed --prefix a").refused(1, &["hash-ordered"]);
    for usage in ["delete db t", "delete db t a --prefix b", "delete db t --prefix a --to b"] {
        assert_eq!(folder.run(usage).code, 2, "{usage}");
    }
}

#[test]
fn what_is_put_is_got_and_what_is_deleted_is_gone() {
    let folder = Folder::new("put-get");
    assert_eq!(folder.ok("put db t colour blue"), "");
    assert_eq!(folder.ok("put db t size 7 --json"), "{\"type\":\"summary\",\"records\":1,\"sequence\":2}\n");
    assert_eq!(folder.ok("get db t colour size"), "blue\n7\n");
    assert_eq!(folder.ok("delete db t colour absent"), "");
    let outcome = folder.run("get db t colour size");
    assert_eq!((outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str()), (1, "7\n", ""));
    assert_eq!(
        folder.ok("get db t colour size --json"),
        "{\"type\":\"record\",\"key\":\"colour\",\"value\":null}\n{\"type\":\"record\",\"key\":\"size\",\"value\":\"7\"}\n"
    );
    assert_eq!(
        folder.object("delete db t size --json"),
        json!({ "type": "summary", "deletions": 1, "sequence": 5 })
    );
}

#[test]
fn operands_are_merged_by_the_rule_that_the_table_was_made_with() {
    let folder = Folder::new("merge");
    folder.run("merge db friends ada bob").refused(2, &["--rule", "`friends`"]);
    folder.ok("merge db friends ada bob --rule append:,");
    assert_eq!(
        folder.ok("merge db friends ada eve --json"),
        "{\"type\":\"summary\",\"records\":1,\"sequence\":2}\n"
    );
    folder.ok("merge db friends ada kurt --rule append:,");
    assert_eq!(folder.ok("get db friends ada"), "bob,eve,kurt\n");
    folder.run("merge db friends ada x --rule max").refused(1, &["append:,", "max"]);
    folder.ok("merge db counts --hex 00 0500000000000000 --rule add --layout leveling");
    folder.ok("merge db counts --hex 00 0200000000000000");
    assert_eq!(folder.ok("get db counts --hex 00"), "0700000000000000\n");
    folder.run("merge db t k v --rule most").refused(2, &["most", "append"]);
    folder.ok("put db plain k v");
    folder.run("merge db plain k v").refused(1, &["no merge rule"]);
}

/// The text of a number was added as its bytes.
#[test]
fn what_is_no_number_of_8_bytes_is_not_added() {
    let folder = Folder::new("merge-add");
    folder.run("merge db c k 5 --rule add").refused(2, &["8 bytes", "--hex"]);
    folder.ok("merge db c --hex 6b 0500000000000000 --rule add");
    for operand in ["7", "12345678", "-1234567", "five", "123456789"] {
        folder.run(&format!("merge db c k {operand}")).refused(2, &["`c`", "8 bytes", "--hex"]);
    }
    folder.run("merge db c --hex 6b 07").refused(2, &["8 bytes"]);
    assert_eq!(folder.ok("get db c --hex 6b"), "0500000000000000\n");
    folder
        .run("merge db c --hex 6b 0100000000000000 --rule max")
        .refused(1, &["merge rule `add`", "leave --rule out"]);
}

#[test]
fn empty_keys_and_values_are_keys_and_values() {
    let folder = Folder::new("empty");
    for (key, value) in [("", "nothing"), ("blank", "")] {
        assert!(folder.command(&["put", "db", "t", key, value]).status().unwrap().success());
    }
    let output = folder.command(&["get", "db", "t", "", "blank", "--json"]).output().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "{\"type\":\"record\",\"key\":\"\",\"value\":\"nothing\"}\n{\"type\":\"record\",\"key\":\"blank\",\"value\":\"\"}\n"
    );
}

#[test]
fn bytes_that_are_no_text_travel_in_hexadecimal() {
    let folder = Folder::new("hex");
    folder.ok("put db t --hex ff00 C3");
    assert_eq!(folder.ok("get db t --hex ff00"), "c3\n");
    assert_eq!(
        folder.ok("get db t --hex FF00 --json"),
        "{\"type\":\"record\",\"key\":\"ff00\",\"value\":\"c3\"}\n"
    );
    assert_eq!(
        folder.ok("scan db t --json"),
        "{\"type\":\"record\",\"key_hex\":\"ff00\",\"value_hex\":\"c3\"}\n"
    );
    assert_eq!(folder.ok("scan db t --hex"), "ff00\tc3\n");
    folder.run("get db t --hex f").refused(2, &["odd number"]);
    folder.run_on("get db t --hex -", b"ff00\nxy\n").refused(1, &["standard input", "key 2", "xy"]);
}

#[test]
fn entries_expire_where_the_table_was_made_for_it() {
    let folder = Folder::new("expiry");
    folder.ok_on("load db t - --format csv --ttl 7d", b"a,1\nb,2\n");
    folder.ok("put db t c 3 --ttl 1ms");
    // A process takes longer than that to begin.
    assert_eq!(folder.ok_on("get db t -", b"a\nb\n"), "1\n2\n");
    let gone = folder.run("get db t c");
    assert_eq!((gone.code, gone.stdout.as_str()), (1, ""));
    assert!(folder.ok("describe db t").contains("entries live 7d"));
    folder.run_on("load db t - --ttl 8d", b"a\n").refused(1, &["time_to_live 7d, not 8d"]);
    let unitless = folder.run("put db t a 1 --ttl 8");
    assert!(unitless.code == 2 && unitless.stderr.contains("a unit: ms, s"), "{}", unitless.stderr);
    folder.ok("put db new k v --ttl 12h");
    folder.ok("put db new l w");
    assert_eq!(folder.ok_on("get db new -", b"k\nl\n"), "v\nw\n");
    folder.ok("put db plain k v");
    folder.run("put db plain k v --ttl 12h").refused(1, &["time_to_live"]);
}

#[test]
fn keys_come_on_standard_input() {
    let folder = Folder::new("stdin");
    folder.ok_on("load db t - --format csv", b"a,1\nb,2\nc,3\n");
    assert_eq!(folder.ok_on("get db t -", b"c\r\na\nb"), "3\n1\n2\n");
    assert_eq!(folder.ok_on("get db t -", b""), "");
    assert_eq!(last_object(&folder.ok_on("delete db t - --json", b"a\nb\n"))["deletions"], 2);
    let outcome = folder.run_on("get db t - --json --report", b"a\nc\n");
    assert_eq!(outcome.code, 0);
    assert_eq!(
        outcome.stdout,
        "{\"type\":\"record\",\"key\":\"a\",\"value\":null}\n{\"type\":\"record\",\"key\":\"c\",\"value\":\"3\"}\n"
    );
    let report = last_object(&outcome.stderr);
    assert_eq!((&report["keys"], &report["found"]), (&json!(2), &json!(1)));
    assert!(report["gets_per_second"].as_f64().unwrap() > 0.0);
    assert!(report["device_reads_per_get"].is_number());
}

#[test]
fn each_key_is_answered_before_the_next_is_asked() {
    let folder = Folder::new("conversation");
    folder.ok_on("load db t - --format csv", b"a,1\nb,2\n");
    let mut child = folder
        .command(&["get", "db", "t", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ask = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    for (key, value) in [("b\n", "2"), ("a\n", "1")] {
        ask.write_all(key.as_bytes()).unwrap();
        assert_eq!(answers.next().unwrap().unwrap(), value);
    }
    drop(ask);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_scan_keeps_the_order_of_keys() {
    let folder = Folder::new("scan");
    folder.ok_on("load db t - --format csv --layout wb-tree:ordered", b"b,2\na,1\nbb,3\nc,4\n");
    assert_eq!(folder.ok("scan db t"), "a\t1\nb\t2\nbb\t3\nc\t4\n");
    assert_eq!(folder.ok("scan db t --from b --to c"), "b\t2\nbb\t3\n");
    assert_eq!(folder.ok("scan db t --from b --to c --reverse"), "bb\t3\nb\t2\n");
    assert_eq!(folder.ok("scan db t --prefix b"), "b\t2\nbb\t3\n");
    assert_eq!(folder.ok("scan db t --prefix b --reverse --limit 1"), "bb\t3\n");
    assert_eq!(folder.ok("scan db t --reverse --limit 2"), "c\t4\nbb\t3\n");
    assert_eq!(
        folder.ok("scan db t --limit 1 --json"),
        "{\"type\":\"record\",\"key\":\"a\",\"value\":\"1\"}\n"
    );
    assert_eq!(folder.ok("scan db t --from 62 --hex --limit 1"), "62\t32\n");
    assert_eq!(folder.ok("scan db t --limit 0"), "");
    assert_eq!(folder.ok("scan db t --from c --to a"), "");
}

#[test]
fn a_hash_ordered_table_is_scanned_whole_or_not_at_all() {
    let folder = Folder::new("scan-hash");
    folder.ok_on("load db t", b"a\nb\nc\n");
    let text = folder.ok("scan db t");
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["a\t", "b\t", "c\t"]);
    let hint = "`forebay layout DB t wb-tree:ordered`";
    for wanted in ["--prefix a", "--from a", "--to b", "--reverse"] {
        folder.run(&format!("scan db t {wanted}")).refused(1, &["hash-ordered", hint]);
    }
    folder.run("delete db t --prefix a").refused(1, &["hash-ordered", hint]);
    folder.run_on("load db u - --prefix-filter 3", b"a\n").refused(1, &["take it away with `alter`"]);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let folder = Folder::new("head");
    let keys: String = (0..200_000).map(|key| format!("{key}\n")).collect();
    folder.ok_on("load db t", keys.as_bytes());
    let mut child =
        folder.command(&["scan", "db", "t"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}
