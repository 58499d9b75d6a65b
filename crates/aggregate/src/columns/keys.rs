//! The keys of rows, and those that are too long.

use forebay_base::limits::KEY_BYTES_MAX;

use super::words::KEYS_MAX;
use super::{Lane, Rows};

/// Texts that take no more than this share of the longest key make one, whatever else is in it: of a text each byte
/// takes two at most, and a number some hundred.
const SURELY_SHORT_SHARE: usize = 4;
const NUMBER_BYTES_MAX: usize = 400;

const _: () =
    assert!(2 * (KEY_BYTES_MAX / SURELY_SHORT_SHARE) + KEYS_MAX * NUMBER_BYTES_MAX <= KEY_BYTES_MAX);

/// Appends the key of a row. `false`, and nothing is appended, where it is too long for one.
pub(super) fn push_key(rows: &Rows<'_>, at: usize, keys: &mut Vec<u8>) -> bool {
    let start = keys.len();
    let texts = rows.keys().iter().filter(|lane| lane.is_present(at)).map(|lane| lane.text(at).len());
    if texts.sum::<usize>() <= KEY_BYTES_MAX {
        rows.write_key(at, keys);
        if keys.len() - start <= KEY_BYTES_MAX {
            return true;
        }
        keys.truncate(start);
    }
    false
}

/// How many of the first rows, `most` at most, come before one whose key is too long; `spare` is memory.
pub(super) fn before_long(rows: &Rows<'_>, most: usize, spare: &mut Vec<u8>) -> usize {
    debug_assert!(most <= rows.len(), "they are some of the rows");
    let start = spare.len();
    let mut is_key = |at: usize| {
        let texts = rows.keys().iter().map(|lane: &Lane<'_>| lane.text(at).len()).sum::<usize>();
        let is_short = rows.keys().len() <= KEYS_MAX && texts <= KEY_BYTES_MAX / SURELY_SHORT_SHARE;
        let is_key = is_short || push_key(rows, at, spare);
        spare.truncate(start);
        is_key
    };
    (0..most).find(|at| !is_key(*at)).unwrap_or(most)
}
