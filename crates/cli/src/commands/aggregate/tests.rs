//! Inputs in chunks of every length, each read by one of several readers, against who reads them at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay::limits::KEY_BYTES_MAX;
use forebay_aggregate::Aggregate;
use forebay_aggregate::functions::Count;

use super::adder::{Counter, Teller};
use super::bases::{BaseLook, KmerReader};
use super::chunks::{Chunk, Look};
use super::crew::{Fault, Reader};
use super::gathering::Gatherer;
use super::groups::Walks;
use super::inputs::{OnBad, Tally};
use super::kmers::{Roller, Word, key};
use super::means::Means;
use super::ngrams::{Vocabulary, numbers};
use super::reads::Reads;
use super::sequences::{self, Piece};
use super::text::{NgramReader, TextLook, WordReader};
use super::words::{Case, Words};
use crate::failure::Failure;
use crate::input::window::Tail;
use crate::progress::Progress;

/// Numbers that look like chance, the same every time.
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ word >> 31) % most as u64) as usize
    }

    fn of<'a>(&mut self, all: &[&'a [u8]]) -> &'a [u8] {
        all[self.below(all.len())]
    }
}

type Counts = BTreeMap<Vec<u8>, u64>;

/// What was counted, and how many records were passed over; or the first that is malformed.
type Outcome = Result<(Counts, u64), String>;

fn gatherer() -> Gatherer<Count> {
    let temp = std::env::temp_dir();
    let means = Means { memory_bytes: 8 << 20, threads: 2, readers: 3, encoders: 0, temp };
    Gatherer::new(Arc::new(Count), means).unwrap()
}

fn counts(gatherer: Gatherer<Count>) -> Counts {
    let mut counts = Counts::new();
    let groups = gatherer.finish(Walks::Few).unwrap();
    let keep = &mut |key: &[u8], state: &[u8]| {
        assert_eq!(counts.insert(key.to_vec(), Count.finish(state)?), None);
        Ok(())
    };
    groups.held.for_each(keep).unwrap();
    counts
}

/// Has three readers read the chunks of a text, which are up to so long.
fn read<L: Look, R: Reader<Piece = Chunk<L::Before>, Found = Tally>>(
    text: &[u8],
    wanted: L::Wanted,
    draws: &mut Draws,
    length_max: usize,
    reader: impl Fn() -> R,
) -> Result<u64, String> {
    let (mut look, mut readers) = (L::default(), [(); 3].map(|()| reader()));
    let (mut at, mut records, mut number) = (0, 0, 0);
    loop {
        let end = (at + draws.below(length_max + 1)).min(text.len());
        // Who reads an input may know that it is at its end, or see it later.
        let is_last = end == text.len() && draws.below(2) == 0;
        let bytes = text[at..end].to_vec();
        let before = look.pass(&bytes, wanted, "test").map_err(|failure| failure.to_string())?;
        let chunk = Chunk { before, bytes, offset: at as u64, is_last };
        match readers[draws.below(3)].read((0, number), chunk, &mut Vec::new()) {
            Ok(more) => records += more,
            Err(Fault::Row(at, reason)) => return Err(told(records + at.number, at.offset, &reason)),
            Err(Fault::Work(failure)) => panic!("{failure}"),
        }
        if is_last {
            return Ok(readers.map(|reader| reader.finish().skipped).iter().sum());
        }
        (at, number) = (end, number + 1);
    }
}

fn told(number: u64, offset: u64, reason: &str) -> String {
    format!("{number}@{offset} {reason}")
}

/// Reads a text in chunks of several lengths, and passing malformed records over or not.
fn check(
    seed: u64,
    lengths: &[usize],
    expected: impl Fn(OnBad) -> Outcome,
    found: impl Fn(OnBad, &mut Draws, usize) -> Outcome,
) {
    for on_bad in [OnBad::Skip, OnBad::Stop] {
        let expected = expected(on_bad);
        for length in lengths {
            let found = found(on_bad, &mut Draws(seed), *length);
            assert!(
                found == expected,
                "seed {seed}, chunks up to {length}, {on_bad:?}: {found:.300?} is not {expected:.300?}"
            );
        }
    }
}

fn too_long() -> String {
    format!("a word of more than {KEY_BYTES_MAX} bytes")
}

