//! `stats`, `describe`, `verify`, `compact`, `checkpoint`, `destroy`.

use crate::tool::Folder;

fn loaded(test: &str) -> Folder {
    let folder = Folder::new(test);
    let rows: String = (0..20_000).map(|key| format!("{:05},{key}\n", key % 5000)).collect();
    folder.ok_on("load db t - --format csv --layout write-buffer:ordered", rows.as_bytes());
    folder.ok_on("load db u - --format csv", rows.as_bytes());
    folder
}

#[test]
fn the_database_describes_itself() {
    let folder = loaded("describe");
    for command in ["stats", "describe"] {
        assert!(!folder.ok(&format!("{command} db")).trim().is_empty(), "{command}");
        assert!(folder.object(&format!("{command} db --json")).is_object(), "{command}");
        folder.ok(&format!("{command} db t"));
        folder.run(&format!("{command} db nothing")).refused(1, &["nothing"]);
    }
    let stats = folder.object("stats db --json");
    for name in ["write_amplification", "space_amplification", "stall_seconds"] {
        assert!(stats[name].is_number(), "{name} in {stats}");
    }
}

/// What is in no list yet is told: a new database is all log.
#[test]
fn what_is_in_the_log_only_is_counted() {
    let folder = Folder::new("log-only");
    folder.ok_on("load db t - --batch 4", b"a\nb\nc\nd\ne\nf\n");
    folder.ok("delete db t a");
    let report = folder.object("verify db --json");
    assert_eq!((&report["files"], &report["records"]), (&0.into(), &0.into()));
    assert_eq!((&report["log_frames"], &report["log_records"]), (&3.into(), &7.into()));
    assert!(report["log_bytes"].as_u64().unwrap() > 7);
    assert!(folder.ok("verify db").contains("log: 3 commits, 7 records"));
    let stats = folder.object("stats db --json");
    let told = ["last_sequence", "durable_sequence", "unlisted_records", "list_records"];
    assert_eq!(told.map(|name| stats[name].as_u64().unwrap()), [7, 7, 7, 0]);
    folder.ok("compact db");
    let stats = folder.object("stats db --json");
    assert_eq!(told.map(|name| stats[name].as_u64().unwrap()), [7, 7, 0, 5]);
    assert_eq!(folder.object("verify db --json")["log_records"], 0);
}

#[test]
fn a_sound_database_verifies() {
    let folder = loaded("verify");
    folder.ok("compact db");
    let report = folder.object("verify db --json");
    assert_eq!(report["problems"], serde_json::json!([]));
    assert!(report["files"].as_u64().unwrap() > 0, "{report}");
    assert!(folder.ok("verify db").contains("no problem"));
}

#[test]
fn a_flipped_bit_is_told_with_its_file() {
    let folder = loaded("damage");
    folder.ok("compact db");
    let list = std::fs::read_dir(folder.path("db"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "list"))
        .max_by_key(|path| path.metadata().unwrap().len())
        .unwrap();
    let mut bytes = std::fs::read(&list).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&list, bytes).unwrap();
    let name = list.file_name().unwrap().to_str().unwrap();
    let outcome = folder.run("verify db");
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(outcome.stderr.contains(name) && outcome.stderr.contains("offset"), "{outcome:?}");
}

#[test]
fn compaction_keeps_what_is_there() {
    let folder = loaded("compact");
    let before = folder.ok("scan db t");
    assert_eq!(before.lines().count(), 5000);
    assert_eq!(folder.object("compact db --json")["tables"], serde_json::json!(["t", "u"]));
    assert_eq!(folder.ok("scan db t"), before);
    assert!(folder.ok("compact db u").contains("u"));
    folder.run("compact db nothing").refused(1, &["nothing"]);
}

#[test]
fn a_checkpoint_is_a_database_of_its_own() {
    let folder = loaded("checkpoint");
    let before = folder.ok("scan db t");
    folder.ok("checkpoint db copy");
    folder.ok("put db t 00000 changed");
    folder.ok("put copy t new 1");
    assert_eq!(folder.ok("get db t 00000"), "changed\n");
    assert_eq!(folder.ok("scan copy t --to n"), before);
    folder.run("get db t new --json");
    assert_eq!(folder.ok("get db t new --json"), "{\"type\":\"record\",\"key\":\"new\",\"value\":null}\n");
    folder.run("checkpoint db copy").refused(1, &["copy"]);
    assert_eq!(folder.object("checkpoint db copy2 --json")["checkpoint"], "copy2");
    folder.ok("verify copy2");
}

#[test]
fn destruction_stops_at_what_is_named() {
    let folder = loaded("destroy");
    folder.ok("destroy db u");
    folder.run("get db u 1").refused(1, &["u"]);
    assert_eq!(folder.ok("get db t 00000"), "15000\n");
    folder.run("destroy db u").refused(1, &["u"]);
    folder.ok("destroy db");
    assert!(!folder.path("db").exists());

    std::fs::create_dir(folder.path("precious")).unwrap();
    std::fs::write(folder.path("precious/letter"), "dear").unwrap();
    folder.run("destroy precious").refused(1, &["precious"]);
    folder.run("destroy nowhere").refused(1, &["nowhere"]);
    assert_eq!(std::fs::read(folder.path("precious/letter")).unwrap(), b"dear");
}

#[test]
fn what_is_intact_of_a_damaged_database_is_rescued() {
    let folder = loaded("rescue");
    folder.ok("compact db");
    let lists = std::fs::read_dir(folder.path("db")).unwrap().map(|entry| entry.unwrap().path());
    let lists: Vec<_> = lists.filter(|path| path.extension().is_some_and(|end| end == "list")).collect();
    for list in &lists {
        let mut bytes = std::fs::read(list).unwrap();
        bytes[4096 + 30] ^= 1;
        std::fs::write(list, bytes).unwrap();
    }
    for command in ["verify db", "rescue db saved"] {
        let outcome = folder.run(command);
        assert_eq!(outcome.code, 1, "{outcome:?}");
        assert!(outcome.stderr.contains("is damaged at offset 4096, table `t`, keys from "), "{outcome:?}");
    }
    let kept = folder.ok("scan saved t").lines().count();
    assert!((3000..5000).contains(&kept), "{kept} records");
    assert!(folder.ok("verify saved").contains("no problem"));
    // Never over what is there.
    folder.run("rescue db saved").refused(2, &["is there already"]);
}
