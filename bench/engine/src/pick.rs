//! Which record comes next: uniform, Zipf as YCSB draws it, or the latest first.
//!
//! Zipf ranks are drawn as Gray et al. do ("Quickly generating billion-record synthetic databases", 1994)
//! with theta 0.99, and spread over all records by a stride that shares no factor with their number, so that
//! no two ranks meet in one record. Powers come from `libm`, whose results are the same on every machine.

use forebay_env::Rng;
use serde::{Deserialize, Serialize};

const THETA: f64 = 0.99;
/// Terms of the zeta sum that are added one by one; the rest is an integral with corrections.
const ZETA_TERMS: u64 = 1000;

/// How record numbers are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Distribution {
    /// Each as likely as any other.
    #[default]
    Uniform,
    /// Zipf with theta 0.99; the popular ones lie anywhere.
    Zipf,
    /// Zipf with theta 0.99; the last one inserted is the most popular.
    Latest,
}

/// Draws record numbers.
#[derive(Debug)]
pub(crate) struct Picker {
    rng: Rng,
    distribution: Distribution,
    zipf: Zipf,
    stride: u64,
}

impl Picker {
    /// Draws among `records`.
    pub(crate) fn new(distribution: Distribution, seed: u64, records: u64) -> Self {
        let zipf = Zipf::new(records.max(1));
        Self { rng: Rng::new(seed), distribution, zipf, stride: stride(records.max(1)) }
    }

    /// The next of `records`, which may have grown: new ones are drawn too, but for Zipf, whose popular
    /// records stay the same.
    #[inline]
    pub(crate) fn next(&mut self, records: u64) -> u64 {
        match self.distribution {
            Distribution::Uniform => self.rng.below(records),
            Distribution::Zipf => {
                let rank = self.zipf.rank(unit(&mut self.rng));
                rank * self.stride % self.zipf.items
            }
            Distribution::Latest => {
                if records != self.zipf.items {
                    self.zipf = Zipf::new(records);
                }
                records - 1 - self.zipf.rank(unit(&mut self.rng))
            }
        }
    }
}

