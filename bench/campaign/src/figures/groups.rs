//! Runs of the program that groups keys in memory, where it is built.

use std::path::Path;

use super::bench::{Order, SCRATCH};
use super::parts::{GROUPS, GROUPS_ADDERS, GROUPS_FACTORS, GROUPS_THESIS};

pub(super) const PROGRAM: &str = "bench/rivals/target/release/forebay-bench-groups";
const ADDS_MIN: u64 = 10_000;
const GROUPS_MIN: u64 = 1000;

/// The engines, as that program calls them.
pub(super) const FOREBAY: &str = "forebay";
pub(super) const FOREBAY_HASH: &str = "forebay-hash";
pub(super) const HASHBROWN: &str = "hashbrown";
pub(super) const SPARSE: &str = "sparsehash";
pub(super) const SPARSE_POINTER: &str = "sparsehash-ptr";
pub(super) const CONCURRENT: &str = "tbb";
pub(super) const CONCURRENT_POINTER: &str = "tbb-ptr";
pub(super) const DUCKDB: &str = "duckdb";
pub(super) const POLARS: &str = "polars";
pub(super) const DATAFUSION: &str = "datafusion";
pub(super) const ALL: &[&str] = &[
    FOREBAY,
    FOREBAY_HASH,
    HASHBROWN,
    SPARSE,
    SPARSE_POINTER,
    CONCURRENT,
    CONCURRENT_POINTER,
    DUCKDB,
    POLARS,
    DATAFUSION,
];
/// The same without keys behind pointers.
pub(super) const IN_PLACE: &[&str] =
    &[FOREBAY, FOREBAY_HASH, HASHBROWN, SPARSE, CONCURRENT, DUCKDB, POLARS, DATAFUSION];

/// How one tree may be set, and several: how often results are made readable, threads, trees.
pub(super) const SETTINGS: &[&str] = &[
    FOREBAY,
    "forebay:finalizes=2",
    "forebay:finalizes=4",
    "forebay:finalizes=8",
    "forebay:finalizes=16",
    "forebay:threads=1",
    "forebay:trees=2",
    "forebay:trees=4",
];

/// One thread that has all alone, one that adds as if there were others, and several; none works behind them. The same
/// with the time under locks.
pub(super) const ADDERS: &[&str] = &[
    "forebay:threads=1",
    "forebay:threads=1:shared=1",
    "forebay:threads=1:adders=2",
    "forebay:threads=1:adders=4",
];
pub(super) const ADDERS_STAGES: &[&str] = &[
    "forebay:threads=1:shared=1:stages=1",
    "forebay:threads=1:adders=2:stages=1",
    "forebay:threads=1:adders=4:stages=1",
];

/// The tree of the thesis, with buffers that are as small beside these groups as its own were beside 100 million of
/// them; without packing; and with buffers of 30 MiB.
pub(super) const TREE: &str = "thesis:buffer=768K";
pub(super) const PLAIN_TREE: &str = "thesis:buffer=768K:packing=off";
/// The same with processor time by stage.
pub(super) const STAGES: &[&str] = &[
    "forebay:stages=1",
    "thesis:buffer=768K:stages=1",
    "thesis:buffer=768K:packing=off:stages=1",
    "thesis:stages=1",
    SPARSE,
    SPARSE_POINTER,
];
/// What makes the tree of the thesis, one after the other; and what it is held against.
pub(super) const DESIGN: &[&str] = &[
    "thesis:buffer=768K:threads=1:roots=1:packing=rows",
    "thesis:buffer=768K:roots=1:packing=rows",
    "thesis:buffer=768K:roots=1:packing=rows:trees=4",
    "thesis:buffer=768K:packing=rows:trees=4",
    "thesis:buffer=768K:trees=4",
    "thesis:buffer=768K:packing=apart:trees=4",
    FOREBAY,
    SPARSE_POINTER,
];
/// Rows and columns of maps.
pub(super) const BUFFERS: [&str; 4] = ["256K", "1M", "4M", "16M"];
pub(super) const FAN_OUTS: [&str; 4] = ["4", "16", "64", "256"];
const SHAPES: &[&str] = &[
    FOREBAY,
    "thesis:buffer=256K:fan_out=4",
    "thesis:buffer=256K:fan_out=16",
    "thesis:buffer=256K:fan_out=64",
    "thesis:buffer=256K:fan_out=256",
    "thesis:buffer=1M:fan_out=4",
    "thesis:buffer=1M:fan_out=16",
    "thesis:buffer=1M:fan_out=64",
    "thesis:buffer=1M:fan_out=256",
    "thesis:buffer=4M:fan_out=4",
    "thesis:buffer=4M:fan_out=16",
    "thesis:buffer=4M:fan_out=64",
    "thesis:buffer=4M:fan_out=256",
    "thesis:buffer=16M:fan_out=4",
    "thesis:buffer=16M:fan_out=16",
    "thesis:buffer=16M:fan_out=64",
    "thesis:buffer=16M:fan_out=256",
];
pub(super) const SCALING: &[&str] = &[
    "thesis:buffer=768K:threads=1",
    TREE,
    "thesis:buffer=768K:threads=4",
    "thesis:buffer=768K:trees=2",
    "thesis:buffer=768K:trees=4",
    "thesis:buffer=768K:trees=8",
    "forebay:threads=1",
    FOREBAY,
    "forebay:threads=4",
    "forebay:trees=2",
    "forebay:trees=4",
    "forebay:trees=8",
];

