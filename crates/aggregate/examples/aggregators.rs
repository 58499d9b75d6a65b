//! Holds the aggregators against each other, and against a plain hash table, one in a process:
//!
//! ```text
//! aggregators make words|numbers|few|zipf ADDS GROUPS FILE
//! aggregators count FILE compressed|hash|hashbrown [THREADS]
//! ```
//!
//! Keys come from a file, one after the other: `u8 length | key`. What is told: seconds, processor seconds, adds a
//! second, groups, and peak memory by group.

#![expect(clippy::disallowed_methods, reason = "a program that measures reads files and the clock itself")]

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::time::Instant;

use forebay_aggregate::functions::Count;
use forebay_aggregate::{Aggregator, AggregatorOptions, CompressedAggregator, HashAggregator};
use forebay_base::hash::mix;

type Outcome<T> = Result<T, Box<dyn Error>>;

const CHUNK_BYTES: usize = 1 << 20;
const MEMORY_BYTES: usize = 16 << 30;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["make", kind, adds, groups, file] => make(kind, adds.parse()?, groups.parse()?, file),
        ["count", file, aggregator] => count(file, aggregator, 2),
        ["count", file, aggregator, threads] => count(file, aggregator, threads.parse()?),
        _ => {
            Err("usage: make words|numbers|few|zipf ADDS GROUPS FILE, or count FILE AGGREGATOR [THREADS]"
                .into())
        }
    }
}

/// Writes keys drawn from so many.
fn make(kind: &str, adds: u64, groups: u64, file: &str) -> Outcome<()> {
    let mut out = BufWriter::with_capacity(CHUNK_BYTES, File::create(file)?);
    let mut key = Vec::new();
    for add in 0..adds {
        let draw = mix(add ^ 0x5eed);
        let group = match kind {
            // By the inverse of the sum of 1/rank.
            "zipf" => {
                ((groups as f64).powf((draw >> 11) as f64 / (1u64 << 53) as f64) as u64).min(groups - 1)
            }
            _ => draw % groups,
        };
        key.clear();
        match kind {
            "numbers" => key.extend_from_slice(&mix(group).to_le_bytes()),
            _ => word(group, &mut key),
        }
        out.write_all(&[key.len() as u8])?;
        out.write_all(&key)?;
    }
    Ok(out.flush()?)
}

/// A word of 6 to 60 letters, whose length is binomial.
fn word(group: u64, key: &mut Vec<u8>) {
    let mut bits = mix(group);
    let longer = (0..54u64).filter(|trial| mix(group ^ trial << 40) % 100 < 8).count();
    for _ in 0..6 + longer {
        key.push(b'a' + (bits % 26) as u8);
        bits = mix(bits);
    }
}

fn count(file: &str, aggregator: &str, threads: usize) -> Outcome<()> {
    let options = AggregatorOptions::default().memory_limit(MEMORY_BYTES).threads(threads);
    match aggregator {
        "compressed" => {
            let mut counts = CompressedAggregator::new(Count, options)?;
            run(
                file,
                &mut counts,
                |counts, key| Ok(counts.add(key, ())?),
                |counts| {
                    eprintln!("{} bytes before", counts.memory_bytes());
                    counts.finalize()?;
                    eprintln!("{} bytes after", counts.memory_bytes());
                    sum(counts)
                },
            )
        }
        "hash" => {
            let mut counts = HashAggregator::new(Count, MEMORY_BYTES);
            run(file, &mut counts, |counts, key| Ok(counts.add(key, ())?), |counts| sum(counts))
        }
        "hashbrown" => {
            let mut counts: hashbrown::HashMap<Box<[u8]>, u64> = hashbrown::HashMap::new();
            let add = |counts: &mut hashbrown::HashMap<Box<[u8]>, u64>, key: &[u8]| {
                match counts.get_mut(key) {
                    Some(count) => *count += 1,
                    None => drop(counts.insert(key.into(), 1)),
                }
                Ok(())
            };
            run(file, &mut counts, add, |counts| Ok((counts.len() as u64, counts.values().sum())))
        }
        "hashbrown-u64" => {
            let mut counts: hashbrown::HashMap<u64, u64> = hashbrown::HashMap::new();
            let add = |counts: &mut hashbrown::HashMap<u64, u64>, key: &[u8]| {
                *counts.entry(u64::from_le_bytes(key.try_into()?)).or_default() += 1;
                Ok(())
            };
            run(file, &mut counts, add, |counts| Ok((counts.len() as u64, counts.values().sum())))
        }
        other => Err(format!("{other} is no aggregator: compressed, hash, hashbrown, hashbrown-u64").into()),
    }
}

fn sum(counts: &impl Aggregator<Count>) -> Outcome<(u64, u64)> {
    let (mut groups, mut adds) = (0, 0);
    counts.for_each(&mut |_, state| {
        groups += 1;
        adds += state.first_chunk().map_or(0, |count| u64::from_le_bytes(*count));
        Ok(())
    })?;
    Ok((groups, adds))
}

/// Adds all keys of a file, and tells what that took.
fn run<T>(
    file: &str,
    counts: &mut T,
    mut add: impl FnMut(&mut T, &[u8]) -> Outcome<()>,
    finish: impl FnOnce(&mut T) -> Outcome<(u64, u64)>,
) -> Outcome<()> {
    let mut input = File::open(file)?;
    let (mut chunk, mut held, mut adds) = (vec![0; CHUNK_BYTES + 256], 0, 0u64);
    let started = Instant::now();
    loop {
        let read = input.read(&mut chunk[held..])?;
        let filled = held + read;
        let mut at = 0;
        while at < filled && at + 1 + chunk[at] as usize <= filled {
            let end = at + 1 + chunk[at] as usize;
            add(counts, &chunk[at + 1..end])?;
            adds += 1;
            at = end;
        }
        chunk.copy_within(at..filled, 0);
        held = filled - at;
        if read == 0 {
            break;
        }
    }
    let added = started.elapsed().as_secs_f64();
    let peak_adding = status("VmHWM:")?;
    let (groups, counted) = finish(counts)?;
    let seconds = started.elapsed().as_secs_f64();
    if counted != adds {
        return Err(format!("{adds} adds, {counted} counted").into());
    }
    let (peak, cpu) = (status("VmHWM:")?, cpu_seconds()?);
    println!(
        "{{\"seconds\":{seconds:.2},\"adding_seconds\":{added:.2},\"cpu_seconds\":{cpu:.2},\
         \"adds_per_second\":{:.0},\"groups\":{groups},\"peak_adding_bytes\":{peak_adding},\"peak_bytes\":{peak},\
         \"peak_bytes_per_group\":{:.1}}}",
        adds as f64 / seconds,
        peak as f64 / groups as f64
    );
    Ok(())
}

fn status(field: &str) -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)).ok_or("no such field")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}

fn cpu_seconds() -> Outcome<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or_default();
    Ok((ticks(11) + ticks(12)) / 100.0)
}
