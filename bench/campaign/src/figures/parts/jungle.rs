//! Jungle beside the organisations that it lies between, and RocksDB: figure 6 and table 1 of its paper.

use crate::figures::part::{BLOB, FOREBAY, LEVELED, Part, Run, Shown, UNIVERSAL, laid_out_name};
use crate::figures::plot;
use crate::figures::results::{Phase, Results, Spread};
use crate::figures::simulated::Forecast;
use crate::figures::table::{Table, cell};
use crate::figures::target::Target;

use super::jungle_beyond as beyond;

pub(super) const PART: Part =
    Part { name: "jungle", title: "Jungle", text: include_str!("jungle.txt"), runs, show };

const WORKLOAD: &str = "figures-jungle";
const RECORDS: u64 = 1_000_000;
/// In which lookups are measured, of a twentieth of that each, once the cache is as it stays.
const ROUNDS: std::ops::RangeInclusive<u32> = 2..=6;
const KEY_BYTES: u64 = 8;
const RECORD_BYTES: u64 = 1032;
/// A tenth of the data.
const MEMORY_BYTES: u64 = RECORDS * RECORD_BYTES / 10;
/// When the planner is asked, in halves of the records: once they were loaded, and from 10 to 20 times written again.
const HALVES: std::ops::RangeInclusive<u64> = 22..=42;

/// Level 0 of the data, as in the paper. Its share of the memory is that for all write buffers that it gathers.
const LEVEL_0: f64 = 10.0 / 80.0;

pub(super) const LEVELING: &str = "leveling:t=10";
const TIERING: &str = "tiering:t=10";
/// With their factors.
const JUNGLE: [(&str, f64); 4] =
    [("jungle:c=2", 2.0), ("jungle:c=3", 3.0), ("jungle:c=5", 5.0), (beyond::MOST, 10.0)];
/// Its trees beneath records in memory.
const OVER_TREES: &str = "range-merge:c=3";
const RIVALS: [&str; 3] = [LEVELED, UNIVERSAL, BLOB];

/// Of all levels, and how many of them the paper has.
const RATIO: f64 = 10.0;
const LEVELS: f64 = 2.0;
/// What nodes of trees may add to the space of table 1, and the log to that, by the data: twelve write buffers.
const NODES: f64 = 1.05;
const LOG: f64 = 0.02;

fn layouts() -> impl Iterator<Item = &'static str> {
    [LEVELING, TIERING].into_iter().chain(JUNGLE.map(|(layout, _)| layout)).chain([OVER_TREES])
}

/// How long a layout's write buffers are, by the memory, so that level 0 is what the paper's is. Memory decides where a
/// layout gathers none.
fn write_buffer_share(layout: &str) -> Option<f64> {
    let gathered = match layout {
        LEVELING => 4.0,
        TIERING => 10.0,
        OVER_TREES => return None,
        _ => 8.0,
    };
    Some(LEVEL_0 / gathered)
}

fn runs() -> Vec<Run> {
    let run =
        Run::new(include_str!("../workloads/figures-jungle.toml"), RECORDS).memory(MEMORY_BYTES).rounds(1);
    let laid_out = |layout| {
        let run = run.clone().laid_out(layout);
        match write_buffer_share(layout) {
            Some(share) => run.told("write_buffer_share", share),
            None => run,
        }
    };
    let mut runs: Vec<Run> = layouts().map(laid_out).collect();
    runs.push(run.engines(&RIVALS));
    runs.extend(beyond::runs());
    runs
}

/// What the planner is asked.
pub(super) fn forecasts() -> Vec<Forecast> {
    let of = |layout, halves| Forecast {
        workload: laid_out_name(WORKLOAD, layout),
        layout,
        key_bytes: KEY_BYTES,
        record_bytes: RECORD_BYTES,
        records: RECORDS / 2 * halves,
        distinct: Some(RECORDS),
        memory_bytes: MEMORY_BYTES,
        write_buffer_share: write_buffer_share(layout),
        is_saturated: true,
    };
    layouts().flat_map(|layout| HALVES.map(move |halves| of(layout, halves))).collect()
}

