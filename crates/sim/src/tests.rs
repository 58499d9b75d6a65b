//! A slice of the seeds, and seeds that failed once.

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
    for seed in [1, 7, 12, 33] {
        assert_eq!(run(seed, false), run(seed, false), "seed {seed}");
    }
}
