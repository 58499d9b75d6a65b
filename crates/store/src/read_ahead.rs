//! Having the system fetch what a job comes to while it works on what it has: in long stretches, for every read costs
//! the device a request, however short it is.

use std::ops::Range;

use forebay_env::File;

/// Longer requests gain nothing.
const STRETCH_BYTES_MAX: u64 = 512 << 10;

/// To be called before a piece is read, by one who reads on to `end`; at least a stretch behind it is on its way then.
/// What was fetched before ends at `fetched_end`, 0 for nothing, and what is returned is that end from now on.
pub fn read_ahead(file: &dyn File, piece: Range<u64>, stretch_bytes: u64, fetched_end: u64, end: u64) -> u64 {
    let stretch_bytes = stretch_bytes.min(STRETCH_BYTES_MAX);
    let from = fetched_end.max(piece.start);
    let until = (piece.end + 2 * stretch_bytes).min(end);
    if from >= (piece.end + stretch_bytes).min(until) {
        return from;
    }
    debug_assert!(from < until && until <= end, "only what is there is fetched");
    file.will_need(from, (until - from) as usize);
    until
}
