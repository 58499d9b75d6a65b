//! What the command cannot do, in one clear line each.

use std::process::Stdio;

use crate::tool::Folder;

#[test]
fn usage_that_cannot_work_is_code_2() {
    let folder = Folder::new("usage");
    folder.run("load db t - --key 1").refused(2, &["--key", "csv"]);
    folder.run("load db t - --format jsonl").refused(2, &["--key"]);
    folder.run("load db t - --format jsonl --key a --header").refused(2, &["--header"]);
    folder.run("load db t - --format csv --key 0").refused(2, &["counted from 1"]);
    for words in [
        "",
        "nonsense",
        "load db",
        "get db t",
        "load db t - --format xml",
        "load db t - --format fixed:0,0",
        "load db t - --layout sideways",
        "load db t - --durability never",
        "load db t - --batch 0",
        "scan db t --prefix a --from b",
        "scan db t --limit many",
        "stats db --memory lots",
    ] {
        let outcome = folder.run(words);
        assert_eq!(outcome.code, 2, "{words}: {outcome:?}");
        assert!(!outcome.stderr.is_empty() && outcome.stdout.is_empty(), "{words}: {outcome:?}");
        let is_line = outcome.stderr.starts_with("forebay: ") && outcome.stderr.lines().count() == 1;
        assert!(words.is_empty() || is_line, "{words}: {outcome:?}");
    }
    folder.run("get db t a --jsn").refused(2, &["'--json'", "forebay get --help"]);
    folder.run("simulate --record 16 --records 10 --keep-changes 1M").refused(2, &["--keep-changes"]);
    assert!(!folder.path("db").exists());
}

#[test]
fn a_memory_limit_too_small_to_work_with_is_code_2() {
    let folder = Folder::new("memory");
    folder.run("put db t a 1 --memory 1K").refused(2, &["memory"]);
}

/// What is wrong, and what to do about it, in the user's own words.
#[test]
fn messages_name_what_was_meant() {
    let folder = Folder::new("messages");
    std::fs::write(folder.path("n.csv"), "name\nx\n").unwrap();
    std::fs::write(folder.path("s.csv"), "ada;1\nbob;2\n").unwrap();
    folder.ok("put db users k v");
    folder.ok("savepoint db monday");
    folder.ok("put db lives k v --ttl 90s");
    let cases: &[(&str, i32, &[&str])] = &[
        ("get db user k", 1, &["there is no table `user`", "did you mean `users`?"]),
        ("delete db usres k", 1, &["did you mean `users`?"]),
        ("scan db other", 1, &["there is no table `other`; there are `lives`, `users`"]),
        ("stats db other", 1, &["there are `lives`, `users`"]),
        ("rollback db x", 1, &["there is no savepoint `x`; there is only `monday`"]),
        ("rollback db monday", 2, &["--yes", "everything written after record 1"]),
        ("changes db --table other", 1, &["there are `lives`, `users`"]),
        ("gte db users k", 2, &["'gte' (did you mean get?)"]),
        ("load db t n.csv --format cvs", 2, &["did you mean csv?"]),
        ("get n.csv users k", 1, &["n.csv is a file", "directory"]),
        ("dump nowhere", 1, &["there is no database at nowhere"]),
        ("dump .", 1, &[". is not a forebay database"]),
        (
            "put db users k v --layout leveling",
            1,
            &["`users` has layout wb-tree, not leveling:t=10", "forebay layout"],
        ),
        ("get db users k --savepoint mondy", 1, &["no savepoint `mondy`", "did you mean `monday`?"]),
        ("put db t k v --layout levelling", 2, &["did you mean leveling?"]),
        ("put db t k v --layout leveling:t=0", 2, &["t is 0; it must be between 2 and 1000; see"]),
        ("put db t k v --durabilty disk", 2, &["--durability"]),
        ("load db t n.csv --key nmae", 1, &["did you mean \"name\"?"]),
        ("load db t n.csv", 1, &["1 column, but number 2 is needed; --value chooses another"]),
        ("load db t n.csv --format tsv", 1, &["number 2 is needed", "--format says how it is read"]),
        ("load db t s.csv", 1, &["commas between columns, not semicolons"]),
        ("load db users n.csv --format lines --sorted", 1, &["hash order", "forebay layout", "leveling"]),
        ("load db t n.csv --format lines --sorted --layout wb-tree", 1, &["hash order", "leveling"]),
        ("load db lives n.csv --format lines --ttl 1h", 1, &["has time_to_live forever, not 1h", "`alter`"]),
        ("load db users n.csv --format lines --ttl 7d", 1, &["has time_to_live none", "make another table"]),
        ("bench load-16 --records 0M", 2, &["at least 1"]),
        ("changes db --since 1", 0, &[]),
    ];
    for (words, code, told) in cases.iter().filter(|(_, code, _)| *code > 0) {
        folder.run(words).refused(*code, told);
    }
    folder.ok("savepoint db tuesday");
    folder.run("rollback db tuesday").refused(2, &["--yes", "nothing was written after record 2"]);
    let long = "x".repeat(70_000);
    for words in [format!("put db t {long} v"), format!("delete db users {long}")] {
        folder.run(&words).refused(1, &["the key has 70000 bytes; at most 65536 are allowed"]);
    }
    folder.ok("compact db");
    let gone = folder.run("changes db --since 1");
    gone.refused(1, &["changes after 1", "before number"]);
    // Words to ask for help with.
    assert!(folder.ok("help --help").contains("Usage: forebay"));
    assert!(folder.ok("help get").contains("Print the values of keys"));
}

