//! What organisations in key order promise: writes that never wait long, a change of organisation in use, tombstones
//! that go, scans in memory, and one read a run.

use serde_json::Value;

use crate::figures::organisations;
use crate::figures::part::{FOREBAY, LEVELED, Part, Run, Shown, laid_out_name};
use crate::figures::plot::{self, Line};
use crate::figures::results::{Phase, Results};
use crate::figures::table::{Table, cell};
use crate::figures::target::Target;

pub(super) const PART: Part = Part {
    name: "layouts-bars",
    title: "What organisations in key order promise",
    text: include_str!("layouts_bars.txt"),
    runs,
    show,
};

const EVEN: &str = "figures-layouts-even";
const SWITCH: &str = "figures-layouts-switch";
const TOMBSTONES: &str = "figures-tombstones";
const NONE: &str = "figures-tombstones-none";
const WARM: &str = "figures-scan-warm";

/// What becomes leveling, and has as many runs as write buffers.
const FROM: &str = "no-merge";
/// Records of 1,100 B: 5 GB.
const SWITCHED: u64 = 4_500_000;
/// Ten million tombstones, between two and a half million records.
const WITH_REMOVED: u64 = 12_500_000;
const LEFT: u64 = 2_500_000;
/// The same whether or not there are tombstones.
const TOMBSTONES_MEMORY_BYTES: u64 = 96 << 20;
const WITH_TOMBSTONES: [&str; 3] = ["leveling:t=10", "tiering:t=10", "wb-tree:ordered"];
/// Within which tombstones leave the files: as long as the workload waits.
const RECLAIM_SECONDS: u64 = 10;
/// The bound on the space of a table that changes: what is not merged at all claims two times what lives, and from half
/// way to the bound on it would be merged for its sake.
const SPACE: f64 = 4.0;
const WAIT_MS: f64 = 50.0;

fn runs() -> Vec<Run> {
    let even = Run::new(include_str!("../workloads/figures-layouts-even.toml"), 2_000_000).rounds(1);
    let switch = Run::new(include_str!("../workloads/figures-layouts-switch.toml"), SWITCHED).rounds(1);
    let removed = Run::new(include_str!("../workloads/figures-tombstones.toml"), WITH_REMOVED)
        .memory(TOMBSTONES_MEMORY_BYTES)
        .rounds(1);
    let left = Run::new(include_str!("../workloads/figures-tombstones-none.toml"), LEFT)
        .memory(TOMBSTONES_MEMORY_BYTES)
        .rounds(1);
    let warm = Run::new(include_str!("../workloads/figures-scan-warm.toml"), 2_000_000);
    let mut runs: Vec<Run> =
        organisations::ALL.into_iter().map(|layout| even.clone().laid_out(layout)).collect();
    runs.push(switch.laid_out(FROM).told("max_space_amplification", SPACE));
    for layout in WITH_TOMBSTONES {
        let both = [&removed, &left].map(|run| run.clone().organised(layout));
        runs.extend(both.map(|run| run.told("reclaim_interval_seconds", RECLAIM_SECONDS)));
    }
    runs.extend(organisations::TO_SCAN.into_iter().map(|layout| warm.clone().organised(layout)));
    runs.push(warm.engines(&[LEVELED]));
    runs
}

fn show(results: &Results) -> Result<Shown, String> {
    let mut shown = Shown::default();
    even(results, &mut shown)?;
    switch(results, &mut shown)?;
    tombstones(results, &mut shown);
    warm(results, &mut shown);
    Ok(shown)
}

