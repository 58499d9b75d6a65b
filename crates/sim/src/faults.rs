//! Random fault rules, on top of power losses.

use forebay::env::Rng;
use forebay::env::fs::FaultyFs;

const OPERATIONS: [&str; 11] =
    ["write", "write", "sync", "create", "rename", "remove", "reserve", "sync_dir", "open", "read", "any"];
const FILES: [&str; 7] = ["*.list", "*.tree", "*.log", "*.manifest", "CURRENT*", "*", "*"];

/// A rule such as `write *.list #7 no-space`.
pub(crate) fn draw(rng: &mut Rng) -> String {
    let operation = OPERATIONS[rng.index(OPERATIONS.len())];
    let files = FILES[rng.index(FILES.len())];
    let within = [3, 20, 200][rng.index(3)];
    let nth = 1 + rng.below(within);
    let selection = if rng.chance(70) { format!("#{nth}") } else { format!("from:{nth}") };
    let fault = match operation {
        "write" => ["no-space", "io-error", "short"][rng.index(3)],
        "sync" => ["io-error", "lost"][rng.index(2)],
        "read" | "open" => "io-error",
        _ => ["no-space", "io-error"][rng.index(2)],
    };
    format!("{operation} {files} {selection} {fault}")
}

/// Adds one or two rules.
pub(crate) fn add(fs: &FaultyFs, rng: &mut Rng) -> Vec<String> {
    let rules: Vec<String> = (0..1 + rng.below(2)).map(|_| draw(rng)).collect();
    for rule in &rules {
        fs.rule(rule).expect("a rule that is well formed");
    }
    rules
}
