//! What `memory_limit` promises, and what processes take.

use serde_json::Value;

use crate::figures::part::{Part, Shown};
use crate::figures::results::Results;
use crate::figures::table::{Table, bytes};
use crate::figures::target::Target;

use super::MEMORY;

pub(super) const PART: Part = Part {
    name: MEMORY,
    title: "Memory under its limit",
    text: include_str!("memory.txt"),
    runs: Vec::new,
    show,
};

/// Scenarios and their phases, and how the page calls them.
const PHASES: [(&str, &str, &str); 8] = [
    ("life", "load", "load"),
    ("life", "recover", "recovery"),
    ("life", "get", "gets"),
    ("life", "scan", "scans"),
    ("runs", "runs", "600 runs"),
    ("runs", "get", "gets in them"),
    ("runs", "scan", "scans of them"),
    ("snapshots", "snapshots", "10,000 snapshots"),
];

/// What was asked of one process.
type Row<'a> = (u64, &'a str, u64);

fn show(results: &Results) -> Result<Shown, String> {
    let lines: Vec<&Value> = results.others.iter().filter(|line| line["type"] == "memory").collect();
    let mut head = vec!["layout", "limit", "records", "promised"];
    head.extend(PHASES.map(|(.., name)| name));
    let (mut table, mut shown) = (Table::new(&head), Shown::default());
    for row @ (limit, layout, records) in rows(&lines) {
        let of_row: Vec<&Value> = lines.iter().copied().filter(|line| self::row(line) == row).collect();
        let promised = of_row.iter().find_map(|line| line["promised_bytes"].as_u64()).unwrap_or(0);
        let mut cells = vec![layout.into(), bytes(limit), format!("{} M", records / 1_000_000)];
        cells.push((promised >> 20).to_string());
        cells.extend(PHASES.map(|(scenario, phase, _)| {
            let is = |line: &&&Value| line["scenario"] == scenario && line["phase"] == phase;
            of_row.iter().find(is).map_or_else(String::new, |line| peak(line))
        }));
        table.row(cells);
        // A phase that failed has no peak, and does not count as one that holds.
        let peaks = of_row.iter().map(|line| line["peak_bytes"].as_u64().filter(|&peak| peak > 0));
        let worst = peaks.collect::<Option<Vec<u64>>>().and_then(|peaks| peaks.into_iter().max());
        shown.targets.push(Target::at_most(
            format!("{layout}: the most anonymous memory under a limit of {}", bytes(limit)),
            (promised >> 20) as f64,
            " MiB",
            worst.map(|worst| worst.div_ceil(1 << 20) as f64),
        ));
    }
    shown.place("table", table.finish());
    Ok(shown)
}

fn row(line: &Value) -> Row<'_> {
    let number = |name: &str| line[name].as_u64().unwrap_or(0);
    (number("limit_bytes"), line["layout"].as_str().unwrap_or_default(), number("records"))
}

/// In the order in which they were measured.
fn rows<'a>(lines: &[&'a Value]) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for line in lines {
        let row = row(line);
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    rows
}

/// In MiB; in bold where the promise is broken.
fn peak(line: &Value) -> String {
    let (peak, promised) = (line["peak_bytes"].as_u64(), line["promised_bytes"].as_u64());
    match peak.unwrap_or(0) {
        0 => format!("**{}**", line["verdict"].as_str().unwrap_or_default()),
        most if Some(most) > promised => format!("**{}**", most.div_ceil(1 << 20)),
        most => most.div_ceil(1 << 20).to_string(),
    }
}
