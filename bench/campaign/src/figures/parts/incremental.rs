//! Counting more groups than memory holds (chapter VI of the thesis, figures 29 and 30).

use crate::figures::part::{FOREBAY, KYOTO, LEVELED, Part, Run, Shown};
use crate::figures::plot::{self, Mark};
use crate::figures::results::{Phase, Results};
use crate::figures::table::{Table, cell, short};
use crate::figures::target::Target;

pub(super) const PART: Part = Part {
    name: "incremental",
    title: "Counting beyond memory",
    text: include_str!("incremental.txt"),
    runs,
    show,
};

const GET_PUT: &str = "rocksdb-get-put";
const MERGE: &str = "rocksdb-merge";
const SORT: &str = "forebay-sort";
const GNU_SORT: &str = "gnu-sort";

const UNIFORM: Phase<'static> = Phase("figures-count-uniform", "count");
const ZIPF: Phase<'static> = Phase("figures-count-zipf", "count-zipf");
const HOT: Phase<'static> = Phase("figures-hot-counter", "hot");
const BATCH: &str = "figures-count-batch";

const GROUPS: u64 = 4_000_000;

/// Memory is a quarter of the groups' bytes, as in the workloads, and half as much again for the page cache; then there
/// is what the program takes besides the engine, and four bytes a group to know every count.
const fn cgroup_bytes(groups: u64) -> u64 {
    groups * 24 / 4 * 3 / 2 + (24 << 20) + 4 * groups
}

fn runs() -> Vec<Run> {
    let uniform = Run::new(include_str!("../workloads/figures-count-uniform.toml"), GROUPS);
    let uniform = uniform.cgroup(cgroup_bytes(GROUPS));
    let zipf =
        Run::new(include_str!("../workloads/figures-count-zipf.toml"), GROUPS).cgroup(cgroup_bytes(GROUPS));
    let hot = Run::new(include_str!("../workloads/figures-hot-counter.toml"), 1_000_000);
    let batch =
        Run::new(include_str!("../workloads/figures-count-batch.toml"), GROUPS).cgroup(cgroup_bytes(GROUPS));
    vec![
        uniform.clone().engines(&[FOREBAY, MERGE]),
        uniform.clone().engines(&[LEVELED, GET_PUT]).rounds(1),
        // It is slow where its file is larger than memory.
        uniform.engines(&[KYOTO]).records(GROUPS / 10).cgroup(cgroup_bytes(GROUPS / 10)).rounds(1),
        zipf.engines(&[FOREBAY, LEVELED, MERGE]).rounds(1),
        hot.clone().engines(&[FOREBAY]),
        hot.engines(&[LEVELED, MERGE]).rounds(1),
        batch.clone().engines(&[FOREBAY, SORT]),
        batch.engines(&[GNU_SORT]).rounds(1),
    ]
}

fn show(results: &Results) -> Result<Shown, String> {
    let mut shown = Shown::default();
    for (engine, wanted) in [(GET_PUT, 10.0), (LEVELED, 10.0), (MERGE, 2.0)] {
        let found = times(results.rate(FOREBAY, UNIFORM), results.rate(engine, UNIFORM));
        shown.targets.push(Target::at_least(format!("adds, evenly, beside {engine}"), wanted, "x", found));
    }
    let of = |phase, pointer| results.median(FOREBAY, phase, pointer);
    let reads = of(UNIFORM, "/gets/device_reads/p99");
    shown.targets.push(Target::at_most("reads of the device, p99 of lookups between adds", 3.0, "", reads));
    for (what, pointer) in [("time", "/gets/latency_us/max"), ("processor time", "/gets/cpu_us/max")] {
        let worst = of(HOT, pointer);
        shown.targets.push(Target::at_most(
            format!("hot counters, {what} of the worst lookup"),
            100.0,
            "us",
            worst,
        ));
    }
    for engine in [SORT, GNU_SORT] {
        let found = times(batch_rate(results, FOREBAY), batch_rate(results, engine));
        shown.targets.push(Target::at_least(format!("all adds first, beside {engine}"), 1.0, "x", found));
    }
    shown.place("found", found(results));
    shown.place("uniform", table(UNIFORM, results));
    shown.place("zipf", table(ZIPF, results));
    shown.place("hot", table(HOT, results));
    shown.place("batch", batch_table(results));
    let groups = ["evenly", "by popularity", "100 hot groups", "all first, then read"];
    let series: Vec<_> = [FOREBAY, LEVELED, GET_PUT, MERGE, KYOTO, SORT, GNU_SORT]
        .into_iter()
        .map(|engine| {
            let mut rates: Vec<Option<Mark>> =
                [UNIFORM, ZIPF, HOT].map(|phase| results.rates(engine, phase).map(Mark::from)).into();
            rates.push(batch_rate(results, engine).map(Mark::from));
            (engine.to_string(), rates)
        })
        .collect();
    shown.plot("incremental", plot::bars("adds a second", &groups, &series)?);
    Ok(shown)
}