/// Words between white space of all kinds, some of them too long for a key.
fn text(draws: &mut Draws, words: usize, longest: usize) -> Vec<u8> {
    let mut text = Vec::new();
    for _ in 0..words {
        let spaces: [&[u8]; 6] = [b" ", b"\n", b"\t\x0b", b"  ", b"\r\n", b"\x0c \r"];
        if draws.below(5) > 0 {
            text.extend_from_slice(draws.of(&spaces));
        }
        match draws.below(40) {
            0 => text.extend(vec![b'x'; draws.below(longest)]),
            1..30 => text.extend_from_slice(draws.of(&[b"a", b"The", b"cat", b"\xc3\xa9", b"\x01A", b"B"])),
            _ => text.extend(format!("Word{} ", draws.below(30)).into_bytes()),
        }
    }
    text
}

/// Words, nothing in place of one that is too long, and how many those are.
type Split = (Vec<Option<Vec<u8>>>, u64);

/// The words of a text.
fn words_of(text: &[u8], case: Case, on_bad: OnBad) -> Result<Split, String> {
    let (mut words, mut skipped, mut first) = (Vec::new(), 0, None);
    let shown = Words::new(text, "test", case, Tail::Taken).for_each(|word, offset| {
        let is_short = word.len() <= KEY_BYTES_MAX;
        words.push(is_short.then(|| word.to_vec()));
        if !is_short {
            skipped += 1;
            first.get_or_insert_with(|| told(words.len() as u64, offset, &too_long()));
        }
        Ok(())
    });
    assert_eq!(shown.unwrap(), 0);
    match first {
        Some(first) if on_bad == OnBad::Stop => Err(first),
        _ => Ok((words, skipped)),
    }
}

#[test]
fn words_and_ngrams_of_chunks_are_those_of_the_text() {
    for seed in 0..40 {
        let mut draws = Draws(seed);
        // Words that are too long in chunks that are short take their time.
        let (count, longest, lengths): (_, _, &[usize]) = match seed % 6 {
            0 => (100, KEY_BYTES_MAX + 3000, &[5000, 40_000, 300_000]),
            _ => (200, 30, &[1, 2, 3, 7, 40, 500, 100_000]),
        };
        let count = draws.below(count);
        let text = text(&mut draws, count, longest);
        let case = if draws.below(2) == 0 { Case::Kept } else { Case::Folded };
        let expected = |on_bad| {
            let (words, skipped) = words_of(&text, case, on_bad)?;
            let mut counts = Counts::new();
            words.into_iter().flatten().for_each(|word| *counts.entry(word).or_default() += 1);
            Ok((counts, skipped))
        };
        let progress = Progress::untold();
        check(seed, lengths, expected, |on_bad, draws, length| {
            let gatherer = gatherer();
            let reader = || WordReader::new(Counter::new(&gatherer, Teller::new(&progress, on_bad)), case);
            let skipped = read::<TextLook, _>(&text, 0, draws, length, reader)?;
            Ok((counts(gatherer), skipped))
        });

        let n = 1 + draws.below(5);
        let expected = |on_bad| {
            let (words, skipped) = words_of(&text, case, on_bad)?;
            let mut counts = Counts::new();
            let whole = |window: &[Option<Vec<u8>>]| window.iter().cloned().collect::<Option<Vec<_>>>();
            for ngram in words.windows(n).filter_map(whole) {
                *counts.entry(ngram.join(&b' ')).or_default() += 1;
            }
            Ok((counts, skipped))
        };
        check(seed, lengths, expected, |on_bad, draws, length| {
            let (gatherer, vocabulary) = (gatherer(), Vocabulary::new(1 << 20));
            let reader = || {
                let counter = Counter::new(&gatherer, Teller::new(&progress, on_bad));
                NgramReader::new(counter, case, &vocabulary, n)
            };
            let skipped = read::<TextLook, _>(&text, n - 1, draws, length, reader)?;
            let (words, renumbered) = vocabulary.sorted();
            let ngram = |key: Vec<u8>| {
                let words: Vec<_> =
                    numbers(&key).map(|number| words.word(renumbered[number as usize])).collect();
                words.join(&b' ')
            };
            let counts = counts(gatherer).into_iter().map(|(key, count)| (ngram(key), count)).collect();
            Ok((counts, skipped))
        });
    }
}

/// Bases of which those of long sequences come again and again: they are few k-mers.
fn bases(draws: &mut Draws, length: usize) -> Vec<u8> {
    let base = |_| if draws.below(60) == 0 { b'N' } else { b"ACGTacgt"[draws.below(8)] };
    let some: Vec<u8> = (0..length.min(200)).map(base).collect();
    some.iter().copied().cycle().take(length).collect()
}

