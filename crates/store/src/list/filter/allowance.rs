//! How thin filters are to be: how many bits each list's keys may take, so that lookups read as little in vain as memory
//! allows.
//!
//! A lookup asks all lists on its path, whatever their size. So a bit a key is dearest where keys are *dense*, where one
//! list has very many of all there are at its places: as a few merged lists do. The least is read in vain where the
//! shares of absent keys that lists do not deny are as their densities (Dayan, Athanassoulis and Idreos, *Monkey*,
//! SIGMOD 2017). A share halves with [`BITS_A_HALVING`]; so a list of twice the density has as many bits fewer.

use std::collections::BTreeMap;

use forebay_env::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// With so many bits more a key half as many absent keys are not denied.
const BITS_A_HALVING: f64 = 1.5;
/// A level is in units of this part of a bit.
const UNITS: f64 = 16.0;
/// At this level all filters are whole.
const LEVEL_MAX: f64 = 256.0;
/// Densities are told apart by this part of a doubling.
const DENSITY_PARTS: f64 = 4.0;
/// Bits a key that are left at the least: of filters that tell ranks, and of others.
const RANKED_BITS_MIN: f64 = 0.25;
const OTHER_BITS_MIN: f64 = 3.0;
/// Filters are full at this part above their share: there is always a list that comes while room is made.
const FULL_SHARE: u64 = 8;
/// The level that is none.
const UNBOUND: u32 = u32::MAX;
/// The least that is allowed is more than nothing: what is kept of a filter then is of use.
const BITS_MIN: f64 = 0.01;

/// How thin filters are to be, of all tables alike.
#[derive(Debug)]
pub struct FilterLevel {
    /// The bits a key would have of a list that has one key at all places.
    bits: AtomicU32,
    /// From here on all filters take too much, however thin they are. It only counts at the lowest level.
    full_bytes: AtomicU64,
}

/// What filters there are, for whoever sets the level.
#[derive(Debug, Default)]
pub struct FilterDemand(BTreeMap<Group, u64>);

/// Filters that are alike.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Group {
    /// As a power of two, in units of a part of a doubling.
    density: i32,
    kind: FilterKind,
}

/// What a filter is like.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FilterKind {
    /// Whether it tells ranks.
    pub is_ranked: bool,
    /// How many bits a key it has at the most.
    pub bits_per_key: u32,
}

/// How many bits a key of one list may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    bits: f64,
    /// Where filters shrink in steps only: which part of all lists is to be above the step below, from 0 to 1. It lets
    /// lists of the same allowance come to that together.
    luck: f64,
}

impl FilterLevel {
    /// Begins with this one; `None` for no bound.
    pub fn new(bits: Option<f64>) -> Self {
        let level = Self { bits: AtomicU32::new(UNBOUND), full_bytes: AtomicU64::new(u64::MAX) };
        level.set(bits, u64::MAX);
        level
    }

    /// Whether there is a bound.
    pub fn is_bound(&self) -> bool {
        self.bits.load(Ordering::Relaxed) != UNBOUND
    }

    /// Whether there is more room than was full when it was set.
    pub fn is_outgrown(&self, bytes_max: u64) -> bool {
        self.is_bound() && bytes_max > self.full_bytes.load(Ordering::Relaxed)
    }

    /// From now on, where all filters may take so many bytes; `None` for no bound.
    pub fn set(&self, bits: Option<f64>, bytes_max: u64) {
        let level = bits.map_or(UNBOUND, |bits| (bits.max(0.0) * UNITS) as u32);
        self.full_bytes.store(bytes_max.saturating_add(bytes_max / FULL_SHARE), Ordering::Relaxed);
        self.bits.store(level, Ordering::Relaxed);
    }

    /// How many bits a key it leaves a list of this density; `None` for no bound.
    pub fn bits(&self, density: f64) -> Option<f64> {
        let level = self.bits.load(Ordering::Relaxed);
        (level != UNBOUND).then(|| bits_of(level as f64 / UNITS, density))
    }

    /// What it leaves the list of this id and density.
    pub fn allowance(&self, density: f64, id: u64) -> Allowance {
        match self.bits(density) {
            None => Allowance::ALL,
            Some(bits) => Allowance { bits: bits.max(BITS_MIN), luck: luck_of(id) },
        }
    }

    /// The same for one that comes to filters of so many bytes. Where they are full, and the thinnest are too many, it
    /// does without: many may come at once, and it takes a while until room is made.
    pub fn allowance_beside(&self, held_bytes: u64, density: f64, id: u64) -> Allowance {
        let is_lowest = self.bits.load(Ordering::Relaxed) == 0;
        match is_lowest && held_bytes >= self.full_bytes.load(Ordering::Relaxed) {
            true => Allowance::NONE,
            false => self.allowance(density, id),
        }
    }
}

/// How many bits a key may have at a level, of a list of this density.
pub(super) fn bits_of(level_bits: f64, density: f64) -> f64 {
    (level_bits - BITS_A_HALVING * density.max(1.0).log2()).max(0.0)
}

