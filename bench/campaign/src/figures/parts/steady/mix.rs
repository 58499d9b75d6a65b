//! Mixed work, syncs, popular keys, single puts and batches.

use super::RIVALS;
use crate::figures::part::{FOREBAY, Length, Part, Run, Shown};
use crate::figures::plot::{self, Mark};
use crate::figures::results::{Phase, Results};
use crate::figures::table::{Table, cell, short};

pub(in crate::figures) const PART: Part = Part {
    name: "steady-mix",
    title: "The steady state: mixed work, syncs and single puts",
    text: include_str!("mix.txt"),
    runs,
    show,
};

const MIXED: &str = "figures-steady-mixed";
const ZIPF: &str = "figures-steady-zipf";
const SYNC: &str = "figures-steady-sync";
const BATCH: &str = "figures-steady-batch";
const SYNC_WRITERS: [u64; 3] = [1, 16, 64];
const PUT_WRITERS: [u64; 3] = [1, 2, 4];
const BATCHES: [u64; 3] = [10, 100, 1000];
/// 384 MB.
const RECORDS: u64 = 6_000_000;
/// More than any engine writes before its time is over.
const SMALL_RECORDS: u64 = 80_000_000;
/// A twentieth of 20 million, which is what the best engine comes to.
const SMALL_MEMORY_BYTES: u64 = 16 << 20;

/// Something that is measured: how it is called, and where it is.
struct Work {
    label: String,
    workload: String,
    phase: &'static str,
}

fn works() -> Vec<Work> {
    let work = |label: String, workload: String, phase| Work { label, workload, phase };
    let writers = |count: u64| if count == 1 { "one writer".into() } else { format!("{count} writers") };
    let mut all = vec![
        work("half inserts, half gets".into(), MIXED.into(), "mixed"),
        work("overwrites, Zipf".into(), ZIPF.into(), "overwrite-zipf"),
    ];
    all.extend(
        SYNC_WRITERS.map(|count| {
            work(format!("100 and a sync, {}", writers(count)), format!("{SYNC}-{count}"), "load")
        }),
    );
    all.extend(
        PUT_WRITERS.map(|count| {
            work(format!("single puts, {}", writers(count)), format!("{BATCH}-1-{count}"), "load")
        }),
    );
    all.extend(BATCHES.map(|batch| {
        work(format!("batches of {}", short(batch as f64)), format!("{BATCH}-{batch}"), "load")
    }));
    all
}

fn runs() -> Vec<Run> {
    let run = |text, records| Run::new(text, records).rounds(1).length(Length::Scaled);
    let mut runs = vec![
        run(include_str!("../../workloads/figures-steady-mixed.toml"), RECORDS),
        run(include_str!("../../workloads/figures-steady-zipf.toml"), RECORDS),
    ];
    let small = |text| run(text, SMALL_RECORDS).memory(SMALL_MEMORY_BYTES);
    let sync = small(include_str!("../../workloads/figures-steady-sync.toml"));
    runs.extend(SYNC_WRITERS.map(|count| sync.clone().varied(&count.to_string(), &[("writers", count)])));
    let batch = small(include_str!("../../workloads/figures-steady-batch.toml"));
    runs.extend(
        PUT_WRITERS
            .map(|count| batch.clone().varied(&format!("1-{count}"), &[("batch", 1), ("writers", count)])),
    );
    runs.extend(BATCHES.map(|size| batch.clone().varied(&size.to_string(), &[("batch", size)])));
    // One engine at a time, so that what is interrupted loses one engine's run.
    let each = |run: Run| {
        [&[FOREBAY], &[RIVALS[0]], &[RIVALS[1]], &[RIVALS[2]]].map(|engines| run.clone().engines(engines))
    };
    runs.into_iter().flat_map(each).collect()
}

fn engines() -> impl Iterator<Item = &'static str> {
    std::iter::once(FOREBAY).chain(RIVALS)
}

fn show(results: &Results) -> Result<Shown, String> {
    let mut shown = Shown::default();
    shown.place("table", table(results));
    shown.place("found", found(results));
    let works = works();
    let groups: Vec<&str> = works.iter().map(|work| work.label.as_str()).collect();
    let rate = |work: &Work, engine| results.rates(engine, Phase(&work.workload, work.phase)).map(Mark::from);
    let series: Vec<(String, Vec<Option<Mark>>)> = engines()
        .map(|engine| (engine.to_string(), works.iter().map(|work| rate(work, engine)).collect()))
        .collect();
    shown.plot("steady-mix", plot::bars("operations a second", &groups, &series)?);
    let slower = ranked(results).into_iter().filter(|(times, _)| *times < 1.0).map(|(_, words)| words);
    let slower: Vec<String> = slower.collect();
    if !slower.is_empty() {
        shown.brief = Some(format!("**Nor for this mixture**: {}.", slower.join("; ")));
    }
    Ok(shown)
}

/// How many times the best rival's rate, and whose that is.
fn beside(work: &Work, results: &Results) -> Option<(f64, &'static str)> {
    let rate = |engine| results.rate(engine, Phase(&work.workload, work.phase));
    let best = RIVALS.into_iter().filter_map(|engine| Some((rate(engine)?, engine)));
    let (best, engine) = best.max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some((rate(FOREBAY)? / best, engine))
}

/// All comparisons with the best rival, the worst first.
fn ranked(results: &Results) -> Vec<(f64, String)> {
    let mut all: Vec<(f64, String)> = works()
        .iter()
        .filter_map(|work| {
            let (times, engine) = beside(work, results)?;
            Some((times, format!("{}: {} times {engine}", work.label, short(times))))
        })
        .collect();
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    all
}

fn found(results: &Results) -> String {
    let all = ranked(results);
    match all.is_empty() {
        true => "No other engine was measured.".into(),
        false => {
            let words: Vec<String> = all.into_iter().map(|(_, words)| words).collect();
            format!("Beside the best rival of each, the least first: {}.", words.join("; "))
        }
    }
}

fn table(results: &Results) -> String {
    let mut table = Table::new(&[
        "work, engine",
        "operations",
        "a second",
        "Forebay is",
        "call p50, us",
        "call p99, us",
        "call p99.9, us",
        "max, ms",
        "slowest second, operations",
        "CPU us each",
        "write amplification",
        "engine's reads a get",
    ]);
    for work in works() {
        let phase = Phase(&work.workload, work.phase);
        let own = results.rate(FOREBAY, phase);
        for engine in engines() {
            let of = |pointer: &str| results.median(engine, phase, pointer);
            let Some(rate) = of("/operations_per_second") else { continue };
            let times = own.filter(|_| engine != FOREBAY).map(|own| format!("{}x", short(own / rate)));
            table.row([
                format!("{}, {engine}", work.label),
                cell(of("/operations")),
                short(rate),
                times.unwrap_or_default(),
                cell(of("/latency_us/p50")),
                cell(of("/latency_us/p99")),
                cell(of("/latency_us/p99_9")),
                cell(of("/latency_us/max").map(|us| us / 1e3)),
                cell(of("/slowest_second_operations")),
                cell(of("/cpu_seconds_per_million")),
                cell(of("/write_amplification")),
                cell(of("/device_reads_per_get")),
            ]);
        }
    }
    table.finish()
}
