//! [`Words`]: 64-bit words that one thread may rewrite while others read them, and whose tail can be given
//! back to the system. What readers make of words that change under them is their own affair.
//!
//! **Invariant:** a word that was never stored, or was released, is zero or what it was; the length stays.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::kernel::{PAGE_BYTES, PagedWords};

/// From this size on words have pages of their own.
const PAGED_BYTES_MIN: usize = 4 << 10;

const _: () = assert!(PAGED_BYTES_MIN >= PAGE_BYTES, "pages are not taken for less than one of them");

/// Words of a fixed number.
#[derive(Debug)]
pub struct Words(Memory);

#[derive(Debug)]
enum Memory {
    Boxed(Box<[AtomicU64]>),
    Paged(PagedWords),
}

impl Words {
    /// This many zeros.
    pub fn zeroed(len: usize) -> Self {
        if len * size_of::<u64>() < PAGED_BYTES_MIN {
            return Self(Memory::Boxed((0..len).map(|_| AtomicU64::new(0)).collect()));
        }
        let words = PagedWords::zeroed(len);
        debug_assert_eq!(words.as_slice().len(), len);
        Self(Memory::Paged(words))
    }

    /// The words themselves.
    #[inline]
    pub fn as_slice(&self) -> &[AtomicU64] {
        match &self.0 {
            Memory::Boxed(words) => words,
            Memory::Paged(words) => words.as_slice(),
        }
    }

    /// The word at `index`; zero behind the end.
    #[inline]
    pub fn get(&self, index: usize) -> u64 {
        self.as_slice().get(index).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Stores a word; one behind the end goes nowhere.
    #[inline]
    pub fn set(&self, index: usize, word: u64) {
        if let Some(at) = self.as_slice().get(index) {
            at.store(word, Ordering::Relaxed);
        }
    }

    /// Asks for the cache line of the word at `index`, and does not wait for it.
    #[inline]
    pub fn prefetch(&self, index: usize) {
        if let Some(word) = self.as_slice().get(index) {
            crate::prefetch(word);
        }
    }

    /// Memory held while only the first `len` words are of use and the rest was released, in bytes: of pages, whole
    /// ones.
    pub fn memory_bytes(&self, len: usize) -> usize {
        match &self.0 {
            Memory::Boxed(words) => size_of_val(&words[..]),
            Memory::Paged(words) => {
                let all = size_of_val(words.as_slice());
                (len * size_of::<u64>()).min(all).next_multiple_of(PAGE_BYTES)
            }
        }
    }

    /// Leaves the first `len` words, in memory for no more than those. Not for what others read.
    pub fn cut(&mut self, len: usize) {
        if len < self.as_slice().len() {
            let cut = Self::zeroed(len);
            (0..len).for_each(|index| cut.set(index, self.get(index)));
            *self = cut;
            debug_assert_eq!(self.as_slice().len(), len);
        }
    }

    /// Gives back the memory behind the first `len` words, as far as that is whole pages. Few words stay.
    pub fn release(&self, len: usize) {
        if let Memory::Paged(words) = &self.0 {
            words.release(len);
        }
    }
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use super::*;

    #[test]
    fn words_keep_what_is_stored_and_released_ones_read_as_zeros() {
        for len in [0, 1, 8191, 8192, 70_000, 300_001] {
            let words = Words::zeroed(len);
            assert_eq!(words.as_slice().len(), len);
            (0..len + 2).for_each(|index| words.set(index, index as u64 + 1));
            (0..len + 2).for_each(|index| words.prefetch(index));
            let kept = len / 3;
            words.release(kept);
            for index in 0..len + 2 {
                let word = words.get(index);
                assert!(
                    word == index as u64 + 1 && index < len || word == 0 && index >= kept,
                    "{index}: {word}"
                );
            }
            let pages_end = len / 512 * 512;
            let mut words = words;
            let first = words.get(0);
            words.cut(kept.min(100));
            assert_eq!((words.as_slice().len(), words.get(100)), (kept.min(100), 0));
            assert!(words.memory_bytes(100) <= 800 && (kept == 0 || words.get(0) == first));
            let words = Words::zeroed(len);
            if len >= 8192 {
                assert_eq!(words.get(pages_end - 1), 0, "whole pages are given back");
                words.set(pages_end - 1, 5);
                assert_eq!(words.get(pages_end - 1), 5, "and can be used again");
            }
        }
    }
}
