//! What the tree's ideas contribute (figure 8 of the WB paper).

use crate::figures::part::{FOREBAY, LEVELDB, Part, Run, Shown};
use crate::figures::plot;
use crate::figures::results::{Phase, Results};
use crate::figures::table::{Table, cell, short};

pub(super) const PART: Part = Part {
    name: "contributions",
    title: "What the tree's ideas contribute",
    text: include_str!("contributions.txt"),
    runs,
    show,
};

const SMALL: u64 = 2 << 20;

/// Workload, what it shows, engine, and the shape of Forebay's table.
type Step = (&'static str, &'static str, &'static str, &'static [(&'static str, u64)]);

const STEPS: [Step; 5] = [
    ("leveldb", "LevelDB", LEVELDB, &[]),
    (
        "small-slow",
        "spills and splits: nodes of 2 MiB, fan-out 10, slow splits only",
        FOREBAY,
        &[("node_bytes", SMALL), ("fan_out", 10), ("fast_per_slow", 0)],
    ),
    (
        "small-fast",
        "the same with 8 fast splits to a slow one",
        FOREBAY,
        &[("node_bytes", SMALL), ("fan_out", 10), ("fast_per_slow", 8)],
    ),
    (
        "large-slow",
        "nodes of a write buffer, fan-out 256, slow splits only",
        FOREBAY,
        &[("fan_out", 256), ("fast_per_slow", 0)],
    ),
    (
        "large-fast",
        "the same with 8 fast splits to a slow one",
        FOREBAY,
        &[("fan_out", 256), ("fast_per_slow", 8)],
    ),
];

fn runs() -> Vec<Run> {
    let run = Run::new(include_str!("../workloads/figures-shapes.toml"), 4_000_000);
    let step = |(name, _, engine, shape): Step| {
        let run = run.clone().shaped(name, shape);
        if engine == FOREBAY { run.engines(&[FOREBAY]) } else { run.engines(&[LEVELDB]).rounds(1) }
    };
    STEPS.map(step).into()
}

fn show(results: &Results) -> Result<Shown, String> {
    let mut shown = Shown::default();
    let names = STEPS.map(|(name, ..)| format!("figures-shapes-{name}"));
    let rates: Vec<Option<f64>> = std::iter::zip(&names, STEPS)
        .map(|(workload, (_, _, engine, _))| results.rate(engine, Phase(workload, "load")))
        .collect();
    let mut table = Table::new(&[
        "tree",
        "records/s",
        "of the tree's first",
        "write amplification",
        "drain, s",
        "CPU s/million",
        "lists on a path",
    ]);
    for (workload, (index, (_, what, engine, _))) in std::iter::zip(&names, STEPS.into_iter().enumerate()) {
        let of = |phase, pointer: &str| results.median(engine, Phase(workload, phase), pointer);
        table.row([
            what.into(),
            cell(rates[index]),
            times(rates[1], rates[index]),
            cell(of("drain", "/write_amplification_total")),
            cell(of("drain", "/seconds")),
            cell(of("load", "/cpu_seconds_per_million")),
            cell(of("drain", "/lists_per_path")),
        ]);
    }
    shown.place("table", table.finish());
    shown.place(
        "found",
        [
            ("spills and splits with small nodes, beside LevelDB", times(rates[0], rates[1])),
            ("then large nodes and a large fan-out", times(rates[1], rates[3])),
            ("fast splits with small nodes", times(rates[1], rates[2])),
            ("fast splits with large nodes", times(rates[3], rates[4])),
        ]
        .map(|(what, ratio)| format!("- {what}: {ratio}"))
        .join("\n"),
    );
    let groups = ["LevelDB", "small, slow", "small, fast", "large, slow", "large, fast"];
    let spreads = std::iter::zip(&names, STEPS)
        .map(|(workload, (_, _, engine, _))| results.rates(engine, Phase(workload, "load")));
    let series = [("records a second".to_string(), spreads.collect())];
    shown.plot("contributions", plot::bars("records a second", &groups, &series)?);
    Ok(shown)
}

fn times(from: Option<f64>, to: Option<f64>) -> String {
    from.zip(to).map_or_else(|| "not measured".into(), |(from, to)| format!("{}x", short(to / from)))
}
