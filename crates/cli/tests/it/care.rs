//! `stats`, `describe`, `verify`, `compact`, `checkpoint`, `destroy`.

use std::path::Path;

use crate::tool::{Folder, last_object};

fn loaded(test: &str) -> Folder {
    let folder = Folder::new(test);
    let rows: String = (0..20_000).map(|key| format!("{:05},{key}\n", key % 5000)).collect();
    folder.ok_on("load db t - --format csv --layout wb-tree:ordered", rows.as_bytes());
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
    folder.ok("put db runs k v --layout leveling");
    let shapes = folder.ok("describe db");
    assert!(shapes.contains("table t (wb-tree:ordered), nodes of"), "{shapes}");
    assert!(shapes.contains("table runs (leveling:t=10), list files of at most"), "{shapes}");
    folder.ok("compact db");
    assert!(!folder.ok("stats db").contains("in the log still"));
    let stats = folder.object("stats db --json");
    for name in ["write_amplification", "space_amplification", "stall_seconds"] {
        assert!(stats[name].is_number(), "{name} in {stats}");
    }
}

/// Also of one that cannot be opened.
#[test]
fn the_files_are_shown_entry_by_entry() {
    let folder = Folder::new("dump");
    folder.ok_on("load db t - --batch 2", b"a\nb\nc\n");
    std::fs::write(folder.path("db/CURRENT"), b"nothing").unwrap();
    folder.run("get db t a").refused(1, &["CURRENT"]);
    let lines = folder.ok("dump db");
    assert!(lines.contains("CURRENT 0 Unreadable") && lines.contains("name: \"t\""), "{lines}");
    assert_eq!(lines.matches("kind: put").count(), 3, "{lines}");
    let log =
        lines.lines().find(|line| line.contains(" Commit ")).and_then(|line| line.split(' ').next()).unwrap();
    let objects = folder.ok(&format!("dump db {log} --json"));
    let first: serde_json::Value = serde_json::from_str(objects.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["type"], &first["entry"], &first["records"]),
        (&"dump".into(), &"commit".into(), &2.into())
    );
    folder.run("dump db no.log").refused(1, &["no.log", ".manifest"]);
    folder.run("dump nothing").refused(1, &["nothing"]);
}

/// What is in no list yet is told: a new database is all log.
#[test]
fn what_is_in_the_log_only_is_counted() {
    let folder = Folder::new("log-only");
    // By one opening: another one for writing may put them into a list.
    folder.ok_on("load db t - --batch 3", b"a\nb\nc\nd\ne\nf\ng\n");
    assert!(folder.ok("describe db").contains("records in the log only, of all tables: 7"));
    assert!(folder.ok("stats db").contains("all records are in the log still"));
    assert_eq!(folder.object("describe db --json")["unlisted_records"], 7);
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
    assert_eq!(told.map(|name| stats[name].as_u64().unwrap()), [7, 7, 0, 7]);
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
    let lists = || -> Vec<_> {
        let entries = std::fs::read_dir(folder.path("db")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|kind| kind == "list")).collect()
    };
    let merged = lists();
    folder.ok("compact db --rewrite=older-keys");
    assert!(merged.iter().all(|path| path.exists()), "nothing is encrypted by an older key");
    folder.ok("compact db --rewrite");
    assert!(!merged.is_empty() && !merged.iter().any(|path| path.exists()), "{merged:?}");
    assert_eq!(folder.ok("scan db t"), before);
    folder.run("compact db t --rewrite --prefix 01").refused(2, &["--rewrite"]);
    folder.run("compact db t --rewrite=some").refused(2, &["older-keys"]);
}

