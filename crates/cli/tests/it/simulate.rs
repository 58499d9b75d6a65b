//! `simulate`: no database, no data, an answer.

use crate::tool::Folder;

#[test]
fn a_load_is_predicted_without_data() {
    let folder = Folder::new("simulate");
    let text = folder.ok("simulate --record 16 --records 50M --memory 64M --points 4");
    for line in
        ["write amplification", "lists on a path", "device reads of a get", "merge", "memory: filters"]
    {
        assert!(text.contains(line), "{line:?} is not in:\n{text}");
    }
    assert!(text.lines().any(|line| line.trim_start().starts_with("6,250,000")), "{text}");
    let report = folder.object("simulate --record 16 --records 50M --memory 64M --points 4 --json");
    assert_eq!(
        (report["records"].as_u64(), report["data_bytes"].as_u64()),
        (Some(50_000_000), Some(800_000_000))
    );
    assert_eq!(report["growth"].as_array().unwrap().len(), 3);
    assert_eq!(report["write_buffer_bytes"], 16 << 20);
    let amplification = report["write_amplification"].as_f64().unwrap();
    assert!((2.0..5.0).contains(&amplification), "{report}");
    assert!(report["seconds"].as_f64().unwrap() > 0.0, "{report}");
    assert!(std::fs::read_dir(folder.path("")).unwrap().next().is_none(), "nothing is written");
}

#[test]
fn what_is_asked_for_is_what_is_simulated() {
    let folder = Folder::new("simulate-options");
    let usual = "simulate --record 64 --key 16 --records 4e6 --memory 32M --json";
    let options = "--write-buffer 1M --node-bytes 2M --fan-out 16 --fast-per-slow 0 --lists-max 9 \
                   --repeats-max 1.5 --filter-bits 10 --distinct 1M --layout wb-tree:ordered";
    let machine = "--write-bandwidth 100 --cpu-nanoseconds 1 --cores 4";
    let report = folder.object(&format!("{usual} {options} {machine}"));
    for (name, value) in [
        ("write_buffer_bytes", 1 << 20),
        ("node_bytes", 2 << 20),
        ("fan_out", 16),
        ("fast_per_slow", 0),
        ("lists_max", 9),
        ("filter_bits_per_key", 10),
        ("distinct_keys", 1_000_000),
        ("key_bytes", 16),
        ("value_bytes", 48),
    ] {
        assert_eq!(report[name].as_u64(), Some(value), "{name} in {report}");
    }
    assert_eq!(report["layout"], "wb-tree:ordered");
    assert_eq!(report["bound_by"], "device");
    let slow = report["write_amplification"].as_f64().unwrap();
    let fast = folder.object(&format!("{usual} --write-buffer 1M"))["write_amplification"].as_f64().unwrap();
    assert!(slow > fast, "{slow} with slow splits, {fast} without");
}

/// Each is written once, and read by one more read.
#[test]
fn values_apart_are_simulated_apart() {
    let folder = Folder::new("simulate-apart");
    let load = "simulate --record 1000 --records 2M --memory 64M";
    let of = |options: &str| folder.object(&format!("{load} {options} --json"));
    for layout in ["wb-tree", "leveling", "jungle"] {
        let with_keys = of(&format!("--layout {layout}"));
        let apart = of(&format!("--layout {layout} --values-apart 500"));
        let number = |report: &serde_json::Value, name: &str| report[name].as_f64().unwrap();
        assert!(number(&apart, "write_amplification") < 1.3, "{apart}");
        assert!(number(&with_keys, "write_amplification") > 2.0, "{with_keys}");
        assert!(number(&apart, "device_reads_per_get_present") >= 2.0, "{apart}");
        assert!(number(&apart, "value_file_bytes") > 0.9 * number(&apart, "data_bytes"), "{apart}");
        assert_eq!(of(&format!("--layout {layout} --values-apart 1000"))["value_file_bytes"], 0);
    }
    assert!(folder.ok(&format!("{load} --values-apart 500")).contains("value files"));
}

/// What trees keep beside what lives is what C says, and buys writes.
#[test]
fn jungle_trades_space_for_writes() {
    let folder = Folder::new("simulate-jungle");
    let load = "simulate --record 1000 --records 8M --distinct 500K --memory 64M --json --layout";
    let of = |layout: &str| {
        let report = folder.object(&format!("{load} {layout}"));
        assert_eq!(report["layout"], layout);
        ["write_amplification", "disk_bytes"].map(|name| report[name].as_f64().unwrap())
    };
    let (lean, fat, leveling) = (of("jungle:c=1.5"), of("jungle:c=5"), of("leveling:t=10"));
    assert!(fat[0] < lean[0] && lean[0] < leveling[0] / 1.5, "{lean:?} {fat:?} {leveling:?}");
    assert!(lean[1] < 1.5 * leveling[1] && fat[1] > 1.4 * lean[1], "{lean:?} {fat:?} {leveling:?}");
    // Where there is a level above the last one.
    let load = "simulate --record 1000 --records 3M --distinct 500K --memory 8M --json --layout";
    let written = |layout: &str| folder.object(&format!("{load} {layout}"))["write_amplification"].as_f64();
    assert!(written("jungle:c=5") < written("jungle:c=5,levels=live"));
}