/// An organisation, or an engine: its name and what it came to.
struct Row {
    name: &'static str,
    written: Option<f64>,
    /// Without the log, where the engine tells.
    of_tables: Option<f64>,
    space: Space,
    simulated: Option<f64>,
    lookups: Option<f64>,
    p50: Option<f64>,
    p99: Option<f64>,
    rate: Option<f64>,
    /// How often each was written again.
    times: Option<f64>,
}

/// Bytes on disk by live bytes while records are written again: the most ever, and the others from half of that time
/// on.
#[derive(Clone, Copy, Default)]
struct Space {
    mean: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
}

impl Row {
    fn of(results: &Results, name: &'static str, engine: &str, workload: &str) -> Self {
        let get = |pointer: &str| {
            let round =
                |number: u32| results.median(engine, Phase(workload, &format!("get-{number}")), pointer);
            let mut rounds: Vec<f64> = ROUNDS.filter_map(round).collect();
            rounds.sort_by(f64::total_cmp);
            rounds.get(rounds.len() / 2).copied()
        };
        Self {
            name,
            written: written(results, engine, workload),
            of_tables: of_tables(results, engine, workload),
            space: Space::of(results, engine, workload),
            simulated: simulated(results, workload),
            lookups: get("/operations_per_second"),
            p50: get("/latency_us/p50"),
            p99: get("/latency_us/p99"),
            rate: sustained(results, engine, workload),
            times: times(results, engine, workload),
        }
    }
}

impl Space {
    fn of(results: &Results, engine: &str, workload: &str) -> Self {
        let tells = |sample: &serde_json::Value| Some((0.0, sample["space_amplification"].as_f64()?));
        let all = results.samples(engine, Phase(workload, "overwrite"), tells);
        let late = || all.iter().skip(all.len() / 2).map(|(_, space)| *space);
        let count = late().count();
        Self {
            mean: (count > 0).then(|| late().sum::<f64>() / count as f64),
            min: late().reduce(f64::min),
            max: all.iter().map(|(_, space)| *space).reduce(f64::max),
        }
    }
}

/// Bytes that a process wrote by bytes that it was given to write again, the log and the work that is left included.
pub(super) fn written(results: &Results, engine: &str, workload: &str) -> Option<f64> {
    let of = |phase, pointer: &str| results.median(engine, Phase(workload, phase), pointer);
    let bytes = of("overwrite", "/write_bytes")? + of("drain-2", "/write_bytes")?;
    Some(bytes / of("overwrite", "/user_bytes")?)
}

fn of_tables(results: &Results, engine: &str, workload: &str) -> Option<f64> {
    let until = |phase| results.median(engine, Phase(workload, phase), "/samples/0/table_bytes_written");
    let given = results.median(engine, Phase(workload, "overwrite"), "/user_bytes")?;
    Some((until("drain-2")? - until("drain")?) / given)
}

fn times(results: &Results, engine: &str, workload: &str) -> Option<f64> {
    let of = |phase| results.median(engine, Phase(workload, phase), "/operations");
    by(of("overwrite"), of("load"))
}

/// Records written again a second, the work that is left included.
pub(super) fn sustained(results: &Results, engine: &str, workload: &str) -> Option<f64> {
    let of = |phase, pointer: &str| results.median(engine, Phase(workload, phase), pointer);
    let seconds = of("overwrite", "/seconds")? + of("drain-2", "/seconds")?;
    Some(of("overwrite", "/operations")? / seconds)
}

/// The mean of what the planner says would lie on disk, by live bytes.
fn simulated(results: &Results, workload: &str) -> Option<f64> {
    let lines = results
        .others
        .iter()
        .filter(|line| line["type"] == "simulated" && line["workload"].as_str() == Some(workload));
    let spaces: Vec<f64> =
        lines.filter_map(|line| Some(line["disk_bytes"].as_f64()? / line["live_bytes"].as_f64()?)).collect();
    (!spaces.is_empty()).then(|| spaces.iter().sum::<f64>() / spaces.len() as f64)
}

pub(super) fn by(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    part.zip(whole).map(|(part, whole)| part / whole)
}