fn fasta(draws: &mut Draws, longest: usize) -> Vec<u8> {
    let mut text: Vec<u8> = draws.of(&[b"", b"\xef\xbb\xbf", b"\n\r\n"]).to_vec();
    text.push(b'>');
    for _ in 0..draws.below(30) {
        let length = draws.below(longest);
        text.extend(match draws.below(6) {
            0 => b"\n>ACGT name ".to_vec(),
            1 => draws.of(&[b"\r\n", b"\n\n", b"\r", b"\r\r\n", b">"]).to_vec(),
            _ => [b"\n".to_vec(), bases(draws, length)].concat(),
        });
    }
    text
}

/// Records of FASTQ, some of them malformed, and some so long that they are counted in part.
fn fastq(draws: &mut Draws, longest: usize) -> Vec<u8> {
    let mut text = Vec::new();
    for number in 0..1 + draws.below(20) {
        let length = draws.below(longest);
        let sequence = bases(draws, length);
        let end = draws.of(&[b"\n", b"\n", b"\r\n"]);
        let (mut title, mut plus, mut qualities) = (b"@ACGT".to_vec(), b"+".to_vec(), vec![b'@'; length]);
        match draws.below(12) {
            0 if number > 0 => title = b"ACGT".to_vec(),
            1 => plus = b"-".to_vec(),
            2 => qualities.push(b'I'),
            3 => qualities = b"\rII".to_vec(),
            4 => plus = sequence.clone(),
            5 => plus.extend_from_slice(b"ACGT"),
            _ => {}
        }
        for line in [title, sequence, plus, qualities] {
            text.extend(line);
            text.extend_from_slice(end);
        }
        text.extend_from_slice(draws.of(&[b"", b"", b"", b"\n", b"\r\n"]));
    }
    text.truncate(text.len() - draws.below(3 + text.len() / 10).min(text.len() - 1));
    text
}

/// Of who reads all of it at once.
fn kmers<W: Word>(text: &[u8], k: usize, on_bad: OnBad) -> Outcome {
    let mut reads = Reads::<W>::new(Roller::new(k), None);
    let (mut counts, mut skipped) = (Counts::new(), 0);
    sequences::for_each(text, "test", None, Tail::Taken, |piece| {
        let count = |kmer: W| {
            *counts.entry(key(k, &kmer.to_bytes()).to_vec()).or_default() += 1;
            Ok::<_, Failure>(())
        };
        match piece {
            Piece::Next => reads.begin(),
            Piece::Record => reads.begin_held(),
            Piece::Bases(bases) => reads.take(bases, count)?,
            Piece::Whole => reads.release(count)?,
            Piece::Malformed(records, reason) => {
                reads.forget();
                skipped += 1;
                let at = records.record();
                if on_bad == OnBad::Stop {
                    return Err(Failure::work(told(at.number, at.offset, reason)));
                }
            }
            Piece::Mark(_) => {}
        }
        Ok(())
    })
    .map_err(|failure| failure.to_string())?;
    Ok((counts, skipped))
}

fn kmers_of_chunks<W: Word>(seed: u64, text: &[u8], k: usize, lengths: &[usize]) {
    let progress = Progress::untold();
    check(
        seed,
        lengths,
        |on_bad| kmers::<W>(text, k, on_bad),
        |on_bad, draws, length| {
            let gatherer = gatherer();
            let reader = || KmerReader::<W>::new(Counter::new(&gatherer, Teller::new(&progress, on_bad)), k);
            let skipped = read::<BaseLook, _>(text, k, draws, length, reader)?;
            Ok((counts(gatherer), skipped))
        },
    );
}

#[test]
fn kmers_of_chunks_are_those_of_the_text() {
    for seed in 0..80 {
        let mut draws = Draws(seed);
        let (longest, lengths): (_, &[usize]) = match seed % 12 {
            0 => (600_000, &[3000, 70_000, 300_000]),
            _ => (90, &[1, 2, 3, 7, 40, 500, 100_000]),
        };
        let text = if draws.below(3) == 0 { fasta(&mut draws, longest) } else { fastq(&mut draws, longest) };
        let k = 1 + draws.below(30);
        match draws.below(4) {
            0 => kmers_of_chunks::<u128>(seed, &text, 2 * k, lengths),
            _ => kmers_of_chunks::<u64>(seed, &text, k, lengths),
        }
    }
    kmers_of_chunks::<u64>(0, b"ACGT", 3, &[1, 10]);
    kmers_of_chunks::<u64>(0, b"\n\r", 3, &[1, 10]);
}
