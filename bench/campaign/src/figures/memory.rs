//! Holds `memory_limit` against what the system counts, by the library's example `memory_campaign`.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::bench::{RECORDS_MIN, SCRATCH, scaled};

const PROGRAM: &str = "target/release/examples/memory_campaign";
/// Limits in MiB, scenarios, layouts, and records of 16 bytes at scale 1: several times what the limit holds.
const CAMPAIGNS: [(&str, &str, &str, u64); 6] = [
    ("16", "life,runs,snapshots", ALL, 4_000_000),
    ("32", "life,runs", ALL, 8_000_000),
    ("64", "life,runs,snapshots", ALL, 16_000_000),
    ("128", "life", ALL, 32_000_000),
    ("256,1024", "life", "wb-tree,leveling:t=4", 150_000_000),
    ("4096", "life", "wb-tree", 500_000_000),
];
const ALL: &str = "wb-tree,wb-tree:ordered,no-merge,immediate,geometric:r=3,tiering:t=4,leveling:t=4,\
    range-merge,jungle:c=4";

/// Lines of results.
pub(super) fn measure(root: &Path, scale: f64) -> Result<Vec<Value>, String> {
    let mut lines = Vec::new();
    for (limits, scenarios, layouts, records) in CAMPAIGNS {
        let arguments = format!(
            "--limits {limits} --scenarios {scenarios} --layouts {layouts} --records {}",
            scaled(records, scale, RECORDS_MIN)
        );
        println!("memory_campaign {arguments}");
        let output = Command::new(root.join(PROGRAM))
            .args(arguments.split(' '))
            .args(["--format", "json", "--dir", SCRATCH])
            .current_dir(root)
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| format!("cannot run {PROGRAM}: {error}"))?;
        // It fails where the promise is broken, and its lines say so.
        let before = lines.len();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            lines.push(serde_json::from_str(line).map_err(|error| format!("{PROGRAM}: {line:?}: {error}"))?);
        }
        if lines.len() == before {
            return Err(format!("{PROGRAM} told nothing: {}", output.status));
        }
        lines.push(json!({ "type": "command", "command": format!("memory_campaign {arguments}") }));
    }
    Ok(lines)
}
