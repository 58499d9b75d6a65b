//! `backup`, `backups` and `restore`.

use crate::tool::Folder;

#[test]
fn backups_share_files_and_each_is_restored_by_itself() {
    let folder = Folder::new("backups");
    let lines = |from: u32| (from..from + 5000).map(|n| format!("{n},{}\n", n * 7)).collect::<String>();
    folder.ok_on("load db t - --format csv --memory 8M", lines(0).as_bytes());
    folder.ok("compact db");
    let first = folder.object("backup db kept --json");
    assert_eq!((&first["backup"], &first["bytes"]), (&1.into(), &first["copied_bytes"]));
    folder.ok("put db t 1 changed");
    let second = folder.object("backup db kept --json");
    assert!(second["copied_bytes"].as_u64() < second["bytes"].as_u64(), "{second}");
    let listed = folder.ok("backups kept --verify");
    let is_told =
        |line: &str| line.contains(": up to record 500") && line.ends_with(", all as it was copied");
    assert!(listed.starts_with("backup 1 of 2") && listed.lines().all(is_told), "{listed}");
    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert_eq!(folder.object("backups kept --verify --json")["damaged"], 0);
    assert_eq!(folder.object("restore kept old --backup 1 --json")["backup"], 1);
    folder.ok("restore kept new");
    assert_eq!((&*folder.ok("get old t 1"), &*folder.ok("get new t 1")), ("7\n", "changed\n"));
    folder.run("restore kept new").refused(1, &["new", "not empty"]);
    folder.run("restore kept other --backup 9").refused(1, &["backup 9", "kept"]);
    folder.run("restore missing other").refused(1, &["no backups", "missing"]);
    folder.run("backup db db").refused(1, &["db is a database"]);
    folder.ok("backup db kept --keep 1");
    assert!(folder.ok("backups kept").starts_with("backup 3 of "));
    folder.ok("verify new");
}

#[test]
fn damage_to_a_backup_is_told_by_its_file() {
    let folder = Folder::new("backups-damage");
    folder.ok_on("load db t - --format csv", b"a,1\nb,2\n");
    // So that the records are in a list at the backup, whatever the pool does meanwhile.
    folder.ok("compact db");
    folder.ok("backup db kept");
    let is_list = |name: &String| name.contains(".list-");
    let mut names = std::fs::read_dir(folder.path("kept"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let name = names.find(is_list).unwrap();
    let path = folder.path("kept").join(&name);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[40] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    for words in ["backups kept --verify", "restore kept new"] {
        let told = folder.run(words);
        assert!(!told.stderr.contains("rescue"), "{told:?}");
        told.refused(1, &[&name, "checksum", "move it away, and another backup copies it anew"]);
    }
    assert!(!folder.path("new").exists());
    // As it says.
    std::fs::remove_file(&path).unwrap();
    folder.ok("backup db kept");
    folder.ok("backups kept --verify");
    folder.ok("restore kept new --backup 1");
    assert_eq!(folder.ok("get new t a"), "1\n");
}

#[test]
fn a_check_of_no_backups_does_not_pass() {
    let folder = Folder::new("backups-none");
    std::fs::create_dir(folder.path("empty")).unwrap();
    for name in ["missing", "empty"] {
        for option in ["", " --verify", " --verify --json"] {
            folder.run(&format!("backups {name}{option}")).refused(1, &["no backups", name]);
        }
    }
    assert!(!folder.path("missing").exists());
}

#[test]
fn a_file_and_a_directory_of_backups_are_told_as_that() {
    let folder = Folder::new("backups-places");
    std::fs::write(folder.path("file"), "a,1\n").unwrap();
    folder.ok("put db t a 1");
    folder.ok("backup db kept");
    for words in ["backup db file", "backups file", "checkpoint db file", "restore kept file"] {
        folder.run(words).refused(1, &["file is a file", "director"]);
    }
    for words in ["verify kept", "backup kept more", "get kept t a"] {
        folder.run(words).refused(1, &["kept is a directory of backups", "--verify"]);
    }
}
