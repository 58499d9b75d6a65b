//! `bench` as a process that starts others: what it prints, what it leaves behind, and how it fails.

use serde_json::Value;

use crate::tool::Folder;

/// The objects of a type, of many lines of JSON.
fn of_type(lines: &str, kind: &str) -> Vec<Value> {
    let objects = lines.lines().map(|line| serde_json::from_str(line).unwrap());
    objects.filter(|object: &Value| object["type"] == kind).collect()
}

/// The names of a list of phases.
fn names(phases: &[Value]) -> Vec<&str> {
    phases.iter().map(|phase| phase["phase"].as_str().unwrap()).collect()
}

#[test]
fn a_load_is_measured() {
    let folder = Folder::new("bench-load");
    let out = folder.ok("bench load-16 --records 20000 --memory 2M --repeat 2 --json");
    let first: Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    assert_eq!((&first["type"], &first["engine"]), (&"setup".into(), &"forebay".into()));
    assert_eq!(first["setup"]["memory_bytes"], 2 << 20);
    assert!(first["options"].as_str().unwrap().contains("wb-tree"), "{first}");
    let phases = of_type(&out, "phase");
    assert_eq!(names(&phases), ["load", "drain", "load", "drain"]);
    for load in [&phases[0], &phases[2]] {
        assert_eq!((&load["operations"], &load["wrong_answers"]), (&20_000.into(), &0.into()));
        assert_eq!(load["user_bytes"], 320_000);
        for measure in ["operations_per_second", "cpu_seconds_per_million", "space_amplification"] {
            assert!(load[measure].as_f64().unwrap() > 0.0, "{measure} of {load}");
        }
        assert!(load["latency_us"]["p99_9"].as_f64() >= load["latency_us"]["p50"].as_f64(), "{load}");
    }
    let summaries = of_type(&out, "summary");
    assert_eq!(names(&summaries), ["load", "drain"]);
    assert_eq!(
        (&summaries[0]["repetitions"], &summaries[0]["first_engine_speedup"]),
        (&2.into(), &1.0.into())
    );
    assert!(!folder.path(".").read_dir().unwrap().any(|entry| entry.is_ok()), "databases are removed");
}

#[test]
fn what_several_writers_load_is_there() {
    let folder = Folder::new("bench-writers");
    let out = folder.ok("bench get-half --records 20000 --batch 7 --writers 3 --json");
    let phases = of_type(&out, "phase");
    assert_eq!((names(&phases)[0], &phases[0]["operations"]), ("load", &20_000.into()));
    assert_eq!(phases[0]["user_bytes"], 20_000 * 64);
    assert!(phases.iter().all(|phase| phase["wrong_answers"] == 0), "{out}");
    assert_eq!(folder.run("bench count --writers 2").code, 2, "counts are added by one");
}

#[test]
fn a_killed_load_is_opened_and_complete() {
    let folder = Folder::new("bench-reopen");
    let out = folder.ok("bench reopen --records 40000 --batch 100 --json");
    let phases = of_type(&out, "phase");
    assert_eq!(names(&phases), ["reopen"]);
    assert_eq!(phases[0]["operations"], 8);
    assert!(phases[0]["records"].as_u64().unwrap() >= 40_000, "{}", phases[0]);
}

#[test]
fn a_table_is_for_people() {
    let folder = Folder::new("bench-table");
    let out = folder.ok("bench queue overwrite-16 --records 5000 --repeat 2 --keep --dir here");
    for words in
        ["queue on forebay", "overwrite-16 on forebay", "ops/s", "overwrite-zipf", "drain", "speedup"]
    {
        assert!(out.contains(words), "{words:?} is not in {out}");
    }
    let kept = folder.path("here").read_dir().unwrap().next().unwrap().unwrap().path();
    assert!(kept.join("forebay/queue-1/FOREBAY").exists());
}

#[test]
fn workloads_come_from_files_too() {
    let folder = Folder::new("bench-file");
    let text = "\
name = 'mine'
description = 'gets of a few'
key_bytes = 8
value_bytes = 24
records = 2000
phases = ['load', { get = { present = 0.5, operations_per_record = 2.0 } }]
";
    std::fs::write(folder.path("mine.toml"), text).unwrap();
    let out = folder.ok("bench mine.toml --json");
    let phases = of_type(&out, "phase");
    assert_eq!((names(&phases), &phases[1]["operations"]), (vec!["load", "get"], &4000.into()));
    std::fs::write(folder.path("wrong.toml"), text.replace("present", "absent")).unwrap();
    folder.run("bench wrong.toml").refused(1, &["wrong.toml", "line 6", "absent"]);
    folder.run("bench missing.toml").refused(1, &["missing.toml"]);
}

#[test]
fn workloads_are_listed() {
    let folder = Folder::new("bench-list");
    let text = folder.ok("bench --list");
    let json = folder.ok("bench --list --json");
    for name in ["load-16", "overwrite-1024", "ycsb-f-small", "get-half", "queue", "reopen", "open-loop"] {
        assert!(text.lines().any(|line| line.split(' ').next() == Some(name)), "{name} is not in {text}");
        assert!(json.contains(&format!("{{\"name\":\"{name}\",")), "{name} is not in {json}");
    }
}

#[test]
fn what_cannot_work_is_refused() {
    let folder = Folder::new("bench-refused");
    folder.run("bench nonsense").refused(2, &["nonsense", "--list"]);
    folder.run("bench reopen --durability memory").refused(2, &["reopen", "durability"]);
    folder.run("bench load-16 --engines other").refused(2, &["other", "forebay"]);
    for words in ["bench", "bench load-16 --records 0", "bench load-16 --cgroup some"] {
        assert_eq!(folder.run(words).code, 2, "{words}");
    }
}

#[test]
fn a_run_that_fails_is_told_and_fails_the_command() {
    let folder = Folder::new("bench-failed");
    let outcome = folder.run("bench load-16 load-64 --records 20000 --memory 1K --json");
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert_eq!(outcome.stderr.matches("memory_limit").count(), 2, "{outcome:?}");
    let failures = of_type(&outcome.stdout, "failure");
    assert_eq!((failures.len(), &failures[1]["workload"]), (2, &"load-64".into()));
    assert!(of_type(&outcome.stdout, "summary").is_empty());
}
