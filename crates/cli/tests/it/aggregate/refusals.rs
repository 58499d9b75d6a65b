//! What `aggregate` cannot do.

use std::sync::Arc;

use arrow_schema::{DataType, Field};
use forebay::{Database, Options};
use forebay_aggregate::arrow::{Shorten, StateList, StateRows};
use forebay_aggregate::{Composite, Value, parse_function};

use crate::tool::Folder;

/// Merges no lists.
struct Absent;

impl Shorten for Absent {
    fn shorten(&self, _states: &[&[u8]]) -> Option<Vec<u8>> {
        None
    }
}

/// Lists of states, which only the program can finish, were shown as answers.
#[test]
fn states_of_a_programs_own_function_are_not_shown() {
    let folder = Folder::new("aggregate-own");
    let rows = StateRows::new(vec![Field::new("n", DataType::Int64, true)].into()).unwrap();
    let absent: Arc<dyn Shorten> = Arc::new(Absent);
    let own = StateList::new("mean", 1, &Arc::new(rows), 0, &absent);
    let count = parse_function("count", &["states"]).unwrap();
    let function = Composite::new(vec![("n".into(), count), ("mean".into(), Box::new(own))]).unwrap();
    let db = Database::open(folder.path("db"), Options::default()).unwrap();
    let means = db.aggregator("means", function).open().unwrap();
    means.add(b"all", &[Value::bytes([&[1][..], &7_i64.to_le_bytes()].concat())]).unwrap();
    drop(means);
    db.close().unwrap();
    for words in ["get db means all", "scan db means"] {
        folder.run(words).refused(1, &["`means`", "own.mean/1", "only that program"]);
    }
}

#[test]
fn usage_that_cannot_work_is_code_2() {
    let folder = Folder::new("aggregate-usage");
    for (words, said) in [
        ("--by word --fn sum:a", "--fn is for columns"),
        ("--by word --cube", "columns"),
        ("--by word --format csv", "columns"),
        ("--by kmer:5 --fold-case", "--fold-case"),
        ("--by word --memory 1M", "--memory"),
        ("--by word --out groups", ".parquet"),
        ("--by column:a", "--format"),
        ("--by column:a lines.txt", "--format"),
        ("--by column:a,a --format csv", "twice"),
        ("--by column:a --format csv --fn nonsense:b", "no function `nonsense`"),
        ("--by column:a --format csv --fn sum", "sum:C"),
        ("--by column:a --format csv --fn string_agg:b:,:3", "stands in double quotes"),
        ("--by word --top -3", "-3 is not in 1"),
        ("--by column:count --format csv", "called count"),
        ("--by column:0 --format csv", "counted from 1"),
        ("--by column:grouping,b --format csv --rollup", "called grouping"),
        ("--by column:1,2,3,4,5,6,7,8,9,10,11,12,13 --format csv --cube", "at most 12"),
    ] {
        folder.run(&format!("aggregate {words}")).refused(2, &[said]);
    }
    for words in [
        "",
        "--by",
        "--by words",
        "--by kmer:65",
        "--by ngram:0",
        "--by word --top 0",
        "--by word --top 1 --unsorted",
    ] {
        let outcome = folder.run(format!("aggregate {words}").trim());
        assert_eq!((outcome.code, outcome.stdout.is_empty()), (2, true), "{words}: {outcome:?}");
    }
}

/// The help told of a database's memory alone.
#[test]
fn the_help_tells_how_much_memory_is_needed() {
    let folder = Folder::new("aggregate-memory-help");
    let help = folder.ok("aggregate --help");
    let words: Vec<&str> = help.split_whitespace().collect();
    assert!(words.join(" ").contains("no less than 2M, or 64M with --store"), "{help}");
    folder.run("aggregate --by word --memory 1M").refused(2, &["2.0 MiB"]);
    folder.run("aggregate --store db --by word --memory 16M").refused(2, &["64.0 MiB"]);
}

#[test]
fn what_cannot_be_read_or_written_is_named() {
    let folder = Folder::new("aggregate-files");
    std::fs::write(folder.path("text"), "a b\n").unwrap();
    std::fs::write(folder.path("broken.gz"), b"\x1f\x8b\x08 and no more").unwrap();
    folder.run("aggregate --by word text missing").refused(1, &["missing"]);
    folder.run("aggregate --by word .").refused(1, &["directory"]);
    folder.run("aggregate --by word broken.gz").refused(1, &["cannot read broken.gz"]);
    folder.run("aggregate --by word text --out no/such/place.csv").refused(1, &["no/such/place.csv"]);
    let many: String = (0..200_000).map(|number| format!("{number} ")).collect();
    folder
        .run_on("aggregate --by word - --temp nowhere --memory 4M", many.as_bytes())
        .refused(1, &["temporary directory", "nowhere"]);
    folder
        .run_on("aggregate --by word", format!("a {} b", "x".repeat(70_000)).as_bytes())
        .refused(1, &["record 2 at byte offset 2", "a word of more than 65536 bytes"]);
    let long = format!("a {} b a", "x".repeat(600_000));
    let outcome = folder.run_on("aggregate --by word --skip-bad", long.as_bytes());
    assert_eq!((outcome.code, &outcome.stdout[..]), (0, "a\t2\nb\t1\n"), "{outcome:?}");
    let outcome = folder.run_on("aggregate --by ngram:2 --skip-bad", long.as_bytes());
    assert_eq!(outcome.stdout, "b a\t1\n", "no n-gram goes over what was skipped");
}
