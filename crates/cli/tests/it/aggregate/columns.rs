//! Rows of csv, tsv and jsonl; functions; cubes.

use std::collections::{BTreeMap, BTreeSet};

use super::{Draws, write_gzip};
use crate::tool::{Folder, last_object};

/// A row: two columns to group by, and a number, which may be missing.
type Row = (String, String, Option<i64>);

fn rows(seed: u64, count: u64, distinct: u64) -> Vec<Row> {
    let mut draws = Draws::new(seed);
    let place = |draws: &mut Draws, most| match draws.skewed(most) {
        0 => String::new(),
        1 => "a,\"b\"".to_string(),
        2 => "c d".to_string(),
        other => format!("place {other}"),
    };
    let mut rows = Vec::new();
    for _ in 0..count {
        let (one, other) = (place(&mut draws, distinct), place(&mut draws, 6));
        let number = (draws.below(10) > 0).then(|| draws.below(1000) as i64 - 500);
        rows.push((one, other, number));
    }
    rows
}

fn csv(rows: &[Row]) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["city", "unused", "kind", "amount"]).unwrap();
    for (city, kind, amount) in rows {
        let amount = amount.map(|amount| amount.to_string()).unwrap_or_default();
        writer.write_record([city, "x", kind, &amount]).unwrap();
    }
    writer.into_inner().unwrap()
}

fn jsonl(rows: &[Row]) -> Vec<u8> {
    let line = |(city, kind, amount): &Row| {
        let mut object = serde_json::json!({"city": city, "kind": kind, "other": [1, {"city": "no"}]});
        if let Some(amount) = amount {
            object["amount"] = (*amount).into();
        }
        format!("{object}\n")
    };
    rows.iter().map(line).collect::<String>().into_bytes()
}

fn tsv(rows: &[Row]) -> Vec<u8> {
    let text = |amount: &Option<i64>| amount.map(|amount| amount.to_string()).unwrap_or_default();
    let rows: String =
        rows.iter().map(|(city, kind, amount)| format!("{city}\t{kind}\t{}\n", text(amount))).collect();
    format!("city\tkind\tamount\n{rows}").into_bytes()
}

/// What each group comes to: rows, sum and greatest number.
fn grouped(
    rows: &[Row],
    key: impl Fn(&Row) -> Vec<String>,
) -> BTreeMap<Vec<String>, (u64, Option<i64>, Option<i64>)> {
    let mut groups: BTreeMap<_, (u64, Option<i64>, Option<i64>)> = BTreeMap::new();
    for row in rows {
        let (count, sum, max) = groups.entry(key(row)).or_default();
        *count += 1;
        if let Some(amount) = row.2 {
            *sum = Some(sum.unwrap_or(0) + amount);
            *max = Some(max.map_or(amount, |max| max.max(amount)));
        }
    }
    groups
}

fn cell(number: Option<i64>) -> String {
    number.map_or("\\N".into(), |number| number.to_string())
}

const FUNCTIONS: &str = "--fn count,sum:amount --fn max:amount";

#[test]
fn rows_of_every_format_are_grouped() {
    let folder = Folder::new("columns");
    let rows = rows(10, 5000, 200);
    std::fs::write(folder.path("rows.csv"), csv(&rows)).unwrap();
    std::fs::write(folder.path("rows.tsv"), tsv(&rows)).unwrap();
    write_gzip(&folder, "rows.jsonl.gz", &jsonl(&rows));
    let one = grouped(&rows, |row| vec![row.0.clone()]);
    let two = grouped(&rows, |row| vec![row.1.clone(), row.0.clone()]);
    for (columns, groups) in [("city", one), ("kind,city", two)] {
        let names = columns.replace(',', "\t");
        let counts: String =
            groups.iter().map(|(key, group)| format!("{}\t{}\n", key.join("\t"), group.0)).collect();
        let answers: String = groups
            .iter()
            .map(|(key, (count, sum, max))| {
                format!("{}\t{count}\t{}\t{}\n", key.join("\t"), cell(*sum), cell(*max))
            })
            .collect();
        for file in ["rows.csv", "rows.tsv", "rows.jsonl.gz"] {
            let words = format!("aggregate --by column:{columns} {file}");
            assert_eq!(folder.ok(&words), format!("{names}\tcount\n{counts}"), "{words}");
            let expected = format!("{names}\tcount\tsum:amount\tmax:amount\n{answers}");
            assert_eq!(folder.ok(&format!("{words} {FUNCTIONS}")), expected, "{words}");
        }
    }
}

