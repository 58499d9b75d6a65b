//! What fuzzers draw from a seed: keys, values, records, orders. Lopsided on purpose: keys that repeat, that begin
//! alike, that are empty.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_base::codec::Codec;
use forebay_base::{Kind, Order, PrefixFilter, Range};
use forebay_env::encryption::{Damage, DataKeys, EncryptedFs};
use forebay_env::fs::MemoryFs;
use forebay_env::{Env, FileSystem, Rng};

/// What a structure must hold, by prefix and key.
pub(crate) type Model = BTreeMap<(u64, Vec<u8>), (Kind, Vec<u8>)>;

/// One of these.
pub(crate) fn one_of<T: Copy>(rng: &mut Rng, items: &[T]) -> T {
    items[rng.index(items.len())]
}

/// These files as they are, or, now and then, by keys: then what is damaged there is ciphertext.
pub(crate) fn shown(rng: &mut Rng, fs: &Arc<MemoryFs>) -> Arc<dyn FileSystem> {
    if !rng.chance(40) {
        return fs.clone();
    }
    let keys = DataKeys::new(&Env::memory(rng.next_u64())).expect("numbers are drawn");
    EncryptedFs::new(fs.clone(), keys, Damage::IsAnError)
}

pub(crate) fn order(rng: &mut Rng) -> Order {
    let seed = rng.next_u64();
    one_of(rng, &[Order::Lexical, Order::Hashed { seed }, Order::Colliding { bits: 2 }])
}

pub(crate) fn prefix_filter(rng: &mut Rng) -> Option<PrefixFilter> {
    let some = one_of(rng, &[PrefixFilter::Bytes(1), PrefixFilter::Bytes(9), PrefixFilter::Until(b'/')]);
    one_of(rng, &[None, Some(some)])
}

pub(crate) fn codec(rng: &mut Rng) -> Codec {
    one_of(rng, &[Codec::None, Codec::Lz4])
}

/// One of `count` keys.
pub(crate) fn key(rng: &mut Rng, count: u64) -> Vec<u8> {
    let number = rng.below(count);
    match number % 5 {
        0 => number.to_be_bytes()[6..].to_vec(),
        1 => format!("user{number:06}").into_bytes(),
        2 => format!("user{number}/a-rather-long-key-that-others-begin-with/{number}").into_bytes(),
        3 => vec![0; number as usize % 40],
        _ => number.to_le_bytes().to_vec(),
    }
}

/// Short ones, and now and then one that is longer than a page.
pub(crate) fn value(rng: &mut Rng) -> Vec<u8> {
    let length = one_of(rng, &[0, 1, 8, 8, 40, 40, 200, 200, 1000, 5000]);
    let mut value = vec![0; length];
    // Half of each can be compressed.
    rng.fill(&mut value[length / 2..]);
    value
}

/// A put, a delete or an operand.
pub(crate) fn change(rng: &mut Rng) -> (Kind, Vec<u8>) {
    match one_of(rng, &[Kind::Put, Kind::Put, Kind::Merge, Kind::Delete]) {
        Kind::Delete => (Kind::Delete, Vec::new()),
        kind => (kind, value(rng)),
    }
}

/// Records as a list has them: all puts of one size, or anything.
pub(crate) fn records(rng: &mut Rng, order: Order, count: u64) -> Model {
    let fixed = rng.chance(50);
    let record = |_| match fixed {
        true => (rng.below(4 * count).to_be_bytes().to_vec(), (Kind::Put, vec![rng.next_u64() as u8; 8])),
        false => (key(rng, 4 * count), change(rng)),
    };
    (0..count).map(record).map(|(key, change)| ((order.prefix(&key), key), change)).collect()
}

/// Everything, or what lies between two of the keys.
pub(crate) fn range(rng: &mut Rng, order: Order, keys: u64) -> Range {
    let mut ends = [key(rng, keys), key(rng, keys)].map(|key| order.bound(&key));
    ends.sort();
    let [low, high] = ends;
    match rng.index(4) {
        0 => Range::all(),
        1 => Range { low, high: None },
        _ => Range { low, high: Some(high) },
    }
}
