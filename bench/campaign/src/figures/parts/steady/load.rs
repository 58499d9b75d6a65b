//! Loads of twenty times the memory, and lookups behind them.

use super::limits::{self, Device, percent};
use super::lookups;
use super::sizes::{Contender, SIZES, Size, times};
use crate::figures::part::{LEVELDB, LEVELED, Part, Run, Shown, UNIVERSAL};
use crate::figures::plot::{self, Axis, Line, Mark};
use crate::figures::results::{Results, Spread};
use crate::figures::table::{Table, cell, metric, short};

pub(in crate::figures) const PART: Part = Part {
    name: "steady-load",
    title: "The steady state: loads and lookups",
    text: include_str!("load.txt"),
    runs,
    show,
};

/// Points of a plot's line.
const PARTS: u32 = 40;
/// Where the last tenth begins.
const LAST_TENTH: f64 = 0.9;
const MIB: f64 = 1_048_576.0;

fn runs() -> Vec<Run> {
    SIZES.iter().flat_map(Size::runs).collect()
}

fn show(results: &Results) -> Result<Shown, String> {
    let mut shown = Shown::default();
    let mut tables = String::new();
    for size in &SIZES {
        tables.push_str(&format!("\n### {} records\n\n{}", size.label, speed(size, results)));
        tables.push_str(&format!("\n{}", cost(size, results)));
        shown.plot(size.by_size, curves(size, results, Over::Size)?);
        shown.plot(size.by_time, curves(size, results, Over::Time)?);
    }
    shown.place("tables", tables);
    shown.place("found", found(results));
    shown.place("lookups", lookups::tables(results));
    shown.place("limits", limits::table(results));
    shown.place("device", Device::of(results).map_or_else(String::new, |device| device.words()));
    shown.plot("steady-rates", rates(results)?);
    for (size, name) in std::iter::zip(&SIZES, GETS) {
        shown.plot(name, lookups::plot(size, results)?);
    }
    shown.brief = brief(results);
    Ok(shown)
}

/// Plots of lookups, a size each.
const GETS: [&str; 4] = ["steady-16-gets", "steady-64-gets", "steady-256-gets", "steady-1024-gets"];

/// What the page begins with.
fn brief(results: &Results) -> Option<String> {
    let first = |size: &Size| size.contenders().into_iter().next();
    let fast = SIZES.iter().filter_map(|size| {
        let own = first(size)?;
        let half = own.curve(results).and_then(|curve| curve.last_half(curve.end().records))?;
        let best = beside_best(size, results)
            .map_or_else(String::new, |(times, rival)| format!(", {} times {rival}", short(times)));
        Some(format!("{} {} a second{best}", size.label, metric(half.rate())))
    });
    let fast: Vec<String> = fast.collect();
    if fast.is_empty() {
        return None;
    }
    let of = |size: &Size, phase: &str, pointer: &str| {
        cell(first(size).and_then(|own| own.of(results, phase, pointer)))
    };
    let big = SIZES.iter().map(|size| {
        format!(
            "{} {} ({} behind a rest)",
            size.label,
            of(size, "load", "/space_amplification"),
            of(size, "drain", "/space_amplification")
        )
    });
    let big: Vec<String> = big.collect();
    let memory = SIZES.iter().filter_map(|size| memory(results, &first(size)?));
    let memory = memory.max_by(|one, other| one.0.total_cmp(&other.0));
    let memory = memory.map_or_else(String::new, |(most, limit)| {
        let (most, limit) = (short(most / MIB), short(limit / MIB));
        format!("; the whole process held at most {most} MiB where {limit} is the limit of its engine")
    });
    let fewest =
        losses(results).into_iter().take(LOSSES).map(|(times, what)| format!("{what} {}", short(times)));
    let fewest: Vec<String> = fewest.collect();
    let when_not = match fewest.is_empty() {
        true => "no other engine was measured".to_string(),
        false => format!(
            "the least of all comparisons with the best rival of the same, as a multiple of its rate: {}. The fastest \
             table is in hash order and has no ranges",
            fewest.join("; ")
        ),
    };
    let scale = match results.campaign["scale"].as_f64() {
        Some(scale) if scale < 1.0 => format!(" (at scale {} only, which is provisional)", short(scale)),
        _ => String::new(),
    };
    Some(format!(
        "**How fast**{scale}, with data twenty times the memory, over the last half of a load and beside the best of LevelDB and \
         both RocksDBs at the same size: {}.\n- **How big**: files by live bytes at the end of a load {}{memory}.\n- **When not**: {when_not}.",
        fast.join("; "),
        big.join("; "),
    ))
}

