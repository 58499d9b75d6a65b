//! Questions of the db-benchmark, from files to files, beside query engines.

use serde_json::Value;

use crate::figures::columns::{DUCKDB, ENGINES, FORMATS, POLARS, QUESTIONS};
use crate::figures::part::{FOREBAY, Part, Shown};
use crate::figures::plot;
use crate::figures::results::{Results, Spread};
use crate::figures::table::{Table, cell, short};
use crate::figures::target::Target;

use super::COLUMNS;

pub(super) const PART: Part = Part {
    name: COLUMNS,
    title: "Columns of files, beside query engines",
    text: include_str!("columns.txt"),
    runs: Vec::new,
    show,
};

const SECONDS: &str = "/seconds";
const PROCESSOR: &str = "/cpu_seconds";
const MEMORY: &str = "/anonymous_bytes";
const BYTES_A_MEGABYTE: f64 = 1e6;

fn show(results: &Results) -> Result<Shown, String> {
    let mut shown = Shown { targets: targets(results), ..Shown::default() };
    shown.place("table", table(results));
    shown.place("found", found(results));
    let labels = QUESTIONS.map(|question| format!("{}: {}", question.number, question.words));
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    for (name, format, title, pointer, unit) in [
        ("columns-csv", "csv", "seconds, csv", SECONDS, 1.0),
        ("columns-parquet", "parquet", "seconds, Parquet", SECONDS, 1.0),
        ("columns-csv-memory", "csv", "MB of anonymous memory, csv", MEMORY, BYTES_A_MEGABYTE),
        ("columns-parquet-memory", "parquet", "MB of anonymous memory, Parquet", MEMORY, BYTES_A_MEGABYTE),
    ] {
        let figures = |engine| {
            let scaled = |Spread { median, min, max }| Spread {
                median: median / unit,
                min: min / unit,
                max: max / unit,
            };
            let figure = |number| spread(results, number, format, engine, pointer).map(scaled);
            QUESTIONS.iter().map(|question| figure(question.number)).collect()
        };
        let series: Vec<(String, Vec<Option<Spread>>)> =
            ENGINES.iter().map(|engine| (engine.to_string(), figures(engine))).collect();
        shown.plot(name, plot::bars(title, &labels, &series)?);
    }
    Ok(shown)
}

fn lines<'a>(
    results: &'a Results,
    number: &'a str,
    format: &'a str,
    engine: &'a str,
) -> impl Iterator<Item = &'a Value> {
    let is = move |line: &&Value| {
        line["type"] == "columns"
            && line["question"] == number
            && line["format"] == format
            && line["engine"] == engine
    };
    results.others.iter().filter(is)
}

fn spread(results: &Results, number: &str, format: &str, engine: &str, pointer: &str) -> Option<Spread> {
    let figures = lines(results, number, format, engine).filter_map(|line| line.pointer(pointer)?.as_f64());
    Spread::of(figures.collect())
}

fn median(results: &Results, number: &str, format: &str, engine: &str, pointer: &str) -> Option<f64> {
    spread(results, number, format, engine, pointer).map(|spread| spread.median)
}

/// Forebay's by another engine's.
fn ratio(results: &Results, number: &str, format: &str, other: &str, pointer: &str) -> Option<f64> {
    let of = |engine| median(results, number, format, engine, pointer);
    Some(of(FOREBAY)? / of(other)?)
}

/// The geometric mean over all questions that both answered.
fn mean_ratio(results: &Results, format: &str, other: &str, pointer: &str) -> Option<f64> {
    let ratios =
        QUESTIONS.iter().filter_map(|question| ratio(results, question.number, format, other, pointer));
    let logs: Vec<f64> = ratios.map(f64::ln).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

fn told_format(format: &str) -> &str {
    if format == "parquet" { "Parquet" } else { format }
}

fn targets(results: &Results) -> Vec<Target> {
    let target = |what, format, pointer| {
        let label = format!("{}: {what} by DuckDB's, geometric mean of the questions", told_format(format));
        Target::at_most(label, 1.0, "x", mean_ratio(results, format, DUCKDB, pointer))
    };
    let of = |format| {
        [("time", SECONDS), ("processor time", PROCESSOR), ("memory", MEMORY)]
            .map(|(what, pointer)| target(what, format, pointer))
    };
    FORMATS.into_iter().flat_map(of).collect()
}

fn found(results: &Results) -> String {
    let rows = results.others.iter().find_map(|line| line["rows"].as_f64());
    let by = |format, other| cell(mean_ratio(results, format, other, SECONDS));
    format!(
        "Of {} rows Forebay answers from csv in {} times DuckDB's time and {} times Polars's, from Parquet in {} and \
         {}, geometric means of the questions.",
        cell(rows),
        by("csv", DUCKDB),
        by("csv", POLARS),
        by("parquet", DUCKDB),
        by("parquet", POLARS),
    )
}

/// A row a question and format, three engines side by side.
fn table(results: &Results) -> String {
    let mut head = vec!["question, format".to_string(), "groups".into()];
    for what in ["s", "CPU s", "MB"] {
        head.extend(ENGINES.map(|engine| format!("{engine}, {what}")));
    }
    head.extend(["time by DuckDB's".into(), "by Polars's".into()]);
    let mut table = Table::new(&head.iter().map(String::as_str).collect::<Vec<_>>());
    for question in &QUESTIONS {
        for format in FORMATS {
            let number = question.number;
            let groups = ENGINES.iter().find_map(|engine| median(results, number, format, engine, "/groups"));
            let Some(groups) = groups else { continue };
            let mut row =
                vec![format!("{number}: {}, {}", question.words, told_format(format)), short(groups)];
            for (pointer, unit) in [(SECONDS, 1.0), (PROCESSOR, 1.0), (MEMORY, BYTES_A_MEGABYTE)] {
                let figure = |engine| median(results, number, format, engine, pointer);
                row.extend(ENGINES.map(|engine| cell(figure(engine).map(|figure| figure / unit))));
            }
            row.extend([DUCKDB, POLARS].map(|other| cell(ratio(results, number, format, other, SECONDS))));
            table.row(row);
        }
    }
    table.finish()
}
