//! The Compressed Buffer Tree as the thesis describes it, beside ours (its figures 22 and 24 to 27, and table 8).

use crate::figures::groups::{
    BUFFERS, DESIGN, FAN_OUTS, FOREBAY, PLAIN_TREE, SCALING, SPARSE, SPARSE_POINTER, STAGES, TREE,
};
use crate::figures::part::{Part, Shown};
use crate::figures::plot::{self, Axis, Heat, Line};
use crate::figures::results::{Phase, Results};
use crate::figures::table::{Table, cell};

pub(super) const PART: Part = Part {
    name: super::GROUPS_THESIS,
    title: "The thesis's buffer tree beside ours",
    text: include_str!("groups_thesis.txt"),
    runs: Vec::new,
    show,
};

const RATE: &str = "/adds_per_second";
const PROCESSOR: &str = "/cpu_seconds_per_million";
const MEMORY: &str = "/bytes_per_group";
const STAGE: [&str; 6] = ["sort", "merge", "pack", "unpack", "copy", "rest"];
const WORKLOADS: [&str; 9] = [
    "adds-1",
    "adds-4",
    "unique-1",
    "unique-4",
    "unique-16",
    "length-8",
    "length-16",
    "length-32",
    "length-64",
];
/// What `STAGES` are.
const NAMES: [&str; 6] =
    ["ours", "the thesis's", "that, not packed", "that, 30 MiB buffers", "sparsehash", "sparsehash-ptr"];
/// What table 8 has for these, words of binomial length, in cents. Buffers of 30 MiB are not among them: beside few
/// groups they are most of the memory, and would be next to nothing of it beside the thesis's.
const COSTED: [(&str, Option<f64>); 5] = [
    (STAGES[0], None),
    (STAGES[1], Some(0.41)),
    (STAGES[2], Some(0.31)),
    (SPARSE, Some(0.51)),
    (SPARSE_POINTER, Some(0.46)),
];

fn of(results: &Results, engine: &str, workload: &str, pointer: &str) -> Option<f64> {
    results.median(engine, Phase(workload, "group"), pointer)
}

fn show(results: &Results) -> Result<Shown, String> {
    let mut shown = Shown::default();
    shown.place("found", found(results));
    shown.place("stages", stages(results));
    shown.place("costs", super::groups::costs(results, "stages", COSTED.into_iter()));
    shown.place("design", engines(results, "design", DESIGN));
    shown.place("scaling", engines(results, "scaling", SCALING));
    shown.place("keys", keys(results));
    let parts: Vec<(String, Vec<Option<f64>>)> = STAGE
        .iter()
        .map(|part| (part.to_string(), STAGES.iter().map(|engine| stage(results, engine, part)).collect()))
        .collect();
    shown.plot("thesis-stages", plot::bars("processor seconds for a million adds", &NAMES, &parts)?);
    for (name, title, better, pointer) in [
        ("thesis-shape-processor", "processor seconds for a million adds", "less", PROCESSOR),
        ("thesis-shape-memory", "bytes a group", "less", MEMORY),
    ] {
        shown.plot(name, plot::heat(&map(results, title, better, pointer))?);
    }
    for (name, across, prefix) in
        [("thesis-unique", "times the groups", "unique-"), ("thesis-length", "bytes of a key", "length-")]
    {
        let lines = lines(results, prefix);
        let axes = [Axis::log(across), Axis::log("processor seconds for a million adds")];
        shown.plot(name, plot::lines(axes, &lines)?);
    }
    Ok(shown)
}