/// How many of the worst comparisons the page begins with.
const LOSSES: usize = 4;

/// How many times the best rival's rate Forebay's is over the same half, and whose that is.
fn beside_best(size: &Size, results: &Results) -> Option<(f64, String)> {
    let all = size.contenders();
    let own = all.first()?;
    let beside = all.iter().filter(|one| one.is_rival());
    let beside = beside.filter_map(|one| Some((times(results, own, one)?, one.label.clone())));
    beside.min_by(|one, other| one.0.total_cmp(&other.0))
}

/// All comparisons with the best rival, the worst first.
fn losses(results: &Results) -> Vec<(f64, String)> {
    let loads = SIZES.iter().filter_map(|size| {
        let (times, rival) = beside_best(size, results)?;
        Some((times, format!("load of {} ({rival})", size.label)))
    });
    let gets = SIZES.iter().flat_map(|size| lookups::GETS.map(|(phase, what)| (size, phase, what)));
    let gets = gets.filter_map(|(size, phase, what)| {
        let (times, rival) = lookups::times(results, size, phase)?;
        Some((times, format!("gets of {}, {what} ({rival})", size.label)))
    });
    let mut all: Vec<(f64, String)> = loads.chain(gets).collect();
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    all
}

/// The most that the process held in any phase, and the limit.
fn memory(results: &Results, one: &Contender) -> Option<(f64, f64)> {
    let limit = one.memory_bytes(results)?;
    let most = ["load", "get", "get-2", "drain"]
        .into_iter()
        .filter_map(|phase| one.of(results, phase, "/peak_memory_bytes"))
        .max_by(f64::total_cmp)?;
    Some((most, limit))
}

fn found(results: &Results) -> String {
    let sentence = |size: &Size| {
        let all = size.contenders();
        let own = all.first()?;
        let curve = own.curve(results)?;
        let half = curve.last_half(curve.end().records)?;
        let beside = all
            .iter()
            .filter(|one| one.is_rival())
            .filter_map(|one| Some(format!("{} times {}", short(times(results, own, one)?), one.label)));
        let beside: Vec<String> = beside.collect();
        let beside = match beside.is_empty() {
            true => "no other engine was measured".into(),
            false => beside.join(", "),
        };
        Some(format!(
            "- {}: {} records a second over the last half, {} ns of processor time and {} bytes written each; at the \
             same sizes {beside}.",
            size.label,
            short(half.rate()),
            short(half.cpu_nanoseconds()),
            short(half.record_write_bytes()),
        ))
    };
    SIZES.iter().filter_map(sentence).collect::<Vec<_>>().join("\n")
}

fn speed(size: &Size, results: &Results) -> String {
    let mut table = Table::new(&[
        "engine",
        "records reached",
        "data by memory",
        "seconds",
        "records/s",
        "over the last half",
        "over the last tenth",
        "Forebay over the same half is",
        "slowest second, records",
        "fastest",
        "longest gap, ms",
    ]);
    let all = size.contenders();
    for one in &all {
        let Some(curve) = one.curve(results) else { continue };
        let end = curve.end();
        let of = |phase: &str, pointer: &str| one.of(results, phase, pointer);
        let data = end.records * size.record_bytes as f64;
        let own = all.first().filter(|_| one.is_rival());
        let beside = own.and_then(|own| times(results, own, one));
        table.row([
            one.label.clone(),
            short(end.records),
            cell(one.memory_bytes(results).map(|memory| data / memory)),
            short(end.seconds),
            short(end.rate()),
            cell(curve.last_half(end.records).map(|half| half.rate())),
            cell(curve.between(LAST_TENTH * end.records, end.records).map(|tenth| tenth.rate())),
            beside.map_or_else(String::new, |times| format!("{}x", short(times))),
            cell(of("load", "/slowest_second_operations")),
            cell(of("load", "/fastest_second_operations")),
            cell(of("load", "/longest_gap_ms")),
        ]);
    }
    table.finish()
}

