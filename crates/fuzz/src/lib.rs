//! Fuzzers, each for one structure or format: a structure against a model that is too simple to be wrong, a format
//! written by its writer, damaged, and read again.
//!
//! What is damaged is read in two ways. As it is, checksums must find it: an answer is right, or an error that says
//! where the damage is. *Resealed*, with checksums that match, only calm is asked for: no panic, no end that does not
//! come, and no more memory than the bytes justify.
//!
//! A new one is a file in `targets` and a line in [`FUZZERS`].
//!
//! **Invariant:** a fuzzer follows from its seed alone, and does a bounded number of things.

mod answers;
mod damage;
mod draws;
mod targets;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use forebay_env::Rng;
use forebay_env::jobs::text_of;
use forebay_testkit::CountingHeap;

use targets::*;

/// More memory than this no seed may take at a time.
const HEAP_BYTES_MAX: usize = 96 << 20;
/// The canary must be found within this many seeds.
const CANARY_SEEDS: u64 = 50;

/// A fuzzer.
pub struct Fuzzer {
    /// Its name.
    pub name: &'static str,
    /// How many seeds of it the tests run.
    pub slice: u64,
    run: fn(&mut Rng),
}

/// All there are.
pub const FUZZERS: &[Fuzzer] = &[
    Fuzzer { name: "aggregators", slice: 16, run: aggregators::fuzz },
    Fuzzer { name: "buffer_tree", slice: 60, run: buffer_tree::fuzz },
    Fuzzer { name: "change_stream", slice: 10, run: change_stream::fuzz },
    Fuzzer { name: "cow_tree", slice: 60, run: cow_tree::fuzz },
    Fuzzer { name: "filters", slice: 60, run: filters::fuzz },
    Fuzzer { name: "list_file", slice: 100, run: list_file::fuzz },
    Fuzzer { name: "log_segment", slice: 40, run: log_segment::fuzz },
    Fuzzer { name: "manifest", slice: 300, run: manifest::fuzz },
    Fuzzer { name: "merge", slice: 300, run: merge::fuzz },
    Fuzzer { name: "partial_states", slice: 30, run: partial_states::fuzz },
    Fuzzer { name: "server_requests", slice: 300, run: server_requests::fuzz },
    Fuzzer { name: "server_users", slice: 300, run: server_users::fuzz },
    Fuzzer { name: "states", slice: 300, run: states::fuzz },
    Fuzzer { name: "table_versions", slice: 30, run: table_versions::fuzz },
    Fuzzer { name: "tree_file", slice: 100, run: tree_file::fuzz },
    Fuzzer { name: "wire", slice: 300, run: wire::fuzz },
    Fuzzer { name: "write_buffer", slice: 100, run: write_buffer::fuzz },
];

/// A structure that lies, which shows that fuzzing finds what is wrong.
const CANARY: Fuzzer = Fuzzer { name: "canary", slice: 0, run: canary::fuzz };

thread_local! {
    /// Where this thread last panicked.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Panics are told by whoever catches them, and not before. For the whole process.
pub fn keep_panics() {
    std::panic::set_hook(Box::new(|panic| {
        PLACE.set(panic.location().map_or_else(String::new, |place| format!("{place}: ")));
    }));
}

impl Fuzzer {
    /// The fuzzer of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        FUZZERS.iter().find(|fuzzer| fuzzer.name == name)
    }

    /// Runs a seed. The error says what went wrong, and where.
    pub fn attempt(&self, seed: u64) -> Result<(), String> {
        let run = || catch_unwind(AssertUnwindSafe(|| (self.run)(&mut Rng::new(seed))));
        let (bytes, outcome) = CountingHeap::peak_bytes(run);
        outcome.map_err(|panic| PLACE.take() + text_of(&*panic))?;
        match bytes {
            0..HEAP_BYTES_MAX => Ok(()),
            _ => Err(format!("it took {bytes} bytes of memory; {HEAP_BYTES_MAX} at most")),
        }
    }
}

/// The first seed that finds the structure that lies; `None` where that takes too many.
pub fn find_canary() -> Option<u64> {
    (0..CANARY_SEEDS).find(|&seed| CANARY.attempt(seed).is_err())
}
