//! How background work scales: loads with one, two and four threads that compact, and a plan for more cores.

use super::curve::{Curve, KINDS, Moment};
use super::limits::{Device, percent};
use super::plan::{CORES, Plan, Writing};
use super::planned;
use crate::figures::part::{FOREBAY, Length, Part, Run, Shown};
use crate::figures::plot::{self, Mark};
use crate::figures::results::{Phase, Results, Spread};
use crate::figures::simulated::Forecast;
use crate::figures::table::{Table, cell, metric, short};
use crate::figures::target::Target;

pub(in crate::figures) const PART: Part = Part {
    name: "steady-workers",
    title: "The steady state: threads and cores",
    text: include_str!("workers.txt"),
    runs,
    show,
};

/// That compact.
const THREADS: [u16; 3] = [1, 2, 4];
/// Of those, what plans are made from.
pub(super) const PLANNED: u16 = 2;
/// What two threads bring, by what one does.
const TIMES_MIN: f64 = 1.6;
/// Of all records' bytes.
const MEMORY_SHARE: u64 = 20;

/// Records of one length. All come to the same bytes.
pub(super) struct Size {
    pub(super) label: &'static str,
    workload: &'static str,
    text: &'static str,
    key_bytes: u64,
    record_bytes: u64,
    records: u64,
    /// A plot's name.
    plan: &'static str,
}

pub(super) const SIZES: [Size; 2] = [
    Size {
        label: "16 B",
        workload: "figures-workers-16",
        text: include_str!("../../workloads/figures-workers-16.toml"),
        key_bytes: 8,
        record_bytes: 16,
        records: 80_000_000,
        plan: "steady-workers-16",
    },
    Size {
        label: "64 B",
        workload: "figures-workers-64",
        text: include_str!("../../workloads/figures-workers-64.toml"),
        key_bytes: 16,
        record_bytes: 64,
        records: 20_000_000,
        plan: "steady-workers-64",
    },
];

fn runs() -> Vec<Run> {
    let run = |size: &Size, threads| {
        let run = Run::new(size.text, size.records).length(Length::Scaled);
        run.engines(&[FOREBAY]).background_threads(threads)
    };
    SIZES.iter().flat_map(|size| THREADS.map(|threads| run(size, threads))).collect()
}

/// What the planner is asked: of each load whole, and of its first half.
pub(in crate::figures::parts) fn forecasts() -> Vec<Forecast> {
    let of = |size: &Size, workload: String, records| Forecast {
        workload,
        layout: "wb-tree",
        key_bytes: size.key_bytes,
        record_bytes: size.record_bytes,
        records,
        distinct: None,
        memory_bytes: size.records * size.record_bytes / MEMORY_SHARE,
        write_buffer_share: None,
        is_saturated: false,
    };
    let both =
        |size: &Size| [of(size, size.workload.into(), size.records), of(size, size.half(), size.records / 2)];
    SIZES.iter().flat_map(both).collect()
}

fn show(results: &Results) -> Result<Shown, String> {
    let mut shown = Shown::default();
    let device = Device::of(results);
    let plans = || SIZES.iter().filter_map(|size| Some((size, size.plan(results, device.as_ref())?)));
    shown.place("found", found(results));
    shown.place("table", table(results));
    shown.place("threads", threads(results));
    shown.place("planned", PLANNED.to_string());
    shown
        .place("plan", plans().map(|(size, plan)| planned::rows(size, &plan)).collect::<Vec<_>>().join("\n"));
    let limits =
        plans().map(|(size, plan)| planned::words(size, &plan, results)).collect::<Vec<_>>().join("\n");
    let device_words = device.as_ref().map_or_else(String::new, Device::words);
    shown.place("limits", format!("{limits}\n\n{device_words}"));
    shown.place("simulated", planned::simulated(results, device.as_ref()));
    for size in &SIZES {
        let target = format!("{}: last half, {PLANNED} threads beside 1", size.label);
        shown.targets.push(Target::at_least(target, TIMES_MIN, "x", size.times(results, PLANNED)));
        shown.plot(size.plan, planned::plot(size.plan(results, device.as_ref()).as_ref())?);
    }
    shown.plot("steady-workers", rates(results)?);
    let brief = plans().filter_map(|(size, plan)| {
        let (rate, limit) = plan.least(Writing::Beside, CORES[CORES.len() - 1]);
        let times = size.times(results, PLANNED)?;
        let (rate, limit) = (metric(rate), limit.name());
        Some(format!("{} {} times ({rate} a second, limit: {limit})", size.label, short(times)))
    });
    let brief: Vec<String> = brief.collect();
    if !brief.is_empty() {
        shown.brief = Some(format!(
            "**More threads**: {PLANNED} that compact, beside 1, take over the last half of a load (in brackets a \
             calculation for several writers on 16 cores): {}.",
            brief.join("; ")
        ));
    }
    Ok(shown)
}

impl Size {
    /// What the planner's forecast of the first half is called.
    fn half(&self) -> String {
        format!("{}-half", self.workload)
    }

    fn run(&self, threads: u16) -> String {
        format!("{}-{threads}", self.workload)
    }

    fn of(&self, results: &Results, threads: u16, pointer: &str) -> Option<f64> {
        results.median(FOREBAY, Phase(&self.run(threads), "load"), pointer)
    }

    /// The last half of each round, the slowest first.
    fn halves(&self, results: &Results, threads: u16) -> Vec<Moment> {
        let workload = self.run(threads);
        let curves = results.lines(FOREBAY, Phase(&workload, "load")).filter_map(Curve::of);
        let mut halves: Vec<Moment> =
            curves.filter_map(|curve| curve.last_half(curve.end().records)).collect();
        halves.sort_by(|one, other| one.rate().total_cmp(&other.rate()));
        halves
    }

