//! Loads that end by time: what is written is there, and what comes behind knows how much that is.

use std::time::Duration;

use ::std::sync::Arc;

use super::arrivals::{Slow, Ticking};
use super::map::{Lie, Map};
use super::run_all;
use crate::workload::Workload;

fn bounded() -> Workload {
    let text = "\
name = 'bounded'
description = 'd'
key_bytes = 8
value_bytes = 8
records = 1_000_000
batch = 1000
load_seconds_max = 0.5
phases = [
    'load',
    { get = { present = 1.0, operations_per_record = 1.0, seconds_max = 0.01 } },
    { open_loop = { steady_share = 0.5, arrivals = 'fixed', operations_per_record = 0.05 } },
    { mixed = { read = 0.5, insert = 0.5, operations_per_record = 1.0, seconds_max = 5.0 } },
]
";
    toml::from_str(text).unwrap()
}

#[test]
fn a_load_ends_by_its_bound_and_leaves_what_it_has() {
    let clock = Arc::new(Ticking::default());
    let put = Duration::from_millis(10);
    let kind = Slow { map: Map::new(Lie::None), clock: Arc::clone(&clock), put, look: Duration::ZERO };
    let mut workload = bounded();
    workload.stretch(2.0);
    let phases = run_all(&kind, workload, &*clock).unwrap();
    let [load, get, open_loop, mixed] = &phases[..] else { panic!("{phases:?}") };
    // A second, and a chunk at most beyond it.
    assert!((100_000..=105_000).contains(&load.operations), "{load:?}");
    assert_eq!(load.records, load.operations);
    assert!((95_000..=100_000).contains(&load.slowest_second_operations.unwrap()), "{load:?}");
    let (first, last) = (load.curve.first().unwrap(), load.curve.last().unwrap());
    assert!((0.1..0.12).contains(&first.seconds) && first.operations == 10_000, "{first:?}");
    assert_eq!((last.operations, last.seconds), (load.operations, load.seconds));
    // Each lookup takes a few looks at the clock: no more than its bound and a group of them.
    assert!((1_000..20_000).contains(&get.operations) && get.curve.is_empty(), "{get:?}");
    assert!((0.02..0.03).contains(&get.seconds), "{get:?}");
    assert_eq!(open_loop.phase, "steady-loop-0.5");
    let rate = open_loop.operations_per_second.unwrap();
    assert!((48_000.0..52_000.0).contains(&rate), "{open_loop:?}");
    // Half of its operations take ten milliseconds each.
    assert!((10.0..13.0).contains(&mixed.seconds), "{mixed:?}");
    assert!(mixed.records > load.records && mixed.records < load.records + 2_000, "{mixed:?}");
}

#[test]
fn a_long_curve_keeps_half_of_its_points() {
    let clock = Arc::new(Ticking::default());
    let put = Duration::from_millis(100);
    let kind = Slow { map: Map::new(Lie::None), clock: Arc::clone(&clock), put, look: Duration::ZERO };
    let mut workload = bounded();
    workload.phases.truncate(1);
    workload.load_seconds_max = Some(100.0);
    let phases = run_all(&kind, workload, &*clock).unwrap();
    let curve = &phases[0].curve;
    assert!((100..=201).contains(&curve.len()), "{}", curve.len());
    let steps: Vec<f64> = curve.windows(2).map(|two| two[1].seconds - two[0].seconds).collect();
    assert!(steps.iter().rev().skip(1).all(|step| (0.7..0.9).contains(step)), "{steps:?}");
}
