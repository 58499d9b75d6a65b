//! Threads that add to one aggregator.

use crate::figures::groups::{ADDERS, ADDERS_STAGES};
use crate::figures::part::{Part, Shown};
use crate::figures::plot;
use crate::figures::results::{Phase, Results, Spread};
use crate::figures::table::{Table, cell};
use crate::figures::target::Target;

pub(super) const PART: Part = Part {
    name: super::GROUPS_ADDERS,
    title: "Threads that add to one aggregator",
    text: include_str!("groups_adders.txt"),
    runs: Vec::new,
    show,
};

const WORKLOADS: [&str; 3] = ["words", "numbers", "few"];
const LOCKED: [&str; 2] = ["words", "numbers"];
const NAMES: [&str; 4] = ["one, alone", "one, with locks", "two", "four"];
const PROCESSOR: &str = "/cpu_seconds_per_million";
/// What is foretold, and how many trees groups are divided between then.
const CORES: f64 = 16.0;
const TREES: f64 = 64.0;

/// Million adds a second until all were added, over rounds.
fn rates(results: &Results, engine: &str, workload: &str) -> Option<Spread> {
    let lines = results.lines(engine, Phase(workload, "group"));
    let rate =
        |line: &serde_json::Value| Some(line["adds"].as_f64()? / line["adding_seconds"].as_f64()? / 1e6);
    Spread::of(lines.filter_map(rate).collect())
}

fn rate(results: &Results, engine: &str, workload: &str) -> Option<f64> {
    rates(results, engine, workload).map(|spread| spread.median)
}

/// Nanoseconds of processor time an add, until all groups were shown.
fn processor(results: &Results, engine: &str, workload: &str) -> Option<f64> {
    results.median(engine, Phase(workload, "group"), PROCESSOR).map(|seconds| seconds * 1e3)
}

/// Nanoseconds an add under the lock of a tree.
fn held(results: &Results, engine: &str, workload: &str) -> Option<f64> {
    let phase = Phase(workload, "group");
    let of = |pointer| results.median(engine, phase, pointer);
    Some(of("/stage_cpu_seconds/hand_over")? / of("/adds")? * 1e9)
}

fn show(results: &Results) -> Result<Shown, String> {
    let mut shown = Shown::default();
    let [_, one, two, _] = ADDERS else { return Ok(shown) };
    for workload in WORKLOADS {
        let grown = rate(results, two, workload).zip(rate(results, one, workload));
        let label = format!("{workload}: two threads that add, by one");
        shown.targets.push(Target::at_least(label, 1.8, "x", grown.map(|(two, one)| two / one)));
    }
    shown.place("table", table(results));
    shown.place("locks", locks(results));
    shown.place("found", found(results));
    let parts = WORKLOADS.map(|workload| {
        let of = |engine: &&str| rates(results, engine, workload);
        (workload.to_string(), ADDERS.iter().map(of).collect::<Vec<_>>())
    });
    shown.plot("groups-adders", plot::bars("million adds a second", &NAMES, &parts)?);
    Ok(shown)
}

fn table(results: &Results) -> String {
    let mut table = Table::new(&["keys", "threads that add", "million adds/s", "by one", "CPU ns an add"]);
    for workload in WORKLOADS {
        for (engine, name) in ADDERS.iter().zip(NAMES) {
            let found = rate(results, engine, workload);
            let one = ADDERS.get(1).and_then(|one| rate(results, one, workload));
            table.row([
                workload.to_string(),
                name.into(),
                cell(found),
                cell(found.zip(one).map(|(found, one)| found / one)),
                cell(processor(results, engine, workload)),
            ]);
        }
    }
    table.finish()
}

/// By the last of them, which has most threads.
fn foretold(results: &Results, workload: &str) -> Option<[f64; 3]> {
    let (most, counted) = (ADDERS.last()?, ADDERS_STAGES.last()?);
    let add = processor(results, most, workload)?;
    let held = held(results, counted, &format!("{workload}-locks"))?;
    Some([CORES / add * 1e3, CORES / TREES * held / add * 100.0, held])
}

fn locks(results: &Results) -> String {
    let mut table = Table::new(&["keys", "threads that add", "CPU ns an add under the lock of a tree"]);
    for workload in LOCKED {
        for (engine, name) in ADDERS_STAGES.iter().zip(&NAMES[1..]) {
            let held = held(results, engine, &format!("{workload}-locks"));
            table.row([workload.to_string(), name.to_string(), cell(held)]);
        }
    }
    table.finish()
}

fn found(results: &Results) -> String {
    let told = LOCKED.map(|workload| {
        let [rate, share, held] = foretold(results, workload).map_or([None; 3], |found| found.map(Some));
        format!(
            "{} million {workload} a second, each of {TREES} locks held for {} % of the time ({} ns an add)",
            cell(rate),
            cell(share),
            cell(held)
        )
    });
    format!("By processor time of four threads, {CORES} on as many cores would add {}.", told.join("; "))
}
