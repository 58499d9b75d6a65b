//! Searches of sorted words whose pieces are spread evenly: a piece is near its share of them. Each step from one guess to
//! the next, by the piece that is found there, has the square root of the distance left.

use forebay_base::sort::piece_of;

/// So many lookups wait for memory at the same time.
pub(super) const AHEAD: usize = 16;
/// So many behind the first guess: of a million words one is off by some tens then.
pub(super) const STEPS: usize = 2;

/// How many words these pieces are the share of.
#[inline]
fn share(words: &[u64], pieces: i64) -> i64 {
    (pieces * words.len() as i64) >> 32
}

/// The first guess where a piece is.
#[inline]
pub(super) fn begin(words: &[u64], piece: u32) -> usize {
    share(words, i64::from(piece)) as usize
}

/// A better one.
#[inline]
pub(super) fn step(words: &[u64], piece: u32, at: usize) -> usize {
    let found = words.get(at).map_or(piece, |&word| piece_of(word));
    let better = at as i64 + share(words, i64::from(piece) - i64::from(found));
    better.clamp(0, words.len() as i64) as usize
}

/// The best one.
#[inline]
pub(super) fn guess(words: &[u64], piece: u32) -> usize {
    (0..STEPS).fold(begin(words, piece), |at, _| step(words, piece, at))
}

/// How many words come before, looked for from a guess on at ever greater distances.
#[inline]
pub(super) fn first(words: &[u64], guess: usize, comes_before: impl Fn(u64) -> bool) -> usize {
    debug_assert!(guess <= words.len());
    let (mut low, mut high, mut step) = (guess, guess, 1);
    while high < words.len() && comes_before(words[high]) {
        (low, high, step) = (high + 1, (high + step).min(words.len()), 2 * step);
    }
    step = 1;
    while low > 0 && low <= guess && !comes_before(words[low - 1]) {
        (high, low, step) = (low - 1, low.saturating_sub(step), 2 * step);
    }
    low + words[low..high].partition_point(|&word| comes_before(word))
}

#[cfg(test)]
mod tests {
    use forebay_base::sort::pack;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However unevenly they are spread.
        #[test]
        fn the_first_is_found(
            pieces in prop::collection::vec(prop_oneof![any::<u32>(), 0..9_u32, (u32::MAX - 9)..=u32::MAX], 0..300),
            sought in prop_oneof![any::<u32>(), 0..9_u32],
        ) {
            let mut words: Vec<u64> = pieces.iter().map(|&piece| pack(piece, 7)).collect();
            words.sort_unstable();
            for piece in pieces.into_iter().chain([sought]) {
                let comes_before = |word: u64| piece_of(word) < piece;
                let expected = words.partition_point(|&word| comes_before(word));
                for at in [guess(&words, piece), 0, words.len(), words.len() / 2] {
                    prop_assert_eq!(first(&words, at, comes_before), expected);
                }
            }
        }
    }
}
