//! `aggregate`, held against plain programs that do the same.

mod again;
mod answers;
mod columns;
mod duckdb;
#[cfg(target_os = "linux")]
mod memory;
mod numbers;
mod parquet;
mod partial;
mod pipes;
mod programs;
mod refusals;
mod rescued;
mod rotated;
mod sequences;
mod store;
mod unsorted;
mod words;

use std::io::Write;

use crate::tool::Folder;

/// Numbers that look like chance, the same every time.
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `most`.
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ word >> 31) % most
    }

    /// A number below `most`, small ones far more often.
    pub(crate) fn skewed(&mut self, most: u64) -> u64 {
        let bound = 1 + self.below(most);
        self.below(bound)
    }
}

/// What is counted and told of these words and this standard input is the same with any number of threads.
pub(crate) fn assert_alike_by_threads(folder: &Folder, words: &str, input: &[u8]) {
    let outcome = |threads: u32| {
        let outcome = folder.run_on(&format!("aggregate {words} --threads {threads}"), input);
        (outcome.code, outcome.stdout, outcome.stderr)
    };
    let expected = outcome(1);
    for threads in [2, 5] {
        assert!(outcome(threads) == expected, "{words} with {threads} threads");
    }
}

/// Writes gzip data of two members, as several tools that append do.
pub(crate) fn write_gzip(folder: &Folder, name: &str, text: &[u8]) {
    let mut file = Vec::new();
    let (head, tail) = text.split_at(text.len() / 2);
    for part in [head, tail] {
        let mut gzip = flate2::write::GzEncoder::new(&mut file, flate2::Compression::fast());
        gzip.write_all(part).unwrap();
        gzip.finish().unwrap();
    }
    std::fs::write(folder.path(name), file).unwrap();
}
