//! What the methods of the Rangemerge paper move, take and leave behind: its figures 4 to 7.

use serde_json::Value;

use crate::figures::organisations;
use crate::figures::part::{FOREBAY, Part, RANGE_MERGE, Run, Shown, laid_out_name};
use crate::figures::plot::{self, Axis, Line};
use crate::figures::results::{Phase, Results};
use crate::figures::simulated::Forecast;
use crate::figures::table::{Table, cell};
use crate::figures::target::Target;

pub(super) const PART: Part = Part {
    name: "rangemerge",
    title: "The methods of the Rangemerge paper",
    text: include_str!("rangemerge.txt"),
    runs,
    show,
};

/// A shape of records, and memory of which an eighth, a write buffer, goes into them 80 times.
struct Shape {
    workload: &'static str,
    text: &'static str,
    key_bytes: u64,
    record_bytes: u64,
    records: u64,
    memory_bytes: u64,
}

/// The paper's: a write buffer has four batches of 1,000.
const LARGE: Shape = Shape {
    workload: "figures-range-merge",
    text: include_str!("../workloads/figures-range-merge.toml"),
    key_bytes: 100,
    record_bytes: 1100,
    records: 320_000,
    memory_bytes: 36 << 20,
};
const SMALL: Shape = Shape {
    workload: "figures-range-merge-small",
    text: include_str!("../workloads/figures-range-merge-small.toml"),
    key_bytes: 16,
    record_bytes: 64,
    records: 2_000_000,
    memory_bytes: 12_800_000,
};
const GROW: &str = include_str!("../workloads/figures-range-merge-grow.toml");
/// The workload of that, under the method that the paper grows.
const GROWN: &str = "figures-range-merge-grow-geometric-r-2";
/// Memory by that of the shape.
const TIMES: [u64; 4] = [1, 2, 4, 8];
/// Not in the paper; its transfer is predicted too.
const LEVELING: &str = "leveling:t=10";
const IMMEDIATE: &str = "immediate";
const NO_MERGE: &str = "no-merge";
/// By what they move, the ones that take long.
const SLOW: [&str; 3] = ["geometric:p=2", RANGE_MERGE, IMMEDIATE];
/// The planner's word is taken for these.
const PREDICTED: [&str; 4] = ["geometric:r=2", "geometric:r=3", "geometric:p=2", LEVELING];

fn layouts() -> Vec<&'static str> {
    organisations::OF_THE_PAPER.into_iter().chain([LEVELING]).collect()
}

fn runs() -> Vec<Run> {
    let mut runs = Vec::new();
    let of = |shape: &Shape, times: u64| {
        Run::new(shape.text, shape.records).memory(shape.memory_bytes * times).rounds(1)
    };
    for layout in layouts() {
        let rounds = if SLOW.contains(&layout) { 1 } else { 3 };
        runs.push(of(&LARGE, 1).laid_out(layout).rounds(rounds));
        runs.push(of(&SMALL, 1).laid_out(layout));
    }
    for times in &TIMES[1..] {
        let run = of(&LARGE, *times).shaped(&format!("{times}x"), &[]);
        runs.extend(organisations::OF_THE_PAPER.iter().map(|layout| run.clone().laid_out(layout)));
    }
    let grow = Run::new(GROW, LARGE.records).memory(LARGE.memory_bytes).rounds(1);
    runs.push(grow.laid_out("geometric:r=2"));
    runs
}

/// What the planner is asked.
pub(super) fn forecasts() -> Vec<Forecast> {
    let of = |shape: &Shape, layout: &&'static str| Forecast {
        workload: laid_out_name(shape.workload, layout),
        layout,
        key_bytes: shape.key_bytes,
        record_bytes: shape.record_bytes,
        records: shape.records,
        distinct: None,
        memory_bytes: shape.memory_bytes,
        write_buffer_share: None,
        is_saturated: false,
    };
    let both = |layout| [of(&LARGE, layout), of(&SMALL, layout)];
    PREDICTED.iter().flat_map(both).collect()
}

