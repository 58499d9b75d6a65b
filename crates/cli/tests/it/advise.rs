//! `advise`: a workload in words, a layout with its prices.

use serde_json::Value;

use crate::tool::Folder;

const USUAL: &str =
    "advise --record 64 --key 16 --records 2M --rewrites 2 --memory 16M --writes 20K --gets 500";

fn advised(report: &Value) -> Vec<String> {
    let advice = report["advice"].as_array().unwrap();
    advice.iter().map(|one| one["layout"].as_str().unwrap().to_string()).collect()
}

#[test]
fn a_layout_is_named_with_the_prices_of_those_that_come_next() {
    let folder = Folder::new("advise");
    let text = folder.ok(USUAL);
    let report = folder.object(&format!("{USUAL} --json"));
    let names = advised(&report);
    assert_eq!((report["type"].as_str(), names.len()), (Some("advice"), 4));
    assert!(text.starts_with(&names[0]), "{names:?} in\n{text}");
    for word in names.iter().map(String::as_str).chain(["machine", "reads/get", "space"]) {
        assert!(text.contains(word), "{word:?} is not in:\n{text}");
    }
    let cost = |index: usize| report["advice"][index]["prices"]["busy_share"].as_f64().unwrap();
    assert!(0.0 < cost(0) && cost(0) <= cost(1) && cost(1) <= cost(2) && cost(2) <= cost(3), "{report}");
    assert!(report["switch"].is_null(), "{report}");
    assert!(advised(&folder.object(&format!("{USUAL} --all --json"))).len() > 10);
    assert!(std::fs::read_dir(folder.path("")).unwrap().next().is_none(), "nothing is written");
}

#[test]
fn what_is_told_counts() {
    let folder = Folder::new("advise-told");
    let first = |options: &str| advised(&folder.object(&format!("{USUAL} {options} --json"))).remove(0);
    assert_ne!(first("--ordered"), "wb-tree");
    let strict = folder.object(&format!("{USUAL} --space 1.8 --all --json"));
    let peak = |index: usize| strict["advice"][index]["prices"]["space_amplification_peak"].as_f64().unwrap();
    assert!(peak(0) <= 1.8, "{strict}");
    let busy = folder.ok(&USUAL.replace("20K", "100M"));
    assert!(busy.contains("times what the machine can do"), "{busy}");
    let price = |options: &str| {
        let report = folder.object(&format!("{USUAL} {options} --json"));
        report["advice"][0]["prices"]["busy_share"].as_f64().unwrap()
    };
    assert!(price("--cores 8 --bandwidth 8G") < price("--cores 2"));
    assert!(
        price("--keys zipf") < price("--keys even"),
        "what is popular is rewritten in memory, and read there"
    );
    assert!(price("--deletes 0.5") < price("--deletes 0"), "a deletion has no value");
    assert!(price("--device-reads 1000") > price("--device-reads 100K"));
}

/// A table under a layout that is wrong for what is to come, and then under the one advised.
#[test]
fn a_table_that_is_there_tells_of_itself() {
    let folder = Folder::new("advise-table");
    let lines: String = (0..200_000_u64)
        .map(|number| format!("{:016x},{:048}\n", number.wrapping_mul(0x9e37_79b9_7f4a_7c15), number))
        .collect();
    std::fs::write(folder.path("in.csv"), lines).unwrap();
    folder.ok("load db t in.csv --layout leveling:t=10 --memory 2M");
    let ask = "advise db t --memory 2M --writes 10K";
    let report = folder.object(&format!("{ask} --json"));
    let now = &report["switch"]["now"];
    assert_eq!(now["layout"], "leveling:t=10");
    assert!(advised(&report).iter().all(|name| name != "wb-tree"), "the table keeps keys in order");
    let then = advised(&report).remove(0);
    assert_eq!(report["switch"]["then"]["layout"], then);
    let back = report["switch"]["paid_back_seconds"].as_f64().unwrap();
    assert!(back > 0.0 && report["switch"]["seconds"].as_f64().unwrap() > 0.0, "{report}");
    let text = folder.ok(ask);
    assert!(text.contains("The table has leveling:t=10") && text.contains("paid back"), "{text}");
    // As if the table were told in words.
    let told = "--ordered --record 64 --key 16 --records 200K --memory 2M --writes 10K --all --json";
    let words = folder.object(&format!("advise {told}"));
    let same =
        words["advice"].as_array().unwrap().iter().find(|one| one["layout"] == "leveling:t=10").unwrap();
    let [seen, said] = [now, same].map(|one| one["prices"]["write_microseconds"].as_f64().unwrap());
    assert!((seen / said - 1.0).abs() < 0.15, "{seen} and {said}");
    folder.ok(&format!("layout db t {then} --memory 2M"));
    assert!(folder.ok(ask).contains("as advised"), "{}", folder.ok(ask));
}

/// Prices of writes were shown, of a workload that has none.
#[test]
fn what_a_workload_has_none_of_has_no_price() {
    let folder = Folder::new("advise-none");
    let cells = |rates: &str| -> Vec<String> {
        let text = folder.ok(&format!("advise --record 64 --key 16 --records 100K --memory 16M {rates}"));
        let row = text.lines().skip_while(|line| !line.starts_with("layout ")).nth(1).unwrap();
        row.split_once('%').unwrap().1.split_whitespace().map(str::to_string).collect()
    };
    let reads = cells("--gets 2000");
    assert_eq!([&reads[0][..], &reads[2], &reads[3]], ["-"; 3], "{reads:?}");
    let writes = cells("--writes 2000");
    assert_eq!([&writes[1][..], &writes[2], &writes[4]], ["-"; 3], "{writes:?}");
}

#[test]
fn what_no_layout_can_do_is_said() {
    let folder = Folder::new("advise-refusals");
    let refused = |words: &str, needle: &str| {
        let outcome = folder.run(words);
        assert_eq!(outcome.code, 2, "{words}: {outcome:?}");
        assert!(outcome.stderr.contains(needle), "{needle:?} is not in {:?}", outcome.stderr);
    };
    refused("advise --writes 5", "--record");
    refused("advise --record 64 --records 1M", "--writes, --gets or --ranges");
    refused("advise --record 4 --records 1M --writes 1", "no key of 8");
    refused("advise --record 64 --records 1M --writes many", "number");
    refused("advise --record 64 --records 1M --writes 1 --space 1.001", "no layout keeps --space");
    refused("advise --record 64 --records 1M --writes 1 --disk 1M", "--disk");
    refused("advise --record 64 --records 1M --writes 1 --memory 10", "memory_limit");
    refused("advise --record 64 --records 1M --gets 1 --absent 2", "--absent");
    refused("advise --record 64 --records 1M --writes 1 --keys often", "zipf");
    refused("advise db", "TABLE");
    assert_eq!(folder.run("advise no.db t --writes 1").code, 1);
    let help = folder.ok("advise --help");
    assert!(help.contains("--longest-wait") && help.contains("forebay advise users.db users"), "{help}");
}
