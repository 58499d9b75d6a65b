//! Every organisation in key order: what it pays for writes, reads and space (figures 4 and 5 of the Rangemerge paper).

use crate::figures::part::{FJALL, FOREBAY, LEVELDB, LEVELED, Part, Run, Shown, UNIVERSAL, laid_out_name};
use crate::figures::plot;
use crate::figures::results::{Phase, Results};
use crate::figures::table::{Table, cell};
use crate::figures::target::Target;

pub(super) const PART: Part = Part {
    name: "layouts",
    title: "Organisations of a table in key order",
    text: include_str!("layouts.txt"),
    runs,
    show,
};

const SMALL: &str = "figures-layouts";
const LARGE: &str = "figures-range-merge";

/// From the cheapest writes to the cheapest reads.
const LAYOUTS: [&str; 10] = [
    "no-merge",
    "write-buffer:ordered",
    "tiering:t=10",
    "tiering:t=4",
    "geometric:r=3",
    "geometric:r=2",
    "leveling:t=4",
    "leveling:t=10",
    "geometric:p=2",
    "immediate",
];
/// Those that the Rangemerge paper compares.
const OF_THE_PAPER: [&str; 5] = ["no-merge", "geometric:r=2", "geometric:r=3", "geometric:p=2", "immediate"];
const RIVALS: [&str; 4] = [LEVELED, UNIVERSAL, LEVELDB, FJALL];

fn runs() -> Vec<Run> {
    let small = Run::new(include_str!("../workloads/figures-layouts.toml"), 4_000_000).rounds(1);
    let large = Run::new(include_str!("../workloads/figures-range-merge.toml"), 300_000).rounds(1);
    let of = |run: &Run, layouts: &[&str]| -> Vec<Run> {
        layouts.iter().map(|layout| run.clone().laid_out(layout).engines(&[FOREBAY])).collect()
    };
    let mut runs = of(&small, &LAYOUTS);
    runs.push(small.engines(&RIVALS));
    runs.extend(of(&large, &OF_THE_PAPER));
    runs
}

/// A row of a table: its name, the engine, the workload.
type Row = (String, &'static str, String);

fn rows(workload: &str, layouts: &[&str], rivals: &[&'static str]) -> Vec<Row> {
    let own = layouts.iter().map(|layout| (layout.to_string(), FOREBAY, laid_out_name(workload, layout)));
    let others = rivals.iter().map(|engine| (engine.to_string(), *engine, workload.to_string()));
    own.chain(others).collect()
}

fn show(results: &Results) -> Result<Shown, String> {
    let mut shown = Shown::default();
    let rows_small = rows(SMALL, &LAYOUTS, &RIVALS);
    shown.place("small", small(results, &rows_small));
    shown.place("large", large(results, &rows(LARGE, &OF_THE_PAPER, &[])));
    let names: Vec<&str> = rows_small.iter().map(|(name, ..)| name.as_str()).collect();
    let figure = |phase: &'static str, pointer: &str| {
        rows_small
            .iter()
            .map(|(_, engine, workload)| results.median(engine, Phase(workload, phase), pointer))
            .collect()
    };
    let series = [
        ("write amplification".to_string(), figure("drain-2", "/write_amplification_total")),
        ("lists on a path".to_string(), figure("drain-2", "/lists_per_path")),
        ("space amplification".to_string(), figure("drain-2", "/space_amplification")),
    ];
    shown.plot("layouts", plot::bars("times", &names, &series)?);
    shown.targets = targets(results);
    Ok(shown)
}

fn small(results: &Results, rows: &[Row]) -> String {
    let mut table = Table::new(&[
        "layout, or engine",
        "load, records/s",
        "with drain",
        "overwrite, records/s",
        "write amplification",
        "space amplification",
        "lists on a path",
        "longest gap, ms",
        "reads a get, present",
        "absent",
        "range of 10: /s",
        "p95, us",
        "range of 10,000: entries/s",
    ]);
    for (name, engine, workload) in rows {
        let of = |phase: &'static str, pointer: &str| results.median(engine, Phase(workload, phase), pointer);
        let drained = of("load", "/operations").zip(of("load", "/seconds")).zip(of("drain", "/seconds"));
        table.row([
            name.clone(),
            cell(of("load", "/operations_per_second")),
            cell(drained.map(|((records, load), drain)| records / (load + drain))),
            cell(of("overwrite", "/operations_per_second")),
            cell(of("drain-2", "/write_amplification_total")),
            cell(of("drain-2", "/space_amplification")),
            cell(of("drain-2", "/lists_per_path")),
            cell(of("load", "/longest_gap_ms")),
            cell(of("get", "/device_reads_per_get")),
            cell(of("get-2", "/device_reads_per_get")),
            cell(of("range-10", "/operations_per_second")),
            cell(of("range-10", "/latency_us/p95")),
            cell(of("range-10000", "/operations_per_second").map(|ranges| ranges * 10_000.0)),
        ]);
    }
    table.finish()
}

fn large(results: &Results, rows: &[Row]) -> String {
    let mut table = Table::new(&[
        "layout",
        "insertion, s",
        "records/s",
        "write amplification",
        "runs",
        "range of 10: p50, us",
        "p95, us",
    ]);
    for (name, engine, workload) in rows {
        let of = |phase: &'static str, pointer: &str| results.median(engine, Phase(workload, phase), pointer);
        let seconds = of("load", "/seconds").zip(of("drain", "/seconds")).map(|(load, drain)| load + drain);
        table.row([
            name.clone(),
            cell(seconds),
            cell(seconds.zip(of("load", "/operations")).map(|(seconds, records)| records / seconds)),
            cell(of("drain", "/write_amplification_total")),
            cell(of("drain", "/lists_per_path")),
            cell(of("range-10", "/latency_us/p50")),
            cell(of("range-10", "/latency_us/p95")),
        ]);
    }
    table.finish()
}

fn targets(results: &Results) -> Vec<Target> {
    let of = |layout: &str, phase: &'static str, pointer: &str| {
        let workload = laid_out_name(SMALL, layout);
        results.median(FOREBAY, Phase(&workload, phase), pointer)
    };
    let rival = |engine: &str, phase: &'static str| results.rate(engine, Phase(SMALL, phase));
    let rate = |layout: &str, phase: &'static str| of(layout, phase, "/operations_per_second");
    let times = |own: Option<f64>, theirs: Option<f64>| own.zip(theirs).map(|(own, theirs)| own / theirs);
    let mut targets = Vec::new();
    for layout in ["tiering:t=10", "geometric:r=3"] {
        let found = times(rate(layout, "load"), rival(UNIVERSAL, "load"));
        targets.push(Target::at_least(format!("{layout}: load, beside {UNIVERSAL}"), 4.0, "x", found));
    }
    let found = times(rate("leveling:t=10", "load"), rival(LEVELED, "load"));
    targets.push(Target::at_least(format!("leveling:t=10: load, beside {LEVELED}"), 2.0, "x", found));
    for (phase, what) in [("range-10", "ranges of 10"), ("range-10000", "ranges of 10,000")] {
        let found = times(rate("leveling:t=10", phase), rival(LEVELED, phase));
        targets.push(Target::at_least(
            format!("leveling:t=10: {what}, cold, beside {LEVELED}"),
            1.0,
            "x",
            found,
        ));
    }
    targets
}
