//! Seeded random numbers. A failing test prints its seed; `FOREBAY_SEED=<seed>` runs that seed alone.

use forebay_base::hash::mix;

pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state) % bound.max(1)
    }

    pub(crate) fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }
}

/// Prints the seed of a test that panics.
struct Witness(u64);

impl Drop for Witness {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("replay with FOREBAY_SEED={}", self.0);
        }
    }
}

/// Runs a test for some seeds, or for the one that the environment names.
pub(crate) fn for_seeds(seeds: std::ops::Range<u64>, mut test: impl FnMut(&mut Random, u64)) {
    let chosen =
        std::env::var("FOREBAY_SEED").ok().map(|seed| seed.parse().expect("FOREBAY_SEED is a number"));
    let seeds = chosen.map_or(seeds, |seed: u64| seed..seed + 1);
    for seed in seeds {
        let _witness = Witness(seed);
        test(&mut Random { state: mix(seed) }, seed);
    }
}
