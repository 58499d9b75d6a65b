//! Writing, against other engines (figure 6 of the WB paper).

use crate::figures::part::{
    DIRECT, FJALL, FOREBAY, KYOTO, LEVELDB, LEVELED, LMDB, MAIN, Part, Run, Shown, UNIVERSAL,
};
use crate::figures::plot::{self, Mark};
use crate::figures::results::{Phase, Results};
use crate::figures::table::{Table, cell, short};
use crate::figures::target::Target;

pub(super) const PART: Part = Part {
    name: "engines",
    title: "Writing, beside other engines",
    text: include_str!("engines.txt"),
    runs,
    show,
};

/// A workload, the phase that counts, and how many times as fast as which engines is wanted.
struct Goal {
    workload: &'static str,
    phase: &'static str,
    /// The drain behind that phase.
    drain: &'static str,
    label: &'static str,
    wanted: &'static [(&'static str, f64)],
}

const GOALS: [Goal; 5] = [
    Goal {
        workload: "figures-load-16",
        phase: "load",
        drain: "drain",
        label: "load 16 B",
        wanted: &[(LEVELDB, 35.0), (LEVELED, 50.0), (UNIVERSAL, 45.0)],
    },
    Goal {
        workload: "figures-load-64",
        phase: "load",
        drain: "drain",
        label: "load 64 B",
        wanted: &[(LEVELDB, 15.0), (LEVELED, 25.0), (UNIVERSAL, 22.0)],
    },
    Goal {
        workload: "figures-load-256",
        phase: "load",
        drain: "drain",
        label: "load 256 B",
        wanted: &[(LEVELDB, 6.0), (LEVELED, 6.0), (UNIVERSAL, 5.0)],
    },
    Goal {
        workload: "figures-load-16-single",
        phase: "load",
        drain: "drain",
        label: "load 16 B, one put a call",
        wanted: &[(LEVELED, 10.0), (UNIVERSAL, 10.0)],
    },
    Goal {
        workload: "figures-overwrite-zipf-64",
        phase: "overwrite-zipf",
        drain: "drain-2",
        label: "overwrite 64 B, Zipf",
        wanted: &[(LEVELED, 8.0)],
    },
];

/// Engines that are slow on data beyond their memory get a tenth of the records, once.
const SLOW: &[&str] = &[LMDB, KYOTO];
const SLOW_RECORDS: u64 = 800_000;
const ROCKSDB: &[&str] = &[LEVELED, UNIVERSAL];

fn runs() -> Vec<Run> {
    let mut runs = Vec::new();
    for (text, records) in [
        (include_str!("../workloads/figures-load-16.toml"), 40_000_000),
        (include_str!("../workloads/figures-load-64.toml"), 3_000_000),
        (include_str!("../workloads/figures-load-256.toml"), 1_000_000),
    ] {
        let run = Run::new(text, records);
        runs.push(run.clone());
        runs.push(run.clone().engines(ROCKSDB).direct_io().rounds(1));
        runs.push(run.clone().engines(&[FJALL]).rounds(1));
        runs.push(run.engines(SLOW).records(SLOW_RECORDS.min(records / 10)).rounds(1));
    }
    runs.push(Run::new(include_str!("../workloads/figures-load-16-single.toml"), 2_000_000));
    runs.push(Run::new(include_str!("../workloads/figures-overwrite-zipf-64.toml"), 1_000_000));
    runs
}

fn show(results: &Results) -> Result<Shown, String> {
    let mut shown = Shown::default();
    let mut tables = String::new();
    for goal in &GOALS {
        tables.push_str(&format!("\n### {}\n\n{}", capital(goal.label), table(goal, results)));
        let phase = Phase(goal.workload, goal.phase);
        for (engine, wanted) in goal.wanted {
            let found = faster(results, phase, engine);
            shown.targets.push(Target::at_least(
                format!("{}, beside {engine}", goal.label),
                *wanted,
                "x",
                found,
            ));
        }
    }
    shown.place("tables", tables);
    shown.place("found", found(results));
    let groups: Vec<&str> = GOALS.iter().map(|goal| goal.label).collect();
    let engines = MAIN.iter().chain(&[FJALL, LMDB, KYOTO]);
    let series: Vec<(String, Vec<Option<Mark>>)> = engines
        .map(|engine| (called(engine), GOALS.iter().map(|goal| mark(goal, results, engine)).collect()))
        .collect();
    shown.plot("engines", plot::bars("records a second", &groups, &series)?);
    shown.brief = brief(results);
    Ok(shown)
}

/// What the plot calls an engine.
fn called(engine: &str) -> String {
    if SLOW.contains(&engine) { format!("{engine} (1/10 of the records)") } else { engine.to_string() }
}

