//! What the tools read: parts of the data, real text that is repeated with changes, and reads that are drawn from a
//! genome, each the same for the same size.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use super::told;
use crate::figures::draws::Draws;

/// The bases of a read, how often the reads cover the genome, and one base of how many is read wrong.
const READ_BASES: usize = 150;
pub(super) const COVERAGE: usize = 20;
const ERROR_EVERY: u64 = 100;
/// A word of so many is another one in each copy of the text but the first.
const CHANGED_EVERY: u64 = 64;
const SEED: u64 = 20;
const BASES: [u8; 4] = *b"ACGT";

/// Writes the first lines, so many. Returns the bytes.
pub(super) fn head(folder: &Path, from: &str, to: &str, count: usize) -> Result<u64, String> {
    let mut source = BufReader::new(File::open(folder.join(from)).map_err(told(folder))?);
    let mut target = BufWriter::new(File::create(folder.join(to)).map_err(told(folder))?);
    let (mut bytes, mut line) = (0, Vec::new());
    for _ in 0..count {
        line.clear();
        if source.read_until(b'\n', &mut line).map_err(told(folder))? == 0 {
            break;
        }
        target.write_all(&line).map_err(told(folder))?;
        bytes += line.len() as u64;
    }
    target.flush().map_err(told(folder))?;
    Ok(bytes)
}

/// Writes about so many bytes of text: of one file, again and again, its words with one space between, as UTF-8. Of
/// each copy but the first some words have its number behind them. Returns the bytes.
pub(super) fn text(folder: &Path, from: &str, to: &str, bytes_wanted: u64) -> Result<u64, String> {
    let mut target = BufWriter::with_capacity(1 << 20, File::create(folder.join(to)).map_err(told(folder))?);
    let (mut draws, mut bytes, mut line, mut out) = (Draws::new(SEED), 0, Vec::new(), Vec::new());
    for copy in 0u32.. {
        let mut source =
            BufReader::with_capacity(1 << 20, File::open(folder.join(from)).map_err(told(folder))?);
        let before = bytes;
        while bytes < bytes_wanted {
            line.clear();
            if source.read_until(b'\n', &mut line).map_err(told(folder))? == 0 {
                break;
            }
            change(&String::from_utf8_lossy(&line), copy, &mut draws, &mut out);
            target.write_all(&out).map_err(told(folder))?;
            bytes += out.len() as u64;
        }
        if bytes >= bytes_wanted || bytes == before {
            break;
        }
    }
    target.flush().map_err(told(folder))?;
    Ok(bytes)
}

fn change(line: &str, copy: u32, draws: &mut Draws, out: &mut Vec<u8>) {
    out.clear();
    for word in line.split_ascii_whitespace() {
        if !out.is_empty() {
            out.push(b' ');
        }
        // Some tools read these as white space, or as the end of a field.
        out.extend(word.bytes().map(|byte| if matches!(byte, 0 | 1 | b'\x0b') { b'_' } else { byte }));
        if copy > 0 && draws.below(CHANGED_EVERY) == 0 {
            out.extend_from_slice(copy.to_string().as_bytes());
        }
    }
    if !out.is_empty() {
        out.push(b'\n');
    }
}

/// Writes FASTQ: reads of a genome of so many bases at random, of either strand, with errors. Returns the bytes.
pub(super) fn reads(folder: &Path, to: &str, genome_bases: usize) -> Result<u64, String> {
    let mut draws = Draws::new(SEED);
    let genome: Vec<u8> = (0..genome_bases).map(|_| BASES[draws.below(4) as usize]).collect();
    let path = folder.join(to);
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&path).map_err(told(folder))?);
    let (quality, mut bytes) = ("I".repeat(READ_BASES), 0);
    for number in 0..genome_bases * COVERAGE / READ_BASES {
        let start = draws.below((genome.len() - READ_BASES + 1) as u64) as usize;
        let mut read = genome[start..start + READ_BASES].to_vec();
        if draws.below(2) == 0 {
            read.reverse();
            read.iter_mut().for_each(|base| *base = complement(*base));
        }
        for base in &mut read {
            if draws.below(ERROR_EVERY) == 0 {
                let others: Vec<u8> = BASES.into_iter().filter(|other| other != base).collect();
                *base = others[draws.below(3) as usize];
            }
        }
        let record = format!("@{number}\n{}\n+\n{quality}\n", String::from_utf8_lossy(&read));
        out.write_all(record.as_bytes()).map_err(told(folder))?;
        bytes += record.len() as u64;
    }
    out.flush().map_err(told(folder))?;
    Ok(bytes)
}

fn complement(base: u8) -> u8 {
    match base {
        b'A' => b'T',
        b'C' => b'G',
        b'G' => b'C',
        _ => b'A',
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("forebay-inputs-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn text_is_repeated_with_other_words() {
        let folder = folder("text");
        let line = "the \tcat saw   the\x0bother cat\n\n".repeat(200);
        std::fs::write(folder.join("from"), &line).unwrap();
        let bytes = text(&folder, "from", "to", 3 * line.len() as u64).unwrap();
        let made = std::fs::read_to_string(folder.join("to")).unwrap();
        assert_eq!(made.len() as u64, bytes);
        assert!(bytes >= 3 * line.len() as u64 && made.starts_with("the cat saw the_other cat\n"), "{bytes}");
        let words: HashMap<&str, u32> = made.split_whitespace().fold(HashMap::new(), |mut words, word| {
            *words.entry(word).or_default() += 1;
            words
        });
        assert!(words.contains_key("cat1") && words["cat"] > 20 * words["cat1"], "{words:?}");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn reads_cover_the_genome() {
        let folder = folder("reads");
        let bytes = reads(&folder, "to", 3000).unwrap();
        let made = std::fs::read_to_string(folder.join("to")).unwrap();
        assert_eq!(made.len() as u64, bytes);
        let reads: Vec<&str> = made.lines().skip(1).step_by(4).collect();
        assert!(reads.len() == 400 && reads.iter().all(|read| read.len() == READ_BASES));
        let mut seen: HashMap<Vec<u8>, usize> = HashMap::new();
        for kmer in reads.iter().flat_map(|read| read.as_bytes().windows(25)) {
            let other: Vec<u8> = kmer.iter().rev().map(|base| complement(*base)).collect();
            *seen.entry(other.min(kmer.to_vec())).or_default() += 1;
        }
        // Those of the genome come often, and those with an error mostly once.
        let often = seen.values().filter(|count| **count > 4).count();
        assert!((2500..3000).contains(&often), "{often}");
        assert!(seen.len() > 5000, "{}", seen.len());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
