//! What becomes of the rate when data grows and memory does not.

use crate::figures::part::{FOREBAY, Part, Run, Shown};
use crate::figures::plot::{self, Axis, Line};
use crate::figures::results::{Phase, Results};
use crate::figures::table::{Table, bytes, cell, short};
use crate::figures::target::Target;

pub(super) const PART: Part =
    Part { name: "growth", title: "Growth", text: include_str!("growth.txt"), runs, show };

const RECORDS: u64 = 8_000_000;
const MEMORY_BYTES: u64 = 32 << 20;
const STEPS: [(u64, &str); 3] =
    [(1, "figures-load-16-1x"), (3, "figures-load-16-3x"), (10, "figures-load-16-10x")];

fn runs() -> Vec<Run> {
    let load = include_str!("../workloads/figures-load-16.toml");
    let run = |(times, _): (u64, &str)| {
        let run = Run::new(load, RECORDS * times).memory(MEMORY_BYTES).engines(&[FOREBAY]);
        run.shaped(&format!("{times}x"), &[])
    };
    STEPS.map(run).into()
}

fn show(results: &Results) -> Result<Shown, String> {
    let mut shown = Shown::default();
    let rate = |workload| results.rate(FOREBAY, Phase(workload, "load"));
    let (first, last) = (rate(STEPS[0].1), rate(STEPS[2].1));
    let kept = first.zip(last).map(|(first, last)| last / first);
    shown.targets.push(Target::at_least("rate at ten times the data, of that at one", 0.7, "", kept));
    let mut table = Table::new(&[
        "data",
        "records",
        "memory",
        "records/s",
        "least - most",
        "of the first",
        "write amplification",
        "drain, s",
        "lists on a path",
        "filters, search B/key",
        "space amplification",
    ]);
    for (times, workload) in STEPS {
        let of = |phase, pointer: &str| results.median(FOREBAY, Phase(workload, phase), pointer);
        let Some(spread) = results.spread(FOREBAY, Phase(workload, "load"), "/operations_per_second") else {
            continue;
        };
        table.row([
            format!("{times}x"),
            cell(of("load", "/operations")),
            bytes(results.memory_bytes(FOREBAY, workload).unwrap_or(0)),
            short(spread.median),
            format!("{} - {}", short(spread.min), short(spread.max)),
            cell(first.map(|first| spread.median / first)),
            cell(of("drain", "/write_amplification_total")),
            cell(of("drain", "/seconds")),
            cell(of("drain", "/lists_per_path")),
            cell(of("drain", "/index_memory_bytes_per_key")),
            cell(of("drain", "/space_amplification")),
        ]);
    }
    shown.place("table", table.finish());
    let amplification =
        |workload| cell(results.median(FOREBAY, Phase(workload, "drain"), "/write_amplification_total"));
    shown.place(
        "found",
        format!(
            "With ten times the data the rate is {} of what it was, and a byte is written {} times instead of {}.",
            cell(kept),
            amplification(STEPS[2].1),
            amplification(STEPS[0].1)
        ),
    );
    let line = |name: &str, phase, pointer| {
        let value = |(times, workload)| {
            Some((times as f64, results.median(FOREBAY, Phase(workload, phase), pointer)?))
        };
        Line { name: name.into(), points: STEPS.into_iter().filter_map(value).collect() }
    };
    let rates = [line("records a second", "load", "/operations_per_second")];
    shown.plot(
        "growth-rate",
        plot::lines([Axis::log("times the data"), Axis::log("records a second")], &rates)?,
    );
    let costs = [
        line("write amplification", "drain", "/write_amplification_total"),
        line("lists on a path", "drain", "/lists_per_path"),
    ];
    shown.plot("growth-cost", plot::panels("times the data", &costs)?);
    Ok(shown)
}
