//! Open hash tables of words: a word goes to the part of the highest byte of its piece, there to the slot of the bits
//! below, or the next free one. So words of one piece lie behind each other.

use forebay_base::sort::piece_of;
use forebay_env::prefetch;

/// By the highest byte of a piece: each grows for itself, so that none takes long.
const PARTS: usize = 256;
const SLOTS_MIN: usize = 8;

const _: () = assert!(SLOTS_MIN.is_power_of_two() && PARTS == 1 << 8, "a byte of the piece chooses the part");
/// No word: no record is at the last place there could be.
const FREE: u64 = 0;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// None before the first word.
    parts: Vec<Part>,
    /// How many words there are.
    used: usize,
}

#[derive(Debug, Default)]
struct Part {
    slots: Vec<u64>,
    used: usize,
}

impl Part {
    #[inline]
    fn first(&self, piece: u32) -> usize {
        // The highest byte is the same in all of the part.
        ((u64::from(piece << 8) * self.slots.len() as u64) >> 32) as usize
    }

    /// The slots to look at for a piece, beginning where it should be.
    #[inline]
    fn path(&self, piece: u32) -> impl Iterator<Item = usize> + use<> {
        let (first, mask) = (self.first(piece), self.slots.len().wrapping_sub(1));
        (0..self.slots.len()).map(move |step| (first + step) & mask)
    }

    fn grow(&mut self) {
        let slots = (2 * self.slots.len()).max(SLOTS_MIN);
        let words = std::mem::replace(&mut self.slots, vec![FREE; slots]);
        for word in words.into_iter().filter(|&word| word != FREE) {
            let slot = self.path(piece_of(word)).find(|&slot| self.slots[slot] == FREE);
            debug_assert!(slot.is_some(), "there are more slots than words");
            if let Some(slot) = slot {
                self.slots[slot] = word;
            }
        }
        debug_assert_eq!(self.slots.iter().filter(|&&word| word != FREE).count(), self.used);
    }
}

impl Slots {
    pub(super) fn memory_bytes(&self) -> usize {
        let slots: usize = self.parts.iter().map(|part| part.slots.capacity()).sum();
        8 * slots + size_of::<Part>() * self.parts.capacity()
    }

    /// How many words there are.
    pub(super) fn len(&self) -> usize {
        self.used
    }

    #[inline]
    fn part(&self, piece: u32) -> Option<&Part> {
        self.parts.get((piece >> 24) as usize)
    }

    /// Loads the slot where a piece should be.
    #[inline]
    pub(super) fn prefetch(&self, piece: u32) {
        let slot = self.part(piece).and_then(|part| part.slots.get(part.first(piece)));
        slot.into_iter().for_each(prefetch);
    }

    /// The words of a piece.
    #[inline]
    pub(super) fn of(&self, piece: u32) -> impl Iterator<Item = u64> + '_ {
        let words = self.part(piece).into_iter().flat_map(move |part| {
            part.path(piece).map(|slot| part.slots[slot]).take_while(|&word| word != FREE)
        });
        words.filter(move |&word| piece_of(word) == piece)
    }

    /// Adds a word, unless `meets` has another one for a word of the same piece: that is put in its place.
    #[inline]
    pub(super) fn put<E>(
        &mut self,
        word: u64,
        mut meets: impl FnMut(u64) -> Result<Option<u64>, E>,
    ) -> Result<(), E> {
        let piece = piece_of(word);
        if self.parts.is_empty() {
            self.parts = (0..PARTS).map(|_| Part::default()).collect();
        }
        let part = &mut self.parts[(piece >> 24) as usize];
        if part.used * 4 >= part.slots.len() * 3 {
            part.grow();
        }
        for slot in part.path(piece) {
            let other = part.slots[slot];
            if other == FREE {
                (part.slots[slot], part.used) = (word, part.used + 1);
                self.used += 1;
                return Ok(());
            }
            if piece_of(other) == piece
                && let Some(word) = meets(other)?
            {
                part.slots[slot] = word;
                return Ok(());
            }
        }
        debug_assert!(false, "there are more slots than words");
        Ok(())
    }
}