fn show(results: &Results) -> Result<Shown, String> {
    let mut shown = Shown::default();
    let own = layouts().map(|layout| Row::of(results, layout, FOREBAY, &laid_out_name(WORKLOAD, layout)));
    let others = RIVALS.iter().map(|engine| Row::of(results, engine, engine, WORKLOAD));
    let rows: Vec<Row> = own.chain(others).collect();
    shown.place("figure-6", table(&rows));
    shown.place("paper", beside_paper(&rows));
    let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
    let series = |name: &str, pick: &dyn Fn(&Row) -> Option<f64>| {
        (name.to_string(), rows.iter().map(pick).collect::<Vec<_>>())
    };
    let first = rows.first();
    let (lookups, p50) = (first.and_then(|row| row.lookups), first.and_then(|row| row.p50));
    let written = [series("written", &|row| row.written), series("of tables", &|row| row.of_tables)];
    shown.plot("jungle-written", plot::bars("bytes written / bytes given", &names, &written)?);
    let space = |row: &Row| {
        let Space { mean, min, max } = row.space;
        Some(Spread { median: mean?, min: min?, max: max? })
    };
    let space = [("mean".to_string(), rows.iter().map(space).collect())];
    shown.plot("jungle-space", plot::bars("mean bytes on disk / live bytes, over time", &names, &space)?);
    let rate = [series("lookups", &|row| by(row.lookups, lookups))];
    shown.plot("jungle-lookups", plot::bars("lookups a second / leveling's", &names, &rate)?);
    let latency = [series("p50", &|row| by(row.p50, p50)), series("p99", &|row| by(row.p99, p50))];
    shown.plot("jungle-latency", plot::bars("latency / leveling's p50", &names, &latency)?);
    shown.targets = targets(&rows);
    beyond::show(results, &mut shown)?;
    Ok(shown)
}

/// What table 1 says of an organisation's bytes written and of its space, without nodes.
fn predicted(name: &str) -> Option<(f64, f64)> {
    let least = RATIO / (RATIO - 1.0);
    match name {
        LEVELING => Some((LEVELS * RATIO, least)),
        TIERING => Some((LEVELS, RATIO * least)),
        name => {
            let (_, factor) = JUNGLE.into_iter().find(|(layout, _)| *layout == name)?;
            Some((LEVELS + 1.0 / factor, factor * least))
        }
    }
}

fn table(rows: &[Row]) -> String {
    let mut table = Table::new(&[
        "layout, or engine",
        "written again, records/s",
        "times",
        "written",
        "of tables",
        "table 1",
        "space: mean",
        "least",
        "most",
        "table 1",
        "`simulate`, mean",
        "lookups/s",
        "by leveling's",
        "p50, us",
        "p99, us",
        "p99, by leveling's",
    ]);
    let first = rows.first();
    for row in rows {
        let (written, space) = predicted(row.name).unzip();
        table.row([
            row.name.to_string(),
            cell(row.rate),
            cell(row.times),
            cell(row.written),
            cell(row.of_tables),
            cell(written),
            cell(row.space.mean),
            cell(row.space.min),
            cell(row.space.max),
            cell(space),
            cell(row.simulated),
            cell(row.lookups),
            cell(by(row.lookups, first.and_then(|row| row.lookups))),
            cell(row.p50),
            cell(row.p99),
            cell(by(row.p99, first.and_then(|row| row.p99))),
        ]);
    }
    table.finish()
}

