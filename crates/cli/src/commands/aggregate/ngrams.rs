//! N-grams: every N words that follow each other in a file.
//!
//! **Invariant:** a word has one number, and no other word has it. The key of an n-gram is its words'
//! numbers, four bytes each, big-endian: so keys of rare words and of long ones take as much as any.

use forebay::Error;
use forebay_env::hash_secret;
use forebay_env::sync::Mutex;
use forebay_env::sync::atomic::{AtomicUsize, Ordering};
use forebay_units::sizes;
use hashbrown::HashTable;
use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

/// The most words of an n-gram.
pub(super) const WORDS_MAX: usize = 32;
/// Bytes of a word's number.
const NUMBER_BYTES: usize = 4;
/// What words are divided between, by their hashes. A number tells its part by its last bits.
const PARTS: usize = 16;

/// Words, one behind the other.
#[derive(Default)]
pub(super) struct Words {
    bytes: Vec<u8>,
    /// Where each word ends.
    ends: Vec<usize>,
}

impl Words {
    /// The word at this place; nothing where there is none.
    pub(super) fn word(&self, at: u32) -> &[u8] {
        let at = at as usize;
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(at).and_then(|end| self.bytes.get(start..*end)).unwrap_or_default()
    }

    fn push(&mut self, word: &[u8]) {
        self.bytes.extend_from_slice(word);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }
}

/// The words that were met, by any thread, each under a number.
pub(super) struct Vocabulary {
    /// What words are hashed with, so that no file can have many that fall together.
    secrets: RapidSecrets,
    parts: [Mutex<Part>; PARTS],
    count: AtomicUsize,
    memory_bytes: AtomicUsize,
    memory_max: usize,
}

/// Words whose hashes are of one part.
#[derive(Default)]
struct Part {
    words: Words,
    table: HashTable<u32>,
}

/// Memory to number words with.
#[derive(Default)]
pub(super) struct Numbering {
    hashes: Vec<u64>,
    /// The places of the words, part by part.
    order: Vec<usize>,
    numbers: Vec<u32>,
}

/// The part that a hash is of: by bits that tables do not look at.
fn part_of(hash: u64) -> usize {
    (hash >> 40) as usize % PARTS
}

impl Vocabulary {
    /// An empty one, to take no more than this many bytes.
    pub(super) fn new(memory_max: usize) -> Self {
        let (parts, count, memory_bytes) = Default::default();
        Self { secrets: RapidSecrets::seed_cpp(hash_secret()), parts, count, memory_bytes, memory_max }
    }

    /// The numbers of some words. Who numbers many takes each part's lock once, and does not begin where others do.
    pub(super) fn number<'n>(
        &self,
        words: &[&[u8]],
        numbering: &'n mut Numbering,
    ) -> Result<&'n [u32], Error> {
        let Numbering { hashes, order, numbers } = numbering;
        hashes.clear();
        hashes.extend(words.iter().map(|word| rapidhash_v3_seeded(word, &self.secrets)));
        let mut ends = [0; PARTS];
        hashes.iter().for_each(|hash| ends[part_of(*hash)] += 1);
        let mut end = 0;
        for part in &mut ends {
            (*part, end) = (end, end + *part);
        }
        order.clear();
        order.resize(words.len(), 0);
        for (at, hash) in hashes.iter().enumerate() {
            let place = &mut ends[part_of(*hash)];
            order[*place] = at;
            *place += 1;
        }
        numbers.clear();
        numbers.resize(words.len(), 0);
        let first = hashes.first().map_or(0, |hash| part_of(*hash));
        for part in (first..PARTS).chain(0..first) {
            let start = part.checked_sub(1).map_or(0, |before| ends[before]);
            let some = &order[start..ends[part]];
            if some.is_empty() {
                continue;
            }
            let mut own = self.parts[part].lock();
            for at in some {
                let at = *at;
                numbers[at] = match own.find(hashes[at], words[at]) {
                    Some(place) => number_of(part, place)?,
                    None => number_of(part, self.insert(&mut own, hashes[at], words[at])?)?,
                };
            }
        }
        Ok(numbers)
    }

    #[cold]
    fn insert(&self, part: &mut Part, hash: u64, word: &[u8]) -> Result<u32, Error> {
        if self.memory_bytes.load(Ordering::Relaxed) > self.memory_max {
            return Err(Error::invalid(format!(
                "{} distinct words take more than {}, an eighth of what --memory leaves for groups; raise it",
                self.count.load(Ordering::Relaxed),
                sizes::human(self.memory_max as u64)
            )));
        }
        let before = part.memory_bytes();
        let place = part.insert(hash, word, &self.secrets)?;
        // It wraps where less is used than before.
        self.memory_bytes.fetch_add(part.memory_bytes().wrapping_sub(before), Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(place)
    }

    /// The same words in their bytes' order, and each number's place among them.
    pub(super) fn sorted(self) -> (Words, Vec<u32>) {
        let parts = self.parts.map(Mutex::into_inner);
        let word = |number: u32| parts[number as usize % PARTS].words.word(number / PARTS as u32);
        let mut order: Vec<u32> = Vec::new();
        for (part, Part { words, .. }) in parts.iter().enumerate() {
            order.extend((0..words.ends.len()).map(|place| (place * PARTS + part) as u32));
        }
        let numbers = order.iter().max().map_or(0, |last| *last as usize + 1);
        order.sort_unstable_by(|one, other| word(*one).cmp(word(*other)));
        let (mut sorted, mut renumbered) = (Words::default(), vec![0; numbers]);
        for (new, old) in (0..).zip(order) {
            sorted.push(word(old));
            renumbered[old as usize] = new;
        }
        (sorted, renumbered)
    }
}