fn cost(size: &Size, results: &Results) -> String {
    let mut table = Table::new(&[
        "engine",
        "write amplification, last half",
        "of all, with what was left",
        "of that behind the load",
        "CPU ns a record, last half",
        "by Forebay's",
        "cores busy",
        "memory limit, MiB",
        "peak of the process, MiB",
        "disk by live bytes",
        "after the drain",
    ]);
    let all = size.contenders();
    let half = |one: &Contender| one.curve(results).and_then(|curve| curve.last_half(curve.end().records));
    let own = all.first().and_then(half);
    for one in &all {
        let Some(half) = half(one) else { continue };
        let of = |phase: &str, pointer: &str| one.of(results, phase, pointer);
        let cores = limits::cores(results);
        let (at_load, in_all) =
            (of("load", "/write_amplification"), of("drain", "/write_amplification_total"));
        table.row([
            one.label.clone(),
            short(half.record_write_bytes() / size.record_bytes as f64),
            cell(in_all),
            percent(at_load.zip(in_all).map(|(load, all)| (1.0 - load / all).max(0.0))),
            short(half.cpu_nanoseconds()),
            cell(own.map(|own| half.cpu_nanoseconds() / own.cpu_nanoseconds())),
            percent(cores.map(|cores| half.cpu_seconds / half.seconds / cores)),
            cell(one.memory_bytes(results).map(|bytes| bytes / MIB)),
            cell(of("load", "/peak_memory_bytes").map(|bytes| bytes / MIB)),
            cell(of("load", "/space_amplification")),
            cell(of("drain", "/space_amplification")),
        ]);
    }
    table.finish()
}

/// What contenders have in common that stand at one place.
const PLACES: [&str; 6] =
    ["forebay", "forebay in key order", LEVELED, UNIVERSAL, LEVELDB, "fjall (64 B), rocksdb-blob (1 KiB)"];

/// What a plot's rates are over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    Size,
    Time,
}

fn curves(size: &Size, results: &Results, over: Over) -> Result<String, String> {
    let line = |one: Contender| {
        let curve = one.curve(results)?;
        let points = match over {
            Over::Size => curve.by_size(PARTS),
            Over::Time => curve.by_time(PARTS),
        };
        Some(Line { name: one.label, points })
    };
    let lines: Vec<Line> = size.contenders().into_iter().filter_map(line).collect();
    let across = match over {
        Over::Size => Axis::linear(format!("records of {} that are there", size.label)),
        Over::Time => Axis::log(format!("seconds of the load of {} records", size.label)),
    };
    plot::lines([across, Axis::log("records a second")], &lines)
}

/// The last half of each load, from its slowest to its fastest second. Contenders of all sizes stand in one order.
fn rates(results: &Results) -> Result<String, String> {
    let groups: Vec<String> = SIZES.iter().map(|size| format!("records of {}", size.label)).collect();
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    let mark = |size: &Size, place: usize| {
        let one = size.contenders().into_iter().nth(place)?;
        let curve = one.curve(results)?;
        let median = curve.last_half(curve.end().records)?.rate();
        let [min, max] = ["/slowest_second_operations", "/fastest_second_operations"]
            .map(|pointer| one.of(results, "load", pointer).unwrap_or(median));
        Some(Mark::from(Spread { median, min: min.min(median), max: max.max(median) }))
    };
    let series: Vec<(String, Vec<Option<Mark>>)> = PLACES
        .iter()
        .enumerate()
        .map(|(place, name)| (name.to_string(), SIZES.iter().map(|size| mark(size, place)).collect()))
        .collect();
    plot::bars("records a second over a load's last half", &groups, &series)
}
