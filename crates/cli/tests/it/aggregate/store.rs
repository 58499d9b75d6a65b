//! `aggregate --store`: groups that are gone on with, each record counted once.

use std::fs::OpenOptions;
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use super::{Draws, write_gzip};
use crate::tool::{Folder, Outcome, last_object};

/// Rows whose keys are many enough for several commits.
fn rows(seed: u64, count: u64) -> String {
    let mut draws = Draws::new(seed);
    let row = |_| {
        let (city, kind) = (draws.skewed(300_000), draws.below(5));
        let amount = if draws.below(9) > 0 { draws.below(1000).to_string() } else { String::new() };
        match draws.below(50) {
            0 => format!("{kind},\"two\nlines {city}\",{amount}\n"),
            _ => format!("{kind},place {city},{amount}\n"),
        }
    };
    (0..count).map(row).collect()
}

fn words(seed: u64, count: u64) -> String {
    let mut draws = Draws::new(seed);
    (0..count)
        .map(|_| format!("word{}{}", draws.skewed(400_000), ["\n", "  "][draws.below(2) as usize]))
        .collect()
}

/// A database of groups is one like every other: what the log has of them is written out whoever opens it.
#[test]
fn other_commands_work_on_a_store() {
    let folder = Folder::new("store-other-commands");
    std::fs::write(folder.path("f.csv"), "path,bytes\n/a,1\n/b,2\n/a,3\n").unwrap();
    folder.ok("aggregate --store db --by column:path --fn count,sum:bytes f.csv");
    let keys: String = (0..400_000).map(|number| format!("longer key number {number:012}\n")).collect();
    folder.ok_on("load db kv - --memory 16M", keys.as_bytes());
    folder.ok("compact db");
    folder.ok("savepoint db before");
    folder.ok("layout db groups leveling");
    folder.ok("layout db kv wb-tree:ordered");
    folder.ok("verify db");
    assert_eq!(folder.ok("aggregate --store db"), "path\tcount\tsum:bytes\n/a\t2\t4\n/b\t1\t2\n");
    assert_eq!(folder.ok("get db groups /b"), "1\t2\n");
    assert_eq!(folder.run("get db groups /c").code, 1);
    assert_eq!(folder.ok("scan db groups"), "/a\t2\t4\n/b\t1\t2\n");
    assert_eq!(folder.ok("scan db groups --prefix /b --savepoint before"), "/b\t1\t2\n");
    assert_eq!(folder.ok("scan db groups --from /b"), "/b\t1\t2\n");
    assert_eq!(
        folder.ok("get db groups /a /c --json"),
        "{\"type\":\"group\",\"path\":\"/a\",\"count\":2,\"sum:bytes\":4}\n\
         {\"type\":\"group\",\"path\":\"/c\",\"count\":null,\"sum:bytes\":null}\n"
    );
    for (by, key, prefix, shown) in [
        ("word", "the", "t", "the\t2\n"),
        ("ngram:2", "the\tcat", "the\tc", "the cat\t1\n"),
        ("kmer:3", "GTA", "", "ACG\t2\nGTA\t2\n"),
    ] {
        let table = by.replace(':', "");
        std::fs::write(folder.path("f.txt"), if by == "kmer:3" { ">r\nACGTAC\n" } else { "the cat the\n" })
            .unwrap();
        folder.ok(&format!("aggregate --store db --table {table} --by {by} f.txt"));
        let run = |command: &str, word: &str| {
            let word = word.replace('\t', " ");
            let arguments = [command, "db", &table].into_iter().chain(if command == "scan" {
                vec!["--prefix"]
            } else {
                vec![]
            });
            let arguments: Vec<&str> = arguments.chain([&word[..]]).collect();
            let output = folder.command(&arguments).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        assert_eq!(run("get", key), format!("{}\n", shown.trim_end().rsplit('\t').next().unwrap()), "{by}");
        let scanned =
            if prefix.is_empty() { folder.ok(&format!("scan db {table}")) } else { run("scan", prefix) };
        assert_eq!(scanned, shown, "{by}");
    }
    folder.run("put db groups /a 9").refused(1, &["groups", "aggregat"]);
    folder.run_on("load db groups -", b"x\n").refused(1, &["groups", "aggregat"]);
}

/// A backslash was taken for the beginning of another byte, so that what was shown could not be asked for.
#[test]
fn phrases_are_asked_for_as_they_are_shown() {
    let folder = Folder::new("store-backslashes");
    std::fs::write(folder.path("f.txt"), "C:\\new folder \\N \\\\alpha \\beta\n").unwrap();
    let shown = folder.ok("aggregate --store db --by ngram:2 f.txt");
    assert_eq!(shown.lines().count(), 4);
    let run =
        |arguments: &[&str]| String::from_utf8(folder.command(arguments).output().unwrap().stdout).unwrap();
    for line in shown.lines() {
        let (phrase, count) = line.split_once('\t').unwrap();
        assert_eq!(run(&["get", "db", "groups", phrase]), format!("{count}\n"), "{phrase}");
        for prefix in [&phrase[..2], &phrase[..4], phrase] {
            let found: String = shown.split_inclusive('\n').filter(|line| line.starts_with(prefix)).collect();
            assert_eq!(run(&["scan", "db", "groups", "--prefix", prefix]), found, "{prefix}");
        }
    }
}

/// FASTA of two long sequences over many lines.
fn fasta(seed: u64, bases: u64) -> String {
    let mut draws = Draws::new(seed);
    let mut text = String::from(">one\n");
    for at in 0..bases {
        text.push(b"ACGT"[draws.below(4) as usize] as char);
        match at {
            at if at == bases / 2 => text.push_str("\n>two\n"),
            at if at % 70 == 0 => text.push('\n'),
            _ => {}
        }
    }
    text
}

fn append(folder: &Folder, name: &str, text: &str) {
    let mut file = OpenOptions::new().append(true).open(folder.path(name)).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// Kills the command again and again, each time later, until it comes to its end. Returns how often it was killed.
fn run_with_kills(folder: &Folder, command: &str) -> u32 {
    let arguments: Vec<&str> = command.split(' ').collect();
    let (mut kills, mut moment) = (0, Duration::from_millis(50));
    loop {
        let mut child =
            folder.command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(moment);
        moment = moment * 3 / 2;
        child.kill().unwrap();
        let outcome = child.wait_with_output().unwrap();
        match outcome.status.code() {
            None => kills += 1,
            Some(code) => {
                assert_eq!((code, String::from_utf8(outcome.stderr).unwrap()), (0, String::new()));
                return kills;
            }
        }
    }
}

/// What a killed run leaves is gone on with, and comes to what one run in memory does.
fn survives_kills(test: &str, file: &str, by: &str) {
    let folder = Folder::new(test);
    let text = match by {
        _ if by.starts_with("kmer") => fasta(5, 400_000),
        _ if by.starts_with("column") => format!("kind,city,amount\n{}", rows(6, 150_000)),
        _ => words(7, 300_000),
    };
    match file.ends_with(".gz") {
        true => write_gzip(&folder, file, text.as_bytes()),
        false => std::fs::write(folder.path(file), text).unwrap(),
    }
    let expected = folder.ok(&format!("aggregate {file} --by {by}"));
    let stored = format!("aggregate --store db {file} --by {by} --memory 64M");
    let kills = run_with_kills(&folder, &stored);
    assert!(kills > 0, "no run was killed");
    assert_eq!(folder.ok("aggregate --store db"), expected);
    let again = last_object(&folder.ok(&format!("{stored} --json --top 1")));
    assert_eq!((again["records"].as_u64(), again["known_files"].as_u64()), (Some(0), Some(1)));
    assert_eq!(folder.ok(&stored), expected);
    folder.ok("verify db");
}

#[test]
fn killed_runs_over_words_count_once() {
    survives_kills("store-words", "w.txt", "word --fold-case");
}

#[test]
fn killed_runs_over_ngrams_count_once() {
    survives_kills("store-ngrams", "w.txt", "ngram:3");
}

#[test]
fn killed_runs_over_kmers_count_once() {
    survives_kills("store-kmers", "k.fa", "kmer:21");
}

#[test]
fn killed_runs_over_rows_count_once() {
    survives_kills("store-rows", "rows.csv", "column:city,kind --fn count,sum:amount,max:amount,list:kind:3");
}

#[test]
fn killed_runs_over_gzip_count_once() {
    survives_kills("store-gzip", "rows.csv.gz", "column:city --fn sum:amount");
}

/// A run stops at the malformed record that `bad` is, far behind several commits, and goes on where it was once the
/// record is repaired.
fn goes_on_behind_what_was_malformed(test: &str, by: &str, text: [&str; 2], bad: &str, good: &str) {
    assert_eq!(bad.len(), good.len());
    let folder = Folder::new(test);
    let name = if by.starts_with("column") { "input.csv" } else { "input" };
    let write = |middle| std::fs::write(folder.path(name), [text[0], middle, text[1]].concat()).unwrap();
    write(good);
    let expected = folder.ok(&format!("aggregate {name} --by {by}"));
    let total =
        folder.object(&format!("aggregate {name} --by {by} --top 1 --json"))["records"].as_u64().unwrap();
    write(bad);
    let stored = format!("aggregate --store db {name} --by {by} --memory 64M");
    folder.run(&stored).refused(1, &[name, "record"]);
    let halfway = folder.ok("aggregate --store db");
    assert!(halfway.lines().count() > 10_000 && halfway != expected);
    write(good);
    let told = folder.object(&format!("{stored} --top 1 --json"));
    assert!((1..total).contains(&told["records"].as_u64().unwrap()), "{told} of {total}");
    assert_eq!(folder.ok("aggregate --store db"), expected);
}

#[test]
fn rows_go_on() {
    let (head, tail) = (format!("kind,city,amount\n{}", rows(10, 150_000)), rows(11, 1000));
    let by = "column:city --fn count,sum:amount";
    goes_on_behind_what_was_malformed("store-rows-on", by, [&head, &tail], "1,a,1,\n", "1,a,17\n");
}

/// A value that is refused stands among rows that are looked at together.
#[test]
fn values_go_on() {
    let (head, tail) = (format!("kind,city,amount\n{}", rows(15, 150_000)), rows(16, 9000));
    let by = "column:city,kind --fn count,sum:amount,list:kind:3";
    goes_on_behind_what_was_malformed("store-values-on", by, [&head, &tail], "1,a,xx\n", "1,a,17\n");
}

/// Wherever among them it stands, no row behind it is counted; and with `--skip-bad` all are.
#[test]
fn no_row_behind_a_value_that_is_refused_is_counted() {
    let folder = Folder::new("store-refused");
    let row = |number: u32| format!("{},{}\n", number % 7, number);
    for bad in [0, 1, 5, 4095, 4096, 5000, 8999] {
        let text: String =
            (0..9000).map(|number| if number == bad { "3,x\n".into() } else { row(number) }).collect();
        let file = format!("r{bad}.csv");
        std::fs::write(folder.path(&file), format!("k,v\n{text}")).unwrap();
        let words = format!("aggregate --store db{bad} --by column:k --fn count,sum:v {file}");
        let at = format!("{file}: record {} at byte offset", bad + 1);
        folder.run(&words).refused(1, &[&at, "`x` is not a number"]);
        let before: String = (0..bad).map(row).collect();
        std::fs::write(folder.path("before.csv"), format!("k,v\n{before}")).unwrap();
        let counted = folder.ok("aggregate --by column:k --fn count,sum:v before.csv");
        if bad > 0 {
            assert_eq!(folder.ok(&format!("aggregate --store db{bad}")), counted, "{bad}");
        }
        let skipped = folder.run(&format!("{words} --skip-bad"));
        let all = folder.run(&format!("aggregate --by column:k --fn count,sum:v --skip-bad {file}"));
        assert_eq!((skipped.code, skipped.stdout), (0, all.stdout), "{bad}");
    }
}

#[test]
fn ngrams_go_on() {
    let (head, tail) = (words(12, 150_000), words(13, 1000));
    let (bad, good) = (format!(" {} ", "x".repeat(70_000)), " y".repeat(35_001));
    goes_on_behind_what_was_malformed("store-ngrams-on", "ngram:2", [&head, &tail], &bad, &good);
}

#[test]
fn kmers_go_on() {
    let mut draws = Draws::new(14);
    let mut records = |count| -> String {
        let mut record = |number| {
            let bases: String = (0..100).map(|_| b"ACGT"[draws.below(4) as usize] as char).collect();
            format!("@{number}\n{bases}\n+\n{}\n", "I".repeat(100))
        };
        (0..count).map(&mut record).collect()
    };
    let (head, tail) = (records(6000), records(100));
    let (bad, good) = ("@b\nA\n+\nIII\n", "@b\nAC\n+\nII\n");
    goes_on_behind_what_was_malformed("store-kmers-on", "kmer:25", [&head, &tail], bad, good);
}

#[test]
fn new_and_grown_files_are_added() {
    let folder = Folder::new("store-grown");
    let rows = rows(8, 2000);
    let (head, tail) = rows.split_at(rows.match_indices('\n').nth(1000).unwrap().0 + 1);
    std::fs::write(folder.path("a.csv"), format!("kind,city,amount\n{head}")).unwrap();
    std::fs::write(folder.path("whole.csv"), format!("kind,city,amount\n{rows}")).unwrap();
    let by = "--by column:kind --fn count,sum:amount,distinct:city";
    let first = folder.object(&format!("aggregate --store db {by} a.csv a.csv --json"));
    assert_eq!(folder.ok("aggregate --store db"), folder.ok(&format!("aggregate {by} a.csv")));
    append(&folder, "a.csv", tail);
    std::fs::write(folder.path("empty.csv"), "").unwrap();
    let told = folder.object("aggregate --store db a.csv empty.csv --json --top 1");
    assert_eq!(told["records"].as_u64().unwrap(), 2000 - first["records"].as_u64().unwrap());
    assert_eq!(folder.ok("aggregate --store db"), folder.ok(&format!("aggregate {by} whole.csv")));
    append(&folder, "empty.csv", "city,kind,amount\nx,9,1\n");
    let out = folder.ok("aggregate --store db empty.csv a.csv");
    assert!(out.ends_with("\n9\t1\t1\t1\n"), "{out}");
    // Another name for the same file.
    std::os::unix::fs::symlink(folder.path("a.csv"), folder.path("link.csv")).unwrap();
    assert_eq!(folder.ok("aggregate --store db link.csv"), out);

    std::fs::write(folder.path("w"), "one two three").unwrap();
    let told = folder.run("aggregate --store db --table pairs --by ngram:2 w");
    assert_eq!((told.code, &told.stdout[..]), (0, "one two\t1\n"));
    assert!(
        told.stderr.contains("w: the last record, 5 bytes at byte offset 8, has no end yet"),
        "{}",
        told.stderr
    );
    append(&folder, "w", " four\n");
    let pairs = "one two\t1\nthree four\t1\ntwo three\t1\n";
    assert_eq!(folder.ok("aggregate --store db --table pairs w"), pairs);
    std::fs::write(folder.path("k"), ">a\nACG").unwrap();
    folder.ok("aggregate --store db --table threes --by kmer:3 k");
    append(&folder, "k", "T\nAC");
    let kmers = folder.ok("aggregate --by kmer:3 k");
    assert_eq!(folder.ok("aggregate --store db --table threes k"), kmers);
    assert_eq!(folder.ok("aggregate --store db --table pairs"), pairs);
}

/// A file that is read while it is written, byte by byte, is counted once and right, wherever it is torn; others
/// beside it are counted.
#[test]
fn files_that_are_still_written_are_counted_once() {
    let folder = Folder::new("store-torn");
    let text = "k,v\na,1\nb,12\n\"c\nd\",3\nb,5\n";
    std::fs::write(folder.path("z.csv"), "k,v\nz,1\n").unwrap();
    for torn in [1, 3, 4, 6, 10, 12, 14, 15, 16, 18, 20, text.len() - 1] {
        let db = format!("db{torn}");
        let file = format!("n{torn}.csv");
        let words = format!("aggregate --store {db} --by column:k --fn count,sum:v z.csv {file}");
        std::fs::write(folder.path(&file), &text[..torn]).unwrap();
        let told = folder.run(&words);
        assert_eq!(told.code, 0, "{torn}: {told:?}");
        let left = text[..torn].len() - [0, 4, 8, 13, 21].iter().rfind(|end| **end <= torn).unwrap();
        match left {
            0 => assert_eq!(told.stderr, ""),
            _ => assert!(told.stderr.contains(&format!("{file}: the last record, {left} byte")), "{told:?}"),
        }
        assert!(told.stdout.contains("z\t1\t1\n"), "{told:?}");
        // Nothing new, nothing more.
        assert_eq!(folder.run(&words).stdout, told.stdout);
        append(&folder, &file, &text[torn..]);
        assert_eq!(
            folder.ok(&words),
            folder.ok(&format!("aggregate --by column:k --fn count,sum:v z.csv {file}"))
        );
    }
    std::fs::write(folder.path("last.csv"), "k,v\na,1").unwrap();
    let json = last_object(&folder.run("aggregate --store db --by column:k last.csv --json").stdout);
    assert_eq!((json["records"].as_u64(), json["unfinished_files"].as_u64()), (Some(0), Some(1)));
    assert_eq!(folder.ok("aggregate --store db last.csv --final"), "k\tcount\na\t1\n");
    assert_eq!(folder.ok("aggregate --store db last.csv"), "k\tcount\na\t1\n");
}

/// A file that cannot be read on, or has a malformed record, keeps no other from being counted.
#[test]
fn a_file_that_fails_does_not_stop_others() {
    let folder = Folder::new("store-failing");
    let by = "aggregate --store db --by column:k --fn sum:v";
    std::fs::write(folder.path("a.csv"), "k,v\na,1\n").unwrap();
    folder.ok(&format!("{by} a.csv"));
    std::fs::write(folder.path("a.csv"), "k,v\nb,1\n").unwrap();
    std::fs::write(folder.path("b.csv"), "k,v\nb,10\nb\nb,100\n").unwrap();
    std::fs::write(folder.path("c.csv"), "k,v\nc,1000\n").unwrap();
    for _ in 0..2 {
        folder.run(&format!("{by} a.csv no.csv b.csv c.csv")).refused(
            1,
            &[
                "3 files of 4",
                "a.csv: the part that was read before has changed",
                "no.csv",
                "b.csv: record 2",
                "others were counted",
            ],
        );
        assert_eq!(folder.ok("aggregate --store db"), "k\tsum:v\na\t1\nb\t10\nc\t1000\n");
    }
    std::fs::write(folder.path("b.csv"), "k,v\nb,10\nb,1\nb,100\n").unwrap();
    assert_eq!(folder.ok(&format!("{by} b.csv")), "k\tsum:v\na\t1\nb\t111\nc\t1000\n");
}

/// So it is of sequences: nothing of a malformed record is counted, and it is read again once it is mended.
#[test]
fn a_malformed_record_of_sequences_does_not_stop_other_files() {
    let folder = Folder::new("store-sequences");
    std::fs::write(folder.path("a.fq"), "@1\nACGT\n+\nIIII\n@2\nTTTT\n+\nI\n@3\nCCC\n+\nIII\n").unwrap();
    std::fs::write(folder.path("b.fa"), "no sequences\n").unwrap();
    std::fs::write(folder.path("c.fa"), ">1\nGGTT\n").unwrap();
    let command = "aggregate --store db --by kmer:3";
    for _ in 0..2 {
        folder.run(&format!("{command} a.fq b.fa c.fa")).refused(
            1,
            &[
                "2 files of 3",
                "a.fq: record 2 at byte offset 15",
                "qualities",
                "b.fa: it begins with neither",
            ],
        );
        assert_eq!(folder.ok("aggregate --store db"), "AAC\t1\nACC\t1\nACG\t2\n");
    }
    std::fs::write(folder.path("a.fq"), "@1\nACGT\n+\nIIII\n@2\nTTT\n+\nIII\n@3\nCCC\n+\nIII\n").unwrap();
    assert_eq!(folder.ok(&format!("{command} a.fq")), "AAA\t1\nAAC\t1\nACC\t1\nACG\t2\nCCC\t1\n");
}

/// Log files that are rotated by renaming them are the same files.
#[test]
fn renamed_files_are_counted_once() {
    let folder = Folder::new("store-rotated");
    let by = "aggregate --store db --by column:k";
    let rename = |from: &str, to: &str| std::fs::rename(folder.path(from), folder.path(to)).unwrap();
    std::fs::write(folder.path("log.csv"), "k\na\n").unwrap();
    folder.ok(&format!("{by} log.csv"));
    for round in 1..4_u64 {
        append(&folder, "log.csv", "a\n");
        if folder.path("log.csv.1").exists() {
            rename("log.csv.1", "log.csv.2");
        }
        rename("log.csv", "log.csv.1");
        std::fs::write(folder.path("log.csv"), format!("k\nb{round}\n")).unwrap();
        let files = match round {
            1 => "log.csv log.csv.1",
            _ => "log.csv.2 log.csv log.csv.1",
        };
        let out = folder.ok(&format!("{by} --format csv {files}"));
        let others: String = (1..=round).map(|number| format!("b{number}\t1\n")).collect();
        assert_eq!(out, format!("k\tcount\na\t{}\n{others}", round + 1));
        let again = last_object(&folder.ok(&format!("{by} --format csv {files} --json")));
        assert_eq!(again["records"].as_u64(), Some(0));
        std::fs::write(folder.path("log.csv"), format!("k\nb{round}\n")).unwrap();
        if round == 1 {
            // Written anew in place: what was counted is not what is there.
            std::fs::write(folder.path("log.csv"), "k\nc1\n").unwrap();
            folder
                .run(&format!("{by} log.csv"))
                .refused(1, &["log.csv: the part that was read before has changed"]);
            std::fs::write(folder.path("log.csv"), "k\nb1\n").unwrap();
        }
    }
}

#[test]
fn results_are_shown_as_in_memory() {
    let folder = Folder::new("store-shown");
    std::fs::write(folder.path("rows.csv"), format!("kind,city,amount\n{}", rows(9, 5000))).unwrap();
    let by = "--by column:kind,city --fn sum:amount";
    folder.ok(&format!("aggregate --store db rows.csv {by}"));
    for options in ["", " --top 7", " --cube", " --rollup --top 3", " --json", " --cube --json"] {
        let plain = |words: &str| -> Vec<String> {
            let lines = folder.ok(words).lines().map(str::to_string).collect::<Vec<_>>();
            lines.into_iter().filter(|line| !line.contains("\"seconds\"")).collect()
        };
        let expected = plain(&format!("aggregate rows.csv {by}{options}"));
        assert_eq!(plain(&format!("aggregate --store db{options}")), expected, "{options}");
    }
    folder.ok("aggregate --store db --out o.csv");
    folder.ok(&format!("aggregate rows.csv {by} --out p.csv"));
    let read = |name| std::fs::read(folder.path(name)).unwrap();
    assert_eq!(read("o.csv"), read("p.csv"));
}

#[test]
fn what_does_not_agree_is_refused() {
    let folder = Folder::new("store-refusals");
    std::fs::write(folder.path("a.csv"), "k,v\nx,1\n").unwrap();
    let stored = "aggregate --store db a.csv";
    folder.run("aggregate --store db").refused(1, &["db"]);
    folder.run(stored).refused(2, &["--by"]);
    folder.run("aggregate --store db --by word -").refused(2, &["standard input"]);
    folder.run("aggregate --store db --by word --fn sum:v a.csv").refused(2, &["--fn"]);
    folder.run("aggregate --store db --by word --memory 8M a.csv").refused(2, &["64.0 MiB"]);
    folder.ok(&format!("{stored} --by column:k --fn count,sum:v"));
    folder.run(&format!("{stored} --by column:v")).refused(1, &["`groups`", "--by column:k, not column:v"]);
    folder.run(&format!("{stored} --fn sum:v")).refused(1, &["--fn count,sum:v, not sum:v"]);
    folder.run("aggregate --store db --table other").refused(1, &["`other`", "groups"]);
    folder.ok("aggregate --store db --table words --by word a.csv");
    folder.run("aggregate --store db --table words --fold-case a.csv").refused(1, &["without --fold-case"]);
    folder.run("aggregate --store db --table words --cube").refused(2, &["columns"]);

    let refused = |text: &[u8], said: &str| {
        std::fs::write(folder.path("a.csv"), text).unwrap();
        folder.run(stored).refused(1, &["a.csv", said, "another name"]);
    };
    refused(b"k,v\n", "has 4 bytes now, and had 8");
    refused(b"k,v\ny,1\nx,2\n", "changed");
    refused(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x00\x00", "changed");
    std::fs::write(folder.path("a.csv"), "k,v\nx,1\n").unwrap();
    std::fs::write(folder.path("b.csv"), "k,v\nx,1").unwrap();
    folder.ok("aggregate --store db b.csv --final");
    append(&folder, "b.csv", "0\n");
    folder.run("aggregate --store db b.csv").refused(1, &["b.csv", "before it was complete"]);
    write_gzip(&folder, "c.csv.gz", b"k,v\nx,1\n");
    folder.ok("aggregate --store db c.csv.gz");
    write_gzip(&folder, "c.csv.gz", b"k,v\nx,1\nx,1\n");
    folder.run("aggregate --store db c.csv.gz").refused(1, &["c.csv.gz", "packed files are not read on"]);
    // What is malformed stops the work, and is met again.
    std::fs::write(folder.path("d.csv"), "k,v\nx,1\nx\nx,1\n").unwrap();
    for _ in 0..2 {
        folder.run("aggregate --store db d.csv").refused(1, &["d.csv: record 2"]);
    }
    let Outcome { stdout, .. } = folder.run("aggregate --store db d.csv --skip-bad");
    assert_eq!(stdout, "k\tcount\tsum:v\nx\t5\t5\n");
}
