//! Grouping in memory, beside hash tables and query engines (figures 20 and 22 and table 8 of the thesis).

use crate::figures::groups::{
    ALL, CONCURRENT, CONCURRENT_POINTER, DUCKDB, FOREBAY, HASHBROWN, SPARSE, SPARSE_POINTER,
};
use crate::figures::part::{Part, Shown};
use crate::figures::plot;
use crate::figures::results::{Phase, Results, Spread};
use crate::figures::table::{Table, cell, short};
use crate::figures::target::Target;

pub(super) const PART: Part = Part {
    name: super::GROUPS,
    title: "Group-by in memory",
    text: include_str!("groups.txt"),
    runs: Vec::new,
    show,
};

const WORKLOADS: [&str; 4] = ["words", "numbers", "zipf", "few"];
const RATE: &str = "/adds_per_second";
const PROCESSOR: &str = "/cpu_seconds_per_million";
const MEMORY: &str = "/bytes_per_group";

/// Prices of the thesis, in cents an hour: of a unit of processor, and of a gigabyte.
const UNIT_CENTS: f64 = 1.51;
const GIGABYTE_CENTS: f64 = 1.93;
/// As Amazon rated a core of its machines with much memory in that year.
const UNITS_PER_CORE: f64 = 3.25;
/// The thesis's words.
const COST_GROUPS: f64 = 1e8;
const COST_ADDS: f64 = 1e9;
/// What the thesis has for these, in cents: table 8, words of binomial length.
const THESIS_CENTS: [(&str, f64); 5] =
    [(FOREBAY, 0.41), (SPARSE, 0.51), (SPARSE_POINTER, 0.46), (CONCURRENT, 0.64), (CONCURRENT_POINTER, 0.65)];

fn of(results: &Results, engine: &str, workload: &str, pointer: &str) -> Option<f64> {
    results.median(engine, Phase(workload, "group"), pointer)
}

fn show(results: &Results) -> Result<Shown, String> {
    let mut shown = Shown { targets: targets(results), ..Shown::default() };
    shown.place("found", found(results));
    let tables = WORKLOADS.map(|workload| table(results, workload));
    shown.place("tables", tables.concat());
    let beside = ALL.iter().map(|engine| (*engine, thesis_cents(engine)));
    shown.place("costs", costs(results, "words", beside));
    // Bytes a group say nothing where there is next to no group.
    for (name, what, pointer, workloads) in [
        ("groups-rate", "adds a second", RATE, &WORKLOADS[..]),
        ("groups-processor", "processor seconds for a million adds", PROCESSOR, &WORKLOADS),
        ("groups-memory", "bytes a group", MEMORY, &WORKLOADS[..3]),
    ] {
        let bar = |workload: &&str| {
            let values = ALL.iter().map(|engine| results.spread(engine, Phase(workload, "group"), pointer));
            (workload.to_string(), values.collect())
        };
        let series: Vec<(String, Vec<Option<Spread>>)> = workloads.iter().map(bar).collect();
        shown.plot(name, plot::bars(what, ALL, &series)?);
    }
    Ok(shown)
}

/// The better of an engine's two ways to keep keys, where less is better.
fn least(results: &Results, engines: [&str; 2], workload: &str, pointer: &str) -> Option<f64> {
    engines.iter().filter_map(|engine| of(results, engine, workload, pointer)).min_by(f64::total_cmp)
}

fn targets(results: &Results) -> Vec<Target> {
    let forebay = |workload, pointer| of(results, FOREBAY, workload, pointer);
    let by =
        |pointer, other: Option<f64>| forebay("words", pointer).zip(other).map(|(own, other)| own / other);
    let sparse = |pointer| least(results, [SPARSE, SPARSE_POINTER], "words", pointer);
    let sparse_rate = [SPARSE, SPARSE_POINTER]
        .iter()
        .filter_map(|engine| of(results, engine, "words", RATE))
        .max_by(f64::total_cmp);
    let hashbrown =
        |workload, pointer| Some(forebay(workload, pointer)? / of(results, HASHBROWN, workload, pointer)?);
    let duckdb = of(results, DUCKDB, "words", MEMORY);
    vec![
        Target::at_most("words: memory a group", 24.0, " B", forebay("words", MEMORY)),
        Target::at_most("words: memory, by the smaller Sparsehash's", 0.6, "x", by(MEMORY, sparse(MEMORY))),
        Target::at_most("words: memory, by DuckDB's", 0.5, "x", by(MEMORY, duckdb)),
        Target::at_least("words: rate", 8.8, " M/s", forebay("words", RATE).map(|rate| rate / 1e6)),
        Target::at_least("words: rate, by the faster Sparsehash's", 1.0, "x", by(RATE, sparse_rate)),
        Target::at_most(
            "words: processor, by the cheaper Sparsehash's",
            1.5,
            "x",
            by(PROCESSOR, sparse(PROCESSOR)),
        ),
        Target::at_most("numbers: memory, by hashbrown's", 1.0 / 3.0, "x", hashbrown("numbers", MEMORY)),
        Target::at_least("numbers: rate, by hashbrown's", 1.0, "x", hashbrown("numbers", RATE)),
        Target::at_least("few: rate, by hashbrown's", 0.9, "x", hashbrown("few", RATE)),
        Target::at_least("zipf: rate, by hashbrown's", 0.9, "x", hashbrown("zipf", RATE)),
    ]
}

