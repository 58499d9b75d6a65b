//! Every function over a random table in files of every kind: nulls, extremes and odd text. `make answers` tells how
//! the files were made, and asks DuckDB many more.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::Path;

use forebay_aggregate::Value;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::tool::Folder;

/// What is asked of a file.
#[derive(Deserialize)]
struct Asked {
    kind: String,
    by: Vec<String>,
    functions: Vec<String>,
}

/// An answer that is not told to the last digit; nothing where DuckDB's depends on the order of rows.
#[derive(Deserialize)]
struct Loose {
    number: Option<String>,
    from: Option<f64>,
    to: Option<f64>,
    numbers: Option<Vec<String>>,
    pairs: Option<Vec<(String, String)>>,
    some: Option<usize>,
    of: Option<Vec<String>>,
}

fn is_same_number(one: &str, other: &str) -> bool {
    let number = |text: &str| Value::bytes(text.as_bytes()).as_number();
    number(one).is_some() && number(one) == number(other)
}

/// What a text of JSON stands for, and of anything else its JSON.
fn plain(json: &str) -> String {
    serde_json::from_str(json).unwrap_or_else(|_| json.to_string())
}

fn items(json: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str(json).ok()
}

fn is_same(found: &str, expected: &str) -> bool {
    if !expected.starts_with('{') {
        return found == expected || plain_is_same(found, expected);
    }
    let expected: Loose = serde_json::from_str(expected).unwrap();
    let texts = |json: &str| -> Option<Vec<String>> {
        Some(items(json)?.into_iter().map(|item| plain(item.get())).collect())
    };
    let is_in = |range: RangeInclusive<f64>| found.parse().is_ok_and(|found| range.contains(&found));
    match expected {
        Loose { number: Some(number), .. } => is_same_number(&plain(found), &number),
        Loose { from: Some(from), to: Some(to), .. } => is_in(from..=to),
        Loose { numbers: Some(expected), .. } => texts(found).is_some_and(|found| {
            found.len() == expected.len()
                && found.iter().zip(&expected).all(|(one, other)| is_same_number(one, other))
        }),
        Loose { pairs: Some(expected), .. } => items(found).is_some_and(|found| {
            let is_pair = |(one, other): (&&RawValue, &(String, String))| {
                let pair = texts(one.get()).unwrap_or_default();
                pair.len() == 2
                    && (pair[0] == other.0 || is_same_number(&pair[0], &other.0))
                    && is_same_number(&pair[1], &other.1)
            };
            found.len() == expected.len() && found.iter().zip(&expected).all(is_pair)
        }),
        Loose { some: Some(some), of: Some(of), .. } => texts(found)
            .is_some_and(|found| found.len() == some && found.iter().all(|item| of.contains(item))),
        _ => true,
    }
}

/// Texts, truths, nothing, lists of texts, and numbers to the last digit.
fn plain_is_same(found: &str, expected: &str) -> bool {
    let value = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
    match value(expected) {
        // Some functions answer with the texts that numbers came as.
        serde_json::Value::Number(_) => is_same_number(&plain(found), expected),
        expected => value(found) == expected,
    }
}

#[test]
fn answers_over_random_tables_are_those_of_duckdb() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/answers/random");
    let folder = Folder::new("answers-random");
    let expected = std::fs::read_to_string(data.join("expected.jsonl")).unwrap();
    let (mut asked, mut lines) = (None::<Asked>, 0);
    let mut groups: HashMap<String, HashMap<String, Box<RawValue>>> = HashMap::new();
    let mut wrong = Vec::new();
    for line in expected.lines() {
        if line.starts_with('{') {
            assert!(groups.is_empty(), "groups that DuckDB has not: {:?}", groups.keys());
            let next: Asked = serde_json::from_str(line).unwrap();
            let file = format!("random.{}", next.kind);
            std::fs::copy(data.join(&file), folder.path(&file)).unwrap();
            let by = format!("column:{}", next.by.join(","));
            let functions = next.functions.join(",");
            let arguments = [
                "aggregate",
                &file,
                "--by",
                &by,
                "--fn",
                &functions,
                "--out",
                "found.jsonl",
                "--threads",
                "2",
            ];
            let output = folder.command(&arguments).output().unwrap();
            assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
            let found = std::fs::read_to_string(folder.path("found.jsonl")).unwrap();
            for line in found.lines() {
                let cells: HashMap<String, Box<RawValue>> = serde_json::from_str(line).unwrap();
                let key: Vec<Option<String>> =
                    next.by.iter().map(|by| serde_json::from_str(cells[by].get()).unwrap()).collect();
                groups.insert(format!("{key:?}"), cells);
            }
            asked = Some(next);
            continue;
        }
        let asked = asked.as_ref().unwrap();
        let cells: Vec<&RawValue> = serde_json::from_str(line).unwrap();
        let key: Vec<Option<String>> = serde_json::from_str(cells[0].get()).unwrap();
        let found = groups.remove(&format!("{key:?}"));
        let found = found.unwrap_or_else(|| panic!("{}: there is no group {key:?}", asked.kind));
        for (function, expected) in asked.functions.iter().zip(&cells[1..]) {
            let answer = found[function].get();
            if !is_same(answer, expected.get()) {
                wrong.push(format!("{} {function} of {key:?}: {answer}, DuckDB {expected}", asked.kind));
            }
        }
        lines += 1;
    }
    assert!(groups.is_empty() && lines > 0);
    assert!(wrong.is_empty(), "{} answers: {:#?}", wrong.len(), &wrong[..wrong.len().min(5)]);
}
