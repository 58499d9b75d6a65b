//! How a line of a filter uses its bits, by how many keys are in it and how long it is.
//!
//! The hashes of a line are told apart by the *cell* of the line that they are in: the more keys, the fewer
//! cells. Cells of one number are 2^`low_bits` times `slots`. A line that is made shorter keeps its slots or
//! joins them, and keeps of a cell's number as many of the high bits as it can.

/// The longest line, in words of 64 bits: a cache line.
pub(super) const LINE_WORDS: usize = 8;
/// In front of all else in a line: how many keys it has, and where they are in the list.
pub(super) const HEADER_BITS: usize = 16;
/// A line with this many keys or more keeps nothing of them.
pub(super) const CROWDED: usize = 255;
/// No more low bits than these are of use.
const LOW_BITS_MAX: u32 = 32;

const _: () = assert!(HEADER_BITS == 16 && CROWDED < 1 << 8, "the header counts a line's keys in eight bits");
const _: () = assert!(LINE_WORDS * size_of::<u64>() == 64, "a line is a cache line");

/// What a line's bits mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    /// How many cells it had at its full length.
    pub(super) cells: u64,
    /// How many of the low bits of those cells' numbers are not kept.
    pub(super) dropped_bits: u8,
    /// How many bits of what is left are low ones; those above are the slot.
    pub(super) low_bits: u8,
    pub(super) slots: u16,
}

impl Form {
    /// The number of the cell, as far as it is kept.
    #[inline(always)]
    pub(super) fn cell(&self, fraction: u64) -> u64 {
        ((fraction as u128 * self.cells as u128) >> 64) as u64 >> self.dropped_bits
    }

    /// The share of absent hashes that are in the cell of one of this many keys.
    pub(super) fn false_positive_rate(&self, keys: usize) -> f64 {
        let kept = ((self.cells - 1) >> self.dropped_bits.min(63)) as f64 + 1.0;
        if self.slots == 0 { 1.0 } else { 1.0 - (1.0 - 1.0 / kept).powi(keys as i32) }
    }
}

static FORMS: [[Form; CROWDED + 1]; LINE_WORDS + 1] = forms();

/// The form of a line of this many words and keys.
#[inline(always)]
pub(super) fn form(words: usize, keys: usize) -> &'static Form {
    &FORMS[words.min(LINE_WORDS)][keys.min(CROWDED)]
}

const fn forms() -> [[Form; CROWDED + 1]; LINE_WORDS + 1] {
    let none = Form { cells: 1, dropped_bits: 0, low_bits: 0, slots: 0 };
    let mut forms = [[none; CROWDED + 1]; LINE_WORDS + 1];
    let mut keys = 0;
    while keys < CROWDED {
        let whole = whole(keys);
        let mut words = 1;
        while words < LINE_WORDS {
            forms[words][keys] = shortened(whole, keys, words);
            words += 1;
        }
        forms[LINE_WORDS][keys] = whole;
        keys += 1;
    }
    forms
}

/// A key takes a bit and its low bits, a slot a bit.
const fn bits_left(words: usize, keys: usize, low_bits: u32) -> usize {
    (64 * words - HEADER_BITS).saturating_sub(keys * (1 + low_bits as usize))
}

/// Of all forms that fill a whole line, the one with the most cells.
const fn whole(keys: usize) -> Form {
    let mut best = Form { cells: 1, dropped_bits: 0, low_bits: 0, slots: 1 };
    let mut low_bits = 0;
    while low_bits <= LOW_BITS_MAX {
        let slots = bits_left(LINE_WORDS, keys, low_bits);
        if (slots as u64) << low_bits > best.cells {
            best = Form {
                cells: (slots as u64) << low_bits,
                dropped_bits: 0,
                low_bits: low_bits as u8,
                slots: slots as u16,
            };
        }
        low_bits += 1;
    }
    best
}

/// Of all forms of the same cells that fit this many words, the one that drops the fewest bits.
const fn shortened(whole: Form, keys: usize, words: usize) -> Form {
    // Without room for a bit of each key a line is as good as crowded.
    let mut best = Form { cells: 1, dropped_bits: u8::MAX, low_bits: 0, slots: 0 };
    let mut low_bits = 0;
    while low_bits <= LOW_BITS_MAX && bits_left(words, keys, low_bits) > 0 {
        // As many bits less as leave no more slots than there is room for.
        let slots_max = bits_left(words, keys, low_bits) as u64;
        let shift = u64::BITS - ((whole.cells - 1) / slots_max).leading_zeros();
        let dropped_bits = shift.saturating_sub(low_bits) as u8;
        if dropped_bits < best.dropped_bits {
            let slots = ((whole.cells - 1) >> (dropped_bits as u32 + low_bits)) as u16 + 1;
            best = Form { cells: whole.cells, dropped_bits, low_bits: low_bits as u8, slots };
        }
        low_bits += 1;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_fits_its_line_and_shorter_ones_drop_more() {
        for keys in 0..CROWDED {
            for words in 1..=LINE_WORDS {
                let Form { cells, dropped_bits, low_bits, slots } = *form(words, keys);
                if slots > 0 {
                    let kept = (cells - 1) >> dropped_bits;
                    assert_eq!(kept >> low_bits, slots as u64 - 1, "{keys} keys, {words} words");
                    assert!(HEADER_BITS + slots as usize + keys * (1 + low_bits as usize) <= 64 * words);
                    let longer = form(words + 1, keys);
                    assert!(longer.slots > 0 && longer.dropped_bits <= dropped_bits);
                } else {
                    assert!(keys + 1 > 64 * words - HEADER_BITS);
                }
            }
        }
    }
}