fn found(results: &Results) -> String {
    let beside = |workload: &str| {
        let others = ALL.iter().filter(|engine| **engine != FOREBAY);
        let smallest = others
            .filter_map(|engine| Some((*engine, of(results, engine, workload, MEMORY)?)))
            .min_by(|one, other| one.1.total_cmp(&other.1))
            .map_or_else(|| "-".into(), |(engine, bytes)| format!("{engine}'s {}", short(bytes)));
        format!("{} bytes, beside {smallest}", cell(of(results, FOREBAY, workload, MEMORY)))
    };
    let speed = |engine| {
        let rate = of(results, engine, "words", RATE).map(|rate| rate / 1e6);
        let processor = of(results, engine, "words", PROCESSOR);
        format!("{} million a second for {} processor seconds a million", cell(rate), cell(processor))
    };
    format!(
        "A word with its count takes Forebay {}; a number {}. It adds words at {}. A table of boxed keys (hashbrown) \
         adds {}, Sparsehash {}, DuckDB {}.",
        beside("words"),
        beside("numbers"),
        speed(FOREBAY),
        speed(HASHBROWN),
        speed(SPARSE),
        speed(DUCKDB),
    )
}

/// The engines on one workload, below what it is.
fn table(results: &Results, workload: &str) -> String {
    let phase = Phase(workload, "group");
    let engines = results.engines(workload);
    let Some(any) = engines.first().and_then(|engine| results.last(engine, phase)) else {
        return String::new();
    };
    let mut table = Table::new(&[
        "engine",
        "threads",
        "seconds",
        "million adds/s",
        "least - most",
        "CPU s/million",
        "CPU s/core-second",
        "B/group",
        "peak, MiB",
    ]);
    for engine in engines {
        let Some(rates) = results.spread(engine, phase, RATE) else { continue };
        let peak = of(results, engine, workload, "/peak_anonymous_bytes");
        let busy = |line: &serde_json::Value| {
            let of = |name: &str| line[name].as_f64();
            Some(of("cpu_seconds")? / of("seconds")? / of("threads")?)
        };
        let busy = Spread::of(results.lines(engine, phase).filter_map(busy).collect());
        table.row([
            engine.to_string(),
            cell(of(results, engine, workload, "/threads")),
            cell(of(results, engine, workload, "/seconds")),
            short(rates.median / 1e6),
            format!("{} - {}", short(rates.min / 1e6), short(rates.max / 1e6)),
            cell(of(results, engine, workload, PROCESSOR)),
            cell(busy.map(|busy| busy.median)),
            cell(of(results, engine, workload, MEMORY)),
            cell(peak.map(|bytes| bytes / f64::from(1 << 20))),
        ]);
    }
    let number = |name: &str| cell(any[name].as_f64());
    format!("**{workload}**: {} adds, {} groups.\n\n{}\n", number("adds"), number("groups"), table.finish())
}

fn thesis_cents(engine: &str) -> Option<f64> {
    THESIS_CENTS.iter().find(|(name, _)| *name == engine).map(|(_, cents)| *cents)
}

/// What the thesis's words would cost, as measured with these; each engine with what it has for it.
pub(super) fn costs<'a>(
    results: &Results,
    workload: &str,
    engines: impl Iterator<Item = (&'a str, Option<f64>)>,
) -> String {
    let mut table =
        Table::new(&["engine", "GB", "seconds", "processor, cents", "memory, cents", "together", "thesis"]);
    for (engine, thesis) in engines {
        let words = |pointer| of(results, engine, workload, pointer);
        let measured = words(MEMORY).zip(words(RATE)).zip(words(PROCESSOR));
        let Some(((bytes, rate), processor)) = measured else { continue };
        let gigabytes = bytes * COST_GROUPS / 1e9;
        let hours = COST_ADDS / rate / 3600.0;
        let processor_hours = processor * COST_ADDS / 1e6 / 3600.0;
        let processor_cents = processor_hours * UNITS_PER_CORE * UNIT_CENTS;
        let memory_cents = gigabytes * hours * GIGABYTE_CENTS;
        table.row([
            engine.to_string(),
            short(gigabytes),
            short(hours * 3600.0),
            short(processor_cents),
            short(memory_cents),
            short(processor_cents + memory_cents),
            cell(thesis),
        ]);
    }
    table.finish()
}
