//! What gets and ranges meet: pages that the cache has, lists that lookups have had merged, and how skewed they are.

use super::{Popularity, Workload};

/// Zipf's exponent, as the bench and YCSB have it.
const THETA: f64 = 0.99;
/// Pages of lists.
pub(super) const PAGE_BYTES: f64 = 4096.0;

/// The sum of `i^-THETA` for i from 1 to `items`, whole or not: an integral with half of both ends.
fn zeta(items: f64) -> f64 {
    let items = items.max(1.0);
    (items.powf(1.0 - THETA) - 1.0) / (1.0 - THETA) + (1.0 + items.powf(-THETA)) / 2.0
}

/// Of so many draws of keys, those that are of a key for the first time: 1 where keys are even.
pub(super) fn first_share(workload: &Workload, draws: f64) -> f64 {
    let keys = workload.keys as f64;
    if workload.popularity == Popularity::Even || draws < 1.0 {
        return 1.0;
    }
    // The expected number of distinct keys, over ranks that are ever farther apart.
    let (sum, mut distinct, mut rank) = (zeta(keys), 0.0, 1.0);
    while rank < keys {
        let next = (rank * 1.25f64).max(rank + 1.0).min(keys);
        let chance = ((rank + next) / 2.0).powf(-THETA) / sum;
        distinct += (next - rank) * -(-chance * draws).exp_m1();
        rank = next;
    }
    debug_assert!(distinct <= keys, "no key is made");
    (distinct / draws).clamp(1e-3, 1.0)
}

/// The share of page reads that a cache of so many bytes answers, of a table with so many bytes on disk.
pub(super) fn cache_hits(workload: &Workload, cache_bytes: f64, table_bytes: f64) -> f64 {
    let share = (cache_bytes / table_bytes.max(1.0)).min(1.0);
    if workload.popularity == Popularity::Even {
        return share;
    }
    // A page has one popular key at most, and pages of the most popular keys stay.
    let pages = cache_bytes / PAGE_BYTES;
    let popular = zeta(pages.min(workload.keys as f64)) / zeta(workload.keys as f64);
    debug_assert!((0.0..=1.0).contains(&popular), "a share of all lookups");
    popular + (1.0 - popular) * share
}

/// What lookups have merged of a tree's lists, beyond what its limits call for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReadCompaction {
    /// Lists on a path are this many then.
    pub(super) lists: f64,
    /// And each write is merged so often more.
    pub(super) passes: f64,
}

impl ReadCompaction {
    /// `paid` seconds of merging a write are allowed for each list on the path. Lists come with write buffers; a merge of
    /// everything each `k` buffers leaves `k / 2` of them on average, and costs `buffers / k` passes a write. Waste pays
    /// for that at one `k`.
    pub(super) fn of(lists: f64, buffers: f64, pass: f64, paid: f64) -> Self {
        if lists <= 1.0 || paid <= 0.0 {
            return Self { lists, passes: 0.0 };
        }
        let between = (2.0 * buffers * pass / paid).sqrt();
        if 1.0 + between / 2.0 >= lists {
            return Self { lists, passes: 0.0 };
        }
        debug_assert!(between > 0.0, "each merge has something new");
        Self { lists: 1.0 + between / 2.0, passes: buffers / between.max(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_repeats_and_stays_in_a_small_cache() {
        let even = Workload { keys: 1_000_000, ..Workload::default() };
        let zipf = Workload { popularity: Popularity::Zipf, ..even };
        assert_eq!(first_share(&even, 1e4), 1.0);
        let shares = [1e2, 1e4, 1e6].map(|draws| first_share(&zipf, draws));
        assert!(shares[0] > shares[1] && shares[1] > shares[2] && shares[2] > 0.1, "{shares:?}");
        let (bytes, cache) = (1e8, 1e6);
        assert_eq!(cache_hits(&even, cache, bytes), 0.01);
        assert!(cache_hits(&zipf, cache, bytes) > 0.3);
        assert!(cache_hits(&zipf, 2.0 * bytes, bytes) <= 1.0);
    }

    #[test]
    fn lookups_pay_for_merges_of_many_lists() {
        let of = |gets| ReadCompaction::of(40.0, 40.0, 1e-7, gets * 4e-5);
        assert_eq!((of(0.0).lists, of(0.0).passes), (40.0, 0.0));
        assert!(of(1.0).lists < 5.0 && of(1.0).passes > 1.0, "{:?}", of(1.0));
        assert!(of(0.01).lists < of(0.001).lists && of(0.01).passes > of(0.001).passes);
    }
}
