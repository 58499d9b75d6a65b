//! Rare roads: what code does now and then, and tests therefore see little of. A segment of the log is full, a read is
//! of a single page, a step ends at once. A build with `--cfg invariants` takes them often, by
//! [`sometimes!`](crate::sometimes).
//!
//! **Invariant:** in every other build `sometimes!` is the constant `false`. In that one the draws follow from the seed
//! that was given last, and from nothing else: a seed of the simulation does the same twice. Without a seed none is
//! taken.

/// Whether to take a rare road here: `if sometimes!(1 in 100) { … }`.
#[macro_export]
macro_rules! sometimes {
    (1 in $roads:expr) => {
        cfg!(invariants) && $crate::rare::draw($roads)
    };
}

#[cfg(not(invariants))]
mod draws {
    /// Lets draws follow from this seed, or no rare road be taken: which is so in this build.
    pub const fn seed(_seed: Option<u64>) {}

    /// Whether one of this many draws is this one: never, in this build.
    pub const fn draw(_one_in: u64) -> bool {
        false
    }
}

#[cfg(invariants)]
mod draws {
    use std::sync::atomic::{AtomicU64, Ordering};

    use crate::hash::mix;

    /// An odd number, so that it is never 0, which stands for no seed.
    static STATE: AtomicU64 = AtomicU64::new(0);
    const STEP: u64 = 0x9e37_79b9_7f4a_7c16;

    /// Lets draws follow from this seed, or no rare road be taken.
    pub fn seed(seed: Option<u64>) {
        STATE.store(seed.map_or(0, |seed| seed << 1 | 1), Ordering::Relaxed);
    }

    /// Whether one of this many draws is this one.
    pub fn draw(one_in: u64) -> bool {
        if STATE.load(Ordering::Relaxed) == 0 {
            return false;
        }
        mix(STATE.fetch_add(STEP, Ordering::Relaxed)).is_multiple_of(one_in)
    }
}

pub use draws::*;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_roads_are_taken_with_a_seed_in_a_build_for_them() {
        let is_taken = || (0..1000).any(|_| sometimes!(1 in 10));
        seed(None);
        assert!(!is_taken());
        seed(Some(7));
        assert_eq!(is_taken(), cfg!(invariants));
        seed(None);
    }
}
