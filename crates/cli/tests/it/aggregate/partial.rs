//! Parts of an input, each grouped by a process of its own and merged by another: what one process makes of all.

use std::collections::BTreeSet;

use super::Draws;
use crate::tool::Folder;

/// Of each built-in function one. Where it is not exact, a floating-point number that is near is right.
const FUNCTIONS: [(&str, bool); 41] = [
    ("count", true),
    ("count:text", true),
    ("count_if:truth", true),
    ("sum:number", true),
    ("isum:int", true),
    ("fsum:number", false),
    ("avg:number", false),
    ("mean:number", false),
    ("min:number", true),
    ("max:number", true),
    ("min_text:text", true),
    ("max_text:text", true),
    ("any:text", true),
    ("var_pop:number", false),
    ("var_samp:number", false),
    ("stddev_pop:number", false),
    ("stddev_samp:number", false),
    ("stddev:number", false),
    ("variance:number", false),
    ("corr:number:int", false),
    ("r2:number:int", false),
    ("bool_and:truth", true),
    ("bool_or:truth", true),
    ("bit_and:int", true),
    ("bit_or:int", true),
    ("bit_xor:int", true),
    ("first:text:int", true),
    ("last:text:int", true),
    ("arg_min:text:number", true),
    ("arg_max:text:number", true),
    ("top_k:int:3:text", true),
    ("distinct:text", true),
    ("list:text:20", true),
    ("set:text", true),
    ("string_agg:text:-", true),
    ("histogram:number:0;10;100", true),
    ("sample:text:3", true),
    ("approx_distinct:text", true),
    ("theta:text", true),
    ("approx_quantile:number:0.5", false),
    ("frequent:text", true),
];

const TEXTS: [&[u8]; 10] = [
    b"\"\"",
    b"",
    b"ulm",
    b"Ulm",
    b"\"a, b\"",
    b"\"say \"\"x;y\"\"\"",
    b"\"two\nlines\"",
    b"\xff\xfe",
    b"back\\slash",
    b"tab\there",
];

/// Rows of csv with odd texts, and some fields that are empty.
fn rows(draws: &mut Draws, count: u64) -> Vec<Vec<u8>> {
    let row = |_| {
        let mut row = Vec::new();
        let text = |draws: &mut Draws| TEXTS[draws.below(TEXTS.len() as u64) as usize];
        row.extend_from_slice(text(draws));
        row.extend_from_slice(format!(",{},", draws.skewed(40)).as_bytes());
        row.extend_from_slice(text(draws));
        let int =
            if draws.below(8) == 0 { String::new() } else { format!("{}", draws.below(90) as i64 - 30) };
        let number = ["", "0.5", "-12.25", "1e3", "99999999999999999999.125", "7"][draws.below(6) as usize];
        let truth = ["", "yes", "false", "T"][draws.below(4) as usize];
        row.extend_from_slice(format!(",{int},{number},{truth}\n").as_bytes());
        row
    };
    (0..count).map(row).collect()
}

fn write(folder: &Folder, name: &str, rows: &[Vec<u8>]) {
    let header = b"city,year,text,int,number,truth\n".to_vec();
    std::fs::write(folder.path(name), [header, rows.concat()].concat()).unwrap();
}

/// Lines of JSON by their keys, of which there are two columns.
fn groups(lines: &[u8]) -> Vec<serde_json::Value> {
    let mut groups: Vec<serde_json::Value> = lines
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    groups.sort_by_key(|group| group.to_string());
    groups
}

/// Whether two answers are the same, or near.
fn is_near(one: &serde_json::Value, other: &serde_json::Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => (one - other).abs() <= 1e-6 * one.abs().max(1.0),
        _ => one == other,
    }
}

#[test]
fn parts_that_are_merged_come_to_what_the_whole_comes_to() {
    let folder = Folder::new("partial-whole");
    let mut draws = Draws::new(22);
    let rows = rows(&mut draws, 3000);
    write(&folder, "all.csv", &rows);
    let (front, back) = rows.split_at(1100);
    write(&folder, "front.csv", front);
    write(&folder, "back.csv", back);
    write(&folder, "none.csv", &[]);
    for (function, is_exact) in FUNCTIONS {
        let by = format!("aggregate --quiet --by column:city,year --fn {function}");
        folder.ok(&format!("{by} --out all.jsonl all.csv"));
        for part in ["front", "back", "none"] {
            folder.ok(&format!("{by} --partial --out {part}.arrow {part}.csv --threads 1"));
        }
        // The order of parts does not matter, and merged states merge again.
        folder.ok("aggregate --quiet --merge back.arrow none.arrow --partial --out again.arrow");
        for parts in ["front.arrow back.arrow none.arrow", "none.arrow again.arrow front.arrow"] {
            folder.ok(&format!("aggregate --quiet --merge {parts} --out merged.jsonl --memory 8M"));
            let [all, merged] =
                ["all.jsonl", "merged.jsonl"].map(|name| std::fs::read(folder.path(name)).unwrap());
            if is_exact {
                assert!(all == merged, "{function} of {parts}");
                continue;
            }
            let (all, merged) = (groups(&all), groups(&merged));
            assert_eq!(all.len(), merged.len(), "{function}");
            for (one, other) in all.iter().zip(&merged) {
                let is_same = |(name, value): (&String, &serde_json::Value)| {
                    if name == function { is_near(value, &other[name]) } else { *value == other[name] }
                };
                assert!(one.as_object().unwrap().iter().all(is_same), "{function}: {one} {other}");
            }
        }
    }
    let list: Vec<_> = FUNCTIONS.iter().map(|(function, _)| *function).collect();
    let names: BTreeSet<_> = list.iter().map(|function| function.split(':').next().unwrap()).collect();
    let help = folder.ok("aggregate --help");
    for line in help.lines().skip_while(|line| *line != "Functions:").skip(1) {
        let name = line.trim().split([':', '[', ' ']).next().unwrap();
        assert!(name.is_empty() || names.contains(name), "{name} is not tried");
    }
}

