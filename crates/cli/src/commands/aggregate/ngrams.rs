//! N-grams: every N words that follow each other in a file.
//!
//! **Invariant:** a word has one number, and no other word has it. The key of an n-gram is its words'
//! numbers, four bytes each, big-endian: so keys of rare words and of long ones take as much as any.

use forebay::Error;
use forebay_units::sizes;
use hashbrown::HashTable;
use rapidhash::v3::rapidhash_v3;

/// The most words of an n-gram.
pub(super) const WORDS_MAX: usize = 32;
/// Bytes of a word's number.
const NUMBER_BYTES: usize = 4;

/// The words that were met, numbered from 0.
pub(super) struct Vocabulary {
    words: Vec<u8>,
    /// Where each word ends.
    ends: Vec<usize>,
    table: HashTable<u32>,
    memory_max: usize,
}

impl Vocabulary {
    /// An empty one, to take no more than this many bytes.
    pub(super) fn new(memory_max: usize) -> Self {
        Self { words: Vec::new(), ends: Vec::new(), table: HashTable::new(), memory_max }
    }

    /// The word of this number; nothing where there is none.
    pub(super) fn word(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(number).and_then(|end| self.words.get(start..*end)).unwrap_or_default()
    }

    /// The number of a word.
    #[inline]
    pub(super) fn number(&mut self, word: &[u8]) -> Result<u32, Error> {
        let hash = rapidhash_v3(word);
        match self.table.find(hash, |number| self.word(*number) == word) {
            Some(number) => Ok(*number),
            None => self.insert(hash, word),
        }
    }

    #[cold]
    fn insert(&mut self, hash: u64, word: &[u8]) -> Result<u32, Error> {
        if self.memory_bytes() > self.memory_max {
            return Err(Error::invalid(format!(
                "{} distinct words take more than {}, an eighth of what --memory leaves for groups; raise it",
                self.ends.len(),
                sizes::human(self.memory_max as u64)
            )));
        }
        let number =
            u32::try_from(self.ends.len()).map_err(|_| Error::invalid("more than 2^32 distinct words"))?;
        self.words.extend_from_slice(word);
        self.ends.push(self.words.len());
        let (words, ends) = (&self.words, &self.ends);
        let rehash = |number: &u32| {
            let end = ends[*number as usize];
            let start = if *number == 0 { 0 } else { ends[*number as usize - 1] };
            rapidhash_v3(&words[start..end])
        };
        self.table.insert_unique(hash, number, rehash);
        Ok(number)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.words.capacity() + self.ends.capacity() * size_of::<usize>() + self.table.allocation_size()
    }

    /// The same words, numbered by their bytes' order, and each old number's new one.
    pub(super) fn sorted(&self) -> (Self, Vec<u32>) {
        let mut order: Vec<u32> = (0..self.ends.len() as u32).collect();
        order.sort_unstable_by_key(|number| self.word(*number));
        let mut sorted = Self::new(self.memory_max);
        let mut renumbered = vec![0; order.len()];
        for (new, old) in (0..).zip(order) {
            sorted.words.extend_from_slice(self.word(old));
            sorted.ends.push(sorted.words.len());
            renumbered[old as usize] = new;
        }
        (sorted, renumbered)
    }
}

/// The last N words of a file.
pub(super) struct Window {
    key: Vec<u8>,
    words: usize,
}

impl Window {
    pub(super) fn new(words: usize) -> Self {
        Self { key: Vec::with_capacity(words * NUMBER_BYTES), words }
    }

    /// Takes the next word, and gives the key of the n-gram that it ends, if it ends one.
    #[inline]
    pub(super) fn push(&mut self, number: u32) -> Option<&[u8]> {
        let full = self.words * NUMBER_BYTES;
        if self.key.len() == full {
            self.key.copy_within(NUMBER_BYTES.., 0);
            self.key.truncate(full - NUMBER_BYTES);
        }
        self.key.extend_from_slice(&number.to_be_bytes());
        (self.key.len() == full).then_some(&self.key[..])
    }

    /// Forgets all words.
    pub(super) fn clear(&mut self) {
        self.key.clear();
    }
}

/// The words' numbers of a key.
pub(super) fn numbers(key: &[u8]) -> impl Iterator<Item = u32> {
    key.chunks_exact(NUMBER_BYTES)
        .map(|number| number.iter().fold(0, |all, byte| all << 8 | u32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            rng_seed: RngSeed::Fixed(13),
            ..ProptestConfig::with_cases(300)
        })]

        #[test]
        fn a_window_shows_what_slices_have(words in prop::collection::vec("[ab]{0,3}", 0..12), n in 1_usize..5) {
            let mut vocabulary = Vocabulary::new(1 << 20);
            let mut window = Window::new(n);
            let mut seen = Vec::new();
            for word in &words {
                let number = vocabulary.number(word.as_bytes()).unwrap();
                seen.extend(window.push(number).map(<[u8]>::to_vec));
            }
            let text = |vocabulary: &Vocabulary, numbers: Vec<u32>| {
                let words = numbers.into_iter().map(|number| vocabulary.word(number).to_vec());
                words.collect::<Vec<_>>()
            };
            let expected: Vec<Vec<Vec<u8>>> =
                words.windows(n).map(|window| window.iter().map(|word| word.clone().into_bytes()).collect()).collect();
            let shown: Vec<_> = seen.iter().map(|key| text(&vocabulary, numbers(key).collect())).collect();
            prop_assert_eq!(&shown, &expected);

            let (sorted, renumbered) = vocabulary.sorted();
            let again: Vec<_> = seen
                .iter()
                .map(|key| text(&sorted, numbers(key).map(|number| renumbered[number as usize]).collect()))
                .collect();
            prop_assert_eq!(again, expected);
            let distinct = renumbered.len() as u32;
            prop_assert!((1..distinct).all(|number| sorted.word(number - 1) < sorted.word(number)));
        }
    }

    #[test]
    fn a_vocabulary_keeps_to_its_memory() {
        let mut vocabulary = Vocabulary::new(10_000);
        let refused = (0..10_000).find(|word: &u32| vocabulary.number(&word.to_le_bytes()).is_err());
        assert!(refused.is_some_and(|words| words > 100), "{refused:?}");
        assert!(vocabulary.number(&0_u32.to_le_bytes()).is_ok(), "what it has it still finds");
    }
}