#[test]
fn columns_have_numbers_and_formats_can_be_told() {
    let folder = Folder::new("numbers");
    let words = "aggregate --format csv --by column:2 --fn sum:1,count:3";
    assert_eq!(folder.ok_on(words, b"1,a,\n2,b,x\n3,a,y\n"), "2\tsum:1\tcount:3\na\t4\t1\nb\t2\t1\n");
    assert_eq!(
        folder.ok_on(&format!("{words} --header"), b"n,t,u\n1,a,\n2,b,x\n"),
        "2\tsum:1\tcount:3\na\t1\t0\nb\t2\t1\n"
    );
    assert_eq!(folder.ok_on("aggregate --format jsonl --by column:1", b"{\"1\":7}\n"), "1\tcount\n7\t1\n");
}

#[test]
fn every_file_has_its_own_header_and_format() {
    let folder = Folder::new("headers");
    std::fs::write(folder.path("a.csv"), "kind,amount\nx,1\ny,2\n").unwrap();
    std::fs::write(folder.path("b.tsv"), "amount\tother\tkind\r\n10\t.\tx\r\n").unwrap();
    std::fs::write(folder.path("c.ndjson"), "{\"amount\":100.0,\"kind\":\"y\"}\n").unwrap();
    std::fs::write(folder.path("empty.csv"), "").unwrap();
    let words = "aggregate --by column:kind --fn sum:amount a.csv empty.csv b.tsv c.ndjson";
    assert_eq!(folder.ok(words), "kind\tsum:amount\nx\t11\ny\t102\n");
    let spaced = folder
        .command(&["aggregate", "--by", "column:kind", "a.csv", "--fn", "count, sum:amount"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(spaced.stdout).unwrap(), "kind\tcount\tsum:amount\nx\t1\t1\ny\t1\t2\n");
}

#[test]
fn nothing_and_empty_text_are_two_groups() {
    let folder = Folder::new("nothing");
    let input = b"{\"a\":null,\"b\":1}\n{\"b\":\"\"}\n{\"a\":\"\",\"b\":null}\n{\"a\":\"null\"}\n{\"a\":\"\\t\\\\N\"}\n";
    let words = "aggregate --format jsonl --by column:a --fn count,count:b";
    assert_eq!(
        folder.ok_on(words, input),
        "a\tcount\tcount:b\n\\N\t2\t2\n\t1\t0\n\\t\\\\N\t1\t0\nnull\t1\t0\n"
    );
    folder.ok_on(&format!("{words} --out o.csv"), input);
    let written = std::fs::read_to_string(folder.path("o.csv")).unwrap();
    assert_eq!(written, "a,count,count:b\n,2,2\n\"\",1,0\n\t\\N,1,0\nnull,1,0\n");
    folder.ok_on(&format!("{words} --out o.jsonl --fn list:b,any:b"), input);
    let written = std::fs::read_to_string(folder.path("o.jsonl")).unwrap();
    assert!(
        written
            .starts_with("{\"a\":null,\"count\":2,\"count:b\":2,\"list:b\":[\"\",\"1\"],\"any:b\":\"\"}\n")
    );
    assert!(
        written.contains("{\"a\":\"\",\"count\":1,\"count:b\":0,\"list:b\":null,\"any:b\":null}\n"),
        "{written}"
    );
}

#[test]
fn rows_that_do_not_fit_memory_are_counted_all_the_same() {
    let folder = Folder::new("column-spill");
    std::fs::write(folder.path("rows.csv"), csv(&rows(11, 200_000, 400_000))).unwrap();
    for functions in ["", " --fn count,sum:amount,list:kind:3"] {
        let words = format!("aggregate rows.csv --by column:city{functions}");
        assert_eq!(folder.object(&format!("{words} --json --memory 2M"))["spilled"], true);
        assert_eq!(folder.ok(&format!("{words} --memory 2M")), folder.ok(&words), "{words}");
    }
}

/// The lines of grouping by some columns, as those of a cube in which the others are left out.
fn as_grouping(folder: &Folder, columns: &[&str], grouping: u32, functions: &str) -> BTreeSet<String> {
    let kept: Vec<&str> = (0..columns.len())
        .filter(|place| grouping >> (columns.len() - 1 - place) & 1 == 0)
        .map(|place| columns[place])
        .collect();
    let lines = match kept.is_empty() {
        // One group of all: a column that is the same everywhere.
        true => folder.ok(&format!("aggregate rows.csv --by column:unused {functions}")),
        false => folder.ok(&format!("aggregate rows.csv --by column:{} {functions}", kept.join(","))),
    };
    let line = |line: &str| {
        let mut cells = line.split('\t');
        let mut given = cells.by_ref().take(kept.len().max(1)).collect::<Vec<_>>().into_iter();
        let place = |column| if kept.contains(column) { given.next().unwrap() } else { "\\N" };
        let keys: Vec<&str> = columns.iter().map(place).collect();
        format!("{}\t{grouping}\t{}", keys.join("\t"), cells.collect::<Vec<_>>().join("\t"))
    };
    lines.lines().skip(1).map(line).collect()
}

#[test]
fn a_cube_is_what_grouping_again_would_give() {
    let folder = Folder::new("cube");
    std::fs::write(folder.path("rows.csv"), csv(&rows(12, 3000, 30))).unwrap();
    let columns = ["city", "kind", "amount"];
    for functions in ["--fn count", FUNCTIONS] {
        for (option, groupings) in [("--cube", (0..8).collect::<Vec<u32>>()), ("--rollup", vec![0, 1, 3, 7])]
        {
            let words = format!("aggregate rows.csv --by column:{} {functions} {option}", columns.join(","));
            let lines = folder.ok(&words);
            let mut expected = BTreeSet::new();
            for grouping in groupings {
                let again = as_grouping(&folder, &columns, grouping, functions);
                assert!(expected.is_disjoint(&again));
                expected.extend(again);
            }
            let seen: BTreeSet<String> = lines.lines().skip(1).map(str::to_string).collect();
            assert_eq!(seen, expected, "{words}");
            assert_eq!(lines.lines().count() - 1, seen.len());
            assert!(lines.starts_with("city\tkind\tamount\tgrouping\tcount"));
        }
    }
}

#[test]
fn a_cube_may_be_larger_than_memory() {
    let folder = Folder::new("cube-spill");
    std::fs::write(folder.path("rows.csv"), csv(&rows(13, 60_000, 100_000))).unwrap();
    let words = "aggregate rows.csv --by column:city,kind,amount --cube --fn sum:amount";
    assert_eq!(folder.object(&format!("{words} --json --memory 2M"))["spilled"], true);
    assert_eq!(folder.ok(&format!("{words} --memory 2M")), folder.ok(words));
}

#[test]
fn threads_change_nothing() {
    let folder = Folder::new("threads");
    std::fs::write(folder.path("rows.csv"), csv(&rows(15, 50_000, 30_000))).unwrap();
    for words in [
        "aggregate rows.csv --by column:city --fn count,sum:amount",
        "aggregate rows.csv --by column:city,kind --cube --memory 2M",
        "aggregate rows.csv --by word --memory 2M",
    ] {
        let expected = folder.ok(words);
        for threads in [1, 3, 64] {
            assert_eq!(folder.ok(&format!("{words} --threads {threads}")), expected, "{words}");
        }
    }
    assert_eq!(folder.run("aggregate rows.csv --by word --threads 0").code, 2);
}

#[test]
fn malformed_rows_are_named_or_skipped() {
    let folder = Folder::new("malformed-rows");
    std::fs::write(folder.path("good.csv"), "a,b\nx,1\n").unwrap();
    std::fs::write(folder.path("bad.csv"), "a,b\nx,2\ny\nz,three\nx,4\n").unwrap();
    let words = "aggregate --by column:a --fn sum:b good.csv bad.csv";
    folder.run(words).refused(1, &["bad.csv: record 2 at byte offset 8", "1 column", "--skip-bad"]);
    std::fs::write(folder.path("value.csv"), "a,b\nz,three\n").unwrap();
    folder
        .run("aggregate --by column:a --fn sum:b good.csv value.csv")
        .refused(1, &["value.csv: record 1 at byte offset 4", "column `b`", "`three` is not a number"]);
    let outcome = folder.run(&format!("{words} --skip-bad"));
    assert_eq!((outcome.code, &outcome.stdout[..]), (0, "a\tsum:b\nx\t7\nz\t\\N\n"));
    let refused = "forebay: 1 malformed record skipped\nforebay: 1 time a function refused a value and took it as missing\n";
    assert_eq!(outcome.stderr, refused);
    let figures = last_object(&folder.run(&format!("{words} --skip-bad --json")).stdout);
    assert_eq!((figures["records"].as_u64(), figures["skipped"].as_u64()), (Some(4), Some(1)));
    folder.run("aggregate --by column:no good.csv").refused(1, &["good.csv: no column is called \"no\""]);
    folder
        .run_on("aggregate --by column:a --format jsonl", b"{\"a\":1}\n{\n")
        .refused(1, &["record 2", "not JSON"]);
}

/// Blocks and row groups are read beside each other: what is told is the same with any number of threads.
#[test]
fn readers_beside_each_other_tell_what_one_tells() {
    let folder = Folder::new("readers");
    let rows = rows(16, 120_000, 5000);
    let text = String::from_utf8(csv(&rows)).unwrap();
    std::fs::write(folder.path("rows.csv"), &text).unwrap();
    std::fs::write(folder.path("rows.jsonl"), jsonl(&rows)).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    assert!(text.len() > 2 << 20, "it is to be several blocks");
    for place in [70_001, 70_002, 110_000] {
        lines.insert(place, "one column");
    }
    lines.insert(90_000, "no,\"quote,is,closed");
    std::fs::write(folder.path("bad.csv"), lines.join("\n")).unwrap();
    std::fs::write(folder.path("value.jsonl"), [jsonl(&rows), b"{\"amount\":\"x\"}\n{\n".to_vec()].concat())
        .unwrap();
    let functions = "--fn count,sum:amount,max:amount,top_k:amount:3,max_text:kind";
    let by = format!("--by column:kind,city {functions}");
    let outcome = |words: &str, threads: u32| {
        let outcome = folder.run(&format!("aggregate {words} --threads {threads}"));
        (outcome.code, outcome.stdout, outcome.stderr)
    };
    for words in [
        format!("rows.csv {by}"),
        format!("rows.jsonl rows.csv {by}"),
        format!("bad.csv {by}"),
        format!("rows.csv bad.csv {by} --skip-bad"),
        format!("value.jsonl --by column:kind {functions}"),
        format!("rows.jsonl none.csv bad.csv {by}"),
        format!("rows.jsonl --by column:kind,cty {functions}"),
    ] {
        let expected = outcome(&words, 1);
        for threads in [2, 5] {
            assert_eq!(outcome(&words, threads), expected, "{words}");
        }
    }
    folder.run(&format!("aggregate bad.csv {by}")).refused(1, &["bad.csv: record 70001 at byte offset"]);
    folder
        .run(&format!("aggregate value.jsonl --by column:kind {functions}"))
        .refused(1, &["value.jsonl: record 120001 at", "is not a number"]);
}

#[test]
fn what_may_be_meant_is_told() {
    let folder = Folder::new("hints");
    std::fs::write(folder.path("x.csv"), "city,amount\nBern,1e300\nOslo,2\n").unwrap();
    let told = |words: &str| {
        let outcome = folder.run(&format!("aggregate x.csv {words}"));
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        outcome.stderr
    };
    assert!(told("--by column:1").contains("the first row, city,amount, is counted as a record"));
    assert_eq!(told("--by column:1 --header"), "");
    assert_eq!(told("--by column:city --fn mean:amount,stddev:amount,variance:amount"), "");
    let run = |words: &str| folder.run(&format!("aggregate --by column:city x.csv {words}"));
    run("--fn median:amount").refused(2, &["did you mean `approx_quantile:C:0.5`?"]);
    run("--fn top:amount").refused(2, &["did you mean `top_k:C:K`?"]);
    run("--fn sum:amount").refused(1, &["at most 38 digits", "not 1e300; fsum adds such numbers"]);
    run("--fn max:city").refused(1, &["`Bern` is not a number; max_text compares texts"]);
    run("--format jsonl")
        .refused(1, &["not JSON", "read as jsonl, which --format says", "its name says csv"]);
    run("--format parquet").refused(1, &["x.csv", "its name says csv"]);
}
