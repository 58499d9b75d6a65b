//! Which record comes next: uniform, Zipf as YCSB draws it, or the latest first.
//!
//! Zipf ranks are drawn as Gray et al. do ("Quickly generating billion-record synthetic databases", 1994)
//! with theta 0.99, and spread over all records by a stride that shares no factor with their number, so that
//! no two ranks meet in one record. Powers come from `libm`, whose results are the same on every machine.

use forebay::env::Rng;
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