/// Writes at 80 % of what each sustains, and the first entry of a cold range.
fn even(results: &Results, shown: &mut Shown) -> Result<(), String> {
    let layouts = organisations::ALL;
    let mut table = Table::new(&[
        "layout",
        "sustained, records/s",
        "given, records/s",
        "seconds",
        "p99, us",
        "p99.9, us",
        "max, ms",
        "longest gap, ms",
        "runs, cold",
        "reads for the first entry",
        "a run",
    ]);
    let mut waits = Vec::new();
    for layout in &layouts {
        let workload = laid_out_name(EVEN, layout);
        let of = |phase, pointer: &str| results.median(FOREBAY, Phase(&workload, phase), pointer);
        let open = |pointer: &str| of("open-loop-0.8", pointer);
        let seconds =
            of("overwrite", "/seconds").zip(of("drain-2", "/seconds")).map(|(write, drain)| write + drain);
        let sustained =
            of("overwrite", "/operations").zip(seconds).map(|(records, seconds)| records / seconds);
        let max = open("/latency_us/max").map(|us| us / 1e3);
        let (reads, runs) = (of("range-1", "/device_reads_per_get"), of("range-1", "/lists_per_path"));
        let a_run = reads.zip(runs).map(|(reads, runs)| reads / runs.max(1.0));
        table.row([
            layout.to_string(),
            cell(sustained),
            cell(open("/operations_per_second")),
            cell(open("/seconds")),
            cell(open("/latency_us/p99")),
            cell(open("/latency_us/p99_9")),
            cell(max),
            cell(open("/longest_gap_ms")),
            cell(runs),
            cell(reads),
            cell(a_run),
        ]);
        let what = format!("{layout}: longest wait of a write at 80 % of what it sustains");
        shown.targets.push(Target::at_most(what, WAIT_MS, " ms", max));
        let what = format!("{layout}: device reads a run for the first entry of a cold range");
        shown.targets.push(Target::at_most(what, 1.0, "", a_run));
        waits.push(max);
    }
    shown.place("even", table.finish());
    shown.plot("layouts-waits", plot::bars("milliseconds", &layouts, &[("longest wait".into(), waits)])?);
    Ok(())
}

/// From one organisation to another, in use.
fn switch(results: &Results, shown: &mut Shown) -> Result<(), String> {
    let workload = laid_out_name(SWITCH, FROM);
    let phase = Phase(&workload, "switch");
    let of = |pointer: &str| results.median(FOREBAY, phase, pointer);
    let line = |name: &str, field: &str| {
        let tells = |sample: &Value| Some((sample["seconds"].as_f64()?, sample[field].as_f64()?));
        Line { name: name.into(), points: results.samples(FOREBAY, phase, tells) }
    };
    let space = line("bytes on disk / live bytes", "space_amplification");
    let runs = line("runs a key range", "lists_per_path");
    let by = |over: &'static str, under: &'static str| {
        let tells = move |sample: &Value| Some((0.0, sample[over].as_f64()? / sample[under].as_f64()?));
        let found = results.samples(FOREBAY, phase, tells);
        found.into_iter().map(|(_, share)| share).reduce(f64::max)
    };
    let (of_live, of_bound) = (by("table_bytes", "table_live_bytes"), by("table_bytes", "table_limit_bytes"));
    let most = |line: &Line| line.points.iter().map(|(_, value)| *value).reduce(f64::max);
    let first_runs = runs.points.first().map(|point| point.1);
    let changed = runs.points.iter().find(|point| Some(point.1 * 10.0) <= first_runs).map(|point| point.0);
    let (write, read) = (of("/latency_us/max"), of("/gets/latency_us/max"));
    let longest = write.zip(read).map(|(write, read)| write.max(read) / 1e3);
    let what = format!("from {FROM} to leveling in use: longest operation");
    shown.targets.push(Target::at_most(what, WAIT_MS, " ms", longest));
    let what = format!("from {FROM} to leveling in use: the table's files by what its bound allows");
    shown.targets.push(Target::at_most(what, 1.0, "x", of_bound));
    let mut table = Table::new(&["while it changes", ""]);
    for (name, figure) in [
        ("data, MB", of("/records").map(|records| records * 1.1e-3)),
        ("seconds looked at", of("/seconds")),
        ("seconds until there was a tenth of the runs", changed),
        (
            "seconds of work that was left then, without load",
            results.median(FOREBAY, Phase(&workload, "drain-2"), "/seconds"),
        ),
        ("records written/s", of("/operations_per_second")),
        ("writes: p99.9, us", of("/latency_us/p99_9")),
        ("longest, ms", write.map(|us| us / 1e3)),
        ("reads: p50, us", of("/gets/latency_us/p50")),
        ("p99.9, us", of("/gets/latency_us/p99_9")),
        ("longest, ms", read.map(|us| us / 1e3)),
        ("runs at the beginning", first_runs),
        ("at the end", runs.points.last().map(|point| point.1)),
        ("disk by live bytes at the beginning", space.points.first().map(|point| point.1)),
        ("at most", most(&space)),
        ("the table's files by what lives of them, at most", of_live),
        ("by what its bound allows", of_bound),
    ] {
        table.row([name.to_string(), cell(figure)]);
    }
    shown.place("switch", table.finish());
    shown.plot("layouts-switch", plot::panels("seconds", &[space, runs])?);
    Ok(())
}

