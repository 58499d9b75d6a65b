//! Finding the n-th set bit of a word, in plain arithmetic: the instruction for it is slow on many processors.

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;

/// Where the n-th set bit of each byte is.
static IN_BYTE: [[u8; 256]; 8] = in_byte();

const fn in_byte() -> [[u8; 256]; 8] {
    let mut places = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut seen) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                places[seen][byte] = bit as u8;
                seen += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    places
}

/// In each byte, how many bits are set up to its end; the top byte has the sum of all.
#[inline(always)]
fn byte_sums(word: u64) -> u64 {
    let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
    let nibbles = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    ((nibbles + (nibbles >> 4)) & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(ONES)
}

/// The bit that is set in `word` and has `before` set bits below it; there must be one.
#[inline(always)]
pub(super) fn select(word: u64, before: u32) -> u32 {
    let sums = byte_sums(word);
    // A byte's top bit stays where its sum is not above `before`: as many bytes lie wholly below.
    let below = (((before as u64 * ONES) | TOPS) - sums) & TOPS;
    let shift = 8 * ((below >> 7).wrapping_mul(ONES) >> 56) as u32;
    let left = before - ((sums << 8) >> (shift & 63) & 0xff) as u32;
    shift + IN_BYTE[left as usize & 7][(word >> (shift & 63) & 0xff) as usize] as u32
}

#[cfg(test)]
mod tests {
    use forebay_base::hash::mix;

    use super::*;

    #[test]
    fn every_set_bit_is_found() {
        let sparse = (0..64).map(|bit| 1 << bit);
        let dense = (0..64).map(|bit| !(1 << bit));
        let random = (0..2000).map(mix);
        for word in sparse.chain(dense).chain(random).chain([u64::MAX]) {
            let bits = (0..64).filter(|bit| word >> bit & 1 == 1);
            bits.enumerate().for_each(|(before, bit)| assert_eq!(select(word, before as u32), bit));
        }
    }
}
