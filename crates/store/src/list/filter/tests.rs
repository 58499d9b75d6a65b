//! Filters against the sorted hashes they were made of.

use forebay_base::hash::mix;
use forebay_env::sync::atomic::Ordering::Relaxed;
use proptest::prelude::*;

use super::*;

/// Distinct hashes between two bounds, in order.
fn hashes(count: u64, low: u64, high: u64, seed: u64) -> Vec<u64> {
    let inside = |i| low + ((mix(i ^ mix(seed)) as u128 * (high - low) as u128) >> 64) as u64;
    let mut hashes: Vec<u64> = (0..count).map(inside).collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

fn fingerprints(hashes: &[u64], expected: u64, bits: u32, low: u64, high: u64) -> Fingerprints {
    let mut gathering = Gathering::new(expected, bits, low, high).unwrap();
    hashes.iter().for_each(|&hash| gathering.add(hash));
    gathering.finish().unwrap()
}

fn decoded(bytes: &[u8]) -> Option<Filter> {
    Filter::decode(&mut Reader::new(bytes)).flatten()
}

fn encoded(filter: &Filter) -> Vec<u8> {
    let mut bytes = Vec::new();
    Filter::encode_head(Some(filter), &mut bytes);
    filter.words().iter().for_each(|word| bytes.extend_from_slice(&word.load(Relaxed).to_le_bytes()));
    bytes
}

/// Every hash is found at its rank; bounds are those of the sorted hashes, up to the keys of one slot.
fn check_ranks(filter: &Fingerprints, hashes: &[u64], asked: &[u64]) {
    assert_eq!(filter.keys() as usize, hashes.len());
    for (rank, &hash) in hashes.iter().enumerate() {
        let (found, around, rank) = (filter.find(hash), filter.around(hash), rank as u32);
        assert!(found.contains(&rank), "{hash:x} of rank {rank} is found at {found:?}");
        assert!(around.start <= found.start && found.end <= around.end, "{found:?} {around:?}");
        let start = filter.slot_start(rank).expect("the start of a slot that has a key");
        assert!(start <= hash && filter.around(start).contains(&rank), "slot of rank {rank} at {start:x}");
    }
    for &hash in asked {
        let lower = hashes.partition_point(|&other| other < hash) as u32;
        let around = filter.around(hash);
        assert!(around.start <= lower && lower <= around.end, "{hash:x}: {around:?} around {lower}");
    }
}

fn bits_per_key(filter: &Fingerprints) -> f64 {
    filter.memory_bytes() as f64 * 8.0 / filter.keys() as f64
}

/// How often of random absent hashes one is found.
fn false_share(filter: &Filter, hashes: &[u64], low: u64, high: u64) -> f64 {
    let asked = self::hashes(400_000, low, high, 77);
    let absent = asked.iter().filter(|hash| hashes.binary_search(hash).is_err());
    let (found, all) =
        absent.fold((0, 0), |(found, all), &hash| (found + filter.may_contain(hash) as u64, all + 1));
    found as f64 / all as f64
}

const SPANS: [(u64, u64); 3] = [(0, u64::MAX), (1 << 63, (1 << 63) + (1 << 55)), (12345, 12345 + (3 << 50))];

#[test]
fn fingerprints_keep_to_their_bits_and_their_share_of_false_answers() {
    for (low, high) in SPANS {
        let hashes = hashes(200_000, low, high, 1);
        let exact = hashes.len() as u64;
        for expected in [exact, exact * 3, exact / 3] {
            let filter = fingerprints(&hashes, expected, 12, low, high);
            assert!(bits_per_key(&filter) <= 11.80, "{} bits a key", bits_per_key(&filter));
            let share = false_share(&Filter::Fingerprints(filter), &hashes, low, high);
            assert!(share <= 0.0025, "{share} in {low:x}..{high:x}");
        }
    }
}

#[test]
fn thinning_gives_memory_back_and_denies_nothing() {
    let (low, high) = SPANS[0];
    let hashes = hashes(300_000, low, high, 2);
    let expected = [
        (12, 0.0025),
        (11, 0.026),
        (9, 0.026),
        (8, 0.048),
        (6, 0.09),
        (5, 0.17),
        (3, 0.33),
        (2, 0.63),
        (1, 1.0),
    ];
    let filter = Filter::Fingerprints(fingerprints(&hashes, hashes.len() as u64, 12, low, high));
    let blocks = Filter::Blocks(blocks_of(&hashes, hashes.len() as u64, 12, low, high), None);
    for (bits, most) in expected {
        filter.thin(Allowance::bits(bits as f64), hashes.len() as u64);
        let held = filter.memory_bytes() as f64 * 8.0 / hashes.len() as f64;
        assert!(held <= bits as f64, "{held} for {bits}");
        let share = false_share(&filter, &hashes, low, high);
        assert!(share <= most, "{share} at {bits} bits");
        check_ranks(filter.ranks().unwrap(), &hashes, &[]);
        blocks.thin(Allowance::bits(bits as f64), hashes.len() as u64);
        // Half of three would be of no use.
        assert!(blocks.memory_bytes() as u64 * 8 <= bits.max(4) as u64 * hashes.len() as u64 + 256);
        assert!(hashes.iter().all(|&hash| blocks.may_contain(hash)));
    }
    filter.thin(Allowance::NONE, hashes.len() as u64);
    let left = filter.memory_bytes();
    filter.thin(Allowance::bits(1.0), hashes.len() as u64);
    assert_eq!(filter.memory_bytes(), left, "there is a floor");
    check_ranks(filter.ranks().unwrap(), &hashes, &[]);
    let held = blocks.memory_bytes();
    assert_eq!(
        (blocks.thin(Allowance::NONE, hashes.len() as u64), blocks.memory_bytes()),
        (held, 0),
        "no page stays"
    );
    assert_eq!(
        blocks.thin(Allowance::NONE, hashes.len() as u64)
            + blocks.thin(Allowance::bits(5.0), hashes.len() as u64),
        0
    );
    assert!(hashes.iter().all(|&hash| blocks.may_contain(hash)));
}

fn blocks_of(hashes: &[u64], expected: u64, bits: u32, low: u64, high: u64) -> Blocks {
    let mut blocks = Blocks::new(expected, bits, low, high);
    hashes.iter().for_each(|&hash| blocks.add(hash));
    blocks.finish(hashes.len() as u64, bits)
}

#[test]
fn blocks_stay_in_bounds_for_any_span_and_fold() {
    for (low, high) in SPANS {
        let hashes = hashes(50_000, low, high, 3);
        for expected in [50_000, 70_000, 400_000] {
            let filter = Filter::Blocks(blocks_of(&hashes, expected, 12, low, high), None);
            assert!(hashes.iter().all(|&hash| filter.may_contain(hash)), "no key is ever denied");
            let bits = filter.memory_bytes() as f64 * 8.0 / hashes.len() as f64;
            assert!((11.9..24.5).contains(&bits), "{bits} bits a key at {low}..{high} for {expected}");
            let share = false_share(&filter, &hashes, low, high);
            assert!(share < 0.009, "{share} at {low}..{high} for {expected}");
            let again = decoded(&encoded(&filter)).unwrap();
            assert_eq!(encoded(&again), encoded(&filter));
            assert!(hashes.iter().all(|&hash| again.may_contain(hash)));
        }
    }
}

#[test]
fn a_growing_filter_keeps_its_promise_in_any_range_and_however_thin() {
    for (low, high) in SPANS {
        let hashes = hashes(30_000, low, high, 4);
        let filter = GrowingFilter::new(GrowingFilter::blocks_for(30_000, 10));
        let false_share = |filter: &GrowingFilter| {
            let asked = self::hashes(100_000, low, high, 78);
            let absent: Vec<_> = asked.iter().filter(|hash| hashes.binary_search(hash).is_err()).collect();
            let found = absent.iter().filter(|hash| filter.may_contain(***hash)).count();
            found as f64 / absent.len() as f64
        };
        let marks =
            |range: std::ops::Range<usize>| hashes[range].iter().map(|&hash| Mark::of(hash, filter.count()));
        filter.add(marks(0..10_000));
        let mut bytes = Vec::new();
        filter.encode(&mut bytes);
        filter.add(marks(10_000..20_000));
        // One that was made thinner takes over what another has, and more keys.
        let thin = GrowingFilter::new(filter.count());
        assert!(thin.thin(Allowance::bits(6.0), 30_000) > 0 && thin.memory_bytes() * 8 <= 6 * 30_000);
        assert!(thin.unite(&bytes) && !thin.unite(&bytes[32..]));
        thin.add(marks(10_000..30_000));
        assert!(hashes.iter().all(|&hash| thin.may_contain(hash)));
        assert!((0.05..0.2).contains(&false_share(&thin)), "{}", false_share(&thin));
        let two_thirds = false_share(&filter);
        filter.add(marks(20_000..hashes.len()));
        assert!(hashes.iter().all(|&hash| filter.may_contain(hash)));
        let whole = false_share(&filter);
        assert!(two_thirds < 0.004 && (0.007..0.015).contains(&whole), "{two_thirds}, {whole}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn ranks_are_those_of_the_sorted_hashes(
        count in 1..3000u64,
        expected_percent in 1..400u64,
        bits in 1..40u32,
        low: u64,
        width_bits in 0..60u32,
        skew: bool,
        seed: u64,
    ) {
        let high = low.saturating_add(u64::MAX >> width_bits);
        // Skewed ones crowd into few slots, as no good hash would.
        let top = if skew { low + (high - low) / 5000 } else { high };
        let hashes = hashes(count, low, top, seed);
        let filter = fingerprints(&hashes, hashes.len() as u64 * expected_percent / 100, bits, low, high);
        let asked = self::hashes(300, low, high, !seed);
        check_ranks(&filter, &hashes, &asked);
        let filter = Filter::Fingerprints(filter);
        let bytes = encoded(&filter);
        let again = decoded(&bytes).unwrap();
        prop_assert_eq!(encoded(&again), bytes);
        for bits in [bits, 6, 3, 1, 0] {
            again.thin(Allowance::bits(bits as f64), hashes.len() as u64);
            check_ranks(again.ranks().unwrap(), &hashes, &asked);
        }
    }

    #[test]
    fn what_is_cut_or_changed_is_refused_or_harmless(count in 1..600u64, cut: prop::sample::Index, at: prop::sample::Index, flip in 1..=255u8, hashed: bool) {
        let hashes = hashes(count, 0, u64::MAX, count);
        let filter = match hashed {
            true => Filter::Fingerprints(fingerprints(&hashes, count, 12, 0, u64::MAX)),
            false => Filter::Blocks(blocks_of(&hashes, count, 12, 0, u64::MAX), None),
        };
        let mut bytes = encoded(&filter);
        prop_assert!(decoded(&bytes[..cut.index(bytes.len())]).is_none());
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        if let Some(filter) = decoded(&bytes) {
            // Whatever it says, it says something.
            hashes.iter().for_each(|&hash| _ = filter.may_contain(hash));
            if let Some(ranks) = filter.ranks() {
                (0..=ranks.keys()).for_each(|rank| _ = ranks.slot_start(rank));
                hashes.iter().for_each(|&hash| _ = ranks.around(!hash));
            }
            filter.thin(Allowance::bits(5.0), count);
            filter.thin(Allowance::NONE, count);
            hashes.iter().for_each(|&hash| _ = filter.may_contain(hash));
        }
    }
}
