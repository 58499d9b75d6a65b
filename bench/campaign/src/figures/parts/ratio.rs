//! Fast splits for each slow one (figure 10 of the WB paper).

use crate::figures::part::{FOREBAY, Part, Run, Shown};
use crate::figures::plot::{self, Axis, Line};
use crate::figures::results::{Phase, Results};
use crate::figures::table::{Table, cell};

pub(super) const PART: Part =
    Part { name: "ratio", title: "Fast splits to a slow one", text: include_str!("ratio.txt"), runs, show };

const RATIOS: [u64; 6] = [0, 1, 2, 4, 8, 16];

fn workload(ratio: u64) -> String {
    format!("figures-shapes-ratio-{ratio}")
}

fn runs() -> Vec<Run> {
    let run = Run::new(include_str!("../workloads/figures-shapes.toml"), 4_000_000).engines(&[FOREBAY]);
    RATIOS.map(|ratio| run.clone().shaped(&format!("ratio-{ratio}"), &[("fast_per_slow", ratio)])).into()
}

fn show(results: &Results) -> Result<Shown, String> {
    let mut shown = Shown::default();
    let of = |ratio, phase, pointer: &str| results.median(FOREBAY, Phase(&workload(ratio), phase), pointer);
    let mut table = Table::new(&[
        "fast splits to a slow one",
        "records/s",
        "write amplification",
        "drain, s",
        "CPU s/million",
        "lists on a path",
    ]);
    for ratio in RATIOS {
        table.row([
            ratio.to_string(),
            cell(of(ratio, "load", "/operations_per_second")),
            cell(of(ratio, "drain", "/write_amplification_total")),
            cell(of(ratio, "drain", "/seconds")),
            cell(of(ratio, "load", "/cpu_seconds_per_million")),
            cell(of(ratio, "drain", "/lists_per_path")),
        ]);
    }
    shown.place("table", table.finish());
    let change = |phase, pointer: &str| {
        let (none, most) = (of(0, phase, pointer), of(16, phase, pointer));
        cell(none.zip(most).map(|(none, most)| most / none))
    };
    shown.place(
        "found",
        format!(
            "From no fast splits to 16 the rate changes by a factor of {}, write amplification by {}, lists on a path \
             by {}.",
            change("load", "/operations_per_second"),
            change("drain", "/write_amplification_total"),
            change("drain", "/lists_per_path")
        ),
    );
    let line = |name: &str, phase, pointer: &str| {
        let points = RATIOS.iter().filter_map(|ratio| Some((*ratio as f64, of(*ratio, phase, pointer)?)));
        Line { name: name.into(), points: points.collect() }
    };
    let rates = [line("records a second", "load", "/operations_per_second")];
    let across = || Axis::linear("fast splits to a slow one");
    shown.plot("ratio-rate", plot::lines([across(), Axis::linear("records a second")], &rates)?);
    let costs = [line("write amplification", "drain", "/write_amplification_total")];
    shown.plot("ratio-written", plot::lines([across(), Axis::linear("write amplification")], &costs)?);
    Ok(shown)
}