/// Multiples of the golden ratio are spread evenly.
fn luck_of(id: u64) -> f64 {
    (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as f64 / 2.0f64.powi(32)
}

impl FilterDemand {
    /// What filters are to be planned to take of what they may: they take whole pages, and shrink by steps.
    pub const SHARE_PLANNED: f64 = 0.97;

    /// Adds the filter of this many keys.
    pub fn add(&mut self, kind: FilterKind, density: f64, keys: u64) {
        let density = (density.max(1.0).log2() * DENSITY_PARTS).round() as i32;
        *self.0.entry(Group { density, kind }).or_default() += keys;
    }

    /// About what they take at a level, in bytes.
    fn bytes(&self, level_bits: f64) -> f64 {
        let bits = |(group, &keys): (&Group, &u64)| {
            let allowed = bits_of(level_bits, (group.density as f64 / DENSITY_PARTS).exp2());
            let least = if group.kind.is_ranked { RANKED_BITS_MIN } else { OTHER_BITS_MIN };
            keys as f64 * allowed.max(least).min(group.kind.bits_per_key as f64)
        };
        self.0.iter().map(bits).sum::<f64>() / 8.0
    }

    /// The highest level at which they take no more than this; `None` where that is no bound.
    pub fn level(&self, bytes: f64) -> Option<f64> {
        let (mut low, mut high) = (0.0, LEVEL_MAX);
        if self.bytes(high) <= bytes {
            return None;
        }
        while high - low > 1.0 / UNITS {
            let middle = (low + high) / 2.0;
            if self.bytes(middle) <= bytes { low = middle } else { high = middle }
        }
        Some(low)
    }
}

impl Allowance {
    /// As many as there are.
    pub const ALL: Self = Self { bits: f64::INFINITY, luck: 0.0 };
    /// As few as there may be.
    pub const NONE: Self = Self { bits: 0.0, luck: 0.0 };

    /// This many, and no more.
    pub fn bits(bits: f64) -> Self {
        Self { bits, luck: 0.0 }
    }

    /// As whole bits; 0 for none.
    pub(super) fn whole_bits(&self) -> u32 {
        if *self == Self::NONE { 0 } else { (self.bits as u32).max(1) }
    }

    /// The step to take, of some that get smaller and take so many bits each: the first that fits, or, for some lists,
    /// the one before.
    pub(super) fn step<T: Copy>(&self, steps: &[T], bits: impl Fn(T) -> f64) -> T {
        let fits = steps.iter().position(|&step| bits(step) <= self.bits).unwrap_or(steps.len() - 1);
        let Some(&above) = fits.checked_sub(1).and_then(|above| steps.get(above)) else { return steps[fits] };
        let ahead = (self.bits - bits(steps[fits])) / (bits(above) - bits(steps[fits]));
        if self.luck > 0.0 && self.luck < ahead { above } else { steps[fits] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_goes_to_where_it_denies_most() {
        let kind = FilterKind { is_ranked: true, bits_per_key: 11 };
        // A merged list of each of 200 leaves, and 64 lists that lie everywhere.
        let lists = [(48_000_000.0, 48_000_000), (500_000.0, 32_000_000)];
        let mut demand = FilterDemand::default();
        lists.iter().for_each(|&(density, keys)| demand.add(kind, density, keys));
        for (bytes, dense, sparse) in [(20e6, 0.0..0.3, 4.0..5.0), (60e6, 2.0..3.0, 11.0..13.0)] {
            let level = demand.level(bytes).unwrap();
            let bits = lists.map(|(density, _)| bits_of(level, density));
            assert!(dense.contains(&bits[0]) && sparse.contains(&bits[1]), "{bits:?}");
            let taken = demand.bytes(level) / bytes;
            assert!((0.98..=1.0).contains(&taken), "{taken}");
        }
        assert_eq!(demand.level(200e6), None);
        // Less than the least is the least.
        assert_eq!(demand.level(1.0), Some(0.0));
    }

    #[test]
    fn lists_that_come_where_the_thinnest_are_too_many_have_none() {
        let kind = FilterKind { is_ranked: false, bits_per_key: 11 };
        let mut demand = FilterDemand::default();
        demand.add(kind, 100_000.0, 100_000_000);
        let level = FilterLevel::new(None);
        for (bytes, comes_to_none) in [(20_000_000, true), (50_000_000, false), (200_000_000, false)] {
            level.set(demand.level(bytes as f64), bytes);
            let beside = |held: u64| level.allowance_beside(held, 1e5, 1);
            assert_ne!(beside(bytes), Allowance::NONE, "what comes amid making room");
            assert_eq!(beside(bytes / 4 * 5) == Allowance::NONE, comes_to_none, "of {bytes} bytes");
            assert!(!level.is_outgrown(bytes));
            assert_eq!(level.is_outgrown(bytes / 4 * 5), level.is_bound(), "of {bytes} bytes");
        }
    }

    #[test]
    fn denser_lists_have_fewer_bits_and_steps_come_to_what_is_allowed_together() {
        let level = FilterLevel::new(None);
        assert_eq!(level.allowance(1e9, 1), Allowance::ALL);
        level.set(Some(40.0), 0);
        assert_eq!(level.allowance(1.0, 0).bits, 40.0);
        assert_eq!(level.allowance(2.0f64.powi(20), 0).bits, 10.0);
        assert_eq!(level.allowance(2.0f64.powi(40), 0).bits, BITS_MIN);
        for bits in [0.5, 3.0, 3.2, 4.9, 5.0, 7.0, 12.0] {
            level.set(Some(bits), 0);
            let all = |id| level.allowance(1.0, id).step(&[9.0, 5.0, 3.0, 1.0], |step| step);
            let mean = (1..=1000).map(all).sum::<f64>() / 1000.0;
            assert!((mean - bits.clamp(1.0, 9.0)).abs() < 0.05, "{mean} for {bits}");
        }
        assert_eq!(Allowance::bits(4.9).step(&[9.0, 5.0, 3.0, 1.0], |step| step), 3.0);
    }
}