/// An engine without what only says how it is measured.
fn called(engine: &'static str) -> &'static str {
    engine.strip_suffix(":stages=1").unwrap_or(engine)
}

/// Seconds for a million adds that a stage takes; all that belongs to none is the rest.
fn stage(results: &Results, engine: &str, part: &str) -> Option<f64> {
    let of = |pointer: &str| of(results, engine, "stages", pointer);
    let millions = of("/adds")? / 1e6;
    let seconds = |part: &str| Some(of(&format!("/stage_cpu_seconds/{part}"))? / millions);
    if part != "rest" {
        return seconds(part);
    }
    let counted: f64 = STAGE.iter().filter_map(|part| seconds(part)).sum();
    Some(of(PROCESSOR)? - counted)
}

fn stages(results: &Results) -> String {
    let mut table = Table::new(&[
        "engine",
        "sort",
        "merge",
        "pack",
        "unpack",
        "copy",
        "rest",
        "CPU s/million",
        "million adds/s",
        "B/group",
    ]);
    for engine in STAGES {
        let of = |pointer| of(results, engine, "stages", pointer);
        let parts = STAGE.iter().map(|part| cell(stage(results, engine, part)));
        let all = [of(PROCESSOR), of(RATE).map(|rate| rate / 1e6), of(MEMORY)].map(cell);
        table.row(std::iter::once(called(engine).to_string()).chain(parts).chain(all));
    }
    table.finish()
}

fn engines(results: &Results, workload: &str, engines: &[&'static str]) -> String {
    let mut table = Table::new(&["engine", "threads", "CPU s/million", "million adds/s", "B/group"]);
    for engine in engines {
        let of = |pointer| of(results, engine, workload, pointer);
        let figures = [of("/threads"), of(PROCESSOR), of(RATE).map(|rate| rate / 1e6), of(MEMORY)].map(cell);
        table.row(std::iter::once(engine.to_string()).chain(figures));
    }
    table.finish()
}

fn map(results: &Results, title: &'static str, better: &str, pointer: &str) -> Heat {
    let value = |buffer: &&str, fan_out: &str| {
        of(results, &format!("thesis:buffer={buffer}:fan_out={fan_out}"), "shape", pointer)
    };
    let own = cell(of(results, FOREBAY, "shape", pointer));
    Heat {
        title,
        note: format!("{better} is better; one run a cell; ours, which has no such settings: {own}"),
        rows: ("buffer", BUFFERS.iter().map(|buffer| format!("{buffer}iB")).collect()),
        columns: ("fan-out", FAN_OUTS.iter().map(ToString::to_string).collect()),
        values: BUFFERS
            .iter()
            .map(|buffer| FAN_OUTS.map(|fan_out| value(buffer, fan_out)).to_vec())
            .collect(),
    }
}

fn keys(results: &Results) -> String {
    let mut table =
        Table::new(&["workload", "adds", "groups", "engine", "CPU s/million", "million adds/s", "B/group"]);
    for workload in WORKLOADS {
        for engine in [FOREBAY, TREE, PLAIN_TREE] {
            let of = |pointer| of(results, engine, workload, pointer);
            let figures = [of(PROCESSOR), of(RATE).map(|rate| rate / 1e6), of(MEMORY)].map(cell);
            let head = [workload.to_string(), cell(of("/adds")), cell(of("/groups")), engine.to_string()];
            table.row(head.into_iter().chain(figures));
        }
    }
    table.finish()
}

/// A line a tree, by the number at the end of workloads' names.
fn lines(results: &Results, prefix: &str) -> Vec<Line> {
    let line = |engine: &&str| {
        let point = |workload: &&str| {
            let number = workload.strip_prefix(prefix)?.parse().ok()?;
            Some((number, of(results, engine, workload, PROCESSOR)?))
        };
        Line { name: engine.to_string(), points: WORKLOADS.iter().filter_map(point).collect() }
    };
    [FOREBAY, TREE, PLAIN_TREE].iter().map(line).collect()
}

fn found(results: &Results) -> String {
    let [own, tree, plain, ..] = STAGES else { return String::new() };
    let by = |engine: &str, pointer| {
        let figure = |engine: &str| of(results, engine, "stages", pointer);
        cell(figure(engine).zip(figure(own)).map(|(other, own)| other / own))
    };
    let sparse = [SPARSE, SPARSE_POINTER].map(|engine| by(engine, PROCESSOR));
    format!(
        "For a word the thesis's tree takes {} times the processor time of ours and {} times its memory; without \
         packing {} and {} times. Sparsehash takes {} times ours, by pointers {}.",
        by(tree, PROCESSOR),
        by(tree, MEMORY),
        by(plain, PROCESSOR),
        by(plain, MEMORY),
        sparse[0],
        sparse[1],
    )
}
