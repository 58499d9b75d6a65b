//! Geometric partitioning (Lester, Moffat and Zobel; Rangemerge paper, section III.B). The k-th run has at most
//! (r-1) r^(k-1) write buffers. A write buffer that does not fit the first is merged with as many runs as it takes
//! until the result fits its place.

use super::super::set::RunSet;
use super::Flush;

pub(super) fn flush<F>(set: &RunSet<F>, bytes: u64, ratio: u32, places: u32) -> Flush {
    let unit_bytes = set.unit_bytes.max(bytes).max(1);
    // What has outgrown the last place stays there until r is larger.
    let place_of = |bytes| place_of(bytes, unit_bytes, ratio).min(places);
    let mut sum = bytes;
    for (runs, run) in set.runs.iter().enumerate() {
        let level = place_of(sum);
        if level < run.level {
            return Flush { runs, level };
        }
        sum = sum.saturating_add(run.bytes());
    }
    Flush { runs: set.runs.len(), level: place_of(sum) }
}

/// The first place that so much fits: k, from 1.
fn place_of(bytes: u64, unit_bytes: u64, ratio: u32) -> u32 {
    let ratio = u64::from(ratio);
    let mut capacity = (ratio - 1).saturating_mul(unit_bytes);
    let mut place = 1;
    while capacity < bytes {
        capacity = capacity.saturating_mul(ratio);
        place += 1;
    }
    place
}

/// The least r by which all that there is, and what comes, fits the first `runs_max` places: r^p - 1 write buffers.
pub(super) fn ratio_of<F>(set: &RunSet<F>, bytes: u64, runs_max: u32) -> u32 {
    let unit_bytes = set.unit_bytes.max(bytes).max(1);
    let whole: u64 = set.runs.iter().map(|run| run.bytes()).sum();
    let units = whole.saturating_add(bytes).div_ceil(unit_bytes);
    let fits = |ratio: u32| u64::from(ratio).checked_pow(runs_max).is_none_or(|places| places > units);
    // By halves: r is at most as large as the number of units.
    let (mut low, mut high) = (2, u32::try_from(units.saturating_add(1)).unwrap_or(u32::MAX).max(2));
    while low < high {
        let middle = low + (high - low) / 2;
        if fits(middle) { high = middle } else { low = middle + 1 }
    }
    low
}
