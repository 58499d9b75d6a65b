//! What tables in key order are measured by: growth, removal in the midst, scans of everything, a change of layout in
//! use, and looks at the engine meanwhile.

use ::forebay_env::RealClock;

use super::map::{Lie, Map};
use super::run_all;
use crate::report::Phase;
use crate::workload::Workload;
use crate::{Failure, Forebay, Kind};

fn workload(keys: &str, phases: &str) -> Workload {
    let text = format!(
        "name = 'ordered-{keys}'\ndescription = 'd'\nkey_bytes = 16\nvalue_bytes = 48\nrecords = 20_000\nbatch = 100\n\
         ordered = true\nkeys = '{keys}'\nsamples = 4\nphases = [{phases}]\n[forebay]\nlayout = 'no-merge'\n"
    );
    toml::from_str(&text).unwrap()
}

fn run(kind: &dyn Kind, keys: &str, phases: &str) -> Result<Vec<Phase>, Failure> {
    run_all(kind, workload(keys, phases), &RealClock::new())
}

const REMOVAL: &str = "'load', 'scan', { delete = { share = 0.75 } }, 'scan', 'drain', 'scan'";

#[test]
fn a_load_is_looked_at_as_often_as_it_asks() {
    let phases = run(&Forebay, "random", "'load', 'drain'").unwrap();
    let samples = &phases[0].samples;
    let records: Vec<u64> = samples.iter().map(|sample| sample.records).collect();
    assert_eq!(records.len(), 4);
    assert!(records.is_sorted() && records.last() == Some(&20_000), "{records:?}");
    assert!(samples.iter().map(|sample| sample.table_bytes_written).is_sorted(), "{samples:?}");
    assert!(samples.iter().all(|sample| sample.seconds <= phases[0].seconds && sample.disk_bytes > 0));
    assert!(samples[3].table_bytes_written > Some(500_000), "{samples:?}");
    assert_eq!(phases[1].samples.len(), 1);
    assert!(phases[1].samples[0].table_bytes_written >= samples[3].table_bytes_written, "{phases:?}");
}

#[test]
fn records_that_are_written_again_are_looked_at_and_do_not_count_twice() {
    let phases = run(&Forebay, "random", "'load', { overwrite = { operations_per_record = 2.0 } }").unwrap();
    let records: Vec<u64> = phases[1].samples.iter().map(|sample| sample.records).collect();
    assert_eq!(records, [20_000; 4]);
}

#[test]
fn growth_is_read_at_every_size() {
    for kind in [&Forebay as &dyn Kind, &Map::new(Lie::None)] {
        let phases = run(kind, "random", "{ grow = { steps = 4, ranges = 10, length = 10 } }").unwrap();
        let [grow] = &phases[..] else { panic!("{phases:?}") };
        let records: Vec<u64> = grow.samples.iter().map(|sample| sample.records).collect();
        assert_eq!(records, [5000, 10_000, 15_000, 20_000]);
        assert!(grow.samples.iter().all(|sample| sample.range_us > Some(0.0)), "{grow:?}");
        if kind.name() == "forebay" {
            let lists: Vec<f64> = grow.samples.iter().filter_map(|sample| sample.lists_per_path).collect();
            assert!(
                lists.is_sorted() && lists[3] >= 4.0,
                "without merges each drain leaves a run: {lists:?}"
            );
        }
    }
    let failure = run(&Map::new(Lie::Skips), "random", "{ grow = { steps = 2, ranges = 3, length = 10 } }");
    assert!(failure.unwrap_err().to_string().contains("found nothing"));
}

#[test]
fn scans_give_what_is_left_of_a_removal_in_the_midst() {
    for kind in [&Forebay as &dyn Kind, &Map::new(Lie::None)] {
        let phases = run(kind, "ascending", REMOVAL).unwrap();
        let scans: Vec<u64> = phases
            .iter()
            .filter(|phase| phase.phase.starts_with("scan"))
            .map(|phase| phase.operations)
            .collect();
        assert_eq!(scans, [20_000, 5000, 5000]);
        assert_eq!((phases[2].operations, phases[2].user_bytes), (15_000, 15_000 * 16));
        assert_eq!(phases[2].records, 5000);
    }
}

#[test]
fn what_is_due_by_time_can_be_waited_for() {
    let mut waits =
        workload("ascending", "'load', { delete = { share = 0.75 } }, { wait = { seconds = 0.05 } }, 'scan'");
    waits.forebay.max_space_amplification = Some(1.5);
    waits.forebay.reclaim_interval_seconds = Some(10);
    let phases = run_all(&Forebay, waits, &RealClock::new()).unwrap();
    let names: Vec<&str> = phases.iter().map(|phase| phase.phase.as_str()).collect();
    assert_eq!(names, ["load", "delete", "wait", "scan"]);
    assert!(phases[2].operations == 0 && phases[2].seconds >= 0.05, "{:?}", phases[2]);
    assert_eq!(phases[3].operations, 5000);
}

#[test]
fn a_scan_misses_no_lie() {
    for lie in [Lie::Skips, Lie::Loses, Lie::KeepsDeleted] {
        let failure = run(&Map::new(lie), "ascending", REMOVAL).unwrap_err().to_string();
        assert!(failure.starts_with("wrong answer: "), "{lie:?}: {failure}");
    }
}

#[test]
fn a_layout_changes_beside_writes_and_reads() {
    let switch = "{ open_loop = { layout = 'leveling', records_per_second = 1e6, arrivals = 'fixed', gets_per_batch = 1, \
                  sample_seconds = 0.0, operations_per_record = 1.0 } }";
    let phases = run(&Forebay, "random", &format!("'load', {switch}, 'drain', 'scan'")).unwrap();
    let names: Vec<&str> = phases.iter().map(|phase| phase.phase.as_str()).collect();
    assert_eq!(names, ["load", "switch", "drain", "scan"]);
    assert_eq!(phases[1].gets.unwrap().count, 200);
    assert!(phases[1].samples.len() > 100, "{:?}", phases[1].samples);
    assert!(phases[2].lists_per_path < Some(10.0), "{:?}", phases[2]);
    assert!(phases[1].records == 20_000 && phases[3].operations == 20_000);
    assert!(run(&Map::new(Lie::None), "random", &format!("'load', {switch}")).is_err());
}

#[test]
fn an_overwrite_ends_in_time() {
    let text = "'load', { overwrite = { operations_per_record = 1e6, seconds_max = 0.05 } }, 'scan'";
    let phases = run(&Map::new(Lie::None), "random", text).unwrap();
    assert!((1..1_000_000_000).contains(&phases[1].operations), "{:?}", phases[1]);
}

#[test]
fn an_open_loop_ends_in_time() {
    let text = "'load', { open_loop = { records_per_second = 1e4, arrivals = 'fixed', seconds_max = 0.05, \
                operations_per_record = 9.0 } }";
    let phases = run(&Map::new(Lie::None), "random", text).unwrap();
    assert!(phases[1].operations < 20_000, "{:?}", phases[1]);
}
