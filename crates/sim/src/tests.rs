//! A slice of the seeds, and that a seed does the same twice.
//!
//! Seeds that failed are told as tests of their own, in few steps, in `crates/forebay/tests/it/recovery.rs`
//! and `suite.rs`: a seed's meaning changes with the generator, a story does not.

use std::ops::Range;

use crate::{Part, run};

fn run_all(seeds: Range<u64>) {
    for seed in seeds {
        println!("seed {seed}");
        run(seed, &Part::default(), false, &mut |_| ());
    }
}

#[test]
fn the_first_seeds_keep_every_promise() {
    run_all(0..12);
}

#[test]
fn the_next_seeds_keep_every_promise() {
    run_all(12..25);
}

#[test]
fn seeds_from_25_keep_every_promise() {
    run_all(25..37);
}

#[test]
fn seeds_from_37_keep_every_promise() {
    run_all(37..49);
}

#[test]
fn a_seed_does_the_same_twice() {
    for seed in [1, 7, 12, 33] {
        let [once, again] = [0; 2].map(|_| run(seed, &Part::default(), false, &mut |_| ()));
        assert!(once == again, "seed {seed} does not do the same twice");
    }
}
