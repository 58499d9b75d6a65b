//! What Jungle's paper does not show: for which values it pays, ranges, a lower factor in use, and loads.

use serde_json::Value;

use crate::figures::part::{BLOB, FOREBAY, LEVELED, Run, Shown, UNIVERSAL, laid_out_name};
use crate::figures::plot::{self, Axis, Line};
use crate::figures::results::{Phase, Results};
use crate::figures::table::{Table, cell};
use crate::figures::target::Target;

use super::jungle::{LEVELING, by, sustained, written};

/// Of those with the most space, which are read by ranges and changed in use.
pub(super) const MOST: &str = "jungle:c=10";
const LEAST: &str = "jungle:c=2";

const VALUES: &str = "figures-jungle-values";
const VALUE_BYTES: [u64; 6] = [8, 32, 128, 512, 1024, 4096];
const KEY_BYTES: u64 = 8;
const DATA_BYTES: u64 = 32_000_000;
/// Of one call.
const BATCH_BYTES: u64 = 16 << 10;

const RANGES: &str = "figures-jungle-ranges";
/// How often records are read by ranges, and how often they are written again in between.
const STEPS: u32 = 7;
const AGAIN: f64 = 1.5;
const LENGTHS: [u64; 2] = [10, 1000];

const SWITCH: &str = "figures-jungle-switch";
const WAIT_MS: f64 = 50.0;

const LOAD: &str = "figures-jungle-load";
const LOADED: [&str; 2] = [LEAST, USUAL];
/// With values apart from their keys.
const USUAL: &str = "jungle:c=3";
const APART: &str = "jungle:c=3, values apart";
const APART_BYTES_MIN: u64 = 128;
const RIVALS: [&str; 3] = [LEVELED, UNIVERSAL, BLOB];

pub(super) fn runs() -> Vec<Run> {
    let mut runs = Vec::new();
    for value_bytes in VALUE_BYTES {
        runs.extend([LEVELING, LEAST].map(|layout| of_values(value_bytes).laid_out(layout)));
    }
    let ranges = Run::new(include_str!("../workloads/figures-jungle-ranges.toml"), 60_000).rounds(1);
    runs.extend([LEVELING, MOST].map(|layout| ranges.clone().laid_out(layout)));
    let switch = Run::new(include_str!("../workloads/figures-jungle-switch.toml"), 150_000).rounds(1);
    runs.push(switch.laid_out(MOST));
    let load = Run::new(include_str!("../workloads/figures-jungle-load.toml"), 200_000);
    runs.extend(LOADED.map(|layout| load.clone().laid_out(layout)));
    let apart = load.clone().varied("apart", &[]).laid_out(USUAL);
    runs.push(apart.told("values_apart", APART_BYTES_MIN));
    runs.push(load.engines(&RIVALS));
    runs
}

/// As many bytes of records, whatever a value has.
fn of_values(value_bytes: u64) -> Run {
    let record_bytes = KEY_BYTES + value_bytes;
    let workload = include_str!("../workloads/figures-jungle-values.toml")
        .replacen("value_bytes = 1024", &format!("value_bytes = {value_bytes}"), 1)
        .replacen("batch = 16", &format!("batch = {}", (BATCH_BYTES / record_bytes).max(1)), 1);
    let run = Run::new(&workload, DATA_BYTES / record_bytes).memory(DATA_BYTES / 10).rounds(1);
    run.shaped(&value_bytes.to_string(), &[])
}

pub(super) fn show(results: &Results, shown: &mut Shown) -> Result<(), String> {
    values(results, shown)?;
    ranges(results, shown)?;
    switch(results, shown)?;
    load(results, shown);
    Ok(())
}

fn values(results: &Results, shown: &mut Shown) -> Result<(), String> {
    let workload = |layout: &str, bytes: u64| laid_out_name(&format!("{VALUES}-{bytes}"), layout);
    let moved = |layout: &str, bytes| written(results, FOREBAY, &workload(layout, bytes));
    let rate = |layout: &str, bytes| sustained(results, FOREBAY, &workload(layout, bytes));
    let mut table = Table::new(&[
        "bytes of a value",
        "written: leveling",
        "jungle",
        "leveling's by jungle's",
        "records/s: leveling",
        "jungle",
        "jungle's by leveling's",
    ]);
    for bytes in VALUE_BYTES {
        let (many, few) = (moved(LEVELING, bytes), moved(LEAST, bytes));
        let (slow, fast) = (rate(LEVELING, bytes), rate(LEAST, bytes));
        table.row([
            bytes.to_string(),
            cell(many),
            cell(few),
            cell(by(many, few)),
            cell(slow),
            cell(fast),
            cell(by(fast, slow)),
        ]);
    }
    shown.place("values", table.finish());
    let lines = |tells: &dyn Fn(&str, u64) -> Option<f64>| {
        [LEVELING, LEAST].map(|layout| {
            let point = |bytes| Some((bytes as f64, tells(layout, bytes)?));
            Line { name: layout.into(), points: VALUE_BYTES.into_iter().filter_map(point).collect() }
        })
    };
    let across = || Axis::log("bytes of a value");
    let up = Axis::linear("bytes written by bytes given");
    shown.plot("jungle-values-written", plot::lines([across(), up], &lines(&moved))?);
    shown.plot("jungle-values-rate", plot::lines([across(), Axis::log("records/s")], &lines(&rate))?);
    Ok(())
}

/// What the phase of a step is called.
fn nth(phase: &str, step: u32) -> String {
    if step == 0 { phase.into() } else { format!("{phase}-{}", step + 1) }
}