/// One command of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) name: &'static str,
    kind: &'static str,
    /// At scale 1.
    adds: u64,
    /// At scale 1, but for keys that are few at any.
    groups: u64,
    /// The same for all words.
    key_bytes: Option<u8>,
    pub(super) engines: &'static [&'static str],
    rounds: u32,
}

const M: u64 = 1_000_000;
/// A table that doubles, at 1.84 and 3.67 million groups, is neither fuller nor emptier than it is on average.
const GROUPS_EACH: u64 = 5 * M / 2;
/// Engines whose memory is held against the adds.
const GROWING: &[&str] = &[FOREBAY, HASHBROWN, DUCKDB, POLARS];
const TABLES: &[&str] = &[FOREBAY, HASHBROWN, SPARSE];
const TREES: &[&str] = &[FOREBAY, TREE, PLAIN_TREE];

const fn run(name: &'static str, kind: &'static str, adds: u64, groups: u64) -> Run {
    Run { name, kind, adds, groups, key_bytes: None, engines: IN_PLACE, rounds: 3 }
}

const fn once(name: &'static str, adds: u64, groups: u64, engines: &'static [&'static str]) -> Run {
    Run { rounds: 1, engines, ..run(name, "words", adds, groups) }
}

const fn of_length(name: &'static str, key_bytes: u8) -> Run {
    Run { key_bytes: Some(key_bytes), ..once(name, 6 * M, 12 * M / 10, TABLES) }
}

/// What a part runs; nothing for parts of other programs.
pub(super) fn runs(part: &str) -> Vec<Run> {
    match part {
        GROUPS => vec![
            Run { engines: ALL, ..run("words", "words", 20 * M, GROUPS_EACH) },
            run("numbers", "numbers", 10 * M, GROUPS_EACH),
            run("few", "few", 10 * M, 1000),
            run("zipf", "zipf", 10 * M, GROUPS_EACH),
        ],
        GROUPS_FACTORS => vec![
            Run { engines: SETTINGS, ..run("settings", "words", 10 * M, M) },
            once("adds-1", 10 * M, GROUPS_EACH, GROWING),
            once("adds-2", 20 * M, GROUPS_EACH, GROWING),
            once("adds-4", 40 * M, GROUPS_EACH, GROWING),
            once("unique-1", 15 * M / 10, 3 * M / 10, TABLES),
            once("unique-4", 6 * M, 12 * M / 10, TABLES),
            once("unique-16", 24 * M, 48 * M / 10, TABLES),
            of_length("length-8", 8),
            of_length("length-16", 16),
            of_length("length-32", 32),
            of_length("length-64", 64),
        ],
        GROUPS_ADDERS => vec![
            Run { engines: ADDERS, ..run("words", "words", 20 * M, GROUPS_EACH) },
            Run { engines: ADDERS, ..run("numbers", "numbers", 20 * M, GROUPS_EACH) },
            Run { engines: ADDERS, ..run("few", "few", 40 * M, 1000) },
            once("words-locks", 20 * M, GROUPS_EACH, ADDERS_STAGES),
            Run { kind: "numbers", ..once("numbers-locks", 20 * M, GROUPS_EACH, ADDERS_STAGES) },
        ],
        GROUPS_THESIS => vec![
            Run { engines: STAGES, ..run("stages", "words", 20 * M, GROUPS_EACH) },
            once("design", 20 * M, GROUPS_EACH, DESIGN),
            once("shape", 10 * M, GROUPS_EACH, SHAPES),
            once("scaling", 10 * M, GROUPS_EACH, SCALING),
            once("adds-1", 10 * M, GROUPS_EACH, TREES),
            once("adds-4", 40 * M, GROUPS_EACH, TREES),
            once("unique-1", 15 * M / 10, 3 * M / 10, TREES),
            once("unique-4", 6 * M, 12 * M / 10, TREES),
            once("unique-16", 24 * M, 48 * M / 10, TREES),
            Run { engines: TREES, ..of_length("length-8", 8) },
            Run { engines: TREES, ..of_length("length-16", 16) },
            Run { engines: TREES, ..of_length("length-32", 32) },
            Run { engines: TREES, ..of_length("length-64", 64) },
        ],
        _ => Vec::new(),
    }
}

pub(super) fn is_built(root: &Path) -> bool {
    root.join(PROGRAM).is_file()
}

impl Run {
    /// The command, for a scale.
    pub(super) fn order(&self, scale: f64) -> Order {
        let scaled = |count: u64, least: u64| ((count as f64 * scale) as u64).max(least).to_string();
        let groups =
            if self.kind == "few" { self.groups.to_string() } else { scaled(self.groups, GROUPS_MIN) };
        let mut arguments = vec![self.kind.to_string()];
        arguments.extend(["--adds".into(), scaled(self.adds, ADDS_MIN), "--groups".into(), groups]);
        if let Some(bytes) = self.key_bytes {
            arguments.extend(["--key-bytes".into(), bytes.to_string()]);
        }
        if self.name != self.kind {
            arguments.extend(["--name".into(), self.name.into()]);
        }
        arguments.extend(["--repeat".into(), self.rounds.to_string()]);
        arguments.extend(["--engines".into(), self.engines.join(",")]);
        let shown = format!("forebay-bench-groups {}", arguments.join(" "));
        arguments.extend(["--dir".into(), SCRATCH.into()]);
        Order { arguments, shown, limit: None }
    }
}