/// Uniform in 0..1.
pub(crate) fn unit(rng: &mut Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// About the golden part of `items`, without a factor in common.
fn stride(items: u64) -> u64 {
    let mut stride = (items as f64 * 0.618_034) as u64 | 1;
    while gcd(stride, items) != 1 {
        stride += 2;
    }
    stride
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[derive(Debug)]
struct Zipf {
    items: u64,
    zeta: f64,
    eta: f64,
}

impl Zipf {
    fn new(items: u64) -> Self {
        let zeta = zeta(items);
        let eta = (1.0 - libm::pow(2.0 / items as f64, 1.0 - THETA)) / (1.0 - zeta_head(2) / zeta);
        Self { items, zeta, eta }
    }

    /// The rank, from 0, at `unit` of the cumulative distribution.
    #[inline]
    fn rank(&self, unit: f64) -> u64 {
        let part = unit * self.zeta;
        if part < 1.0 {
            return 0;
        }
        if part < 1.0 + libm::pow(0.5, THETA) {
            return 1.min(self.items - 1);
        }
        let rank = self.items as f64 * libm::pow(self.eta * (unit - 1.0) + 1.0, 1.0 / (1.0 - THETA));
        (rank as u64).min(self.items - 1)
    }
}

/// The sum of `i^-theta` for i in 1..=items.
fn zeta(items: u64) -> f64 {
    if items <= ZETA_TERMS {
        return zeta_head(items);
    }
    // Euler and Maclaurin: the integral, half of both ends, and the first correction.
    let (from, to) = (ZETA_TERMS as f64, items as f64);
    let integral = (libm::pow(to, 1.0 - THETA) - libm::pow(from, 1.0 - THETA)) / (1.0 - THETA);
    let ends = (libm::pow(to, -THETA) - libm::pow(from, -THETA)) / 2.0;
    let slopes = THETA / 12.0 * (libm::pow(from, -THETA - 1.0) - libm::pow(to, -THETA - 1.0));
    zeta_head(ZETA_TERMS) + integral + ends + slopes
}

fn zeta_head(items: u64) -> f64 {
    (1..=items).map(|item| libm::pow(item as f64, -THETA)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each of `records` was drawn, the most popular first with its number.
    fn counts(distribution: Distribution, records: u64, draws: u64) -> Vec<(u64, u64)> {
        let mut picker = Picker::new(distribution, 11, records);
        let mut counts: Vec<(u64, u64)> = (0..records).map(|number| (0, number)).collect();
        (0..draws).for_each(|_| counts[picker.next(records) as usize].0 += 1);
        counts.sort_by(|a, b| b.cmp(a));
        counts
    }

    fn share(counts: &[(u64, u64)], of: &[(u64, u64)]) -> f64 {
        let sum = |counts: &[(u64, u64)]| counts.iter().map(|(count, _)| count).sum::<u64>() as f64;
        sum(counts) / sum(of)
    }

    #[test]
    fn zipf_has_its_shape() {
        let all = counts(Distribution::Zipf, 1000, 400_000);
        // By the definition: the sum of the first i^-0.99 by that of all thousand.
        for (top, low, high) in [(1, 0.127, 0.132), (2, 0.19, 0.2), (10, 0.36, 0.41), (100, 0.65, 0.70)] {
            let share = share(&all[..top], &all);
            assert!((low..high).contains(&share), "the first {top} have {share}");
        }
        assert!(all.iter().filter(|(count, _)| *count > 0).count() > 990);
    }

    #[test]
    fn popular_records_lie_far_apart() {
        let all = counts(Distribution::Zipf, 1000, 400_000);
        let mut tops: Vec<u64> = all[..10].iter().map(|(_, number)| *number).collect();
        tops.sort();
        assert!(tops.windows(2).all(|pair| pair[1] - pair[0] > 20), "{tops:?}");
    }

    #[test]
    fn uniform_and_latest_have_their_shapes() {
        let all = counts(Distribution::Uniform, 1000, 400_000);
        assert!(all[0].0 < 500 && all[999].0 > 310, "{:?} {:?}", all[0], all[999]);
        let all = counts(Distribution::Latest, 1000, 400_000);
        let tops: Vec<u64> = all[..3].iter().map(|(_, number)| *number).collect();
        assert_eq!(tops, [999, 998, 997]);
    }

    #[test]
    fn what_was_inserted_is_the_latest() {
        let mut picker = Picker::new(Distribution::Latest, 1, 10);
        let mut seen = [0; 2000];
        for records in 10..2000 {
            (0..10).for_each(|_| {
                let number = picker.next(records);
                assert!(number < records);
                seen[number as usize] += u64::from(number == records - 1);
            });
        }
        assert!(seen.iter().sum::<u64>() > 2000, "about one in eight is the last one");
    }

    #[test]
    fn few_records_are_enough() {
        for distribution in [Distribution::Uniform, Distribution::Zipf, Distribution::Latest] {
            for records in 1..5 {
                let all = counts(distribution, records, 2000);
                assert!(all.iter().all(|(count, _)| *count > 0), "{distribution:?} of {records}: {all:?}");
            }
        }
    }

    #[test]
    fn the_sum_is_the_same_with_an_integral() {
        for items in [1001, 5000, 200_000] {
            assert!((zeta(items) / zeta_head(items) - 1.0).abs() < 1e-12, "{items}");
        }
    }

    #[test]
    fn the_draws_of_a_seed_never_change() {
        let mut picker = Picker::new(Distribution::Zipf, 5, 1_000_000);
        let draws: Vec<u64> = (0..6).map(|_| picker.next(1_000_000)).collect();
        assert_eq!(draws, [121_994, 547_361, 270_555, 236_074, 944_296, 851_439]);
    }
}