/// The number of the word at a place of a part.
fn number_of(part: usize, place: u32) -> Result<u32, Error> {
    let number = u64::from(place) * PARTS as u64 + part as u64;
    u32::try_from(number).map_err(|_| Error::invalid("more than some 2^32 distinct words"))
}

impl Part {
    #[inline]
    fn find(&self, hash: u64, word: &[u8]) -> Option<u32> {
        self.table.find(hash, |place| self.words.word(*place) == word).copied()
    }

    fn insert(&mut self, hash: u64, word: &[u8], secrets: &RapidSecrets) -> Result<u32, Error> {
        let place = u32::try_from(self.words.ends.len())
            .map_err(|_| Error::invalid("more than 2^32 distinct words"))?;
        self.words.push(word);
        let words = &self.words;
        self.table.insert_unique(hash, place, |place| rapidhash_v3_seeded(words.word(*place), secrets));
        Ok(place)
    }

    fn memory_bytes(&self) -> usize {
        self.words.memory_bytes() + self.table.allocation_size()
    }
}

/// The numbers of words that follow each other, of which every N make the key of an n-gram.
pub(super) struct Window {
    bytes: Vec<u8>,
    words: usize,
}

impl Window {
    pub(super) fn new(words: usize) -> Self {
        Self { bytes: Vec::new(), words }
    }

    /// Takes the next words.
    pub(super) fn extend(&mut self, numbers: &[u32]) {
        self.bytes.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
    }

    /// The keys of the n-grams that there are.
    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.windows(self.words * NUMBER_BYTES).step_by(NUMBER_BYTES)
    }

    /// Leaves those behind: keeps the words that the next one makes an n-gram with.
    pub(super) fn pass(&mut self) {
        let kept = ((self.words - 1) * NUMBER_BYTES).min(self.bytes.len());
        self.bytes.drain(..self.bytes.len() - kept);
    }

    /// Forgets all words.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
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
        fn windows_show_what_slices_have(
            words in prop::collection::vec("[ab]{0,3}", 0..40), n in 1_usize..5, together in 1_usize..9,
        ) {
            let (vocabulary, mut numbering) = (Vocabulary::new(1 << 20), Numbering::default());
            let mut window = Window::new(n);
            let mut seen = Vec::new();
            for some in words.chunks(together) {
                let some: Vec<&[u8]> = some.iter().map(|word| word.as_bytes()).collect();
                window.extend(vocabulary.number(&some, &mut numbering).unwrap());
                seen.extend(window.keys().map(<[u8]>::to_vec));
                window.pass();
            }
            let expected: Vec<Vec<Vec<u8>>> =
                words.windows(n).map(|window| window.iter().map(|word| word.clone().into_bytes()).collect()).collect();
            let (sorted, renumbered) = vocabulary.sorted();
            let shown: Vec<Vec<Vec<u8>>> = seen
                .iter()
                .map(|key| numbers(key).map(|number| sorted.word(renumbered[number as usize]).to_vec()).collect())
                .collect();
            prop_assert_eq!(shown, expected);
            let distinct = sorted.ends.len() as u32;
            prop_assert!((1..distinct).all(|place| sorted.word(place - 1) < sorted.word(place)));
        }
    }

    #[test]
    fn a_vocabulary_keeps_to_its_memory() {
        let (vocabulary, mut numbering) = (Vocabulary::new(20_000), Numbering::default());
        let mut number =
            |word: u32| vocabulary.number(&[&word.to_le_bytes()[..]], &mut numbering).map(<[u32]>::to_vec);
        let refused = (0..10_000).find(|word| number(*word).is_err());
        assert!(refused.is_some_and(|words| words > 100), "{refused:?}");
        assert!(number(0).is_ok(), "what it has it still finds");
    }

    /// Whichever thread meets a word first, it has one number.
    #[test]
    fn threads_number_the_same_words() {
        let vocabulary = Vocabulary::new(1 << 20);
        let words: Vec<Vec<u8>> = (0..3000_u32).map(|word| word.to_string().into_bytes()).collect();
        let found = std::thread::scope(|scope| {
            let number = |turn: usize| {
                let (words, vocabulary) = (&words, &vocabulary);
                scope.spawn(move || {
                    let mut words: Vec<&[u8]> = words.iter().map(|word| &word[..]).collect();
                    words.rotate_left(turn * 700);
                    let mut found = Vec::new();
                    for some in words.chunks(150) {
                        found.extend_from_slice(vocabulary.number(some, &mut Numbering::default()).unwrap());
                    }
                    found.rotate_right(turn * 700);
                    found
                })
            };
            [0, 1, 2].map(number).map(|thread| thread.join().unwrap())
        });
        assert!(found.iter().all(|numbers| *numbers == found[0]));
        let (sorted, renumbered) = vocabulary.sorted();
        for (word, number) in words.iter().zip(&found[0]) {
            assert_eq!(sorted.word(renumbered[*number as usize]), word);
        }
    }
}
