//! An append to the log, through the kernel's cache and directly.

use crate::figures::part::{Part, Shown};
use crate::figures::results::Results;
use crate::figures::table::{Table, cell};

use super::LOG;

pub(super) const PART: Part = Part {
    name: LOG,
    title: "Appending to the log",
    text: include_str!("log_append.txt"),
    runs: Vec::new,
    show,
};

fn show(results: &Results) -> Result<Shown, String> {
    let mut table = Table::new(&["way", "p50, us", "p99, us"]);
    for line in results.others.iter().filter(|line| line["type"] == "log") {
        for (name, way) in [("through the kernel's cache", &line["buffered"]), ("direct", &line["direct"])] {
            table.row([name.into(), cell(way["p50"].as_f64()), cell(way["p99"].as_f64())]);
        }
    }
    let mut shown = Shown::default();
    shown.place("table", table.finish());
    Ok(shown)
}
