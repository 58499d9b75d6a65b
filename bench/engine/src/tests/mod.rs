//! Whole runs, in this process: every embedded workload, engines that lie, and arrivals that do not wait.

mod arrivals;
mod bounds;
mod lies;
mod map;
mod ordered;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use ::forebay_env::{Clock, RealClock};

use crate::host::cache::CacheDrop;
use crate::host::disk;
use crate::plan::{CgroupState, Plan, Role, Tuning};
use crate::report::{Line, Phase};
use crate::workload::{self, Workload};
use crate::{Failure, Forebay, Kind, Program, main, run};

/// Runs a workload from beginning to end, and gives its phases.
fn run_all(kind: &dyn Kind, workload: Workload, clock: &dyn Clock) -> Result<Vec<Phase>, Failure> {
    workload.check().unwrap();
    let dir = folder(&format!("{}-{}", kind.name(), workload.name));
    disk::make_empty(&dir).unwrap();
    let plan = Plan {
        role: Role::Run,
        engine: kind.name().into(),
        workload,
        repetition: 1,
        seed: 7,
        dir: dir.clone(),
        tuning: Tuning { background_threads: 1, filter_bits_per_key: None, direct_io: false },
        // Other tests are on the machine too.
        cache_drop: CacheDrop::Files,
        cgroup: CgroupState::Off,
    };
    let mut lines = Vec::new();
    let mut emit = |line| {
        lines.push(line);
        Ok(())
    };
    let outcome = run::run(&Program { kinds: &[], words: &[] }, kind, &plan, clock, &mut emit);
    disk::remove(&dir).unwrap();
    outcome?;
    let mut lines = lines.into_iter();
    assert!(matches!(lines.next(), Some(Line::Setup(setup)) if setup.engine == kind.name()));
    Ok(lines.map(|line| if let Line::Phase(phase) = line { *phase } else { panic!("{line:?}") }).collect())
}

fn folder(name: &str) -> PathBuf {
    // Tests run workloads of one name beside each other.
    static FOLDERS: AtomicUsize = AtomicUsize::new(0);
    let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("forebay-bench-{}-{name}-{number}", std::process::id()))
}

/// All workloads but the one that needs a second process, with few records.
fn small_workloads() -> impl Iterator<Item = Workload> {
    let is_alone = |workload: &Workload| {
        !workload.phases.iter().any(|phase| matches!(phase, workload::Phase::Reopen(_)))
    };
    workload::embedded().unwrap().into_iter().filter(is_alone).map(|mut workload| {
        workload.records = 3000;
        for phase in &mut workload.phases {
            match phase {
                // Of few records a share is too few operations to meet anything.
                workload::Phase::Mixed(mixed) => mixed.operations_per_record = 1.0,
                workload::Phase::Count(count) => {
                    (count.operations_per_record, count.adds_per_get) = (4.0, 10)
                }
                workload::Phase::Get(get) => get.operations_per_record = 1.0,
                workload::Phase::Range(range) => range.operations_per_record = 0.01,
                workload::Phase::Transact(transact) => transact.among = transact.among.min(500),
                workload::Phase::OpenLoop(open_loop) => {
                    open_loop.records_per_second = open_loop.records_per_second.map(|_| 1e6)
                }
                _ => {}
            }
        }
        workload
    })
}

/// What has to hold of any run's measures.
fn assert_sound(workload: &Workload, phases: &[Phase]) {
    let names: Vec<&str> = phases.iter().map(|phase| phase.phase.as_str()).collect();
    assert_eq!(names, workload.phase_names());
    for phase in phases {
        let Phase { operations, latency_us: latency, .. } = phase;
        assert!(latency.p50 <= latency.p99 && latency.p99 <= latency.p99_9, "{phase:?}");
        assert!(latency.p99_9 <= latency.p99_99 && latency.p99_99 <= latency.max, "{phase:?}");
        assert!(phase.longest_gap_ms <= phase.seconds * 1e3, "{phase:?}");
        assert_eq!(phase.operations_per_second.is_some(), *operations > 0, "{phase:?}");
        assert!(phase.records > 0, "{phase:?}");
    }
}

#[test]
fn every_workload_runs_on_forebay() {
    for workload in small_workloads() {
        let phases = run_all(&Forebay, workload.clone(), &RealClock::new()).unwrap();
        assert_sound(&workload, &phases);
        let record_bytes = (workload.key_bytes + workload.value_bytes) as u64;
        for phase in &phases {
            let (operations, user_bytes) = (phase.operations, phase.user_bytes);
            match phase.phase.split('-').next().unwrap() {
                "load" => assert_eq!((operations, user_bytes), (3000, 3000 * record_bytes)),
                "overwrite" | "open" => assert_eq!(user_bytes, operations * record_bytes),
                "range" => assert_eq!((operations, user_bytes), (30, 0)),
                "get" | "multi" => assert_eq!((operations, user_bytes), (3000, 0)),
                "drain" => {
                    assert!(phase.write_amplification_total.is_some() || workload.name.starts_with("ycsb"))
                }
                "cold" => assert!(phase.page_cache_dropped.is_some()),
                "count" => {
                    assert_eq!((operations, user_bytes), (4 * 3000, 4 * 3000 * record_bytes));
                    assert_eq!(phase.gets.unwrap().count, 1200);
                }
                "hot" => {
                    assert_eq!((operations, phase.records), (100 * 3000, 100));
                    assert_eq!(phase.gets.unwrap().count, 300);
                }
                "finalize" => assert_eq!(operations, phase.records),
                "queue" => assert_eq!((operations, phase.records), (3 * 3000 - 2 * 300, 300)),
                _ => assert_eq!(operations, 3000),
            }
            assert!(phase.disk_bytes > 0 && phase.index_memory_bytes_per_key.is_some(), "{phase:?}");
            let looks_up = match phase.phase.split('-').next() {
                Some("get" | "multi" | "range" | "queue" | "count" | "hot") => true,
                Some("mixed") => !workload.ordered,
                _ => false,
            };
            assert_eq!(phase.device_reads_per_get.is_some(), looks_up, "{phase:?}");
        }
    }
}

#[test]
fn every_workload_runs_on_a_map() {
    for workload in small_workloads() {
        let phases = run_all(&map::Map::new(map::Lie::None), workload.clone(), &RealClock::new()).unwrap();
        assert_sound(&workload, &phases);
    }
}

#[test]
fn a_command_line_of_its_own_has_the_same_exit_codes() {
    let code = |words: &str| format!("{:?}", main(&[&Forebay], words.split(' ').map(OsString::from)));
    let expected = |code: u8| format!("{:?}", ExitCode::from(code));
    assert_eq!(code("rivals --list --json"), expected(0));
    assert_eq!(code("rivals --help"), expected(0));
    assert_eq!(code("rivals no/such.toml"), expected(1));
    for usage in ["rivals nonsense", "rivals", "rivals load-16 --records 0", "rivals load-16 --engines other"]
    {
        assert_eq!(code(usage), expected(2), "{usage}");
    }
}
