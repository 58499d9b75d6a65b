//! A slice of each fuzzer's seeds; and that the canary is found.

use forebay_testkit::CountingHeap;

use crate::{FUZZERS, find_canary};

#[global_allocator]
static HEAP: CountingHeap = CountingHeap;

/// Every other one, so that two threads share them.
fn run_slices(first: usize) {
    for fuzzer in FUZZERS.iter().skip(first).step_by(2) {
        for seed in 0..fuzzer.slice {
            let outcome = fuzzer.attempt(seed);
            assert!(outcome.is_ok(), "fuzz --only {} --seed {seed}: {outcome:?}", fuzzer.name);
        }
    }
}

#[test]
fn the_first_seeds_of_half_the_fuzzers_find_nothing() {
    run_slices(0);
}

#[test]
fn the_first_seeds_of_the_other_half_find_nothing() {
    run_slices(1);
}

#[test]
fn a_map_that_forgets_a_key_in_a_thousand_is_found() {
    assert!(find_canary().is_some());
}
