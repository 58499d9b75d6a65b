//! Answers held against those of DuckDB, which `tests/data/answers/make.py` asked once; and inputs as other tools write
//! them.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::tool::{Folder, last_object};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/answers").join(name)
}

/// Whether an answer is DuckDB's: floating-point numbers up to rounding, all others to the last digit.
fn is_same(function: &str, found: &str, expected: &str, error: f64) -> bool {
    let (name, column) = function.split_once(':').unwrap();
    let is_float = name == "avg" || matches!(column, "d" | "f");
    let expected =
        if expected.contains('.') { expected.trim_end_matches('0').trim_end_matches('.') } else { expected };
    match (is_float, found.parse::<f64>(), expected.parse::<f64>()) {
        (true, Ok(found), Ok(expected)) => (found - expected).abs() <= error * expected.abs(),
        _ => found == expected,
    }
}

/// Integers of 64 and 128 bits with and without sign, decimals, floats of both sizes, truths, texts and dates.
#[test]
fn answers_are_those_of_duckdb() {
    let folder = Folder::new("answers-duckdb");
    let expected = std::fs::read_to_string(data("duckdb.tsv")).unwrap();
    let mut lines = expected.lines();
    let functions: Vec<&str> = lines.next().unwrap().split('\t').skip(1).collect();
    let expected: Vec<Vec<&str>> = lines.map(|line| line.split('\t').collect()).collect();
    // In csv a float of 32 bits is the number that its text says.
    for (file, error) in [("rows.csv", 1e-6), ("rows.parquet", 1e-7)] {
        std::fs::copy(data(file), folder.path(file)).unwrap();
        // DuckDB writes integers of 128 bits to Parquet as floats.
        let asked: Vec<usize> = (0..functions.len())
            .filter(|place| file == "rows.csv" || !functions[*place].ends_with(":h"))
            .collect();
        let list: Vec<&str> = asked.iter().map(|place| functions[*place]).collect();
        let found = folder.ok(&format!("aggregate {file} --by column:k --fn {}", list.join(",")));
        let found: Vec<Vec<&str>> = found.lines().skip(1).map(|line| line.split('\t').collect()).collect();
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found[0], expected[0]);
            for (answer, place) in found[1..].iter().zip(&asked) {
                let (function, expected) = (functions[*place], expected[place + 1]);
                assert!(
                    is_same(function, answer, expected, error),
                    "{file} {function}: {answer}, DuckDB {expected}"
                );
            }
        }
    }
    // A number of 32 bits is what it is in 64, and not what its text would be.
    std::fs::copy(data("rows.parquet"), folder.path("rows.parquet")).unwrap();
    let means = folder.ok("aggregate rows.parquet --by column:k --fn avg:f");
    let place = functions.iter().position(|function| *function == "avg:f").unwrap();
    for (line, expected) in means.lines().skip(1).zip(&expected) {
        assert!(is_same("avg:f", line.split_once('\t').unwrap().1, expected[place + 1], 1e-14), "{line}");
    }
}

/// Sums, and extremes of more than 64 bits or with points, are decimals in Parquet too.
#[test]
fn exact_numbers_are_written_and_read_back() {
    let folder = Folder::new("answers-decimals");
    std::fs::copy(data("rows.csv"), folder.path("rows.csv")).unwrap();
    let functions = "sum:u,max:u,sum:m,min:m,sum:i,min:i,bit_or:u,min:n";
    let words = format!("aggregate rows.csv --by column:k --fn {functions}");
    folder.ok(&format!("{words} --out out.parquet"));
    let expected = folder.ok(&words);
    let columns: Vec<String> = (1..=9).map(|column| column.to_string()).collect();
    let back = folder.ok(&format!("aggregate out.parquet --by column:{}", columns.join(",")));
    for (back, expected) in back.lines().zip(expected.lines()).skip(1) {
        for (back, expected) in back.split('\t').zip(expected.split('\t')) {
            let shortest =
                if back.contains('.') { back.trim_end_matches('0').trim_end_matches('.') } else { back };
            assert_eq!(shortest, expected, "{back}");
        }
    }
}

#[test]
fn kinds_of_columns_are_read_or_named() {
    let folder = Folder::new("answers-kinds");
    std::fs::copy(data("kinds.parquet"), folder.path("kinds.parquet")).unwrap();
    let by = |words: &str| folder.ok(&format!("aggregate kinds.parquet --by column:{words}"));
    assert_eq!(
        by("place.city --fn sum:place.at.x"),
        "place.city\tsum:place.at.x\n\\N\t\\N\nBern\t-2\nOslo\t1\n"
    );
    assert_eq!(by("zero"), "zero\tcount\n0\t3\n");
    assert_eq!(by("day"), "day\tcount\n+010000-01-01\t1\n-000221-09-02\t1\n1970-01-01\t1\n");
    assert_eq!(by("zero --fn max:half,min:half"), "zero\tmax:half\tmin:half\n0\t65504\t-2.5\n");
    let refused = |column: &str, said: &[&str]| {
        folder.run(&format!("aggregate kinds.parquet --by column:{column}")).refused(1, said);
    };
    refused("place", &["\"place\"", "structures", "place.city, place.at.x"]);
    refused("tags", &["\"tags\"", "lists or maps", "single values"]);
    refused("hlaf", &["\"hlaf\"", "did you mean \"half\""]);
    let bytes = std::fs::read(data("kinds.parquet")).unwrap();
    let words = "aggregate --format parquet --by column:day";
    assert_eq!(folder.ok_on(words, &bytes), by("day"));
    super::write_gzip(&folder, "packed.parquet", &bytes);
    assert_eq!(folder.ok("aggregate packed.parquet --by column:day"), by("day"));
}

