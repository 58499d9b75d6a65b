//! K-mers.

use std::collections::BTreeMap;

use super::{Draws, assert_alike_by_threads, write_gzip};
use crate::tool::{Folder, last_object};

fn bases(draws: &mut Draws, length: u64) -> String {
    (0..length)
        .map(|_| if draws.below(97) == 0 { 'N' } else { b"ACGTacgt"[draws.below(8) as usize].into() })
        .collect()
}

/// The lines that counting canonical k-mers of these sequences gives.
fn counted(sequences: &[String], k: usize) -> String {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for sequence in sequences {
        let sequence = sequence.to_ascii_uppercase();
        for window in sequence.as_bytes().windows(k) {
            let kmer = String::from_utf8(window.to_vec()).unwrap();
            let complement = |base| match base {
                'A' => 'T',
                'C' => 'G',
                'G' => 'C',
                _ => 'A',
            };
            let reverse: String = kmer.chars().rev().map(complement).collect();
            if !kmer.contains('N') {
                *counts.entry(kmer.min(reverse)).or_default() += 1;
            }
        }
    }
    counts.into_iter().map(|(kmer, count)| format!("{kmer}\t{count}\n")).collect()
}

fn fasta(sequences: &[String]) -> String {
    let mut text = String::new();
    for (number, sequence) in sequences.iter().enumerate() {
        text.push_str(&format!(">sequence {number} ACGT\n"));
        for line in sequence.as_bytes().chunks(60) {
            text.push_str(std::str::from_utf8(line).unwrap());
            text.push_str(if number % 2 == 0 { "\n" } else { "\r\n" });
        }
    }
    text
}

fn fastq(sequences: &[String]) -> String {
    let record = |sequence: &String| format!("@read ACGT\n{sequence}\n+\n{}\n", "@".repeat(sequence.len()));
    sequences.iter().map(record).collect()
}

#[test]
fn kmers_are_counted_in_fasta_and_fastq() {
    let folder = Folder::new("kmers");
    let mut draws = Draws::new(8);
    let mut sequences = |count: u64, length| -> Vec<String> {
        let mut sequences = Vec::new();
        for _ in 0..count {
            let length = draws.below(length);
            sequences.push(bases(&mut draws, length));
        }
        sequences
    };
    let (long, short) = (sequences(20, 3000), sequences(300, 150));
    std::fs::write(folder.path("a.fa"), fasta(&long)).unwrap();
    write_gzip(&folder, "b.fastq.gz", fastq(&short).as_bytes());
    let all = [long, short].concat();
    for k in [1, 4, 5, 21, 25, 28, 31, 32, 33, 55, 64] {
        assert_eq!(folder.ok(&format!("aggregate --by kmer:{k} a.fa b.fastq.gz")), counted(&all, k), "{k}");
    }
    assert_eq!(folder.ok_on("aggregate --by kmer:3", b">x\nACGT\n>y\nA"), "ACG\t2\n");
    assert_eq!(folder.ok_on("aggregate --by kmer:3", b""), "");
}

#[test]
fn kmers_that_do_not_fit_memory_are_counted_all_the_same() {
    let folder = Folder::new("kmer-spill");
    let sequence = bases(&mut Draws::new(9), 300_000);
    std::fs::write(folder.path("a.fa"), fasta(&[sequence.clone(), sequence])).unwrap();
    let words = "aggregate --by kmer:25 a.fa --memory 2M";
    assert_eq!(folder.object(&format!("{words} --json"))["spilled"], true);
    assert_eq!(folder.ok(words), folder.ok("aggregate --by kmer:25 a.fa"));
}

#[test]
fn malformed_records_of_fastq_are_named_or_skipped() {
    let folder = Folder::new("fastq");
    let text = b"@a\nACGT\n+\nIII\n@b\nACG\n+\nIII\n";
    folder
        .run_on("aggregate --by kmer:3", text)
        .refused(1, &["standard input: record 1 at byte offset 0", "qualities", "--skip-bad"]);
    let lines = folder.ok_on("aggregate --by kmer:3 --skip-bad --json", text);
    assert_eq!(last_object(&lines)["skipped"], 1);
    folder.run_on("aggregate --by kmer:3", b"ACGT\n").refused(1, &["standard input", "FASTA", "FASTQ"]);
}

/// Chunks are read beside each other: what is counted and told is the same with any number of threads.
#[test]
fn readers_of_sequences_beside_each_other_tell_what_one_tells() {
    let folder = Folder::new("sequence-readers");
    let mut draws = Draws::new(10);
    let long = bases(&mut draws, 900_000);
    let short: Vec<String> = (0..6000).map(|_| bases(&mut draws, 150)).collect();
    std::fs::write(folder.path("a.fa"), fasta(&[long.clone(), short[0].clone()])).unwrap();
    std::fs::write(folder.path("one-line.fa"), format!(">one\n{long}\n>two\n{}", short[1])).unwrap();
    write_gzip(&folder, "b.fastq.gz", fastq(&short).as_bytes());
    let bad = format!("{}@bad\nACGT\n+\nIII\n{}@cut\nAC", fastq(&short), fastq(&short[..4000]));
    std::fs::write(folder.path("bad.fastq"), bad).unwrap();
    for words in [
        "--by kmer:25 a.fa one-line.fa b.fastq.gz",
        "--by kmer:51 one-line.fa --top 9",
        "--by kmer:11 bad.fastq --skip-bad",
        "--by kmer:11 b.fastq.gz bad.fastq",
    ] {
        assert_alike_by_threads(&folder, &format!("{words} --memory 200M"), b"");
    }
    let all = [long.clone(), short[0].clone(), long, short[1].clone()];
    assert!(folder.ok("aggregate --by kmer:25 a.fa one-line.fa") == counted(&all, 25));
    folder
        .run("aggregate --by kmer:11 b.fastq.gz bad.fastq")
        .refused(1, &["bad.fastq: record 6001 at byte offset", "as many qualities"]);
}
