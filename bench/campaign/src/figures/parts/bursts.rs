//! How evenly writes are taken: open loops.

use serde_json::Value;

use crate::figures::part::{FOREBAY, LEVELDB, LEVELED, MAIN, Part, Run, Shown, UNIVERSAL};
use crate::figures::plot::{self, Line};
use crate::figures::results::{Phase, Results};
use crate::figures::table::{Table, cell, short};
use crate::figures::target::Target;

pub(super) const PART: Part =
    Part { name: "bursts", title: "Evenness of writes", text: include_str!("bursts.txt"), runs, show };

const OWN: Pace = |engine| match engine {
    FOREBAY => Phase("figures-own-rate-long", "open-loop-0.8"),
    _ => Phase("figures-own-rate", "open-loop-0.8"),
};
const COMMON: Pace = |_| Phase("figures-common-rate", "open-loop-60000");
/// Of that workload.
const COMMON_RATE: f64 = 60_000.0;

/// The phase of an engine.
type Pace = fn(&str) -> Phase<'static>;

const RIVALS: &[&str] = &[LEVELED, UNIVERSAL, LEVELDB];
/// For both workloads at an own rate: a quarter of the data at their ends, or less.
const OWN_MEMORY_BYTES: u64 = 64 << 20;
const SLOT_SECONDS: f64 = 0.1;

fn runs() -> Vec<Run> {
    let run = |workload, records| Run::new(workload, records).rounds(1);
    vec![
        // Forebay needs more records for as many seconds.
        run(include_str!("../workloads/figures-own-rate-long.toml"), 4_000_000)
            .memory(OWN_MEMORY_BYTES)
            .engines(&[FOREBAY]),
        run(include_str!("../workloads/figures-own-rate.toml"), 2_000_000)
            .memory(OWN_MEMORY_BYTES)
            .engines(RIVALS),
        run(include_str!("../workloads/figures-common-rate.toml"), 1_500_000),
    ]
}

fn show(results: &Results) -> Result<Shown, String> {
    let mut shown = Shown { targets: targets(results), ..Shown::default() };
    shown.place("own", table(OWN, results));
    shown.place("common", table(COMMON, results));
    shown.place("found", found(results));
    for (name, phase) in [("bursts-own", OWN), ("bursts-common", COMMON)] {
        let lines: Vec<Line> =
            MAIN.iter().filter_map(|engine| line(results, engine, phase(engine))).collect();
        shown.plot(name, plot::panels("seconds", &lines)?);
    }
    Ok(shown)
}

fn targets(results: &Results) -> Vec<Target> {
    let of = |engine: &str, phase: Pace, pointer: &str| results.median(engine, phase(engine), pointer);
    let mut targets = Vec::new();
    for (phase, rate) in [(OWN, "at 80 % of what it sustains"), (COMMON, "at the common rate")] {
        let (p99_9, max) = (of(FOREBAY, phase, "/latency_us/p99_9"), of(FOREBAY, phase, "/latency_us/max"));
        targets.push(Target::at_most(format!("{rate}: p99.9"), 1.0, " ms", p99_9.map(|us| us / 1e3)));
        targets.push(Target::at_most(format!("{rate}: max"), 50.0, " ms", max.map(|us| us / 1e3)));
    }
    for (pointer, what) in [("/latency_us/p99_9", "p99.9"), ("/latency_us/max", "max")] {
        let held = |engine: &&&str| results.rate(engine, COMMON(engine)) >= Some(COMMON_RATE * 0.98);
        let best = [LEVELED, UNIVERSAL].iter().filter(held).filter_map(|engine| of(engine, COMMON, pointer));
        let ratio = best.min_by(f64::total_cmp).zip(of(FOREBAY, COMMON, pointer));
        let what = format!("at the common rate: {what} below the better RocksDB's that held it");
        targets.push(Target::at_least(what, 10.0, "x", ratio.map(|(theirs, own)| theirs / own)));
    }
    targets
}

fn found(results: &Results) -> String {
    let at = |phase: Pace| {
        let of = |pointer: &str| results.median(FOREBAY, phase(FOREBAY), pointer);
        let [p99_9, max] = ["/latency_us/p99_9", "/latency_us/max"].map(|at| cell(of(at).map(|us| us / 1e3)));
        let gap = cell(of("/longest_gap_ms"));
        format!(
            "{} records a second with p99.9 of {p99_9} ms and at most {max} ms, and never longer than {gap} ms without \
             a completed batch",
            cell(of("/operations_per_second"))
        )
    };
    format!(
        "At 80 % of what it sustains Forebay takes {}. At the common rate it takes {}.",
        at(OWN),
        at(COMMON)
    )
}

fn table(pace: Pace, results: &Results) -> String {
    let mut table = Table::new(&[
        "engine",
        "seconds",
        "records/s",
        "sustained, records/s",
        "p50, us",
        "p99, us",
        "p99.9, us",
        "max, ms",
        "longest gap, ms",
        "variation by 100 ms",
    ]);
    for engine in MAIN {
        let phase = pace(engine);
        if results.rounds(engine, phase) == 0 {
            continue;
        }
        let of = |pointer: &str| results.median(engine, phase, pointer);
        table.row([
            engine.to_string(),
            cell(of("/seconds")),
            cell(of("/operations_per_second")),
            cell(sustained(results, engine, phase.0)),
            cell(of("/latency_us/p50")),
            cell(of("/latency_us/p99")),
            cell(of("/latency_us/p99_9")),
            cell(of("/latency_us/max").map(|us| us / 1e3)),
            cell(of("/longest_gap_ms")),
            of("/throughput_cv").map_or_else(|| "-".into(), short),
        ]);
    }
    table.finish()
}

/// Records a second of the load with its drain.
fn sustained(results: &Results, engine: &str, workload: &str) -> Option<f64> {
    let of = |phase, pointer| results.median(engine, Phase(workload, phase), pointer);
    Some(of("load", "/operations")? / (of("load", "/seconds")? + of("drain", "/seconds")?))
}

/// Throughput over time in the last run.
fn line(results: &Results, engine: &str, phase: Phase<'_>) -> Option<Line> {
    let slots = results.last(engine, phase)?["operations_per_100_ms"].as_array()?;
    let rate = |slot: &Value| slot.as_f64().unwrap_or(0.0) / SLOT_SECONDS;
    // The last slot is not a full one.
    let full = slots.split_last()?.1;
    let points = full.iter().enumerate().map(|(at, slot)| (at as f64 * SLOT_SECONDS, rate(slot))).collect();
    Some(Line { name: format!("{engine}, records a second"), points })
}