fn ranges(results: &Results, shown: &mut Shown) -> Result<(), String> {
    let of = |layout: &str, phase: &str, step, pointer: &str| {
        results.median(FOREBAY, Phase(&laid_out_name(RANGES, layout), &nth(phase, step)), pointer)
    };
    let p50 =
        |layout: &str, length: u64, step| of(layout, &format!("range-{length}"), step, "/latency_us/p50");
    let mut table = Table::new(&[
        "written again",
        "space: leveling",
        "jungle",
        "range of 10, us: leveling",
        "jungle",
        "jungle's by leveling's",
        "range of 1,000, us: leveling",
        "jungle",
        "jungle's by leveling's",
    ]);
    for step in 0..STEPS {
        let space = |layout| cell(of(layout, "drain", step, "/space_amplification"));
        let mut cells = vec![cell(Some(f64::from(step) * AGAIN)), space(LEVELING), space(MOST)];
        for length in LENGTHS {
            let (theirs, own) = (p50(LEVELING, length, step), p50(MOST, length, step));
            cells.extend([cell(theirs), cell(own), cell(by(own, theirs))]);
        }
        table.row(cells);
    }
    shown.place("ranges", table.finish());
    let mut lines = Vec::new();
    for layout in [LEVELING, MOST] {
        for length in LENGTHS {
            let point = |step| Some((f64::from(step) * AGAIN, p50(layout, length, step)?));
            let points = (0..STEPS).filter_map(point).collect();
            lines.push(Line { name: format!("{layout}, {length}"), points });
        }
    }
    let axes =
        [Axis::linear("times that records were written again"), Axis::log("microseconds a range, p50")];
    shown.plot("jungle-ranges", plot::lines(axes, &lines)?);
    Ok(())
}

/// A lower factor, in use.
fn switch(results: &Results, shown: &mut Shown) -> Result<(), String> {
    let workload = laid_out_name(SWITCH, MOST);
    let phase = Phase(&workload, "switch");
    let of = |pointer: &str| results.median(FOREBAY, phase, pointer);
    let line = |name: &str, field: &str| {
        let tells = |sample: &Value| Some((sample["seconds"].as_f64()?, sample[field].as_f64()?));
        Line { name: name.into(), points: results.samples(FOREBAY, phase, tells) }
    };
    let (disk, space) =
        (line("bytes on disk", "disk_bytes"), line("bytes on disk / live bytes", "space_amplification"));
    let first = space.points.first().map(|point| point.1);
    let halved = space.points.iter().find(|point| Some(point.1 * 2.0) <= first).map(|point| point.0);
    let (write, read) = (of("/latency_us/max"), of("/gets/latency_us/max"));
    let ms = |us: Option<f64>| us.map(|us| us / 1e3);
    let what = format!("from {MOST} to {LEAST} in use: longest wait of a write");
    shown.targets.push(Target::at_most(what, WAIT_MS, " ms", ms(write)));
    let mut table = Table::new(&["while it changes", ""]);
    for (name, figure) in [
        ("seconds looked at", of("/seconds")),
        ("disk by live bytes at the beginning", first),
        ("at most", space.points.iter().map(|point| point.1).reduce(f64::max)),
        ("at the end", space.points.last().map(|point| point.1)),
        ("seconds until it was half", halved),
        ("records written/s", of("/operations_per_second")),
        ("writes: p99.9, us", of("/latency_us/p99_9")),
        ("longest, ms", ms(write)),
        ("reads: p50, us", of("/gets/latency_us/p50")),
        ("p99.9, us", of("/gets/latency_us/p99_9")),
        ("longest, ms", ms(read)),
    ] {
        table.row([name.to_string(), cell(figure)]);
    }
    shown.place("switch", table.finish());
    shown.plot("jungle-switch", plot::panels("seconds", &[disk, space])?);
    Ok(())
}

fn load(results: &Results, shown: &mut Shown) {
    let apart = (APART, FOREBAY, laid_out_name(&format!("{LOAD}-apart"), USUAL));
    let own: Vec<_> = LOADED
        .map(|layout| (layout, FOREBAY, laid_out_name(LOAD, layout)))
        .into_iter()
        .chain([apart])
        .collect();
    let others = RIVALS.map(|engine| (engine, engine, LOAD.to_string()));
    let mut table = Table::new(&[
        "layout, or engine",
        "load, records/s",
        "least - most",
        "with drain",
        "write amplification",
        "longest gap, ms",
    ]);
    for (name, engine, workload) in own.iter().chain(&others) {
        let of = |phase, pointer: &str| results.median(engine, Phase(workload, phase), pointer);
        let seconds = of("load", "/seconds").zip(of("drain", "/seconds")).map(|(load, drain)| load + drain);
        let spread = results.spread(engine, Phase(workload, "load"), "/operations_per_second");
        table.row([
            name.to_string(),
            cell(spread.map(|spread| spread.median)),
            spread.map_or_else(
                || "-".into(),
                |one| format!("{} - {}", cell(Some(one.min)), cell(Some(one.max))),
            ),
            cell(by(of("load", "/operations"), seconds)),
            cell(of("drain", "/write_amplification_total")),
            cell(of("load", "/longest_gap_ms")),
        ]);
    }
    shown.place("load", table.finish());
    for (layout, _, workload) in &own {
        let most = [(LEVELED, 4.0), (UNIVERSAL, 3.0), (BLOB, 1.5)];
        let some = [(LEVELED, 3.0), (UNIVERSAL, 1.5)];
        for &(engine, least) in if *layout == APART { &most[..] } else { &some } {
            let rate = |engine, workload| results.rate(engine, Phase(workload, "load"));
            let found = by(rate(FOREBAY, workload), rate(engine, LOAD));
            let what = format!("{layout}: load of records of 1 KiB, beside {engine}");
            shown.targets.push(Target::at_least(what, least, "x", found));
        }
    }
}