fn show(results: &Results) -> Result<Shown, String> {
    let mut shown = Shown::default();
    for (shape, place, words) in [(&LARGE, "large", "1,100 B"), (&SMALL, "small", "64 B")] {
        shown.place(place, table(results, shape));
        shown.targets.extend(targets(results, shape, words));
    }
    shown.place("memory", by_memory(results));
    let lines = |tells: fn(&Value) -> Option<f64>| -> Vec<Line> {
        let line = |layout: &str| Line { name: layout.into(), points: meanwhile(results, layout, tells) };
        organisations::OF_THE_PAPER.into_iter().map(line).collect()
    };
    let inserted = || Axis::linear("bytes inserted");
    let seconds = lines(|sample| sample["seconds"].as_f64());
    shown.plot("rangemerge-time", plot::lines([inserted(), Axis::log("seconds")], &seconds)?);
    let transfer = lines(|sample| transfer_of(sample).filter(|bytes| *bytes > 0.0));
    shown.plot(
        "rangemerge-transfer",
        plot::lines([inserted(), Axis::log("bytes read and written")], &transfer)?,
    );
    let runs = lines(|sample| sample["lists_per_path"].as_f64());
    shown.plot("rangemerge-runs", plot::lines([inserted(), Axis::log("runs a key range")], &runs)?);
    shown.plot("rangemerge-growth", plot::panels("bytes of records", &grown(results))?);
    let memory: Vec<Line> = organisations::OF_THE_PAPER
        .into_iter()
        .map(|layout| {
            let point = |times| Some((times as f64, insertion(results, layout, times)?));
            Line { name: layout.into(), points: TIMES.into_iter().filter_map(point).collect() }
        })
        .collect();
    shown.plot(
        "rangemerge-memory",
        plot::lines([Axis::log("times the memory"), Axis::log("seconds")], &memory)?,
    );
    Ok(shown)
}

/// Points of a load, by bytes of records.
fn meanwhile(results: &Results, layout: &str, tells: impl Fn(&Value) -> Option<f64>) -> Vec<(f64, f64)> {
    let workload = laid_out_name(LARGE.workload, layout);
    results.samples(FOREBAY, Phase(&workload, "load"), |sample| Some((inserted(sample)?, tells(sample)?)))
}

fn inserted(sample: &Value) -> Option<f64> {
    Some(sample["records"].as_f64()? * LARGE.record_bytes as f64)
}

/// Bytes written to tables and read from them.
fn transfer_of(sample: &Value) -> Option<f64> {
    Some(sample["table_bytes_written"].as_f64()? + sample["table_bytes_read"].as_f64()?)
}

/// Time of a range and number of runs, by bytes of records.
fn grown(results: &Results) -> [Line; 2] {
    let line = |name: &str, field: &str, unit: f64| {
        let tells = |sample: &Value| Some((inserted(sample)?, sample[field].as_f64()? / unit));
        Line { name: name.into(), points: results.samples(FOREBAY, Phase(GROWN, "grow"), tells) }
    };
    [line("a range of 10, ms", "range_us", 1e3), line("runs", "lists_per_path", 1.0)]
}

/// Seconds of a load with its drain.
fn insertion(results: &Results, layout: &str, times: u64) -> Option<f64> {
    let workload = match times {
        1 => LARGE.workload.to_string(),
        times => format!("{}-{times}x", LARGE.workload),
    };
    seconds(results, &laid_out_name(&workload, layout))
}

fn seconds(results: &Results, workload: &str) -> Option<f64> {
    let of = |phase| results.median(FOREBAY, Phase(workload, phase), "/seconds");
    Some(of("load")? + of("drain")?)
}

/// What a load came to once it was drained.
struct Moved {
    written: f64,
    read: f64,
    runs: Option<f64>,
}

impl Moved {
    fn of(results: &Results, shape: &Shape, layout: &str) -> Option<Self> {
        let workload = laid_out_name(shape.workload, layout);
        let of =
            |name: &str| results.median(FOREBAY, Phase(&workload, "drain"), &format!("/samples/0/{name}"));
        let (written, read) = (of("table_bytes_written")?, of("table_bytes_read")?);
        Some(Self { written, read, runs: of("lists_per_path") })
    }

    fn whole(&self) -> f64 {
        self.written + self.read
    }
}

/// What it would move, with nothing else to say than how often a write buffer was full: without merges each is a run.
fn quadratic(results: &Results, shape: &Shape) -> Option<f64> {
    let once = Moved::of(results, shape, NO_MERGE)?;
    Some(once.written * once.runs?)
}