fn times(own: Option<f64>, theirs: Option<f64>) -> Option<f64> {
    Some(own? / theirs?)
}

/// Adds a second until all groups are read.
fn batch_rate(results: &Results, engine: &str) -> Option<f64> {
    let of = |phase, pointer| results.median(engine, Phase(BATCH, phase), pointer);
    Some(of("count", "/operations")? / (of("count", "/seconds")? + of("finalize", "/seconds")?))
}

fn found(results: &Results) -> String {
    let lines =
        [("evenly", UNIFORM), ("by popularity", ZIPF), ("to 100 hot groups", HOT)].map(|(name, phase)| {
            let own = results.rate(FOREBAY, phase);
            let beside = [LEVELED, GET_PUT, MERGE, KYOTO].map(|engine| {
                times(own, results.rate(engine, phase))
                    .map(|ratio| format!(", {} times {engine}", short(ratio)))
            });
            format!(
                "- {name}: {} adds a second{}.",
                cell(own),
                beside.into_iter().flatten().collect::<String>()
            )
        });
    let sorts = [SORT, GNU_SORT].map(|engine| {
        times(batch_rate(results, FOREBAY), batch_rate(results, engine))
            .map(|ratio| format!(", {} times {engine}", short(ratio)))
    });
    format!(
        "{}\n- all first, then read: {} adds a second{}.",
        lines.join("\n"),
        cell(batch_rate(results, FOREBAY)),
        sorts.into_iter().flatten().collect::<String>()
    )
}

fn table(phase: Phase<'_>, results: &Results) -> String {
    let mut table = Table::new(&[
        "engine",
        "rounds",
        "adds",
        "adds/s",
        "Forebay is",
        "drain, s",
        "with drain: adds/s",
        "write amplification",
        "CPU s/million",
        "gets",
        "get p50, us",
        "p99",
        "worst",
        "worst, CPU",
        "reads a get",
        "p99",
        "most",
    ]);
    let drain_name = if phase.0 == HOT.0 { "drain" } else { "drain-2" };
    let own = results.rate(FOREBAY, phase);
    for engine in results.engines(phase.0) {
        let of = |pointer: &str| results.median(engine, phase, pointer);
        let drain = |pointer: &str| results.median(engine, Phase(phase.0, drain_name), pointer);
        let beside = times(own, of("/operations_per_second")).filter(|_| engine != FOREBAY);
        let drained = of("/operations").zip(of("/seconds")).zip(drain("/seconds"));
        table.row([
            engine.to_string(),
            results.rounds(engine, phase).to_string(),
            cell(of("/operations")),
            cell(of("/operations_per_second")),
            beside.map_or_else(String::new, |times| format!("{}x", short(times))),
            cell(drain("/seconds")),
            cell(drained.map(|((count, seconds), drain)| count / (seconds + drain))),
            cell(drain("/write_amplification_total")),
            cell(of("/cpu_seconds_per_million")),
            cell(of("/gets/count")),
            cell(of("/gets/latency_us/p50")),
            cell(of("/gets/latency_us/p99")),
            cell(of("/gets/latency_us/max")),
            cell(of("/gets/cpu_us/max")),
            cell(of("/gets/device_reads/mean")),
            cell(of("/gets/device_reads/p99")),
            cell(of("/gets/device_reads/max")),
        ]);
    }
    table.finish()
}

fn batch_table(results: &Results) -> String {
    let mut table = Table::new(&[
        "engine",
        "rounds",
        "adds",
        "adding, s",
        "reading all, s",
        "adds/s in all",
        "Forebay is",
    ]);
    let own = batch_rate(results, FOREBAY);
    for engine in results.engines(BATCH) {
        let of = |phase, pointer| results.median(engine, Phase(BATCH, phase), pointer);
        let rate = batch_rate(results, engine);
        let beside = times(own, rate).filter(|_| engine != FOREBAY);
        table.row([
            engine.to_string(),
            results.rounds(engine, Phase(BATCH, "count")).to_string(),
            cell(of("count", "/operations")),
            cell(of("count", "/seconds")),
            cell(of("finalize", "/seconds")),
            cell(rate),
            beside.map_or_else(String::new, |times| format!("{}x", short(times))),
        ]);
    }
    table.finish()
}