#[test]
fn two_columns_may_be_values_of_one_function() {
    let folder = Folder::new("answers-two");
    let input = b"k,a,b\nx,1,7\nx,2,5\nx,4,1\nx,9,\ny,1,1\n";
    let words = "aggregate --format csv --by column:k --fn corr:a:b,r2:a:b,sum:b";
    assert_eq!(folder.ok_on(words, input), "k\tcorr:a:b\tr2:a:b\tsum:b\nx\t-1\t1\t13\ny\t\\N\t\\N\t1\n");
}

#[test]
fn truths_are_written_in_many_ways() {
    let folder = Folder::new("answers-truths");
    let words = "aggregate --format csv --header --by column:1 --fn count_if:2,bool_and:2";
    let input = "k,b\na,True\na,TRUE\na,t\na,yes\na,Y\na,1\nb,False\nb,FALSE\nb,F\nb,no\nb,N\nb,0\n";
    assert_eq!(folder.ok_on(words, input.as_bytes()), "1\tcount_if:2\tbool_and:2\na\t6\ttrue\nb\t0\tfalse\n");
    folder.run_on(words, b"k,b\na,on\n").refused(1, &["`on` is not true, t, yes"]);
}

#[test]
fn a_value_that_one_function_refuses_leaves_the_row() {
    let folder = Folder::new("answers-refused");
    let input = b"k,v\na,1\na,NaN\nb,NaN\nc\nd,x\n";
    let words =
        "aggregate --format csv --by column:k --fn count,count:v,approx_quantile:v:0.5,sum:v --skip-bad";
    let outcome = folder.run_on(words, input);
    let expected = "k\tcount\tcount:v\tapprox_quantile:v:0.5\tsum:v\na\t2\t2\t1\t1\nb\t1\t1\t\\N\t\\N\nd\t1\t1\t\\N\t\\N\n";
    assert_eq!((outcome.code, &outcome.stdout[..]), (0, expected));
    assert_eq!(
        outcome.stderr,
        "forebay: 1 malformed record skipped\nforebay: 6 times a function refused a value and took it as missing\n"
    );
    let told = last_object(&folder.run_on(&format!("{words} --json"), input).stdout);
    assert_eq!((told["records"].as_u64(), told["skipped"].as_u64()), (Some(4), Some(1)));
    assert_eq!(told["refused_values"].as_u64(), Some(6));
    folder.run_on(&words.replace(" --skip-bad", ""), input).refused(1, &["record 2"]);
}

#[test]
fn columns_that_are_not_there_or_there_twice_are_named() {
    let folder = Folder::new("answers-columns");
    let lines = b"{\"city\":\"x\",\"sold\":1}\n{\"city\":\"y\"}\n";
    let run = |words: &str| folder.run_on(&format!("aggregate --format jsonl {words}"), lines);
    run("--by column:ctiy").refused(1, &["no record has a field \"ctiy\"", "did you mean \"city\""]);
    run("--by column:city --fn sum:nosuch").refused(1, &["\"nosuch\""]);
    assert_eq!(run("--by column:city --fn sum:sold").stdout, "city\tsum:sold\nx\t1\ny\t\\N\n");
    assert_eq!(folder.ok_on("aggregate --format jsonl --by column:city", b""), "city\tcount\n");

    let twice = b"k,v,k\na,1,b\n";
    folder
        .run_on("aggregate --format csv --by column:k", twice)
        .refused(1, &["columns 1 and 3 are both called \"k\"", "number"]);
    assert_eq!(folder.ok_on("aggregate --format csv --header --by column:3", twice), "3\tcount\nb\t1\n");
    assert_eq!(folder.ok_on("aggregate --format csv --by column:v", twice), "v\tcount\n1\t1\n");
    folder.run_on("aggregate --format csv --by column:vv", twice).refused(1, &["did you mean \"v\""]);

    let input = b"\"a,b\",c:d\nx,1\nx,2\n";
    assert_eq!(
        folder.ok_on("aggregate --format csv --by column:\"a,b\" --fn sum:\"c:d\"", input),
        "a,b\tsum:\"c:d\"\nx\t3\n"
    );
}

