//! Lookups (figure 7 of the WB paper).

use crate::figures::part::{FOREBAY, LEVELDB, LEVELED, MAIN, Part, Run, Shown, UNIVERSAL};
use crate::figures::plot;
use crate::figures::results::{Phase, Results};
use crate::figures::table::{Table, cell, short};
use crate::figures::target::Target;

pub(super) const PART: Part =
    Part { name: "reads", title: "Lookups", text: include_str!("reads.txt"), runs, show };

const WARM: &str = "figures-get-warm";
const COLD: &str = "figures-get-cold";
/// Phases, and what is looked up in them.
const GETS: [(&str, &str); 4] = [
    ("get", "present"),
    ("get-2", "absent"),
    ("get-3", "half of them present"),
    ("multi-get-32", "present, 32 a call"),
];
const RIVALS: [&str; 3] = [LEVELED, UNIVERSAL, LEVELDB];

fn runs() -> Vec<Run> {
    vec![
        Run::new(include_str!("../workloads/figures-get-warm.toml"), 1_000_000),
        Run::new(include_str!("../workloads/figures-get-cold.toml"), 5_000_000).rounds(1),
    ]
}

fn show(results: &Results) -> Result<Shown, String> {
    let mut shown = Shown { targets: targets(results), ..Shown::default() };
    shown.place("warm", table(WARM, results));
    shown.place("cold", table(COLD, results));
    shown.place("found", found(results));
    let groups: Vec<String> = [("memory", WARM), ("device", COLD)]
        .iter()
        .flat_map(|(place, _)| GETS.iter().map(move |(_, what)| format!("{place}: {what}")))
        .collect();
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    let series: Vec<_> = MAIN
        .iter()
        .map(|engine| {
            let phases =
                [WARM, COLD].into_iter().flat_map(|workload| GETS.map(|(phase, _)| Phase(workload, phase)));
            (engine.to_string(), phases.map(|phase| results.rates(engine, phase)).collect())
        })
        .collect();
    shown.plot("reads", plot::bars("keys a second", &groups, &series)?);
    shown.brief = brief(results);
    Ok(shown)
}

fn brief(results: &Results) -> Option<String> {
    let beside = |workload, phase| {
        let rate = |engine: &str| results.rate(engine, Phase(workload, phase));
        let best = RIVALS.iter().filter_map(|engine| rate(engine)).max_by(f64::total_cmp)?;
        Some(format!("{} ({})", cell(rate(FOREBAY)), short(rate(FOREBAY)? / best)))
    };
    Some(format!(
        "**Lookups**: how many a second and, in brackets, how many times as fast as the best of the same: of keys that are there \
         {} from memory and {} from the device, with {} reads of it each; of keys that are not there {} and {}.",
        beside(WARM, "get")?,
        beside(COLD, "get")?,
        cell(results.median(FOREBAY, Phase(COLD, "get"), "/device_reads_per_get")),
        beside(WARM, "get-2")?,
        beside(COLD, "get-2")?,
    ))
}

fn targets(results: &Results) -> Vec<Target> {
    let rate = |engine: &str, phase: &str| results.rate(engine, Phase(WARM, phase));
    let best = |engines: &[&str], phase: &str| {
        engines.iter().filter_map(|engine| rate(engine, phase)).max_by(f64::total_cmp)
    };
    let faster = |engines: &[&str], phase: &str| Some(rate(FOREBAY, phase)? / best(engines, phase)?);
    let cold = |phase: &str, pointer: &str| results.median(FOREBAY, Phase(COLD, phase), pointer);
    let mut targets = Vec::new();
    for (phase, what) in GETS {
        let what = format!("in memory, {what}");
        targets.push(Target::at_least(
            format!("{what}, beside RocksDB's better"),
            4.0,
            "x",
            faster(&[LEVELED, UNIVERSAL], phase),
        ));
        if phase != "multi-get-32" {
            targets.push(Target::at_least(
                format!("{what}, beside leveldb"),
                1.0,
                "x",
                faster(&[LEVELDB], phase),
            ));
        }
    }
    for (phase, what, most) in [("get", "present", 1.05), ("get-2", "absent", 0.05)] {
        let reads = cold(phase, "/device_reads_per_get");
        targets.push(Target::at_most(format!("from the device, {what}: reads a get"), most, "", reads));
    }
    for (phase, what) in &GETS[..3] {
        let p95 = |engine: &str| results.median(engine, Phase(COLD, phase), "/latency_us/p95");
        let ratio = p95(FOREBAY).zip(RIVALS.iter().filter_map(|engine| p95(engine)).min_by(f64::total_cmp));
        let what = format!("from the device, {what}: p95 by the best rival's");
        targets.push(Target::at_most(what, 1.0, "x", ratio.map(|(own, theirs)| own / theirs)));
    }
    let memory = cold("get", "/index_memory_bytes_per_key");
    targets.push(Target::at_most("filters and page search a key", 1.5, " B", memory));
    targets
}

fn found(results: &Results) -> String {
    let of = |workload, phase, pointer: &str| cell(results.median(FOREBAY, Phase(workload, phase), pointer));
    format!(
        "From memory Forebay answers {} gets a second of present keys and {} of absent ones. From the device a get \
         reads {} pages where the key is present and {} where it is absent, with a p95 of {} and {} microseconds. \
         Filters and page search take {} bytes a key.",
        of(WARM, "get", "/operations_per_second"),
        of(WARM, "get-2", "/operations_per_second"),
        of(COLD, "get", "/device_reads_per_get"),
        of(COLD, "get-2", "/device_reads_per_get"),
        of(COLD, "get", "/latency_us/p95"),
        of(COLD, "get-2", "/latency_us/p95"),
        of(COLD, "get", "/index_memory_bytes_per_key"),
    )
}

fn table(workload: &str, results: &Results) -> String {
    let mut table = Table::new(&[
        "engine, keys",
        "keys/s",
        "CPU s/million",
        "p50, us",
        "p95, us",
        "p99, us",
        "engine's reads a get",
        "4 KiB read a get, by the kernel",
        "filters, search B/key",
        "lists on a path",
    ]);
    for (phase, what) in GETS {
        for engine in results.engines(workload) {
            let of = |pointer: &str| cell(results.median(engine, Phase(workload, phase), pointer));
            table.row([
                format!("{engine}, {what}"),
                of("/operations_per_second"),
                of("/cpu_seconds_per_million"),
                of("/latency_us/p50"),
                of("/latency_us/p95"),
                of("/latency_us/p99"),
                of("/device_reads_per_get"),
                of("/kernel_reads_per_get"),
                of("/index_memory_bytes_per_key"),
                of("/lists_per_path"),
            ]);
        }
    }
    table.finish()
}
