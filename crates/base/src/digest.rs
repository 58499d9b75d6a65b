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

    /// Whether it is that of no list. One of few records would have all of them for samples.
    fn is_unknown(&self) -> bool {
        self.threshold == u64::MAX && self.samples.is_empty()
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

/// What lies of a list between two prefixes.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The list's.
    pub digest: &'a Digest,
    /// The first prefix.
    pub low: u64,
    /// The last one.
    pub high: u64,
    /// How many records lie there; 0 where that is not known.
    pub records: u64,
}

/// How many records there are for each distinct key in these parts of lists: 1.0 means that no key repeats. Each list
/// must hold a key once, and parts of one list must not overlap.
pub fn repeats<'a>(parts: impl Iterator<Item = Part<'a>> + Clone) -> f64 {
    let threshold = parts.clone().map(|part| part.digest.threshold).min().unwrap_or(u64::MAX);
    let mut seconds: Vec<u64> = parts
        .clone()
        .flat_map(|part| part.digest.between(part.low, part.high))
        .map(|sample| sample.1)
        .filter(|&second| second <= threshold)
        .collect();
    let samples = seconds.len() as f64;
    seconds.sort_unstable();
    seconds.dedup();
    let keys = seconds.len() as f64;
    debug_assert!(keys <= samples, "no key is counted that no record has");
    let sampled = if samples == 0.0 { 1.0 } else { samples / keys };
    // The digest of a list that cannot be read says nothing, so its records are not to be explained.
    let known = parts.filter(|part| !part.digest.is_unknown()).map(|part| part.records);
    let (all, largest) =
        known.fold((0u64, 0), |(all, largest), records| (all.saturating_add(records), records.max(largest)));
    if all == 0 {
        return sampled;
    }
    let expected = all as f64 * (threshold as f64 / u64::MAX as f64);
    let repeats = sampled.max(expected / keys_at_most(keys));
    // The largest list has so many keys at least.
    repeats.min(all as f64 / largest as f64)
}

/// The most keys that are likely to be expected in a sample where so many are found in it. A key is sampled in all lists
/// that hold it or in none: so a few keys with many records may be in no sample, and seem not to repeat. Yet there may
/// be none by chance, too, where keys come once.
fn keys_at_most(sampled: f64) -> f64 {
    sampled + sampled.sqrt() + 2.0
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

    fn repeats_of(digests: &[&Digest], low: u64, high: u64) -> f64 {
        repeats(digests.iter().map(|&digest| Part { digest, low, high, records: 0 }))
    }

    /// The estimates of narrow slices, with this many records of each list.
    fn of_slices(lists: &[Digest], slices: u64, records: u64) -> Vec<f64> {
        let width = u64::MAX / slices;
        let of_slice = |slice: u64| {
            let (low, high) = (slice * width, slice * width + width - 1);
            repeats(lists.iter().map(|digest| Part { digest, low, high, records }))
        };
        (0..slices).map(of_slice).collect()
    }

    /// Most of the slices have no sample.
    #[test]
    fn keys_in_no_sample_repeat_as_their_records_tell() {
        for (count, most) in [(1, 1.0), (2, 2.0), (32, 32.0)] {
            let lists = vec![digest_of(0..12_800); count];
            assert!(lists[0].samples.len() < 128, "of 256 slices");
            let estimates = of_slices(&lists, 256, 50);
            let least = if count == 32 { 3.5 } else { 1.0 };
            assert!(
                estimates.iter().all(|repeats| (least..=most).contains(repeats)),
                "{count}: {estimates:?}"
            );
        }
    }

    #[test]
    fn keys_that_come_once_are_rarely_taken_to_repeat() {
        for lists in [16, 32, 64, 256] {
            let lists: Vec<_> =
                (0..lists).map(|list| digest_of(list * 50_000..(list + 1) * 50_000)).collect();
            let estimates = of_slices(&lists, 512, 98);
            let taken = estimates.iter().filter(|&&repeats| repeats > 2.0).count();
            assert!(taken < 20, "{taken} of 512, of {} lists", lists.len());
        }
    }

    /// Else a node that was merged would be merged again and again.
    #[test]
    fn no_list_repeats_its_own_keys() {
        let (bottom, newer) = (Digest::new(100_000_000), Digest::new(100_000));
        let part = |digest, records| Part { digest, low: 0, high: u64::MAX, records };
        let of = |parts: &[Part<'_>]| repeats(parts.iter().copied());
        let all = of(&[part(&bottom, 50_000), part(&newer, 50)]);
        assert!((1.0..1.01).contains(&all), "the lists have no sample between them: {all}");
        assert_eq!(of(&[part(&bottom, 50_000)]), 1.0);
        let unknown = Digest::new(0);
        assert_eq!(of(&[part(&unknown, 50_000), part(&unknown, 50_000)]), 1.0, "nothing is known");
        let hot = digest_of(7..8);
        let few = of(&[part(&bottom, 50_000), part(&hot, 1), part(&hot, 1), part(&hot, 1)]);
        assert!(few < 1.01, "one key repeats: {few}");
    }

    #[test]
    fn repeats_are_estimated_for_whole_lists_and_for_slices() {
        let (a, b, c) = (digest_of(0..100_000), digest_of(50_000..150_000), digest_of(0..100_000));
        for (low, high) in [(0, u64::MAX), (u64::MAX / 4, u64::MAX / 2)] {
            let two = repeats_of(&[&a, &b], low, high);
            assert!((1.2..1.5).contains(&two), "200,000 records of 150,000 keys: {two}");
            let same = repeats_of(&[&a, &c], low, high);
            assert!((1.95..2.05).contains(&same), "{same}");
        }
        assert_eq!(repeats_of(&[&a], 0, u64::MAX), 1.0);
        let half = u64::MAX / 2;
        let part = |digest, low, high| Part { digest, low, high, records: 50_000 };
        let beside = repeats([part(&a, 0, half), part(&c, half + 1, u64::MAX)].into_iter());
        assert_eq!(beside, 1.0, "parts beside each other have no key in common");
    }

    #[test]
    fn small_lists_are_counted_exactly_and_bytes_round_trip() {
        let (a, b) = (digest_of(0..40), digest_of(20..60));
        assert_eq!(repeats_of(&[&a, &b], 0, u64::MAX), 80.0 / 60.0);
        let mut bytes = Vec::new();
        a.encode(&mut bytes);
        assert_eq!(Digest::decode(&mut Reader::new(&bytes)), Some(a));
        assert_eq!(Digest::decode(&mut Reader::new(&bytes[..bytes.len() - 1])), None);
    }
}
