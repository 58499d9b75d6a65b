//! Groups as they come, held against the same in order.

use std::collections::BTreeSet;

use super::Draws;
use crate::tool::Folder;

/// Rows of which most are groups of their own, with texts that csv quotes, none at all, and numbers in odd texts.
fn csv(seed: u64, count: u64) -> String {
    let mut draws = Draws::new(seed);
    let mut rows = String::from("a,b,v,w\n");
    for row in 0..count {
        let a = match draws.below(9) {
            0 => "\"one, two\"".into(),
            1 => String::new(),
            2 => format!("city {}", draws.skewed(50)),
            _ => format!("row {row}"),
        };
        let w = match draws.below(9) {
            0 => "007".into(),
            1 => "+2.50".into(),
            2 => "1e3".into(),
            3 => "-0".into(),
            _ => format!("{}.25", draws.below(1000)),
        };
        rows.push_str(&format!("{a},{},{},{w}\n", draws.below(3), draws.below(100)));
    }
    rows
}

fn lines(folder: &Folder, name: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(folder.path(name)).unwrap();
    let lines: BTreeSet<String> = text.lines().map(String::from).collect();
    assert_eq!(lines.len(), text.lines().count(), "{name}: every group comes once");
    lines
}

#[test]
fn they_are_the_same_groups() {
    let folder = Folder::new("unsorted");
    std::fs::write(folder.path("rows.csv"), csv(5, 60_000)).unwrap();
    let command = "aggregate --by column:a,b --fn sum:v,fsum:v,count,top_k:w:2,max:w rows.csv";
    folder.ok(&format!("{command} --out sorted.csv"));
    folder.ok(&format!("{command} --out sorted.parquet"));
    let expected = lines(&folder, "sorted.csv");
    assert!(expected.len() > 40_000, "{} groups", expected.len());
    let shown = |name: &str| {
        folder.ok(&format!("aggregate --by column:a,b --fn max:\"sum:v\",max:\"fsum:v\",max:count,any:\"top_k:w:2\",max:\"max:w\" {name}"))
    };
    let parquet = shown("sorted.parquet");
    // Three threads show groups, one does, and little memory has them in files.
    for means in ["--threads 3", "--threads 1", "--threads 3 --memory 3M"] {
        folder.ok(&format!("{command} --unsorted {means} --out some.csv"));
        assert!(lines(&folder, "some.csv") == expected, "{means}");
        folder.ok(&format!("{command} --unsorted {means} --out some.parquet"));
        assert!(shown("some.parquet") == parquet, "{means}");
    }
    folder.ok("aggregate --by column:a --fn count --unsorted rows.csv --out few.csv");
    folder.ok("aggregate --by column:a --fn count rows.csv --out few-sorted.csv");
    assert!(lines(&folder, "few.csv") == lines(&folder, "few-sorted.csv"));
}

#[test]
fn no_groups_are_shown_as_none() {
    let folder = Folder::new("unsorted-none");
    std::fs::write(folder.path("rows.csv"), "a,v\n").unwrap();
    for name in ["none.csv", "none.parquet"] {
        folder.ok(&format!("aggregate --by column:a --fn sum:v --unsorted rows.csv --out {name}"));
    }
    assert_eq!(std::fs::read_to_string(folder.path("none.csv")).unwrap(), "a,sum:v\n");
    assert_eq!(folder.ok("aggregate --by column:a none.parquet"), "a\tcount\n");
}
