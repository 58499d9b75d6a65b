//! How a whole line of a filter uses its bits, by how many keys are in it.
//!
//! The hashes of a line are told apart by the *cell* of the line that they are in: the more keys, the fewer
//! cells. Cells of one number are 2^`low_bits` times `slots`.

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
    /// How many cells it has.
    pub(super) cells: u64,
    /// How many bits of a cell's number are low ones; those above are the slot.
    pub(super) low_bits: u8,
    pub(super) slots: u16,
}

impl Form {
    /// The number of the cell.
    #[inline(always)]
    pub(super) fn cell(&self, fraction: u64) -> u64 {
        ((fraction as u128 * self.cells as u128) >> 64) as u64
    }
}

/// The share of absent hashes that a line of this many words and keys does not deny.
pub(super) fn false_positive_rate(words: usize, keys: usize) -> f64 {
    let hit = |places: f64| 1.0 - (1.0 - 1.0 / places).powi(keys as i32);
    let alike = hit(form(keys).cells as f64);
    if words >= LINE_WORDS {
        return alike;
    }
    let bits_of = |word: usize| if word == 0 { 64 - HEADER_BITS } else { 64 };
    let by_chance: f64 = (0..words).map(|word| hit(bits_of(word) as f64)).product();
    alike + (1.0 - alike) * by_chance
}

static FORMS: [Form; CROWDED + 1] = forms();

/// The form of a whole line of this many keys.
#[inline(always)]
pub(super) fn form(keys: usize) -> &'static Form {
    &FORMS[keys.min(CROWDED)]
}

const fn forms() -> [Form; CROWDED + 1] {
    let none = Form { cells: 1, low_bits: 0, slots: 0 };
    let mut forms = [none; CROWDED + 1];
    let mut keys = 0;
    while keys < CROWDED {
        forms[keys] = whole(keys);
        keys += 1;
    }
    forms
}

/// Of all forms that fill a whole line, the one with the most cells. A key takes a bit and its low bits, a slot a bit.
const fn whole(keys: usize) -> Form {
    let mut best = Form { cells: 1, low_bits: 0, slots: 1 };
    let mut low_bits = 0;
    while low_bits <= LOW_BITS_MAX {
        let slots = (64 * LINE_WORDS - HEADER_BITS).saturating_sub(keys * (1 + low_bits as usize));
        if (slots as u64) << low_bits > best.cells {
            best = Form { cells: (slots as u64) << low_bits, low_bits: low_bits as u8, slots: slots as u16 };
        }
        low_bits += 1;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_fits_its_line_and_shorter_ones_deny_less() {
        for keys in 0..CROWDED {
            let Form { cells, low_bits, slots } = *form(keys);
            assert_eq!((cells, slots > 0), ((slots as u64) << low_bits, true), "{keys} keys");
            assert!(HEADER_BITS + slots as usize + keys * (1 + low_bits as usize) <= 64 * LINE_WORDS);
            let rates: Vec<f64> = (0..=LINE_WORDS).map(|words| false_positive_rate(words, keys)).collect();
            assert!(rates.is_sorted_by(|shorter, longer| shorter >= longer) && rates[0] == 1.0, "{rates:?}");
        }
    }
}