/// What the planner says it would move.
fn predicted(results: &Results, shape: &Shape, layout: &str) -> Option<f64> {
    let workload = laid_out_name(shape.workload, layout);
    let line = results
        .others
        .iter()
        .find(|line| line["type"] == "simulated" && line["workload"].as_str() == Some(&workload))?;
    transfer_of(line)
}

fn table(results: &Results, shape: &Shape) -> String {
    let mut table = Table::new(&[
        "method",
        "insertion, s",
        "least - most",
        "written, MB",
        "read, MB",
        "both, by the data",
        "N²/M, or the planner, MB",
        "of that",
        "runs, at most",
        "at the end",
        "range of 10: p50, us",
        "p95, us",
    ]);
    for layout in layouts() {
        let workload = laid_out_name(shape.workload, layout);
        let of = |phase, pointer: &str| results.median(FOREBAY, Phase(&workload, phase), pointer);
        let moved = Moved::of(results, shape, layout);
        let told = |pick: fn(&Moved) -> f64| cell(moved.as_ref().map(|moved| pick(moved) / 1e6));
        let expected = match layout {
            IMMEDIATE | RANGE_MERGE => quadratic(results, shape),
            layout => predicted(results, shape, layout),
        };
        let whole = moved.as_ref().map(Moved::whole);
        let spread = results.spread(FOREBAY, Phase(&workload, "load"), "/seconds");
        let data = of("drain", "/records").map(|records| records * shape.record_bytes as f64);
        let lists = |sample: &Value| Some((0.0, sample["lists_per_path"].as_f64()?));
        let runs = results.samples(FOREBAY, Phase(&workload, "load"), lists);
        table.row([
            layout.to_string(),
            cell(seconds(results, &workload)),
            spread.map_or_else(
                || "-".into(),
                |one| format!("{} - {}", cell(Some(one.min)), cell(Some(one.max))),
            ),
            told(|moved| moved.written),
            told(|moved| moved.read),
            cell(whole.zip(data).map(|(whole, data)| whole / data)),
            cell(expected.map(|bytes| bytes / 1e6)),
            cell(whole.zip(expected).map(|(whole, expected)| whole / expected)),
            cell(runs.into_iter().map(|(_, lists)| lists).reduce(f64::max)),
            cell(moved.and_then(|moved| moved.runs)),
            cell(of("range-10", "/latency_us/p50")),
            cell(of("range-10", "/latency_us/p95")),
        ]);
    }
    table.finish()
}

fn by_memory(results: &Results) -> String {
    let mut table = Table::new(&["method", "1x, s", "2x, s", "4x, s", "8x, s", "8x, of 1x"]);
    for layout in organisations::OF_THE_PAPER {
        let all = TIMES.map(|times| insertion(results, layout, times));
        let [first, .., last] = all;
        let mut cells = vec![layout.to_string()];
        cells.extend(all.map(cell));
        cells.push(cell(first.zip(last).map(|(first, last)| last / first)));
        table.row(cells);
    }
    table.finish()
}

fn targets(results: &Results, shape: &Shape, words: &str) -> Vec<Target> {
    let moved = |layout: &str| Moved::of(results, shape, layout).map(|moved| moved.whole());
    let by = |part: Option<f64>, whole: Option<f64>| part.zip(whole).map(|(part, whole)| part / whole);
    let off = |ratio: Option<f64>| ratio.map(|ratio| (ratio - 1.0).abs() * 100.0);
    let immediate = off(by(moved(IMMEDIATE), quadratic(results, shape)));
    let mut targets =
        vec![Target::at_most(format!("{words}, {IMMEDIATE}: transfer, off N²/M"), 10.0, " %", immediate)];
    let part = by(moved(RANGE_MERGE), moved(IMMEDIATE));
    let what = format!("{words}, {RANGE_MERGE}: transfer, by that of {IMMEDIATE}");
    targets.push(Target::at_least(what.clone(), 0.25, "x", part));
    targets.push(Target::at_most(what, 0.5, "x", part));
    for layout in PREDICTED {
        let off = off(by(moved(layout), predicted(results, shape, layout)));
        targets.push(Target::at_most(
            format!("{words}, {layout}: transfer, off `simulate`"),
            15.0,
            " %",
            off,
        ));
    }
    targets
}
