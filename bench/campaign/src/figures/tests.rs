//! Reading of results, and whole pages from small kept samples.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::part::{DIRECT, FOREBAY, LEVELED};
use super::results::{Phase, Results, Spread};
use super::target::{Outcome, Target};
use super::{Options, draw, groups, parts, table};

const LOAD: Phase<'static> = Phase("figures-load-16", "load");

fn setup(engine: &str, workload: &str, direct_io: bool) -> Value {
    json!({
        "type": "setup", "engine": engine, "workload": workload, "version": "1", "options": "cache 7 ",
        "machine": { "cores": 2, "memory_bytes": 1u64 << 34, "kernel": "6.1" },
        "setup": { "direct_io": direct_io, "memory_bytes": 1 << 20 },
    })
}

fn phase(engine: &str, Phase(workload, phase): Phase<'_>, rate: f64) -> Value {
    json!({
        "type": "phase", "engine": engine, "workload": workload, "phase": phase, "operations": 1000,
        "seconds": 1000.0 / rate, "operations_per_second": rate, "cpu_seconds": 0.5,
        "latency_us": { "p50": 1.0, "p95": 2.0, "p99": 3.0, "p99_9": 1e6 / rate, "max": 5e6 / rate },
        "longest_gap_ms": 1.5, "write_amplification_total": null, "device_reads_per_get": 0.5,
        "index_memory_bytes_per_key": 1.25, "operations_per_100_ms": [10, 0, 20, 5],
        "curve": (1..=10).map(|tenth| json!({
            "seconds": 100.0 * f64::from(tenth) / rate, "operations": 100 * tenth, "cpu_seconds": 0.05, "write_bytes": 7,
        })).collect::<Vec<_>>(),
        "slowest_second_operations": (0.5 * rate) as u64, "fastest_second_operations": (2.0 * rate) as u64,
        "peak_memory_bytes": 1 << 19,
    })
}

/// A count of a million adds in so many seconds.
fn count(engine: &str, workload: &str, seconds: f64) -> Value {
    json!({
        "type": "groups", "phase": "group", "engine": engine, "workload": workload, "version": "1", "threads": 2,
        "adds": 1_000_000, "groups": 100_000, "seconds": seconds, "cpu_seconds": 1.5 * seconds, "adds_per_second": 1e6 / seconds,
        "cpu_seconds_per_million": 2.0 * seconds, "bytes_per_group": 20.0 * seconds, "adding_seconds": 0.5 * seconds, "stage_cpu_seconds": { "hand_over": 0.02 },
        "peak_anonymous_bytes": (seconds * 2e6) as u64,
    })
}

