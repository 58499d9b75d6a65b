//! What is advised for workloads whose answer is known, and what is refused.

use super::*;

/// 5 million records of 64 bytes: 20 times the usual memory.
fn usual() -> Workload {
    Workload { key_bytes: 16, value_bytes: 48, keys: 5_000_000, ..Workload::default() }
}

fn small() -> Limits {
    Limits { memory_bytes: 16 << 20, ..Limits::default() }
}

fn best(workload: &Workload, limits: &Limits) -> Advice {
    advise(workload, limits).unwrap().remove(0)
}

#[test]
fn pure_writes_are_hardly_merged() {
    let workload = Workload { writes_per_second: 1e5, ..usual() };
    let advice = advise(&workload, &small()).unwrap();
    assert!(advice[0].prices.write_amplification < 3.0, "{:?}", advice[0]);
    let costs: Vec<f64> = advice.iter().map(|one| one.prices.busy_share).collect();
    assert!(costs.is_sorted(), "{costs:?}");
    let place = |name: &str| advice.iter().position(|one| one.layout.to_string() == name).unwrap();
    assert!(place("tiering:t=10") < place("leveling:t=10"));
    assert!(place("wb-tree") < place("leveling:t=10"));
    assert_eq!(advice.len(), candidates(&workload).len());
}

#[test]
fn who_only_reads_points_gets_one_read_a_get() {
    let workload = Workload { gets_per_second: 1e4, ..usual() };
    let advice = best(&workload, &small());
    assert!(advice.prices.device_reads_per_get < 1.2, "{advice:?}");
    assert!(advice.prices.lists_per_path < 4.0, "{advice:?}");
}

#[test]
fn who_scans_gets_few_lists_in_key_order() {
    let workload = Workload { writes_per_second: 100.0, ranges_per_second: 1e4, ..usual() };
    let advice = advise(&workload, &small()).unwrap();
    assert!(advice.iter().all(|one| one.layout.is_ordered()), "wb-tree has no ranges");
    assert!(advice[0].prices.lists_per_path <= 4.0, "{:?}", advice[0]);
    let last = advice.last().unwrap();
    assert_eq!(last.layout, Layout::no_merge());
    assert!(last.prices.range_microseconds > 3.0 * advice[0].prices.range_microseconds);
}

#[test]
fn order_can_be_asked_for_without_ranges() {
    let workload = Workload { writes_per_second: 1e5, ordered: true, ..usual() };
    assert!(best(&workload, &small()).layout.is_ordered());
    let error = price_of(Layout::wb_tree(), None, &workload, &small()).unwrap_err();
    assert!(error.to_string().contains("wb-tree has no ranges"), "{error}");
}

#[test]
fn huge_values_that_are_written_stand_apart() {
    let workload = Workload { value_bytes: 4000, keys: 200_000, rewrites: 3.0, ..usual() };
    let written = Workload { writes_per_second: 1e4, gets_per_second: 100.0, ..workload };
    let advice = best(&written, &small());
    assert!(advice.values_apart.is_some() && advice.prices.write_amplification < 1.5, "{advice:?}");
    let scanned = Workload { value_bytes: 200, writes_per_second: 10.0, ranges_per_second: 1e4, ..workload };
    assert_eq!(best(&scanned, &small()).values_apart, None, "a range would read each value by itself");
    let short = Workload { writes_per_second: 1e4, ..usual() };
    assert!(advise(&short, &small()).unwrap().iter().all(|one| one.values_apart.is_none()));
}

#[test]
fn less_memory_costs_more() {
    let workload = Workload { writes_per_second: 1e5, gets_per_second: 1e4, ..usual() };
    let of = |memory_bytes| best(&workload, &Limits { memory_bytes, ..small() }).prices;
    assert!(of(8 << 20).busy_share > of(128 << 20).busy_share);
    assert!(of(8 << 20).device_reads_per_get > of(128 << 20).device_reads_per_get);
}

