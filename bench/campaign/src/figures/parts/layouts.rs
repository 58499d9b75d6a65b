//! Every organisation in key order: what it pays for writes, reads and space.

use crate::figures::organisations;
use crate::figures::part::{FJALL, FOREBAY, LEVELDB, LEVELED, Part, Run, Shown, UNIVERSAL, laid_out_name};
use crate::figures::plot::{self, Dot};
use crate::figures::results::{Phase, Results, Spread};
use crate::figures::table::{Table, cell, short};
use crate::figures::target::Target;

pub(super) const PART: Part = Part {
    name: "layouts",
    title: "Organisations of a table in key order",
    text: include_str!("layouts.txt"),
    runs,
    show,
};

const WORKLOAD: &str = "figures-layouts";

const RIVALS: [&str; 4] = [LEVELED, UNIVERSAL, LEVELDB, FJALL];

fn runs() -> Vec<Run> {
    let run = Run::new(include_str!("../workloads/figures-layouts.toml"), 4_000_000).rounds(1);
    let mut runs: Vec<Run> =
        organisations::ALL.into_iter().map(|layout| run.clone().laid_out(layout)).collect();
    runs.push(run.engines(&RIVALS));
    runs
}

/// What the plane is drawn of: a phase, and the place of a measure.
type Figure = (&'static str, &'static str);

const WRITTEN: Figure = ("drain-2", "/write_amplification_total");
/// Of the process, as other engines do not count their own.
const READ: Figure = ("range-10", "/kernel_reads_per_get");
const SPACE: Figure = ("drain-2", "/space_amplification");

/// A row of a table: its name, the engine, the workload.
type Row = (String, &'static str, String);

fn rows() -> Vec<Row> {
    let own = organisations::ALL
        .into_iter()
        .map(|layout| (layout.to_string(), FOREBAY, laid_out_name(WORKLOAD, layout)));
    let others = RIVALS.iter().map(|engine| (engine.to_string(), *engine, WORKLOAD.to_string()));
    own.chain(others).collect()
}

fn show(results: &Results) -> Result<Shown, String> {
    let mut shown = Shown::default();
    let rows = rows();
    shown.place("small", small(results, &rows));
    let names: Vec<&str> = rows.iter().map(|(name, ..)| name.as_str()).collect();
    let figure = |(phase, pointer): Figure| -> Vec<Option<f64>> {
        let of = |(_, engine, workload): &Row| results.median(engine, Phase(workload, phase), pointer);
        rows.iter().map(of).collect()
    };
    let spread = |(phase, pointer): Figure| -> Vec<Option<Spread>> {
        let of = |(_, engine, workload): &Row| results.spread(engine, Phase(workload, phase), pointer);
        rows.iter().map(of).collect()
    };
    let series = [
        ("write amplification".to_string(), spread(WRITTEN)),
        ("lists on a path".to_string(), spread(("drain-2", "/lists_per_path"))),
        ("space amplification".to_string(), spread(SPACE)),
    ];
    shown.plot("layouts", plot::bars("times; lists", &names, &series)?);
    let plane = |other: Figure| -> Vec<Dot> {
        let dot = |(row, at): (&Row, (Option<f64>, Option<f64>))| {
            let (name, engine, _) = row;
            Some(Dot { name: name.clone(), group: usize::from(*engine != FOREBAY), at: (at.0?, at.1?) })
        };
        rows.iter().zip(std::iter::zip(figure(WRITTEN), figure(other))).filter_map(dot).collect()
    };
    let written = "bytes written / bytes given";
    shown.plot("layouts-reads", plot::scatter([written, "pages read, a cold range of 10"], &plane(READ))?);
    shown.plot("layouts-space", plot::scatter([written, "bytes on disk / live bytes"], &plane(SPACE))?);
    shown.targets = targets(results);
    shown.brief = brief(results);
    Ok(shown)
}

fn brief(results: &Results) -> Option<String> {
    let of = |layout: Option<&str>| {
        let workload = layout.map_or_else(|| WORKLOAD.to_string(), |layout| laid_out_name(WORKLOAD, layout));
        let engine = if layout.is_some() { FOREBAY } else { LEVELED };
        let median =
            |(phase, pointer): Figure| results.median(engine, Phase(&workload, phase), pointer).map(short);
        Some(format!("`{}` {} and {}", layout.unwrap_or(LEVELED), median(SPACE)?, median(READ)?))
    };
    Some(format!(
        "**When not**: large records, or one put a call, gain least. The fastest tables, in hash order, have no ranges, and the \
         fastest in key order pay for them in space and reads: what files take by live bytes, and pages read for a cold range \
         of 10, are {}, {}, {}.",
        of(Some("wb-tree:ordered"))?,
        of(Some("leveling:t=10"))?,
        of(None)?,
    ))
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

fn targets(results: &Results) -> Vec<Target> {
    let of = |layout: &str, phase: &'static str, pointer: &str| {
        let workload = laid_out_name(WORKLOAD, layout);
        results.median(FOREBAY, Phase(&workload, phase), pointer)
    };
    let rival = |engine: &str, phase: &'static str| results.rate(engine, Phase(WORKLOAD, phase));
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