fn lines(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Two engines, one of them with and without direct I/O, and a failure.
fn sample() -> String {
    let mut all =
        vec![json!({ "type": "campaign", "scale": 0.5, "seconds": 12.0, "commands": ["forebay bench x"] })];
    for (engine, direct_io, rates) in [
        (FOREBAY, false, [900.0, 1000.0, 1100.0]),
        (LEVELED, false, [20.0, 10.0, 30.0]),
        (LEVELED, true, [40.0, 50.0, 60.0]),
    ] {
        for rate in rates {
            all.extend([setup(engine, LOAD.0, direct_io), phase(engine, LOAD, rate)]);
            all.push(phase(engine, Phase(LOAD.0, "drain"), rate));
        }
    }
    all.push(json!({ "type": "failure", "engine": "lmdb", "workload": LOAD.0, "reason": "no room\nat all" }));
    lines(&all)
}

#[test]
fn rates_are_medians_and_the_better_way_to_the_device_counts() {
    let results = Results::parse(&sample()).unwrap();
    assert_eq!(results.rate(FOREBAY, LOAD), Some(1000.0));
    assert_eq!(results.rate(LEVELED, LOAD), Some(20.0));
    assert_eq!(results.best_rate(LEVELED, LOAD), Some(50.0));
    assert_eq!(results.rounds(LEVELED, LOAD), 3);
    let direct = format!("{LEVELED}{DIRECT}");
    assert_eq!(results.engines(LOAD.0), [FOREBAY, LEVELED, &direct]);
    assert_eq!(results.median(FOREBAY, LOAD, "/latency_us/p99"), Some(3.0));
    assert_eq!(results.median(FOREBAY, LOAD, "/write_amplification_total"), None);
    assert_eq!(results.memory_bytes(FOREBAY, LOAD.0), Some(1 << 20));
    assert_eq!(results.failures, ["lmdb on figures-load-16: no room at all"]);
}

#[test]
fn a_line_that_is_no_json_is_named() {
    let complaint = Results::parse("{}\n{\"type\":\n").unwrap_err();
    assert!(complaint.starts_with("line 2: "), "{complaint}");
}

#[test]
fn spreads() {
    let of = |figures: &[f64]| Spread::of(figures.to_vec());
    assert_eq!(of(&[3.0, 1.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
    assert_eq!(of(&[5.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 5.0 }));
    assert_eq!(of(&[]), None);
}

#[test]
fn targets_come_out_by_their_bounds() {
    let outcome = |target: Target| target.outcome();
    assert_eq!(outcome(Target::at_least("", 2.0, "", Some(2.0))), Outcome::Reached);
    assert_eq!(outcome(Target::at_least("", 2.0, "", Some(1.99))), Outcome::Missed);
    assert_eq!(outcome(Target::at_most("", 2.0, "", Some(2.01))), Outcome::Missed);
    assert_eq!(outcome(Target::at_most("", 2.0, "", None)), Outcome::Unmeasured);
}

#[test]
fn numbers_have_three_digits_that_matter() {
    let shown = [0.0, 0.012_34, 0.5, 1.5, 12.34, 123.4, 1_234_567.8, -4321.0].map(table::short);
    assert_eq!(shown, ["0", "0.0123", "0.5", "1.5", "12.3", "123", "1,234,568", "-4,321"]);
    assert_eq!([1_500_000.0, 20_000.0, 7.0].map(table::metric), ["1.5 M", "20 k", "7"]);
}

#[test]
fn words_make_options() {
    let options = Options::parse(&["scale=0.5", "only=engines,heat", "minutes=2", "draw"]).unwrap();
    let only = vec!["engines".into(), "heat".into()];
    assert_eq!(options, Options { scale: 0.5, only, minutes: Some(2.0), draw: true });
    for bad in ["scale=0", "scale=ten", "scale=inf", "minutes=0", "redraw", "parts=heat"] {
        assert!(Options::parse(&[bad]).is_err(), "{bad}");
    }
}

#[test]
fn a_kept_sample_is_drawn_with_its_misses_and_failures() {
    let folder = folder("sample");
    std::fs::write(folder.join("engines.jsonl"), sample()).unwrap();
    let page = draw::page(&folder).unwrap();
    for words in [
        "load 16 B, beside rocksdb-leveled | at least 50x | 20x | **not reached**",
        "beside leveldb | at least 35x | - | not measured",
        "lmdb on figures-load-16: no room at all",
        ": engines](figures/engines.svg)",
        "| rocksdb-leveled, direct I/O | 3 | 1,000 | 50 | 40 - 60 | 20x |",
        "[rocksdb-leveled-direct-io](figures/options-rocksdb-leveled-direct-io.txt)",
        "2 cores, 16 GiB of memory",
        "ONLY=engines SCALE=0.5`, 12 seconds",
        "`make figures ONLY=reads` measures this part; it has not been.",
    ] {
        assert!(page.contains(words), "{words:?} is not in\n{page}");
    }
    assert!(!page.contains("{{") && !page.lines().any(|line| line.ends_with(' ')), "{page}");
    let options = std::fs::read_to_string(folder.join("options-forebay.txt")).unwrap();
    assert_eq!(options, "== figures-load-16\ncache 7\nversion 1\n");
    is_drawn(&std::fs::read_to_string(folder.join("engines.svg")).unwrap(), "<rect");
    std::fs::remove_dir_all(folder).unwrap();
}

/// Every part is drawn with all of its runs done by Forebay alone, and with none.
#[test]
fn every_part_is_drawn_with_and_without_results() {
    let folder = folder("parts");
    for is_full in [true, false] {
        for part in parts::ALL {
            let mut all = vec![json!({ "type": "campaign", "scale": 1.0, "seconds": 1.0, "commands": [] })];
            for run in (part.runs)().iter().filter(|_| is_full) {
                all.push(setup(FOREBAY, &run.name, false));
                for name in [
                    "load",
                    "drain",
                    "get",
                    "get-2",
                    "get-3",
                    "get-4",
                    "mixed",
                    "overwrite",
                    "overwrite-zipf",
                    "steady-loop-0.8",
                    "multi-get-32",
                    "open-loop-0.8",
                    "open-loop-60000",
                    "count",
                    "count-zipf",
                    "hot",
                    "drain-2",
                    "switch",
                    "scan",
                    "scan-2",
                    "grow",
                    "finalize",
                ] {
                    all.push(phase(FOREBAY, Phase(&run.name, name), 1000.0));
                }
            }
            for run in groups::runs(part.name).iter().filter(|_| is_full) {
                all.extend(run.engines.iter().map(|engine| count(engine, run.name, 2.0)));
            }
            std::fs::write(folder.join(format!("{}.jsonl", part.name)), lines(&all)).unwrap();
        }
        let page = draw::page(&folder).unwrap();
        for part in parts::ALL {
            assert!(page.contains(&format!("\n## {}\n", part.title)), "{page}");
        }
        for plot in [
            "steady-16-by-size",
            "steady-1024-by-time",
            "steady-rates",
            "steady-64-gets",
            "steady-mix",
            "steady-pace",
            "levels-insert-core",
            "steady-workers",
            "steady-workers-16",
            "steady-workers-64",
            "engines",
            "reads",
            "bursts-own",
            "growth-rate",
            "contributions",
            "heat-get",
            "ratio-rate",
            "groups-rate",
            "groups-memory",
            "groups-adds",
            "groups-length",
            "groups-adders",
            "thesis-stages",
            "thesis-shape-memory",
            "thesis-length",
            "incremental",
            "layouts-reads",
            "layouts-waits",
            "layouts-switch",
            "rangemerge-time",
            "rangemerge-growth",
            "jungle-written",
            "jungle-space",
            "jungle-values-rate",
            "jungle-ranges",
            "jungle-switch",
        ] {
            let shape = if is_full && plot.starts_with("bursts") { "<polyline" } else { "<svg" };
            let svg = std::fs::read_to_string(folder.join(format!("{plot}.svg"))).unwrap();
            is_drawn(&svg, shape);
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// The page begins with it, in sentences that are made of results.
#[test]
fn the_steady_state_leads_the_page() {
    let folder = folder("steady");
    let load = Phase("figures-steady-16", "load");
    let mut all = vec![json!({ "type": "campaign", "scale": 0.5, "seconds": 12.0, "commands": [] })];
    for (engine, rate) in [(FOREBAY, 1000.0), (LEVELED, 10.0)] {
        let mut line = phase(engine, load, rate);
        if engine == LEVELED {
            // It came half as far, and is held against at that size.
            line["curve"].as_array_mut().unwrap().truncate(5);
        }
        all.extend([setup(engine, load.0, false), line]);
        all.push(phase(engine, Phase(load.0, "get"), rate / 20.0));
    }
    let device = json!({ "type": "device", "write_bytes": 2e9, "synced_write_bytes": 1e9, "syncs": 5e3,
        "reads_alone": 1e4, "reads_together": 1e5 });
    all.push(device);
    std::fs::write(folder.join("steady-load.jsonl"), lines(&all)).unwrap();
    let page = draw::page(&folder).unwrap();
    let lead = page.split("Smaller loads").next().unwrap();
    for words in [
        "(at scale 0.5 only, which is provisional)",
        "16 B 1 k a second, 100 times rocksdb-leveled",
        "held at most 0.5 MiB where 1 is the limit of its engine",
        "gets of 16 B, present, no rest (rocksdb-leveled) 100",
    ] {
        assert!(lead.contains(words), "{words:?} is not in\n{lead}");
    }
    for words in ["the device takes 2,000 MB a second", "| rocksdb-leveled | 500 |", "| 100x |"] {
        assert!(page.contains(words), "{words:?} is not in\n{page}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Threads of one kind stand alone: the plan says where they become the limit.
#[test]
fn more_cores_are_planned_for_from_what_threads_took() {
    let folder = folder("workers");
    let mut all = vec![json!({ "type": "campaign", "scale": 0.5, "seconds": 12.0, "commands": [] })];
    for (threads, rate) in [(1, 1e6), (2, 1.5e6), (4, 1.6e6)] {
        let workload = format!("figures-workers-16-{threads}");
        let mut line = phase(FOREBAY, Phase(&workload, "load"), rate);
        // A microsecond a record in all, and 200 bytes written and read.
        line["curve"] = (1..=10)
            .map(|tenth| {
                let records = 1e5 * f64::from(tenth);
                let of = |nanoseconds: f64| nanoseconds * records / 1e9;
                json!({
                    "seconds": records / rate, "operations": records, "cpu_seconds": of(1000.0),
                    "write_bytes": 150.0 * records, "read_bytes": 50.0 * records,
                    "cpu_seconds_by_thread": {
                        "writers": of(200.0), "sort": of(100.0), "flush": of(150.0), "compact": of(500.0),
                        "house": of(10.0), "io": of(40.0), "others": 0.0,
                    },
                })
            })
            .collect();
        all.extend([setup(FOREBAY, &workload, false), line]);
    }
    all.push(json!({ "type": "device", "write_bytes": 2e9, "synced_write_bytes": 1e9, "syncs": 5e3,
        "reads_alone": 1e4, "reads_together": 1e5 }));
    for (workload, records) in [("figures-workers-16", 1e6), ("figures-workers-16-half", 5e5)] {
        all.push(json!({ "type": "simulated", "workload": workload, "live_bytes": 16.0 * records,
            "log_bytes": 20.0 * records, "table_bytes_written": 100.0 * records, "table_bytes_read": 80.0 * records }));
    }
    std::fs::write(folder.join("steady-workers.jsonl"), lines(&all)).unwrap();
    let page = draw::page(&folder).unwrap();
    for words in [
        "16 B: last half, 2 threads beside 1 | at least 1.6x | 1.5x | **not reached**",
        "64 B: last half, 2 threads beside 1 | at least 1.6x | - | not measured",
        "times that: 1.5 with 2 (1.5 M a second), 1.6 with 4 (1.6 M a second).",
        "| 16 B, 2 threads | 200 |",
        "| 100 | 150 | 500 | 10 | 40 | 0 | 1,000 |",
        "| 4 cores | 5,000,000 | 20,000,000 | 10,000,000 | 6,666,667 | 4,000,000 | 10,000,000 | 4,000,000 | compactors |",
        "| 5,000,000 | one writer | 6,666,667 | flusher |",
        "the sorter, one thread, allows less than all cores do from 11 cores on, the flusher, one thread, from 7 cores on",
        "the device from 11 cores on (from 11 cores on by the bytes of `simulate`)",
        "it says 2 M; measured were 1.5 M, 75 % of that",
        "| 16 B | 150 | 120 | 50 | 80 | 10,000,000 | 10,000,000 |",
        "16 B 1.5 times (6.67 M a second, limit: flusher)",
    ] {
        assert!(page.contains(words), "{words:?} is not in\n{page}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn groups_are_drawn_with_their_misses_and_their_cost() {
    let folder = folder("groups");
    let mut all = vec![json!({ "type": "campaign", "scale": 0.5, "seconds": 12.0, "commands": [] })];
    for seconds in [1.0, 3.0, 1.5] {
        all.push(count(groups::FOREBAY, "words", seconds));
        all.push(count(groups::SPARSE, "words", seconds / 2.0));
        all.push(count(groups::SPARSE_POINTER, "words", seconds * 2.0));
        all.push(count(groups::HASHBROWN, "few", seconds));
    }
    let skipped = json!({ "type": "skipped", "engine": "duckdb", "workload": "words", "reason": "no wheel" });
    all.push(skipped);
    std::fs::write(folder.join("groups.jsonl"), lines(&all)).unwrap();
    let page = draw::page(&folder).unwrap();
    for words in [
        "| forebay | 2 | 1.5 | 0.67 | 0.33 - 1 | 3 | 0.75 | 30 |",
        "words: rate, by the faster Sparsehash's | at least 1x | 0.5x | **not reached**",
        "words: memory, by the smaller Sparsehash's | at most 0.6x | 2x | **not reached**",
        "words: memory a group | at most 24 B | 30 B | **not reached**",
        "zipf: rate, by hashbrown's | at least 0.9x | - | not measured",
        "**words**: 1,000,000 adds, 100,000 groups.",
        // 1,500 s of 3 GB at 1.93 cents an hour; 3,000 s of a core at 3.25 times 1.51.
        "| forebay | 3 | 1,500 | 4.09 | 2.41 | 6.5 | 0.41 |",
        "duckdb on words: no wheel",
    ] {
        assert!(page.contains(words), "{words:?} is not in\n{page}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn applications_are_held_against_the_tools_of_others() {
    let folder = folder("applications");
    let mut all = vec![json!({ "type": "data", "reads_bytes": 2e6, "text_bytes": 3e6 })];
    for (task, tool, seconds, bytes) in [
        ("kmers", FOREBAY, 8.0, 9e6),
        ("kmers", "kmc", 2.0, 1e9),
        ("kmers", "jellyfish", 30.0, 14e6),
        ("words", FOREBAY, 1.0, 4e6),
        ("words", "sort, uniq -c", 5.0, 5e8),
    ] {
        all.push(json!({
            "type": "application", "task": task, "tool": tool, "command": "true", "seconds": seconds,
            "cpu_seconds": seconds, "anonymous_bytes": bytes, "groups": 1_000_000, "records": 3_000_000,
        }));
    }
    all.push(json!({ "type": "skipped", "engine": "kmc", "workload": "kmers", "reason": "not installed" }));
    std::fs::write(folder.join("applications.jsonl"), lines(&all)).unwrap();
    let page = draw::page(&folder).unwrap();
    for words in [
        "25-mers, long reads: time by KMC's | at most 3x | 4x | **not reached**",
        "25-mers, long reads: memory a distinct one by Jellyfish's | at most 1x | 0.64x | reached",
        "words: time by that of sort and uniq | at most 1x | 0.2x | reached",
        "2-grams: time by that of sort and uniq | at most 1x | - | not measured",
        "| 25-mers, long reads, jellyfish | 1 | 30 | 30 | 14 | 14 | 1,000,000 | 3 |",
        "Long reads: 2 MB of FASTQ",
        "kmc on kmers: not installed",
    ] {
        assert!(page.contains(words), "{words:?} is not in\n{page}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn questions_are_held_against_query_engines() {
    let folder = folder("columns");
    let mut all = Vec::new();
    for (question, format, engine, seconds) in [
        ("1", "csv", FOREBAY, 1.0),
        ("1", "csv", FOREBAY, 4.0),
        ("1", "csv", FOREBAY, 2.0),
        ("1", "csv", "duckdb", 1.0),
        ("2", "csv", FOREBAY, 8.0),
        ("2", "csv", "duckdb", 1.0),
        ("2", "csv", "polars", 16.0),
        ("1", "parquet", FOREBAY, 3.0),
    ] {
        all.push(json!({
            "type": "columns", "question": question, "format": format, "engine": engine, "seconds": seconds,
            "cpu_seconds": 2.0 * seconds, "anonymous_bytes": 1e6 * seconds, "rows": 1000, "groups": 100,
        }));
    }
    all.push(json!({
        "type": "failure", "engine": "polars", "workload": "question 1, csv", "reason": "7 answers are others",
        "question": "1", "format": "csv",
    }));
    std::fs::write(folder.join("columns.jsonl"), lines(&all)).unwrap();
    let page = draw::page(&folder).unwrap();
    for words in [
        "csv: time by DuckDB's, geometric mean of the questions | at most 1x | 4x | **not reached**",
        "Parquet: time by DuckDB's, geometric mean of the questions | at most 1x | - | not measured",
        "Of 1,000 rows Forebay answers from csv in 4 times DuckDB's time and 0.5 times Polars's",
        "| 1: sum v1 by id1, csv | 100 | 2 | 1 | - | 4 | 2 | - | 2 | 1 | - | 2 | - |",
        "polars on question 1, csv: 7 answers are others",
    ] {
        assert!(page.contains(words), "{words:?} is not in\n{page}");
    }
    is_drawn(&std::fs::read_to_string(folder.join("columns-csv.svg")).unwrap(), "<svg");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn runs_are_called_as_their_workloads() {
    let runs = || parts::ALL.iter().flat_map(|part| (part.runs)());
    for run in runs() {
        assert!(run.workload.starts_with(&format!("name = \"{}\"\n", run.name)), "{}", run.workload);
        assert!(!run.engines.is_empty() && run.rounds > 0);
    }
    // One name is one workload: files and results are found by it.
    for (one, other) in runs().flat_map(|one| runs().map(move |other| (one.clone(), other))) {
        assert!(one.name != other.name || one.workload == other.workload, "{}", one.name);
    }
}

/// Well-formed as far as its tags go, and with that in it.
fn is_drawn(svg: &str, shape: &str) {
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
    assert!(svg.contains(shape), "{svg}");
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1) {
        let (tag, text) = tag.split_once('>').unwrap();
        assert!(!text.contains('>'), "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{svg}");
        } else if !tag.ends_with('/') {
            open.extend(tag.split_whitespace().next());
        }
        assert!(!tag.contains("NaN") && !tag.contains("inf"), "{tag}");
    }
    assert!(open.is_empty(), "{open:?}");
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("forebay-figures-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// What many cores would do is worked out of processor time and of the time under locks.
#[test]
fn threads_that_add_are_foretold() {
    let folder = folder("adders");
    let mut all = vec![json!({ "type": "campaign", "scale": 0.5, "seconds": 12.0, "commands": [] })];
    for run in groups::runs(parts::GROUPS_ADDERS) {
        let seconds = |engine: &str| if engine.contains("adders=2") { 0.2 } else { 0.3 };
        all.extend(run.engines.iter().map(|engine| count(engine, run.name, seconds(engine))));
    }
    std::fs::write(folder.join("groups-adders.jsonl"), lines(&all)).unwrap();
    let page = draw::page(&folder).unwrap();
    for words in [
        "words: two threads that add, by one | at least 1.8x | 1.5x | **not reached**",
        "| words | two | 10 | 1.5 | 400 |",
        "| numbers | four | 20 |",
        "16 on as many cores would add 26.7 million words a second, each of 64 locks held for 0.83 % of the time (20 ns an add)",
    ] {
        assert!(page.contains(words), "{words:?} is not in\n{page}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}