/// A scan across ten million tombstones.
fn tombstones(results: &Results, shown: &mut Shown) {
    let mut table = Table::new(&[
        "layout",
        "with tombstones, ms",
        "live data alone",
        "by that",
        "after merges, ms",
        "live data alone, again",
        "by that",
        "merges, s",
        "runs then",
        "disk by live bytes",
    ]);
    for layout in WITH_TOMBSTONES {
        let with = laid_out_name(TOMBSTONES, layout);
        let of = |phase, pointer: &str| results.median(FOREBAY, Phase(&with, phase), pointer);
        let alone = |phase| results.median(FOREBAY, Phase(&laid_out_name(NONE, layout), phase), "/seconds");
        let by = |phase| of(phase, "/seconds").zip(alone(phase)).map(|(scan, alone)| scan / alone);
        let ms = |seconds: Option<f64>| cell(seconds.map(|seconds| seconds * 1e3));
        table.row([
            layout.to_string(),
            ms(of("scan", "/seconds")),
            ms(alone("scan")),
            cell(by("scan")),
            ms(of("scan-2", "/seconds")),
            ms(alone("scan-2")),
            cell(by("scan-2")),
            cell(of("drain-2", "/seconds")),
            cell(of("drain-2", "/lists_per_path")),
            cell(of("scan-2", "/space_amplification")),
        ]);
        let what = format!("{layout}: scan across ten million tombstones, once their time is over");
        shown.targets.push(Target::at_most(what, 2.0, "x", by("scan-2")));
    }
    shown.place("tombstones", table.finish());
}

/// Ranges and scans of what is in memory.
fn warm(results: &Results, shown: &mut Shown) {
    let mut table = Table::new(&[
        "layout, or engine",
        "ranges of 10/s",
        "p99, us",
        "ranges of 10,000: entries/s",
        "everything: entries/s",
        "pages read by then",
        "runs",
    ]);
    let own = organisations::TO_SCAN.into_iter().map(|layout| (layout, FOREBAY, laid_out_name(WARM, layout)));
    let rows: Vec<_> = own.chain([(LEVELED, LEVELED, WARM.to_string())]).collect();
    for (name, engine, workload) in &rows {
        let of = |phase, pointer: &str| results.median(engine, Phase(workload, phase), pointer);
        let rate = |phase| of(phase, "/operations_per_second");
        table.row([
            name.to_string(),
            cell(rate("range-10")),
            cell(of("range-10", "/latency_us/p99")),
            cell(rate("range-10000").map(|ranges| ranges * 10_000.0)),
            cell(rate("scan-2")),
            cell(of("range-10", "/device_reads_per_get")),
            cell(of("scan", "/lists_per_path")),
        ]);
        if *engine != FOREBAY {
            continue;
        }
        for (phase, what) in
            [("range-10", "ranges of 10"), ("range-10000", "ranges of 10,000"), ("scan-2", "everything")]
        {
            let theirs = results.rate(LEVELED, Phase(WARM, phase));
            let found = rate(phase).zip(theirs).map(|(own, theirs)| own / theirs);
            let what = format!("{name}: {what}, in memory, beside {LEVELED}");
            shown.targets.push(Target::at_least(what, 1.0, "x", found));
        }
    }
    shown.place("warm", table.finish());
}
