//! Estimating how many distinct keys lie in several lists (WB paper, section 6).
//!
//! The paper keeps the `k` minimum hash values of every list. Here a list may be a slice of a file, and the
//! smallest hashes all lie in its first slice; so a *second* hash decides: a digest keeps the keys whose
//! second hash is below a threshold, in list order. Any slice of the list then has its share of them, and
//! the union of slices is estimated at the lowest of their thresholds.

use crate::hash::mix;
use crate::wire::{Reader, put_varint};

/// A digest aims at one sample for this many records.
const RECORDS_PER_SAMPLE: u64 = 1024;
/// But at no fewer samples than this.
const SAMPLES_MIN: u64 = 64;

/// The sampled keys of one list: pairs of prefix and second hash, in list order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Digest {
    threshold: u64,
    samples: Vec<(u64, u64)>,
}

/// How many samples a list of this many records should have.
fn samples_of(records: u64) -> u64 {
    SAMPLES_MIN.max(records / RECORDS_PER_SAMPLE)
}

/// The second hash of a key whose filter hash is `hash`.
#[inline]
fn second_hash(hash: u64) -> u64 {
    mix(hash ^ 0x5851_f42d_4c95_7f2d)
}

impl Digest {
    /// An empty digest for a list of about this many records.
    pub fn new(records: u64) -> Self {
        let samples = samples_of(records);
        let threshold =
            if records <= samples { u64::MAX } else { (u64::MAX / records).saturating_mul(samples) };
        Self { threshold, samples: Vec::new() }
    }

    /// Shows the digest the next record of the list.
    #[inline]
    pub fn add(&mut self, prefix: u64, hash: u64) {
        let second = second_hash(hash);
        if second <= self.threshold {
            self.samples.push((prefix, second));
        }
    }

    /// Gives back memory that was taken for more samples than there are.
    pub fn shrink(&mut self) {
        self.samples.shrink_to_fit();
    }

    /// About how much memory a digest of `records` will hold that was made for up to `records_max`, in bytes.
    pub fn memory_bytes_of(records_max: u64, records: u64) -> u64 {
        let share = (samples_of(records_max) as f64 / records_max.max(1) as f64).min(1.0);
        (records as f64 * share) as u64 * size_of::<(u64, u64)>() as u64
    }

    /// Memory held, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.samples.capacity() * size_of::<(u64, u64)>()
    }

    fn between(&self, low: u64, high: u64) -> &[(u64, u64)] {
        debug_assert!(low <= high, "bounds in order: {low} and {high}");
        let start = self.samples.partition_point(|sample| sample.0 < low);
        let end = self.samples.partition_point(|sample| sample.0 <= high);
        &self.samples[start..end.max(start)]
    }

    /// Appends the digest's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.threshold.to_le_bytes());
        put_varint(out, self.samples.len() as u64);
        let mut last = 0;
        for &(prefix, second) in &self.samples {
            put_varint(out, prefix.wrapping_sub(last));
            out.extend_from_slice(&second.to_le_bytes());
            last = prefix;
        }
    }

    /// Reads a digest.
    pub fn decode(from: &mut Reader<'_>) -> Option<Self> {
        let threshold = from.u64()?;
        let count = from.varint()?;
        let mut samples = Vec::with_capacity(count.min(from.remaining() as u64 / 9) as usize);
        let mut last = 0u64;
        for _ in 0..count {
            last = last.wrapping_add(from.varint()?);
            samples.push((last, from.u64()?));
        }
        Some(Self { threshold, samples })
    }
}

/// How many records there are for each distinct key in the part of these lists between two prefixes, both
/// included: 1.0 means that no key repeats. Each list must hold a key once.
pub fn repeats(digests: &[&Digest], low: u64, high: u64) -> f64 {
    repeats_of(digests.iter().map(|digest| (*digest, low, high)))
}

/// As [`repeats`], for parts of lists that need not lie between the same prefixes. Parts of one list must not overlap.
pub fn repeats_of<'a>(parts: impl Iterator<Item = (&'a Digest, u64, u64)> + Clone) -> f64 {
    let threshold = parts.clone().map(|(digest, ..)| digest.threshold).min().unwrap_or(u64::MAX);
    let mut seconds: Vec<u64> = parts
        .flat_map(|(digest, low, high)| digest.between(low, high))
        .map(|sample| sample.1)
        .filter(|&second| second <= threshold)
        .collect();
    let records = seconds.len();
    seconds.sort_unstable();
    seconds.dedup();
    debug_assert!(seconds.len() <= records, "no key is counted that no record has");
    if records == 0 { 1.0 } else { records as f64 / seconds.len() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest_of(keys: impl Iterator<Item = u64> + Clone) -> Digest {
        let mut prefixes: Vec<u64> = keys.map(mix).collect();
        prefixes.sort_unstable();
        let mut digest = Digest::new(prefixes.len() as u64);
        prefixes.iter().for_each(|&prefix| digest.add(prefix, prefix));
        digest
    }

    #[test]
    fn repeats_are_estimated_for_whole_lists_and_for_slices() {
        let (a, b, c) = (digest_of(0..100_000), digest_of(50_000..150_000), digest_of(0..100_000));
        for (low, high) in [(0, u64::MAX), (u64::MAX / 4, u64::MAX / 2)] {
            let two = repeats(&[&a, &b], low, high);
            assert!((1.2..1.5).contains(&two), "200,000 records of 150,000 keys: {two}");
            let same = repeats(&[&a, &c], low, high);
            assert!((1.95..2.05).contains(&same), "{same}");
        }
        assert_eq!(repeats(&[&a], 0, u64::MAX), 1.0);
        let half = u64::MAX / 2;
        let beside = repeats_of([(&a, 0, half), (&c, half + 1, u64::MAX)].into_iter());
        assert_eq!(beside, 1.0, "parts beside each other have no key in common");
    }

    #[test]
    fn small_lists_are_counted_exactly_and_bytes_round_trip() {
        let (a, b) = (digest_of(0..40), digest_of(20..60));
        assert_eq!(repeats(&[&a, &b], 0, u64::MAX), 80.0 / 60.0);
        let mut bytes = Vec::new();
        a.encode(&mut bytes);
        assert_eq!(Digest::decode(&mut Reader::new(&bytes)), Some(a));
        assert_eq!(Digest::decode(&mut Reader::new(&bytes[..bytes.len() - 1])), None);
    }
}