#[test]
fn counters_are_merged_where_they_are_read() {
    let counts = Workload { rewrites: 9.0, writes: Writes::Operands, writes_per_second: 1e5, ..usual() };
    let advice = advise(&Workload { gets_per_second: 2e4, ..counts }, &small()).unwrap();
    assert!(advice.iter().all(|one| one.values_apart.is_none()));
    let reads = |of: &Workload| {
        price_of(Layout::tiering(10), None, of, &small()).unwrap().prices.device_reads_per_get
    };
    let puts = Workload { writes: Writes::Puts, gets_per_second: 2e4, ..counts };
    let adds = Workload { gets_per_second: 2e4, ..counts };
    assert!(reads(&adds) > reads(&puts), "all operands of a key are read");
}

#[test]
fn a_strict_limit_of_space_leaves_layouts_of_few_runs() {
    let workload = Workload { rewrites: 8.0, writes_per_second: 1e5, ..usual() };
    let free = best(&workload, &small());
    let strict = Limits { space_amplification_max: Some(1.7), ..small() };
    let advice = advise(&workload, &strict).unwrap();
    let name = advice[0].layout.to_string();
    let lean = ["leveling", "jungle", "geometric:p"].iter().any(|lean| name.starts_with(lean));
    assert!(lean, "{:?}", advice[0]);
    assert!(advice.iter().any(|one| one.layout == Layout::leveling(10) && one.breaks.is_empty()));
    assert!(
        free.prices.space_amplification_peak > 1.7 && free.prices.busy_share < advice[0].prices.busy_share
    );
    let broken = advice.iter().find(|one| one.layout == free.layout).unwrap();
    assert!(broken.breaks[0].starts_with("space_amplification_max 1.700"), "{:?}", broken.breaks);
}

#[test]
fn limits_out_of_reach_are_named() {
    let workload = Workload { rewrites: 4.0, writes_per_second: 1e5, ..usual() };
    let refused = |limits: Limits, words: &[&str]| {
        let error = advise(&workload, &limits).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    let space = Limits { space_amplification_max: Some(1.01), ..small() };
    refused(space, &["no layout keeps space_amplification_max 1.010", "comes nearest with"]);
    refused(Limits { disk_bytes: Some(1 << 20), ..small() }, &["disk_bytes 1048576"]);
    refused(Limits { memory_bytes: 10, ..small() }, &["memory_limit"]);
    refused(
        Limits { space_amplification_max: Some(f64::NAN), ..small() },
        &["space_amplification_max is NaN"],
    );
    let machine = Machine { cores: 0.0, ..Machine::default() };
    refused(Limits { machine, ..small() }, &["cores is 0"]);
}

#[test]
fn workloads_that_make_no_sense_are_refused() {
    let refused = |workload: Workload, word: &str| {
        let error = advise(&workload, &small()).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    };
    refused(usual(), "nothing is written or read");
    let busy = Workload { writes_per_second: 1.0, ..usual() };
    refused(Workload { rewrites: -1.0, ..busy }, "rewrites is -1");
    refused(Workload { absent_share: 1.5, ..busy }, "absent_share is 1.5");
    refused(Workload { keys: 0, ..busy }, "at least one record");
    refused(Workload { gets_per_second: f64::INFINITY, ..busy }, "gets_per_second is inf");
}

#[test]
fn a_switch_is_weighed_by_what_it_saves() {
    let workload = Workload { writes_per_second: 1e5, ..usual() };
    let then = best(&workload, &small());
    let of = |layout| switch(layout, None, &then, &workload, &small()).unwrap();
    let dear = of(Layout::leveling(10));
    let back = dear.paid_back_seconds.unwrap();
    let saved = dear.now.prices.busy_share - then.prices.busy_share;
    assert!(dear.seconds > 0.0 && (back * saved / dear.seconds - 1.0).abs() < 1e-9, "{dear:?}");
    let same = switch(then.layout, then.values_apart, &then, &workload, &small()).unwrap();
    assert_eq!((same.seconds, same.paid_back_seconds), (0.0, None));
}