    /// The one in the middle.
    pub(super) fn half_of(&self, results: &Results, threads: u16) -> Option<Moment> {
        let halves = self.halves(results, threads);
        halves.get(halves.len() / 2).copied()
    }

    pub(super) fn rates(&self, results: &Results, threads: u16) -> Option<Spread> {
        Spread::of(self.halves(results, threads).iter().map(Moment::rate).collect())
    }

    /// The rate over the last half, by that of one thread.
    fn times(&self, results: &Results, threads: u16) -> Option<f64> {
        Some(self.rates(results, threads)?.median / self.rates(results, THREADS[0])?.median)
    }

    fn plan(&self, results: &Results, device: Option<&Device>) -> Option<Plan> {
        let half = self.half_of(results, PLANNED)?;
        Plan::of(&half, device.map(|device| device.write_bytes.median))
    }

    /// What the planner says a record of the last half writes, the log included, and reads.
    pub(super) fn simulated(&self, results: &Results) -> Option<(f64, f64)> {
        let of = |workload: &str, fields: &[&str]| -> Option<f64> {
            let line = results
                .others
                .iter()
                .find(|line| line["type"] == "simulated" && line["workload"] == workload)?;
            fields.iter().map(|field| line[*field].as_f64()).sum()
        };
        let half = self.half();
        let last = |fields: &[&str]| Some(of(self.workload, fields)? - of(&half, fields)?);
        let records = last(&["live_bytes"])? / self.record_bytes as f64;
        let written = last(&["log_bytes", "table_bytes_written"])?;
        Some((written / records, last(&["table_bytes_read"])? / records))
    }
}

fn found(results: &Results) -> String {
    let sentence = |size: &Size| {
        let beside = |threads: u16| {
            let (times, rate) = (size.times(results, threads)?, size.rates(results, threads)?.median);
            Some(format!("{} with {threads} ({} a second)", short(times), metric(rate)))
        };
        let beside: Vec<String> = THREADS[1..].iter().filter_map(|threads| beside(*threads)).collect();
        let one = size.rates(results, THREADS[0])?.median;
        Some(format!(
            "- {}: {} records a second over the last half with one thread that compacts; times that: {}.",
            size.label,
            metric(one),
            beside.join(", ")
        ))
    };
    SIZES.iter().filter_map(sentence).collect::<Vec<_>>().join("\n")
}

/// Each size with each number of threads.
fn all() -> impl Iterator<Item = (&'static Size, u16)> {
    SIZES.iter().flat_map(|size| THREADS.map(|threads| (size, threads)))
}

fn label(size: &Size, threads: u16) -> String {
    format!("{}, {threads} thread{}", size.label, if threads == 1 { "" } else { "s" })
}

fn table(results: &Results) -> String {
    let mut table = Table::new(&[
        "records, threads that compact",
        "rounds",
        "records/s, whole load",
        "over the last half",
        "least - most",
        "beside 1 thread",
        "slowest second, records",
        "of the machine",
        "all processes",
        "written B a record",
        "read B a record",
    ]);
    for (size, threads) in all() {
        let (Some(half), Some(rates)) = (size.half_of(results, threads), size.rates(results, threads)) else {
            continue;
        };
        let of = |pointer: &str| size.of(results, threads, pointer);
        let times = size.times(results, threads).filter(|_| threads != THREADS[0]);
        table.row([
            label(size, threads),
            results.rounds(FOREBAY, Phase(&size.run(threads), "load")).to_string(),
            cell(of("/operations_per_second")),
            short(rates.median),
            format!("{} - {}", short(rates.min), short(rates.max)),
            times.map_or_else(String::new, |times| format!("{}x", short(times))),
            cell(of("/slowest_second_operations")),
            percent(of("/processor_share")),
            percent(of("/machine_busy_share")),
            short(half.record_write_bytes()),
            short(half.record_read_bytes()),
        ]);
    }
    table.finish()
}

/// Processor time by kind of thread.
fn threads(results: &Results) -> String {
    let mut table = Table::new(&[
        "CPU ns a record, last half",
        "writer",
        "of that making records",
        "sorter",
        "flusher",
        "compactors",
        "housekeeper",
        "helpers",
        "others",
        "in all",
    ]);
    for (size, threads) in all() {
        let half = size.half_of(results, threads);
        let Some(nanoseconds) = half.and_then(|half| half.thread_nanoseconds()) else { continue };
        let of = |pointer: &str| size.of(results, threads, pointer);
        let made = of("/generator_cpu_seconds").zip(of("/operations"));
        let [writers, rest @ ..] = nanoseconds;
        let mut cells = vec![label(size, threads), short(writers)];
        cells.push(cell(made.map(|(seconds, records)| seconds * 1e9 / records)));
        cells.extend(rest.map(short));
        cells.push(short(nanoseconds.iter().sum()));
        debug_assert_eq!(cells.len(), KINDS.len() + 3, "a cell a kind");
        table.row(cells);
    }
    table.finish()
}

fn rates(results: &Results) -> Result<String, String> {
    let groups = SIZES.map(|size| format!("records of {}", size.label));
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    let series = THREADS.map(|threads| {
        let marks = SIZES.iter().map(|size| size.rates(results, threads).map(Mark::from)).collect();
        (format!("{threads} that compact"), marks)
    });
    plot::bars("records a second over a load's last half", &groups, &series)
}
