//! What the aggregation in memory depends on (figures 21, 26 and 27 of the thesis).

use crate::figures::groups::{FOREBAY, SETTINGS};
use crate::figures::part::{Part, Shown};
use crate::figures::plot::{self, Axis, Line};
use crate::figures::results::{Phase, Results};
use crate::figures::table::{Table, cell};
use crate::figures::target::Target;

pub(super) const PART: Part = Part {
    name: super::GROUPS_FACTORS,
    title: "What grouping in memory depends on",
    text: include_str!("groups_factors.txt"),
    runs: Vec::new,
    show,
};

const RATE: &str = "/adds_per_second";
const PROCESSOR: &str = "/cpu_seconds_per_million";
const MEMORY: &str = "/bytes_per_group";
const ADDS: [&str; 3] = ["adds-1", "adds-2", "adds-4"];
const UNIQUE: [&str; 3] = ["unique-1", "unique-4", "unique-16"];
const LENGTHS: [&str; 4] = ["length-8", "length-16", "length-32", "length-64"];

fn of(results: &Results, engine: &str, workload: &str, pointer: &str) -> Option<f64> {
    results.median(engine, Phase(workload, "group"), pointer)
}

fn show(results: &Results) -> Result<Shown, String> {
    let mut shown = Shown::default();
    let memory = |workload| of(results, FOREBAY, workload, MEMORY);
    let grown = memory("adds-1").zip(memory("adds-4")).map(|(from, to)| to / from);
    shown.targets.push(Target::at_most("memory at four times the adds, of that at one", 1.1, "x", grown));
    shown.place("settings", settings(results));
    shown.place("found", found(results));
    for (place, workloads) in [("adds", &ADDS[..]), ("unique", &UNIQUE), ("lengths", &LENGTHS)] {
        shown.place(place, table(results, workloads));
    }
    for (name, across, workloads) in [
        ("groups-adds", "times the adds", &ADDS[..]),
        ("groups-unique", "times the groups", &UNIQUE),
        ("groups-length", "bytes of a key", &LENGTHS),
    ] {
        let lines = lines(results, workloads);
        shown.plot(name, plot::lines([Axis::log(across), Axis::log("bytes a group")], &lines)?);
    }
    Ok(shown)
}

/// What a workload's name ends with.
fn number(workload: &str) -> f64 {
    workload.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

/// A line an engine, of memory by the workloads' numbers.
fn lines(results: &Results, workloads: &[&str]) -> Vec<Line> {
    let engines = workloads.first().map(|workload| results.engines(workload)).unwrap_or_default();
    let line = |engine: &str| {
        let point = |workload: &&str| Some((number(workload), of(results, engine, workload, MEMORY)?));
        Line { name: engine.into(), points: workloads.iter().filter_map(point).collect() }
    };
    engines.into_iter().map(line).collect()
}

fn settings(results: &Results) -> String {
    let rate = |engine: &str| of(results, engine, "settings", RATE);
    let mut table =
        Table::new(&["tree", "seconds", "million adds/s", "of the first", "CPU s/million", "B/group"]);
    for engine in SETTINGS {
        let of = |pointer| of(results, engine, "settings", pointer);
        table.row([
            called(engine),
            cell(of("/seconds")),
            cell(rate(engine).map(|rate| rate / 1e6)),
            cell(rate(engine).zip(rate(FOREBAY)).map(|(rate, first)| rate / first)),
            cell(of(PROCESSOR)),
            cell(of(MEMORY)),
        ]);
    }
    table.finish()
}

/// A setting in words.
fn called(engine: &str) -> String {
    let Some((_, setting)) = engine.split_once(':') else {
        return "finalised once, two threads, one tree".into();
    };
    match setting.split_once('=') {
        Some(("finalizes", count)) => format!("finalised {count} times"),
        Some(("threads", "1")) => "one thread".into(),
        Some((what, count)) => format!("{count} {what}"),
        None => setting.into(),
    }
}

fn table(results: &Results, workloads: &[&str]) -> String {
    let mut table = Table::new(&[
        "engine",
        "adds",
        "groups",
        "million adds/s",
        "million key bytes/s",
        "CPU s/million",
        "B/group",
    ]);
    let engines = workloads.first().map(|workload| results.engines(workload)).unwrap_or_default();
    for engine in engines {
        for workload in workloads {
            let of = |pointer| of(results, engine, workload, pointer);
            let key_bytes = LENGTHS.contains(workload).then(|| number(workload));
            table.row([
                engine.to_string(),
                cell(of("/adds")),
                cell(of("/groups")),
                cell(of(RATE).map(|rate| rate / 1e6)),
                cell(of(RATE).zip(key_bytes).map(|(rate, bytes)| rate / 1e6 * bytes)),
                cell(of(PROCESSOR)),
                cell(of(MEMORY)),
            ]);
        }
    }
    table.finish()
}

fn found(results: &Results) -> String {
    let growth = |engine: &str| {
        let memory = |workload| of(results, engine, workload, "/peak_anonymous_bytes");
        cell(memory("adds-1").zip(memory("adds-4")).map(|(from, to)| to / from))
    };
    let lost = |engine: &str| {
        let rate = |engine: &str| of(results, engine, "settings", RATE);
        cell(rate(engine).zip(rate(FOREBAY)).map(|(rate, once)| (1.0 - rate / once) * 100.0))
    };
    format!(
        "Results that are made readable four times rather than once cost {} % of the rate, 16 times {} %. With four \
         times the adds to the same groups the tree takes {} times the memory, DuckDB {}, Polars {}.",
        lost("forebay:finalizes=4"),
        lost("forebay:finalizes=16"),
        growth(FOREBAY),
        growth("duckdb"),
        growth("polars"),
    )
}
