//! A few seeds. That none hangs, and what is written by real threads is there, is all that a short test can say.

use super::run;

#[test]
fn a_few_seeds_of_threads_keep_every_promise() {
    for seed in [0, 1] {
        println!("seed {seed}");
        run(seed);
    }
}
