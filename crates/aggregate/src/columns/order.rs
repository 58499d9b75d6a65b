//! The order in which rows leave that are groups by themselves.

/// They leave in the order of this many first bits of their keys' hashes: so an aggregator's leaf takes its rows one after
/// the other.
const ORDER_BITS: u32 = 11;

/// The places of hashes in the order of their first bits.
pub(super) fn in_order(hashes: &[u64]) -> Vec<usize> {
    let mut starts = vec![0; (1 << ORDER_BITS) + 1];
    let first = |hash: u64| (hash >> (64 - ORDER_BITS)) as usize;
    hashes.iter().for_each(|hash| starts[first(*hash) + 1] += 1);
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    debug_assert_eq!(starts.last(), Some(&hashes.len()), "every hash is counted");
    let mut places = vec![0; hashes.len()];
    for (at, hash) in hashes.iter().enumerate() {
        let start = &mut starts[first(*hash)];
        places[*start] = at;
        *start += 1;
    }
    places
}
