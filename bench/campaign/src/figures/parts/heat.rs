//! Node sizes and fan-outs (figures 9a and 11 of the WB paper).

use crate::figures::part::{FOREBAY, Part, Run, Shown};
use crate::figures::plot::{self, Heat};
use crate::figures::results::{Phase, Results};
use crate::figures::table::bytes;

pub(super) const PART: Part =
    Part { name: "heat", title: "Node size and fan-out", text: include_str!("heat.txt"), runs, show };

const NODE_BYTES: [u64; 5] = [256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20];
const FAN_OUTS: [u64; 5] = [4, 10, 32, 100, 256];

/// A map: its name, what it shows, whether more or less of it is better, phase, place in the line, factor.
type Map = (&'static str, &'static str, &'static str, &'static str, &'static str, f64);

/// By processor time instead of the clock: other work on the machine moves it less.
const PER_CORE: &str = "/operations_per_core_second";

const MAPS: [Map; 7] = [
    ("heat-insert", "inserts, M records/s", "more", "load", "/operations_per_second", 1e-6),
    (
        "heat-written",
        "write amplification with the drain",
        "less",
        "drain",
        "/write_amplification_total",
        1.0,
    ),
    ("heat-get", "gets a second", "more", "get", "/operations_per_second", 1.0),
    ("heat-insert-core", "inserts per core-second, M", "more", "load", PER_CORE, 1e-6),
    ("heat-get-core", "gets per core-second", "more", "get", PER_CORE, 1.0),
    ("heat-p95", "get p95, us", "less", "get", "/latency_us/p95", 1.0),
    ("heat-reads", "device reads a get", "less", "get", "/device_reads_per_get", 1.0),
];

fn suffix(node_bytes: u64, fan_out: u64) -> String {
    format!("{}k-{fan_out}", node_bytes >> 10)
}

fn runs() -> Vec<Run> {
    let run = Run::new(include_str!("../workloads/figures-shapes-get.toml"), 3_000_000);
    let run = run.engines(&[FOREBAY]).rounds(1);
    let cell = |node_bytes, fan_out| {
        run.clone().shaped(&suffix(node_bytes, fan_out), &[("node_bytes", node_bytes), ("fan_out", fan_out)])
    };
    NODE_BYTES.iter().flat_map(|bytes| FAN_OUTS.iter().map(|fan_out| cell(*bytes, *fan_out))).collect()
}

fn show(results: &Results) -> Result<Shown, String> {
    let mut shown = Shown::default();
    for (name, title, better, phase, pointer, factor) in MAPS {
        let rows =
            NODE_BYTES.map(|bytes| FAN_OUTS.map(|fan_out| value(results, bytes, fan_out, phase, pointer)));
        let values = rows.map(|row| row.map(|value| value.map(|value| value * factor)).to_vec());
        let heat = Heat {
            title,
            note: format!("{better} is better; {}", rounds(results, phase)),
            rows: ("node", NODE_BYTES.iter().map(|size| bytes(*size)).collect()),
            columns: ("fan-out", FAN_OUTS.iter().map(ToString::to_string).collect()),
            values: values.to_vec(),
        };
        shown.plot(name, plot::heat(&heat)?);
    }
    shown.place("found", found(results));
    Ok(shown)
}

/// Of how many runs a cell is.
fn rounds(results: &Results, phase: &str) -> String {
    let of = |bytes: u64, fan_out| {
        results.rounds(FOREBAY, Phase(&format!("figures-shapes-get-{}", suffix(bytes, fan_out)), phase))
    };
    let most = NODE_BYTES.iter().flat_map(|bytes| FAN_OUTS.map(|fan_out| of(*bytes, fan_out))).max();
    match most {
        Some(2..) => format!("medians of up to {} runs", most.unwrap_or_default()),
        _ => "one run a cell".into(),
    }
}

fn value(results: &Results, node_bytes: u64, fan_out: u64, phase: &str, pointer: &str) -> Option<f64> {
    let workload = format!("figures-shapes-get-{}", suffix(node_bytes, fan_out));
    let of = |pointer| results.median(FOREBAY, Phase(&workload, phase), pointer);
    if pointer == PER_CORE { Some(of("/operations")? / of("/cpu_seconds")?) } else { of(pointer) }
}

fn found(results: &Results) -> String {
    let cells = || NODE_BYTES.iter().flat_map(|bytes| FAN_OUTS.iter().map(|fan_out| (*bytes, *fan_out)));
    let best = |phase, pointer: &str| {
        cells()
            .filter_map(|(bytes, fan_out)| {
                Some((value(results, bytes, fan_out, phase, pointer)?, bytes, fan_out))
            })
            .max_by(|left, right| left.0.total_cmp(&right.0))
            .map_or_else(|| "-".into(), |(_, size, fan_out)| format!("{} and {fan_out}", bytes(size)))
    };
    format!(
        "Inserts are fastest with nodes and fan-out of {}, gets with {}.",
        best("load", "/operations_per_second"),
        best("get", "/operations_per_second")
    )
}