/// A database that is open elsewhere is waited for.
#[test]
fn a_database_that_is_in_use_is_waited_for() {
    let folder = Folder::new("wait");
    folder.ok("put db t k v");
    let (mut loading, input) = folder.loading(&["load", "db", "t", "-"]);
    folder.run("put db t k w").refused(1, &["process"]);
    folder.run("put db t k w --wait 5ms").refused(1, &["process"]);
    assert_eq!(folder.ok("get db t k"), "v\n", "who only looks need not wait");
    let waiting = folder
        .command(&["put", "db", "t", "k", "w", "--wait", "10m"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(input);
    assert!(loading.wait().unwrap().success());
    assert!(waiting.wait_with_output().unwrap().status.success());
    assert_eq!(folder.ok("get db t k"), "w\n");
}

#[test]
fn help_has_examples() {
    let folder = Folder::new("help");
    assert!(folder.ok("--help").contains("Examples:"));
    for command in [
        "aggregate",
        "load",
        "put",
        "merge",
        "get",
        "delete",
        "scan",
        "stats",
        "describe",
        "verify",
        "compact",
        "checkpoint",
        "savepoint",
        "savepoints",
        "rollback",
        "destroy",
        "bench",
    ] {
        let help = folder.ok(&format!("{command} --help"));
        assert!(
            help.contains("Example") && help.contains("--json") && help.contains("--memory"),
            "{command}"
        );
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{command}: {help}");
    }
    assert!(folder.ok("--version").starts_with("forebay "));
}

#[test]
fn a_directory_that_is_no_database_is_refused() {
    let folder = Folder::new("no-database");
    std::fs::create_dir(folder.path("db")).unwrap();
    std::fs::write(folder.path("db/letter"), "dear").unwrap();
    for words in
        ["get db t a", "put db t a 1", "verify db", "stats db", "compact db", "checkpoint db copy", "dump db"]
    {
        folder.run(words).refused(1, &["db"]);
    }
    folder.run_on("load db t", b"a\n").refused(1, &["db"]);
    assert_eq!(std::fs::read_dir(folder.path("db")).unwrap().count(), 1, "nothing was added to it");
}

#[test]
fn what_is_missing_is_named() {
    let folder = Folder::new("missing");
    for words in
        ["get nowhere t a", "delete nowhere t a", "scan nowhere t", "describe nowhere", "verify nowhere"]
    {
        folder.run(words).refused(1, &["nowhere"]);
    }
    assert!(!folder.path("nowhere").exists());
    folder.ok("put db t a 1");
    for words in ["get db other a", "delete db other a", "scan db other"] {
        folder.run(words).refused(1, &["other"]);
    }
}

#[test]
fn another_layout_than_the_tables_is_refused() {
    let folder = Folder::new("layout");
    folder.ok("put db t a 1 --layout wb-tree");
    folder.ok("put db t b 2");
    folder.run("put db t c 3 --layout wb-tree:ordered").refused(1, &["wb-tree"]);
    folder.run_on("load db t - --layout wb-tree:ordered", b"c\n").refused(1, &["wb-tree"]);
}

#[test]
fn a_database_in_use_is_refused() {
    let folder = Folder::new("locked");
    folder.ok("put db t a 1");
    let mut holder = folder
        .command(&["load", "db", "t", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Its first report comes behind its opening the database.
    let mut line = String::new();
    let mut out = std::io::BufReader::new(holder.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    let process = format!("process {}", holder.id());
    for words in ["put db t b 2", "compact db", "destroy db"] {
        folder.run(words).refused(1, &["db/LOCK", &process]);
    }
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
    assert_eq!(std::fs::metadata(folder.path("db/LOCK")).unwrap().len(), 0);
    folder.ok("put db t b 2");
}

#[test]
fn a_database_of_a_newer_format_is_refused() {
    let folder = Folder::new("newer");
    folder.ok("put db t a 1");
    let path = folder.path("db/FOREBAY");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[12..16].copy_from_slice(&99_u32.to_le_bytes());
    let sum = crc32c::crc32c(&bytes[4..]);
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(&path, bytes).unwrap();
    for words in ["get db t a", "put db t a 1", "verify db"] {
        folder.run(words).refused(1, &["FOREBAY", "version 99", "newer"]);
    }
}

#[test]
fn a_damaged_superblock_is_refused_with_its_file() {
    let folder = Folder::new("superblock");
    folder.ok("put db t a 1");
    let path = folder.path("db/FOREBAY");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    folder.run("get db t a").refused(1, &["FOREBAY", "offset"]);
}

/// Whoever read standard error had gone away, and the command panicked as it said why it failed.
#[test]
fn a_closed_standard_error_is_no_panic() {
    let folder = Folder::new("closed-error");
    let code = |arguments: &[&str]| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        folder.command(arguments).stderr(writer).output().unwrap().status.code()
    };
    assert_eq!(code(&["get", "missing", "t", "k"]), Some(1));
    assert_eq!(code(&["get", "missing", "t", "k", "--json"]), Some(1));
    std::fs::write(folder.path("f.csv"), "k,v\na,b\nc,1").unwrap();
    let store = ["aggregate", "--store", "db", "--by", "column:k", "--fn", "sum:v", "--skip-bad", "f.csv"];
    assert_eq!(code(&store), Some(0));
    assert_eq!(folder.ok("aggregate --store db --final f.csv --skip-bad").lines().count(), 3);
}

/// Flips one bit of the largest list in a directory.
fn damage(folder: &Folder, dir: &str) {
    let entries = std::fs::read_dir(folder.path(dir)).unwrap().map(|entry| entry.unwrap().path());
    let lists = entries.filter(|path| path.to_str().unwrap().contains(".list"));
    let list = lists.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let mut bytes = std::fs::read(&list).unwrap();
    bytes[100] ^= 1;
    // Another file, should this one have another name elsewhere.
    std::fs::remove_file(&list).unwrap();
    std::fs::write(&list, bytes).unwrap();
}

/// Whoever read standard output had gone away, and the exit code was 0; of most nothing was said.
#[test]
fn what_failed_is_told_also_where_nobody_reads_the_answer() {
    let folder = Folder::new("closed-output");
    let assert_told = |words: &str, told: &str| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let arguments: Vec<&str> = words.split(' ').collect();
        let output = folder.command(&arguments).stdout(writer).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && said.contains(told), "{words}: {said:?}");
    };
    let rows: String = (0..5000).map(|key| format!("{key},{key}\n")).collect();
    std::fs::write(folder.path("f.csv"), rows + "5000\n").unwrap();
    assert_told("load db t f.csv --keep-changes 1M --json", "record 5001");
    let stream = folder.command(&["changes", "db", "--stream"]).output().unwrap().stdout;
    std::fs::write(folder.path("cut"), &stream[..stream.len() - 40]).unwrap();
    assert_told("follow copy cut", "cut off");
    folder.ok("compact db");
    folder.ok("backup db kept");
    damage(&folder, "kept");
    assert_told("backups kept --verify", "backup 1");
    damage(&folder, "db");
    assert_told("verify db", "offset");
    assert_told("rescue db saved", "offset");
    assert!(folder.path("saved").is_dir());
}
