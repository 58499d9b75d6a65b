//! The program as a process: every engine of its own counts every kind of keys, and all agree.

#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

use std::process::{Command, Output};

use serde_json::Value;

const OWN: &str = "forebay,forebay:threads=1:trees=3:finalizes=4:stages=1,thesis,thesis:buffer=8K:fan_out=4:packing=off:trees=2,forebay-hash,hashbrown,sparsehash,tbb";
const POINTERS: &str = "sparsehash-ptr,tbb-ptr";

fn run(arguments: &[&str]) -> Output {
    let folder = env!("CARGO_TARGET_TMPDIR");
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay-bench-groups"));
    command.args(arguments).args(["--adds", "20000", "--dir", folder]).output().unwrap()
}

fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn engines_agree_on_every_kind_of_keys() {
    let all = format!("{OWN},{POINTERS}");
    for (arguments, engines, groups) in [
        (&["words", "--groups", "3000"][..], &all[..], 2_900..3_000),
        (&["words", "--groups", "3000", "--key-bytes", "64"], &all, 2_900..3_000),
        (&["numbers", "--groups", "3000"], OWN, 2_900..3_000),
        (&["few", "--groups", "10"], &all, 10..11),
        (&["zipf", "--groups", "3000"], &all, 1_000..3_000),
    ] {
        let output = run(&[arguments, &["--engines", engines, "--repeat", "2"]].concat());
        assert!(output.status.success(), "{output:?}");
        let lines = lines(&output);
        assert_eq!(lines.len(), 2 * engines.split(',').count());
        for (line, engine) in lines.iter().zip(engines.split(',').cycle()) {
            assert_eq!((&line["engine"], &line["adds"]), (&engine.into(), &20_000.into()));
            assert_eq!((&line["groups"], &line["checksum"]), (&lines[0]["groups"], &lines[0]["checksum"]));
            assert!(groups.contains(&line["groups"].as_i64().unwrap()), "{line}");
            assert!(
                line["seconds"].as_f64() > Some(0.0) && line["cpu_seconds"].as_f64() > Some(0.0),
                "{line}"
            );
            assert!(line["peak_anonymous_bytes"].as_u64() >= line["base_anonymous_bytes"].as_u64(), "{line}");
            assert!(line["version"].is_string(), "{line}");
        }
    }
}

#[test]
fn unknown_engines_are_refused_with_the_known_ones() {
    let output = run(&["--engines", "rocksdb"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("forebay, thesis, forebay-hash, hashbrown"));
}