/// What comes again while it is in a write buffer, or in level 0, is written once.
#[test]
fn skewed_keys_are_written_less() {
    let folder = Folder::new("simulate-zipf");
    let load = "simulate --record 1000 --records 4M --distinct 500K --memory 64M --json --layout";
    for layout in ["jungle:c=2", "leveling:t=10", "range-merge"] {
        let even = folder.object(&format!("{load} {layout}"));
        let skewed = folder.object(&format!("{load} {layout} --zipf 0.99"));
        let written = |report: &serde_json::Value| report["write_amplification"].as_f64().unwrap();
        assert!(written(&skewed) < 0.8 * written(&even), "{even} {skewed}");
        assert_eq!(skewed["zipf_exponent"], 0.99);
        assert!(folder.object(&format!("{load} {layout} --zipf 0"))["zipf_exponent"] == 0.0);
    }
    let text = folder.ok("simulate --record 100 --records 1M --distinct 1000 --zipf 0.99 --layout leveling");
    assert!(text.contains("1,000 distinct keys by Zipf 0.99"), "{text}");
}

#[test]
fn layouts_are_compared_under_one_load() {
    let folder = Folder::new("simulate-compare");
    let load = "simulate --record 1100 --key 100 --records 1M --memory 64M --compare";
    let text = folder.ok(load);
    for layout in [
        "no-merge",
        "immediate",
        "geometric:p=2",
        "leveling:t=10",
        "tiering:t=4",
        "jungle:c=2",
        "wb-tree:ordered",
    ] {
        assert!(text.lines().any(|line| line.starts_with(layout)), "{layout} is not in:\n{text}");
    }
    let reports: Vec<serde_json::Value> = folder
        .ok(&format!("{load} --json"))
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |layout: &str, name: &str| {
        let report = reports.iter().find(|report| report["layout"] == layout).unwrap();
        report[name].as_f64().unwrap()
    };
    assert!(of("no-merge", "write_amplification") < of("tiering:t=4", "write_amplification"));
    assert!(of("tiering:t=10", "write_amplification") < of("leveling:t=10", "write_amplification"));
    assert!(of("leveling:t=10", "write_amplification") < of("immediate", "write_amplification"));
    assert!(of("jungle:c=2", "write_amplification") < of("leveling:t=10", "write_amplification"));
    assert_eq!(of("immediate", "lists_per_path"), 1.0);
    // With a goal the best for that comes first.
    for (goal, field) in [
        ("written", "write_amplification"),
        ("space", "space_amplification_peak"),
        ("reads", "device_reads_per_get_present"),
    ] {
        let ranked = folder
            .ok(&format!("simulate --record 1100 --key 100 --records 1M --memory 64M --goal {goal} --json"));
        let read =
            |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()[field].as_f64().unwrap();
        let figures: Vec<f64> = ranked.lines().map(read).collect();
        assert!(figures.len() == reports.len() && figures.is_sorted(), "{goal}: {figures:?}");
    }
}

#[test]
fn what_cannot_be_simulated_is_said() {
    let folder = Folder::new("simulate-refusals");
    let refused = |words: &str, needle: &str| {
        let outcome = folder.run(words);
        assert_eq!(outcome.code, 2, "{words}: {outcome:?}");
        assert!(outcome.stderr.contains(needle), "{needle:?} is not in {:?}", outcome.stderr);
    };
    refused("simulate --layout lsm --record 16 --records 1M", "wb-tree:ordered");
    refused("simulate --layout leveling:t=1 --record 16 --records 1M", "between 2 and 1000");
    refused("simulate --layout jungle:c=1 --record 16 --records 1M", "between 1.1 and 1000");
    refused("simulate --record 16 --records 1M --zipf 0.99", "--distinct");
    refused("simulate --record 16 --records 1M --distinct 10 --zipf 4", "up to 3");
    refused("simulate --record 16 --records 1M --distinct 10 --zipf 0.99", "sorted runs");
    refused("simulate --record 16 --records lots", "6.25e12");
    refused("simulate --record 4 --records 1M", "no key of 8");
    refused("simulate --record 16 --records 0", "at least one record");
    refused("simulate --record 16 --records 1e17 --memory 8M", "raise the memory limit");
    refused("simulate --record 16 --records 1M --memory 10", "memory_limit");
    refused("simulate --record 16 --records 1M --fan-out 1", "fan_out");
    refused("simulate --record 16 --records 1M --cores 0", "cores");
}
