//! Groups by their words: a table of places, each of which has the number of one group.
//!
//! **Invariant:** group 0 has no place, and its words are any. At least half of the places are free.

use super::words::Secret;

/// Rows that are looked for together.
pub(super) const TOGETHER: usize = 32;
const SLOTS_MIN: usize = 256;

/// See the module.
pub(super) struct Known {
    secret: Secret,
    /// The number of the group, 0 for none.
    slots: Vec<u32>,
    /// The words of groups, one behind the other.
    words: Vec<u64>,
}

impl Default for Known {
    fn default() -> Self {
        Self { secret: Secret::default(), slots: vec![0; SLOTS_MIN], words: Vec::new() }
    }
}

impl Known {
    /// Gives some rows, no more than [`TOGETHER`], the groups that stand first at their places; those that have 0 keep it.
    /// Returns how many rows have other groups, whose numbers are put into `others`. `W` is how many words a row has, or 0
    /// for any number.
    ///
    /// Most rows have the first group. No step hangs on the one before, nor on a branch, so that the processor waits for
    /// the memory of many rows at once.
    pub(super) fn find_first<const W: usize>(
        &mut self,
        rows: &[u64],
        width: usize,
        groups: &mut [u32],
        others: &mut [usize; TOGETHER],
    ) -> usize {
        debug_assert!(W == 0 || W == width, "rows are as wide as is told");
        debug_assert!(groups.len() <= TOGETHER && rows.len() == width * groups.len(), "a row a group");
        let width = if W == 0 { width } else { W };
        self.words.resize(self.words.len().max(width), 0);
        let mut firsts = [0; TOGETHER];
        for (first, words) in firsts.iter_mut().zip(rows.chunks_exact(width)) {
            *first = self.slots[self.secret.hash::<W>(words) as usize & (self.slots.len() - 1)];
        }
        let mut count = 0;
        for (at, (words, (group, first))) in
            rows.chunks_exact(width).zip(groups.iter_mut().zip(firsts)).enumerate()
        {
            let is_first = (first > 0) & self.has(first, words);
            let has_group = *group > 0;
            others[count] = at;
            count += usize::from(has_group & !is_first);
            *group = if has_group { first } else { 0 };
        }
        count
    }

    /// Whether a group has these words.
    #[inline]
    fn has(&self, group: u32, words: &[u64]) -> bool {
        let known = &self.words[group as usize * words.len()..][..words.len()];
        known.iter().zip(words).fold(true, |is_equal, (known, word)| is_equal & (known == word))
    }

    /// The group with these words, or the free place for one.
    pub(super) fn find(&self, words: &[u64]) -> Result<u32, usize> {
        let mut slot = self.secret.hash::<0>(words) as usize & (self.slots.len() - 1);
        loop {
            match self.slots[slot] {
                0 => return Err(slot),
                group if self.has(group, words) => return Ok(group),
                _ => slot = (slot + 1) & (self.slots.len() - 1),
            }
        }
    }

    /// Gives a group that free place; the groups before it have theirs.
    pub(super) fn insert(&mut self, slot: usize, group: u32, words: &[u64]) {
        debug_assert_eq!(self.slots[slot], 0, "the place is free");
        debug_assert_eq!(self.words.len(), group as usize * words.len(), "groups come in order");
        self.words.extend_from_slice(words);
        self.slots[slot] = group;
        if 2 * group as usize > self.slots.len() {
            self.index(2 * self.slots.len(), words.len());
        }
    }

    /// Finds all groups of `width` words a place among so many.
    fn index(&mut self, slots: usize, width: usize) {
        debug_assert!(slots.is_power_of_two() && slots > self.words.len() / width, "every group has a place");
        self.slots = vec![0; slots];
        for (group, words) in (0..).zip(self.words.chunks_exact(width)).skip(1) {
            let mut slot = self.secret.hash::<0>(words) as usize & (slots - 1);
            while self.slots[slot] > 0 {
                slot = (slot + 1) & (slots - 1);
            }
            self.slots[slot] = group;
        }
    }

    /// Forgets all groups behind the first few, of `width` words each.
    pub(super) fn truncate(&mut self, groups: usize, width: usize) {
        self.words.truncate((groups + 1) * width);
        self.index(self.slots.len(), width);
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<u64>() * self.words.capacity() + size_of::<u32>() * self.slots.capacity()
    }
}
