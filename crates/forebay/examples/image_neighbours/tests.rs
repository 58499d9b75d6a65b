//! The jobs held against all pairs, and hashes of images that look alike.

use super::hash;
use super::naive;
use super::neighbours::{Settings, find};
use super::picture::Picture;

/// Numbers that look like chance, the same every time.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }
}

/// Families of hashes, in each of which a few bits differ.
fn hashes(seed: u64) -> Vec<u64> {
    let mut draws = Draws(seed);
    let mut hashes = Vec::new();
    for _ in 0..120 {
        let head = draws.next();
        for _ in 0..draws.next() % 12 {
            let changes = (0..draws.next() % 9).fold(0_u64, |bits, _| bits | 1 << (draws.next() % 64));
            hashes.push(head ^ changes);
        }
    }
    hashes
}

#[test]
fn the_jobs_find_what_all_pairs_give() {
    for (seed, prefix_bits, nearest) in [(1, 16, 5), (2, 8, 3), (3, 16, 1), (4, 32, 50)] {
        let settings = Settings { prefix_bits, nearest, memory_bytes: 16 << 20 };
        let hashes = hashes(seed);
        let found = find(&hashes, settings).unwrap();
        let share = |one, other| naive::share_prefix(settings, one, other);
        assert_eq!(found.nearest, naive::nearest(&hashes, settings, share), "seed {seed}");
        assert!(found.pairs > 100 && found.clusters > 100, "{} {}", found.pairs, found.clusters);
        assert!(naive::check(&hashes, settings, &found).unwrap().starts_with("{\"equal\":true"));
    }
}

#[test]
fn a_neighbour_that_is_lost_is_told() {
    let settings = Settings { prefix_bits: 16, nearest: 5, memory_bytes: 16 << 20 };
    let hashes = hashes(5);
    let mut found = find(&hashes, settings).unwrap();
    found.nearest[0].1.pop();
    assert!(naive::check(&hashes, settings, &found).is_err());
}

#[test]
fn no_pair_of_few_bits_is_missed() {
    let settings = Settings { prefix_bits: 16, nearest: 50, memory_bytes: 16 << 20 };
    let hash = Draws(6).next();
    for bits in [0_u64, 1, 1 << 63 | 1, 1 << 60 | 1 << 40 | 1 << 20] {
        let found = find(&[hash, hash ^ bits], settings).unwrap();
        let distances: Vec<_> = found.nearest.iter().map(|(_, nearest)| nearest[0].distance).collect();
        assert_eq!(distances, [bits.count_ones() as u8; 2]);
    }
    assert!(find(&[hash, !hash], settings).unwrap().nearest.is_empty());
    assert!(find(&[], settings).unwrap().nearest.is_empty());
}

#[test]
fn images_that_look_alike_have_hashes_that_are_near() {
    let disc = |side: usize, shade: u8, opaque: u8, centre: f32| {
        let off = |at: usize| (at as f32 + 0.5) / side as f32 - centre;
        let pixel = |(x, y)| match off(x).powi(2) + 2.0 * off(y).powi(2) < 0.06 {
            true => [shade, 255],
            false => [200, opaque],
        };
        let places = (0..side).flat_map(|y| (0..side).map(move |x| (x, y)));
        let bytes = places.flat_map(pixel).collect();
        hash::of(&Picture { width: side, height: side, channels: 2, bytes })
    };
    let distance = |one: u64, other: u64| (one ^ other).count_ones();
    let plain = disc(64, 40, 255, 0.4);
    assert_eq!(plain.count_ones(), 32);
    assert!(distance(plain, disc(128, 40, 255, 0.4)) <= 6, "another size");
    assert!(distance(plain, disc(64, 60, 255, 0.4)) <= 6, "another shade");
    assert!(distance(plain, disc(64, 40, 0, 0.4)) <= 6, "on white where it is transparent");
    assert!(distance(plain, disc(64, 40, 255, 0.6)) >= 20, "elsewhere");
}