#[test]
fn a_range_is_compacted() {
    let folder = loaded("compact-range");
    folder.ok("delete db t --from 01 --to 02");
    let before = folder.ok("scan db t");
    assert_eq!(folder.object("compact db t --from 01 --to 02 --json")["tables"], serde_json::json!(["t"]));
    folder.ok("compact db t --prefix 3031 --hex");
    folder.ok("compact db t --to 0000");
    assert_eq!(folder.ok("scan db t"), before);
    folder.run("compact db u --prefix 01").refused(1, &["hash-ordered"]);
    folder.run("compact db --prefix 01").refused(2, &["TABLE"]);
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

/// All of the database was gone when the directory turned out not to be empty, and the exit code was 1.
#[test]
fn destruction_leaves_what_others_have_put_there() {
    let folder = Folder::new("destroy-foreign");
    for foreign in ["db/precious/letter", "db/letter"] {
        folder.ok("put db t k v");
        std::fs::create_dir_all(folder.path(foreign).parent().unwrap()).unwrap();
        std::fs::write(folder.path(foreign), "dear").unwrap();
        let outcome = folder.run("destroy db");
        assert!(outcome.code == 0 && outcome.stderr.contains("db stays"), "{outcome:?}");
        assert_eq!(std::fs::read(folder.path(foreign)).unwrap(), b"dear");
        assert_eq!(std::fs::read_dir(folder.path("db")).unwrap().count(), 1);
        std::fs::remove_dir_all(folder.path("db")).unwrap();
    }
}

#[test]
fn no_checkpoint_goes_into_the_database_itself() {
    let folder = Folder::new("checkpoint-inside");
    folder.ok("put db t k v");
    std::os::unix::fs::symlink("db", folder.path("link")).unwrap();
    for inside in ["db/sub", "db/sub/deeper", "link/sub", "./db/../db/sub"] {
        folder.run(&format!("checkpoint db {inside}")).refused(1, &["inside the database"]);
    }
    assert!(!folder.path("db/sub").exists());
    folder.ok("checkpoint db db.copy");
}

/// What reads does not want more to be there than what writes.
#[test]
fn a_lock_that_is_gone_is_made_anew() {
    let folder = Folder::new("no-lock");
    folder.ok("put db t k v");
    std::fs::remove_file(folder.path("db/LOCK")).unwrap();
    // Who only looks has a lease, and needs none.
    ["get db t k", "verify db", "scan db t"].iter().for_each(|command| drop(folder.ok(command)));
    folder.ok("put db t k v");
    assert!(folder.path("db/LOCK").exists());
}

/// Lists and the manifest know their lengths. Segments of the log do not: a checkpoint shares them with who writes on.
#[test]
fn bytes_behind_what_was_written_are_told() {
    let folder = Folder::new("bytes-behind");
    folder.ok("put db t k v");
    folder.ok("compact db");
    folder.ok("put db t k2 v");
    let files: Vec<_> =
        std::fs::read_dir(folder.path("db")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let is_log = |file: &Path| file.extension().is_some_and(|end| end == "log");
    for file in files.iter().filter(|file| !is_log(file) && file.metadata().unwrap().len() > 0) {
        let sound = std::fs::read(file).unwrap();
        std::fs::write(file, [&sound[..], b"behind"].concat()).unwrap();
        let outcome = folder.run("verify db");
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(outcome.code == 1 && outcome.stderr.contains(name), "{name}: {outcome:?}");
        std::fs::write(file, sound).unwrap();
    }
    folder.ok("verify db");
}

/// Reading a file ended at its first fault.
#[test]
fn every_damaged_page_is_told_and_the_others_are_counted() {
    let folder = loaded("damaged-pages");
    folder.ok("compact db");
    let sound = folder.object("verify db --json");
    for list in std::fs::read_dir(folder.path("db")).unwrap().map(|entry| entry.unwrap().path()) {
        if list.extension().is_some_and(|end| end == "list") {
            let mut bytes = std::fs::read(&list).unwrap();
            bytes[4096 + 30] ^= 1;
            bytes[3 * 4096 + 30] ^= 1;
            std::fs::write(list, bytes).unwrap();
        }
    }
    let found = last_object(&folder.run("verify db --json").stdout);
    assert_eq!(found["problems"].as_array().unwrap().len(), 4, "{found}");
    assert_eq!(found["pages"].as_u64(), sound["pages"].as_u64().map(|pages| pages - 4));
    assert!(found["records"].as_u64() > Some(1000), "{found}");
}

/// One damaged page failed a get of many keys, and it was not told which of them.
#[test]
fn a_get_of_many_keys_answers_all_that_damage_leaves() {
    let folder = loaded("damaged-get");
    folder.ok("compact db");
    for list in std::fs::read_dir(folder.path("db")).unwrap().map(|entry| entry.unwrap().path()) {
        if list.extension().is_some_and(|end| end == "list") {
            let mut bytes = std::fs::read(&list).unwrap();
            bytes[4096 + 30] ^= 1;
            std::fs::write(list, bytes).unwrap();
        }
    }
    let keys: String = (0..5000).map(|key| format!("{key:05}\n")).collect();
    for (table, place) in [("t", "table `t`, keys from "), ("u", "table `u`: the page")] {
        let outcome = folder.run_on(&format!("get db {table} -"), keys.as_bytes());
        outcome.refused(1, &["forebay: key `", " more cannot be read: corruption in ", ".list", place]);
        let found = outcome.stdout.lines().count();
        assert!((1000..5000).contains(&found), "{found}");
        let outcome = folder.run_on(&format!("get db {table} - --json"), keys.as_bytes());
        outcome.refused(1, &["cannot be read", place]);
        assert_eq!(outcome.stdout.lines().count(), 5000, "every key has its object");
        let is_damaged = |line: &&str| line.contains("\"error\":\"corruption in ") && !line.contains("value");
        let damaged: Vec<&str> = outcome.stdout.lines().filter(is_damaged).collect();
        assert_eq!(damaged.len(), 5000 - found);
        let key = &damaged[0]["{\"type\":\"record\",\"key\":\"".len()..][..5];
        let told = format!("key `{key}` cannot be read: corruption in ");
        folder.run(&format!("get db {table} {key}")).refused(1, &[&told[..], place]);
    }
}

/// The database itself was whole, and nobody heard of its spare superblock.
#[test]
fn a_damaged_spare_is_told_by_a_rescue() {
    let folder = Folder::new("damaged-spare");
    folder.ok("put db t k v");
    std::fs::write(folder.path("db/FOREBAY.spare"), "no superblock").unwrap();
    let told = folder.run("rescue db saved");
    assert!(told.code == 1 && told.stderr.contains("FOREBAY.spare"), "{told:?}");
    assert_eq!(folder.ok("get saved t k"), "v\n");
    folder.run("verify db").refused(1, &["FOREBAY.spare", "written anew"]);
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
    let told = folder.run("rescue db again --json");
    let summary = last_object(&told.stdout);
    let of_t = summary["damage"].as_array().unwrap().iter().find(|damage| damage["table"] == "t").unwrap();
    assert!(of_t["low"].is_string() && of_t["high"].is_string(), "{of_t}");
    let kept = folder.ok("scan saved t").lines().count();
    assert!((3000..5000).contains(&kept), "{kept} records");
    assert!(folder.ok("verify saved").contains("no problem"));
    // Never over what is there.
    folder.run("rescue db saved").refused(1, &["exists already"]);
}