/// The better rate, and what is left of it once no background work is left.
fn mark(goal: &Goal, results: &Results, engine: &str) -> Option<Mark> {
    let spread = results.best_rates(engine, Phase(goal.workload, goal.phase))?;
    Some(Mark { spread, in_all: best_drained(goal, results, engine) })
}

fn best_drained(goal: &Goal, results: &Results, engine: &str) -> Option<f64> {
    let direct = drained_rate(goal, results, &format!("{engine}{DIRECT}"));
    drained_rate(goal, results, engine).into_iter().chain(direct).max_by(f64::total_cmp)
}

fn brief(results: &Results) -> Option<String> {
    let times = |rate: &dyn Fn(&str) -> Option<f64>| {
        let best = [LEVELDB, LEVELED, UNIVERSAL].into_iter().filter_map(rate).max_by(f64::total_cmp);
        Some(short(rate(FOREBAY)? / best?))
    };
    let each = |goal: &Goal| {
        let at_once = times(&|engine| results.best_rate(engine, Phase(goal.workload, goal.phase)))?;
        let in_all = times(&|engine| best_drained(goal, results, engine))?;
        Some(format!("{} {at_once} ({in_all})", goal.label))
    };
    Some(format!(
        "**Writing**: how many times as fast as the best of LevelDB and both RocksDBs, and, until no background work is left, \
         in brackets: {}.",
        GOALS.iter().map(each).collect::<Option<Vec<_>>>()?.join("; ")
    ))
}

/// How many times as fast as that engine Forebay is.
fn faster(results: &Results, phase: Phase<'_>, engine: &str) -> Option<f64> {
    Some(results.best_rate(FOREBAY, phase)? / results.best_rate(engine, phase)?)
}

fn found(results: &Results) -> String {
    let ratios = GOALS.iter().map(|goal| {
        let phase = Phase(goal.workload, goal.phase);
        let beside = [LEVELDB, LEVELED, UNIVERSAL].map(|engine| {
            faster(results, phase, engine).map(|ratio| format!("{} times {engine}", short(ratio)))
        });
        let beside: Vec<String> = beside.into_iter().flatten().collect();
        let rate = cell(results.best_rate(FOREBAY, phase));
        match beside.is_empty() {
            true => format!("- {}: {rate} records a second; no other engine was measured.", goal.label),
            false => format!("- {}: {rate} records a second, {}.", goal.label, beside.join(", ")),
        }
    });
    ratios.collect::<Vec<_>>().join("\n")
}

fn table(goal: &Goal, results: &Results) -> String {
    let mut table = Table::new(&[
        "engine",
        "rounds",
        "records",
        "records/s",
        "least - most",
        "Forebay is",
        "drain, s",
        "with drain: records/s",
        "Forebay is",
        "write amplification",
        "CPU s/million",
        "call p99.9, us",
        "longest gap, ms",
        "peak MiB",
    ]);
    let phase = Phase(goal.workload, goal.phase);
    let own = (results.rate(FOREBAY, phase), drained_rate(goal, results, FOREBAY));
    for engine in results.engines(goal.workload) {
        let of = |pointer: &str| results.median(engine, phase, pointer);
        let drain = |pointer: &str| results.median(engine, Phase(goal.workload, goal.drain), pointer);
        let (rate, drained) = (results.rate(engine, phase), drained_rate(goal, results, engine));
        let spread = results.spread(engine, phase, "/operations_per_second");
        let times = |own: Option<f64>, theirs: Option<f64>| match engine {
            FOREBAY => String::new(),
            _ => own
                .zip(theirs)
                .map_or_else(|| "-".into(), |(own, theirs)| format!("{}x", short(own / theirs))),
        };
        let cpu = of("/cpu_seconds").zip(drain("/cpu_seconds")).zip(of("/operations"));
        table.row([
            engine.to_string(),
            results.rounds(engine, phase).to_string(),
            cell(of("/operations")),
            cell(rate),
            spread
                .map_or_else(String::new, |spread| format!("{} - {}", short(spread.min), short(spread.max))),
            times(own.0, rate),
            cell(drain("/seconds")),
            cell(drained),
            times(own.1, drained),
            cell(drain("/write_amplification_total")),
            cell(cpu.map(|((load, drain), count)| (load + drain) * 1e6 / count)),
            cell(of("/latency_us/p99_9")),
            cell(of("/longest_gap_ms")),
            cell(of("/peak_memory_bytes").map(|bytes| bytes / f64::from(1 << 20))),
        ]);
    }
    table.finish()
}

/// Records a second until the debt is paid.
fn drained_rate(goal: &Goal, results: &Results, engine: &str) -> Option<f64> {
    let of =
        |phase: &'static str, pointer: &str| results.median(engine, Phase(goal.workload, phase), pointer);
    Some(of(goal.phase, "/operations")? / (of(goal.phase, "/seconds")? + of(goal.drain, "/seconds")?))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