#[test]
fn no_key_of_an_object_comes_twice() {
    let folder = Folder::new("answers-keys");
    let words = "aggregate --format csv --by column:k,k_hex --json";
    let out = folder.ok_on(words, b"k,k_hex\n\xff,1\n");
    assert!(out.starts_with("{\"type\":\"group\",\"k_hex_\":\"ff\",\"k_hex\":\"1\",\"count\":1}\n"), "{out}");
    let out = folder.ok_on("aggregate --format csv --by column:1 --json", b"\"say \"\"x\"\"\",1\n");
    assert!(out.starts_with("{\"type\":\"group\",\"1\":\"say \\\"x\\\"\""), "{out}");
}

/// What is not finite is a text, what was cut off is an object, and neither is what a value may be.
#[test]
fn json_tells_what_is_not_finite_and_what_was_cut() {
    let folder = Folder::new("answers-json");
    let words = "aggregate --format csv --by column:1 --fn max:2,list:3:1 --json";
    let out = folder.ok_on(words, "b,nan,…\na,inf,x\na,1,y\n".as_bytes());
    let expected = "{\"type\":\"group\",\"1\":\"a\",\"max:2\":\"inf\",\"list:3:1\":[\"x\",{\"cut\":true}]}\n\
                    {\"type\":\"group\",\"1\":\"b\",\"max:2\":\"NaN\",\"list:3:1\":[\"…\"]}\n";
    assert!(out.starts_with(expected), "{out}");
    let frequent = folder.ok_on(
        "aggregate --format csv --by column:1 --fn frequent:2,distinct:2 --json",
        b"a,\xff\na,\xfe\na,\xff\n",
    );
    assert!(
        frequent.starts_with(
            "{\"type\":\"group\",\"1\":\"a\",\"frequent:2\":[[{\"hex\":\"ff\"},2],[{\"hex\":\"fe\"},1]],\"distinct:2\":2}\n"
        ),
        "{frequent}"
    );
    let lists = folder.ok_on(
        "aggregate --format csv --by column:1 --fn set:2 --header --out o.csv",
        b"k,v\na,x;y\nb,x\nb,y\n",
    );
    assert!(lists.contains("2 groups"), "{lists}");
    let written = std::fs::read_to_string(folder.path("o.csv")).unwrap();
    assert_eq!(written, "1,set:2\na,x\\;y\nb,x;y\n");
}

#[test]
fn content_tells_what_packs_a_file() {
    let folder = Folder::new("answers-packed");
    let text = b"a b a\n";
    std::fs::write(folder.path("plain.gz"), text).unwrap();
    std::fs::write(folder.path("rows.csv.zst"), zstd::encode_all(&b"k\na\na\n"[..], 1).unwrap()).unwrap();
    super::write_gzip(&folder, "padded", text);
    let mut padded = std::fs::OpenOptions::new().append(true).open(folder.path("padded")).unwrap();
    padded.write_all(&[0; 1000]).unwrap();
    for name in ["plain.gz", "padded"] {
        assert_eq!(folder.ok(&format!("aggregate {name} --by word")), "a\t2\nb\t1\n", "{name}");
    }
    padded.write_all(b"what is behind").unwrap();
    let outcome = folder.run("aggregate padded --by word");
    assert_eq!((outcome.code, &outcome.stdout[..]), (0, "a\t2\nb\t1\n"));
    assert!(outcome.stderr.contains("padded: 14 bytes behind the gzip data"), "{}", outcome.stderr);
    assert_eq!(folder.ok("aggregate rows.csv.zst --by column:k"), "k\tcount\na\t2\n");
    std::fs::write(folder.path("old"), b"BZh91AY&SY").unwrap();
    folder.run("aggregate old --by word").refused(1, &["old", "bzip2"]);
    std::fs::write(folder.path("mac.csv"), "k,v\ra,1\rb,2\r").unwrap();
    assert_eq!(folder.ok("aggregate mac.csv --by column:k --fn sum:v"), "k\tsum:v\na\t1\nb\t2\n");
    std::fs::write(folder.path("k.fa"), "\u{feff}\n>a\nACG\n").unwrap();
    assert_eq!(folder.ok("aggregate k.fa --by kmer:3"), "ACG\t1\n");
}

/// As in SQL; it was no value.
#[test]
fn no_values_have_no_distinct_ones() {
    let folder = Folder::new("distinct-of-nothing");
    std::fs::write(folder.path("d.csv"), "k,v\na,\nb,1\nb,2\n").unwrap();
    let by = "--by column:k --fn distinct:v,approx_distinct:v,theta:v,sum:v d.csv";
    let head = "k\tdistinct:v\tapprox_distinct:v\ttheta:v\tsum:v\n";
    for words in [format!("aggregate {by}"), format!("aggregate --store db {by}")] {
        assert_eq!(folder.ok(&words), format!("{head}a\t0\t0\t0\t\\N\nb\t2\t2\t2\t3\n"));
    }
    assert_eq!(folder.ok("get db groups a"), "0\t0\t0\t\\N\n");
}