fn beside_paper(rows: &[Row]) -> String {
    let of =
        |name: &str, pick: fn(&Row) -> Option<f64>| rows.iter().find(|row| row.name == name).and_then(pick);
    let ratio = |one: &str, other: &str, pick: fn(&Row) -> Option<f64>| by(of(one, pick), of(other, pick));
    let written = |row: &Row| row.written;
    let lookups = |row: &Row| row.lookups;
    let p99 = |row: &Row| row.p99;
    let mut table = Table::new(&["", "the paper", "here"]);
    for (what, theirs, here) in [
        (
            "written by leveling, by Jungle's with C = 2",
            "more than 3",
            ratio(LEVELING, "jungle:c=2", written),
        ),
        ("written by leveling, by tiering's", "almost 4", ratio(LEVELING, TIERING, written)),
        ("written by tiering, by Jungle's with C = 5", "more than 1", ratio(TIERING, "jungle:c=5", written)),
        ("space of leveling", "close to 1.2", of(LEVELING, |row| row.space.mean)),
        ("space of tiering, mean", "3.24", of(TIERING, |row| row.space.mean)),
        ("lookups of tiering, by leveling's", "0.7", ratio(TIERING, LEVELING, lookups)),
        (
            "lookups of Jungle with C = 10, by leveling's",
            "more than 1",
            ratio(beyond::MOST, LEVELING, lookups),
        ),
        ("p99 of tiering, by leveling's", "3", ratio(TIERING, LEVELING, p99)),
        ("p99 of Jungle with C = 10, by leveling's", "comparable", ratio(beyond::MOST, LEVELING, p99)),
    ] {
        table.row([what.to_string(), theirs.to_string(), cell(here)]);
    }
    table.finish()
}

fn targets(rows: &[Row]) -> Vec<Target> {
    let row = |name: &str| rows.iter().find(|row| row.name == name);
    let of = |name: &str, pick: fn(&Row) -> Option<f64>| row(name).and_then(pick);
    let written = |other| by(of(other, |row| row.written), of("jungle:c=2", |row| row.written));
    let mut targets = vec![
        Target::at_least(
            format!("jungle:c=2: {LEVELING} writes so many times as much"),
            4.0,
            "x",
            written(LEVELING),
        ),
        Target::at_least(
            format!("jungle:c=2: {LEVELED} writes so many times as much"),
            1.5,
            "x",
            written(LEVELED),
        ),
    ];
    for (layout, factor) in JUNGLE {
        let most = factor * RATIO / (RATIO - 1.0) * NODES + LOG;
        let what = format!("{layout}: space at most, nodes and the log allowed for");
        targets.push(Target::at_most(what, most, "x", of(layout, |row| row.space.max)));
        let off = by(of(layout, |row| row.space.mean), of(layout, |row| row.simulated));
        let off = off.map(|ratio| (ratio - 1.0).abs() * 100.0);
        targets.push(Target::at_most(format!("{layout}: mean space, off `simulate`"), 10.0, " %", off));
        let beside = |pick: fn(&Row) -> Option<f64>| by(of(layout, pick), of(LEVELING, pick));
        let what = format!("{layout}: lookups, beside {LEVELING}");
        targets.push(Target::at_least(what, 1.0, "x", beside(|row| row.lookups)));
        let what = format!("{layout}: p99 of lookups, beside {LEVELING}");
        targets.push(Target::at_most(what, 1.2, "x", beside(|row| row.p99)));
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_held_against_the_planner() {
        let text = r#"{"type":"setup","engine":"forebay","workload":"w","setup":{}}
            {"type":"phase","workload":"w","phase":"overwrite","samples":[{"space_amplification":3.0},
            {"space_amplification":1.0},{"space_amplification":1.5},{"space_amplification":2.5}]}
            {"type":"simulated","workload":"w","disk_bytes":150,"live_bytes":100}
            {"type":"simulated","workload":"w","disk_bytes":200,"live_bytes":100}
            {"type":"simulated","workload":"v","disk_bytes":900,"live_bytes":100}"#;
        let results = Results::parse(&text.replace(",\n", ",")).unwrap();
        let row = Row::of(&results, "jungle:c=2", FOREBAY, "w");
        assert_eq!((row.space.mean, row.space.min, row.space.max), (Some(2.0), Some(1.5), Some(3.0)));
        assert_eq!(row.simulated, Some(1.75));
        let found: Vec<_> = targets(&[row]).into_iter().filter_map(|target| target.found).collect();
        assert_eq!(found.len(), 2);
        assert!((found[0] - 3.0).abs() < 1e-9 && (found[1] - 100.0 / 7.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn table_1_lies_between_leveling_and_tiering() {
        let space = |name| predicted(name).map(|(_, space)| (space * 100.0).round());
        assert_eq!(
            [LEVELING, "jungle:c=2", beyond::MOST, TIERING].map(space),
            [111.0, 222.0, 1111.0, 1111.0].map(Some)
        );
        assert_eq!(predicted(LEVELED), None);
    }
}
