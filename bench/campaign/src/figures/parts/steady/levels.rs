//! Sizes of files and ratios of levels in an LSM tree (figure 9b of the WB paper).

use crate::figures::part::{FOREBAY, LEVELED, Length, Part, Run, Shown};
use crate::figures::plot::{self, Heat};
use crate::figures::results::{Phase, Results};
use crate::figures::table::{Table, bytes, cell, short};

pub(in crate::figures) const PART: Part = Part {
    name: "steady-levels",
    title: "The steady state: shapes of an LSM tree",
    text: include_str!("levels.txt"),
    runs,
    show,
};

const WORKLOAD: &str = "figures-steady-levels";
const FILE_BYTES: [u64; 4] = [1 << 20, 2 << 20, 8 << 20, 32 << 20];
const RATIOS: [u64; 4] = [4, 10, 20, 40];
const RECORDS: u64 = 3_000_000;

/// What a map shows of a cell.
type Measure = fn(&Results, &str, &str) -> Option<f64>;

/// A map: its name, what it shows, whether more or less of it is better, and the measure.
const MAPS: [(&str, &str, &str, Measure); 5] = [
    ("levels-insert", "inserts, M records/s", "more", |results, engine, workload| {
        Some(results.rate(engine, Phase(workload, "load"))? / 1e6)
    }),
    ("levels-insert-core", "inserts per core-second, with the drain, M", "more", inserts_a_core_second),
    ("levels-written", "write amplification with the drain", "less", |results, engine, workload| {
        results.median(engine, Phase(workload, "drain"), "/write_amplification_total")
    }),
    ("levels-get-core", "gets per core-second", "more", gets_a_core_second),
    ("levels-reads", "device reads a get", "less", |results, engine, workload| {
        results.median(engine, Phase(workload, "get"), "/device_reads_per_get")
    }),
];

/// Millions.
fn inserts_a_core_second(results: &Results, engine: &str, workload: &str) -> Option<f64> {
    let of = |phase, pointer| results.median(engine, Phase(workload, phase), pointer);
    let seconds = of("load", "/cpu_seconds")? + of("drain", "/cpu_seconds")?;
    Some(of("load", "/operations")? / seconds / 1e6)
}

fn gets_a_core_second(results: &Results, engine: &str, workload: &str) -> Option<f64> {
    let of = |pointer| results.median(engine, Phase(workload, "get"), pointer);
    Some(of("/operations")? / of("/cpu_seconds")?)
}

fn suffix(file_bytes: u64, ratio: u64) -> String {
    format!("{}k-{ratio}", file_bytes >> 10)
}

fn workload(file_bytes: u64, ratio: u64) -> String {
    format!("{WORKLOAD}-{}", suffix(file_bytes, ratio))
}

fn runs() -> Vec<Run> {
    let run = Run::new(include_str!("../../workloads/figures-steady-levels.toml"), RECORDS);
    let run = run.rounds(1).length(Length::Scaled);
    let cell = |file_bytes, ratio| {
        run.clone().leveled(&suffix(file_bytes, ratio), file_bytes, ratio).engines(&[LEVELED])
    };
    let mut runs: Vec<Run> =
        FILE_BYTES.iter().flat_map(|bytes| RATIOS.iter().map(|ratio| cell(*bytes, *ratio))).collect();
    runs.push(run.clone().engines(&[FOREBAY]));
    runs.push(run.engines(&[LEVELED]));
    runs
}

fn show(results: &Results) -> Result<Shown, String> {
    let mut shown = Shown::default();
    for (name, title, better, measure) in MAPS {
        let value = |bytes: u64, ratio: u64| measure(results, LEVELED, &workload(bytes, ratio));
        let heat = Heat {
            title,
            note: format!("{better} is better; one run a cell"),
            rows: ("file", FILE_BYTES.iter().map(|size| bytes(*size)).collect()),
            columns: ("ratio of levels", RATIOS.iter().map(ToString::to_string).collect()),
            values: FILE_BYTES.map(|bytes| RATIOS.map(|ratio| value(bytes, ratio)).to_vec()).to_vec(),
        };
        shown.plot(name, plot::heat(&heat)?);
    }
    shown.place("table", table(results));
    shown.place("found", found(results));
    Ok(shown)
}

fn found(results: &Results) -> String {
    let rate = |bytes: u64, ratio| results.rate(LEVELED, Phase(&workload(bytes, ratio), "load"));
    let cells = || FILE_BYTES.iter().flat_map(|bytes| RATIOS.map(|ratio| (*bytes, ratio)));
    let mut all: Vec<(f64, u64, u64)> =
        cells().filter_map(|(bytes, ratio)| Some((rate(bytes, ratio)?, bytes, ratio))).collect();
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (Some(least), Some(most)) = (all.first(), all.last()) else {
        return "RocksDB was not measured.".into();
    };
    let shape = |(rate, size, ratio): &(f64, u64, u64)| {
        format!("{} records a second with files of {} and a ratio of {ratio}", short(*rate), bytes(*size))
    };
    let own = results.rate(FOREBAY, Phase(WORKLOAD, "load"));
    let own = own.map_or_else(String::new, |own| {
        format!(" Forebay's WB tree, at its own shape, takes {}.", short(own))
    });
    format!("Inserts are slowest, {}, and fastest, {}.{own}", shape(least), shape(most))
}

/// The same of shapes that are the engines' own.
fn table(results: &Results) -> String {
    let mut table = Table::new(&[
        "engine, at its own shape",
        "inserts/s",
        "inserts per core-second, with the drain, M",
        "write amplification with the drain",
        "gets/s",
        "gets per core-second",
        "device reads a get",
    ]);
    for engine in [FOREBAY, LEVELED] {
        let of = |measure: Measure| cell(measure(results, engine, WORKLOAD));
        let rate = |phase| cell(results.rate(engine, Phase(WORKLOAD, phase)));
        if results.rounds(engine, Phase(WORKLOAD, "load")) == 0 {
            continue;
        }
        table.row([
            engine.to_string(),
            rate("load"),
            of(inserts_a_core_second),
            of(MAPS[2].3),
            rate("get"),
            of(gets_a_core_second),
            of(MAPS[4].3),
        ]);
    }
    table.finish()
}
