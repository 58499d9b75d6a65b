//! A slice of the seeds, and that a seed does the same twice.
//!
//! Seeds that failed are told as tests of their own, in few steps, in `crates/forebay/tests/it/recovery.rs`
//! and `suite.rs`: a seed's meaning changes with the generator, a story does not.

use crate::run;

#[test]
fn fifty_seeds_keep_every_promise() {
    for seed in 0..50 {
        println!("seed {seed}");
        run(seed, false);
    }
}

#[test]
fn a_seed_does_the_same_twice() {
    for seed in [1, 7, 12, 33, 101, 500] {
        let (once, again) = (run(seed, false), run(seed, false));
        assert!(once == again, "seed {seed} does not do the same twice");
    }
}