/// Several functions in one file, cubes of merged groups, a store as a part, and files of Parquet beside csv.
#[test]
fn merged_groups_are_groups_like_others() {
    let folder = Folder::new("partial-groups");
    let rows = rows(&mut Draws::new(5), 900);
    write(&folder, "all.csv", &rows);
    write(&folder, "front.csv", &rows[..300]);
    write(&folder, "back.csv", &rows[300..]);
    let asked = "--by column:year,int --fn sum:number,count,max:int";
    folder.ok(&format!("aggregate --quiet {asked} --partial --out front.arrow front.csv"));
    folder.ok(&format!("aggregate --quiet --store back.db {asked} back.csv --out back.jsonl"));
    folder.ok("aggregate --quiet --store back.db --partial --out back.arrow");
    for options in [" --cube", " --rollup", " --top 5", ""] {
        let all = folder.ok(&format!("aggregate {asked} all.csv{options}"));
        let merged = folder.ok(&format!("aggregate --merge front.arrow back.arrow{options}"));
        assert_eq!(all, merged, "{options}");
    }
    folder.ok(&format!("aggregate --quiet {asked} --out all.parquet all.csv"));
    folder.ok("aggregate --quiet --merge front.arrow back.arrow --out merged.parquet");
    let [all, merged] =
        ["all.parquet", "merged.parquet"].map(|name| std::fs::read(folder.path(name)).unwrap());
    assert!(all == merged);
    let summary = folder.object("aggregate --json --merge front.arrow back.arrow --out merged.jsonl");
    assert!(summary["records"].as_u64() > summary["groups"].as_u64(), "{summary}");
    let bytes: u64 = ["front.arrow", "back.arrow"]
        .iter()
        .map(|name| std::fs::metadata(folder.path(name)).unwrap().len())
        .sum();
    assert_eq!(summary["input_bytes"], bytes);
}

#[test]
fn what_cannot_be_merged_is_named() {
    let folder = Folder::new("partial-refused");
    let rows = rows(&mut Draws::new(9), 50);
    write(&folder, "rows.csv", &rows);
    let make = |by: &str, function: &str, out: &str| {
        folder.ok(&format!(
            "aggregate --quiet --by column:{by} --fn {function} --partial --out {out} rows.csv"
        ));
    };
    make("city", "count,sum:int", "a.arrow");
    make("year", "count,sum:int", "year.arrow");
    make("city,year", "count,sum:int", "two.arrow");
    make("city", "count,max:int", "max.arrow");
    make("city", "top_k:int:3", "k3.arrow");
    let merge = |files: &str| folder.run(&format!("aggregate --merge {files} --out out.csv"));
    merge("a.arrow year.arrow").refused(1, &["year.arrow", "by year", "by city"]);
    merge("a.arrow two.arrow").refused(1, &["two.arrow", "by city, year"]);
    merge("a.arrow max.arrow").refused(1, &["max.arrow", "no column `sum:int`"]);
    merge("a.arrow gone.arrow").refused(1, &["gone.arrow"]);
    merge("a.arrow rows.csv").refused(1, &["rows.csv", "no whole file of partial states"]);
    folder.run_on("aggregate --merge -", b"").refused(2, &["--merge takes files"]);
    folder.run("aggregate --merge").refused(2, &["--merge takes files"]);
    folder.run("aggregate --merge a.arrow --by column:city").refused(2, &["--merge", "--by"]);
    folder.run("aggregate --by word --partial --out w.arrow rows.csv").refused(2, &["groups of columns"]);
    folder.run("aggregate --by column:city --partial rows.csv").refused(2, &["--out"]);
    folder.run("aggregate --by column:city --partial --out a.csv rows.csv").refused(2, &[".arrow"]);
    folder.run("aggregate --by column:city --out b.arrow rows.csv").refused(2, &[".arrow with --partial"]);
    // Nothing was written, and a damaged byte is found, wherever it is.
    assert!(!folder.path("out.csv").exists());
    let file = std::fs::read(folder.path("a.arrow")).unwrap();
    for at in (0..file.len() / 2).step_by(97) {
        let mut damaged = file.clone();
        damaged[at] ^= 0x10;
        std::fs::write(folder.path("bad.arrow"), damaged).unwrap();
        merge("a.arrow bad.arrow").refused(1, &["bad.arrow", "checksum does not match"]);
    }
    std::fs::write(folder.path("bad.arrow"), &file[..file.len() / 2]).unwrap();
    merge("a.arrow bad.arrow").refused(1, &["bad.arrow", "no whole file"]);
}
