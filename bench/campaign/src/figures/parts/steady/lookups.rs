//! Lookups from an empty page cache: right behind the load, and after a rest.

use super::sizes::{Contender, SIZES, Size};
use crate::figures::plot::{self, Mark};
use crate::figures::results::{Phase, Results};
use crate::figures::table::{Table, cell};

/// Phases, and what is looked up in them.
pub(super) const GETS: [(&str, &str); 4] = [
    ("get", "present, no rest"),
    ("get-2", "absent, no rest"),
    ("get-3", "present, rested"),
    ("get-4", "absent, rested"),
];

pub(super) fn tables(results: &Results) -> String {
    SIZES.iter().map(|size| format!("\n{}: \n\n{}", size.label, table(size, results))).collect()
}

fn table(size: &Size, results: &Results) -> String {
    let mut table = Table::new(&[
        "engine, keys",
        "gets/s",
        "p50, us",
        "p95, us",
        "p99, us",
        "engine's reads a get",
        "device's reads a get",
        "CPU us a get",
        "lists on a path, at the end",
        "filters, search B/key",
    ]);
    for (phase, what) in GETS {
        for one in size.contenders() {
            if results.rounds(one.engine, Phase(&one.workload, phase)) == 0 {
                continue;
            }
            let of = |pointer: &str| cell(one.of(results, phase, pointer));
            table.row([
                format!("{}, {what}", one.label),
                of("/operations_per_second"),
                of("/latency_us/p50"),
                of("/latency_us/p95"),
                of("/latency_us/p99"),
                of("/device_reads_per_get"),
                of("/block_reads_per_get"),
                of("/cpu_seconds_per_million"),
                of("/lists_per_path"),
                of("/index_memory_bytes_per_key"),
            ]);
        }
    }
    table.finish()
}

/// Gets a second of one size.
pub(super) fn plot(size: &Size, results: &Results) -> Result<String, String> {
    let groups = GETS.map(|(_, what)| what);
    let series: Vec<(String, Vec<Option<Mark>>)> = size
        .contenders()
        .into_iter()
        .map(|one| {
            let marks =
                GETS.map(|(phase, _)| results.rates(one.engine, Phase(&one.workload, phase)).map(Mark::from));
            (one.label, marks.to_vec())
        })
        .collect();
    plot::bars(&format!("gets a second, records of {}", size.label), &groups, &series)
}

/// How many times as many a second as the best rival's.
pub(super) fn times(results: &Results, size: &Size, phase: &str) -> Option<(f64, String)> {
    let rate = |one: &Contender| one.of(results, phase, "/operations_per_second");
    let all = size.contenders();
    let own = rate(all.first()?)?;
    let best =
        all.iter().filter(|one| one.is_rival()).filter_map(|one| Some((rate(one)?, one.label.clone())));
    let (best, label) = best.max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some((own / best, label))
}
