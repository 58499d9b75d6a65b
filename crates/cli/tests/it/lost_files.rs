//! Files of a database that went, or came from another: who has the database is told which, and what to do.

use std::path::PathBuf;

use crate::tool::Folder;

/// A database with a list, and one record in the log.
fn database(test: &str) -> Folder {
    let folder = Folder::new(test);
    folder.ok_on("load db t - --format csv", b"a,1\nb,2\n");
    folder.ok("compact db");
    folder.ok("put db t c 3");
    folder
}

fn file(folder: &Folder, end: &str) -> PathBuf {
    let mut names = std::fs::read_dir(folder.path("db")).unwrap().map(|entry| entry.unwrap().path());
    names.find(|path| path.to_str().unwrap().ends_with(end)).unwrap()
}

/// It was an error of the system, which told nothing of what can be done.
#[test]
fn a_missing_file_is_damage_that_can_be_rescued() {
    for name in ["CURRENT", ".manifest", ".list"] {
        let folder = database(&format!("missing-{}", name.trim_start_matches('.')));
        std::fs::remove_file(file(&folder, name)).unwrap();
        let told = [name, "the file is missing", "forebay rescue"];
        folder.run("get db t a").refused(1, &told);
        let verified = folder.run("verify db");
        assert_eq!(verified.code, 1, "{verified:?}");
        assert!(told.iter().all(|words| verified.stderr.contains(words)), "{verified:?}");
    }
}

/// It recommended itself, and blamed the file that names the manifest.
#[test]
fn a_rescue_without_a_manifest_does_not_recommend_itself() {
    let folder = database("no-manifest");
    std::fs::remove_file(file(&folder, ".manifest")).unwrap();
    let told = folder.run("rescue db saved");
    told.refused(1, &[".manifest", "nothing was saved", "restore the database from a checkpoint"]);
    assert!(!told.stderr.contains("forebay rescue"), "{told:?}");
    assert!(!folder.path("saved").exists() && !folder.path("saved.rescuing").exists());
}

/// The database that must not change got a directory.
#[test]
fn no_rescue_goes_into_the_database_itself() {
    let folder = database("rescue-inside");
    std::os::unix::fs::symlink("db", folder.path("link")).unwrap();
    for inside in ["db/sub", "link/sub", "./db/../db/sub", "db/sub/"] {
        folder.run(&format!("rescue db {inside}")).refused(1, &["is within db"]);
    }
    assert!(!folder.path("db/sub").exists() && !folder.path("db/sub.rescuing").exists());
    folder.ok("rescue db db.saved");
}

/// Nobody heard of it until the superblock was damaged, too.
#[test]
fn a_missing_spare_is_told_by_verify() {
    let folder = database("missing-spare");
    std::fs::remove_file(folder.path("db/FOREBAY.spare")).unwrap();
    folder
        .run("verify db")
        .refused(1, &["FOREBAY.spare is damaged at offset 0: the file is missing", "written anew"]);
    folder.ok("put db t d 4");
    folder.ok("verify db");
}

/// Keys in hash order were not found, without a word; `verify` blamed lists that were whole, and a record in the log
/// was damage of the log.
#[test]
fn a_superblock_of_another_database_is_told() {
    let folder = database("foreign-superblock");
    folder.ok("put other t k v");
    let own = std::fs::read(folder.path("db/FOREBAY")).unwrap();
    std::fs::copy(folder.path("other/FOREBAY"), folder.path("db/FOREBAY")).unwrap();
    for words in ["get db t a", "put db t a 2", "verify db", "rescue db saved"] {
        folder.run(words).refused(1, &["db/FOREBAY ", "FOREBAY.spare", "two databases"]);
    }
    // By its spare it is what it was.
    std::fs::remove_file(folder.path("db/FOREBAY")).unwrap();
    assert_eq!(folder.run("rescue db saved").code, 1);
    assert_eq!(folder.ok("get saved t a b c"), "1\n2\n3\n");
    std::fs::write(folder.path("db/FOREBAY"), own).unwrap();
    assert_eq!(folder.ok("get db t a b c"), "1\n2\n3\n");
}

/// A database of three commands, and the files of its log that have what the second has put.
fn three_in_the_log(name: &str) -> (Folder, Vec<PathBuf>) {
    let folder = Folder::new(name);
    (1..4).for_each(|value| drop(folder.ok(&format!("put db t k{value} {value}"))));
    let names = std::fs::read_dir(folder.path("db")).unwrap().map(|entry| entry.unwrap().path());
    let logs = names.filter(|path| path.extension().is_some_and(|end| end == "log"));
    // There may be others, which are kept for later.
    let has_second = |path: &PathBuf| std::fs::read(path).unwrap().windows(2).any(|bytes| bytes == b"k2");
    let lost = logs.filter(has_second).collect();
    (folder, lost)
}

/// The one behind it was called damaged, which is whole.
#[test]
fn a_missing_file_of_the_log_is_not_blamed_on_the_next() {
    // Where the machine is busy a command lasts long enough for the log to go into lists.
    let mut made = (0..9).map(|attempt| three_in_the_log(&format!("missing-log-{attempt}")));
    let (folder, lost) = made.find(|(_, lost)| lost.len() == 1).expect("a log has it");
    std::fs::remove_file(&lost[0]).unwrap();
    folder.run("get db t k1").refused(1, &["missing", "forebay rescue"]);
    let told = folder.run("rescue db saved");
    assert!(told.code == 1 && told.stderr.contains("are in none of the log's files"), "{told:?}");
}
