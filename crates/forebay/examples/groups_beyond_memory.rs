//! Counting more groups than memory holds, in a tree of its own and by an external sort:
//! `groups_beyond_memory [KIND [ADDS [GROUPS [MEMORY_MIB [GETS [FINALIZES]]]]]]`. `KIND` is `tree` or `sort`; groups have
//! keys of 16 bytes and come evenly. Between adds there are so many gets of the tree, and it is finalised so often. It
//! tells what an add costs, of time and of processor time, what gets read and how long they took, and checks the sum.

#![expect(clippy::disallowed_methods, reason = "a program that measures, on the machine's own files")]

use std::time::{Duration, Instant};

use forebay::aggregate::functions::Count;
use forebay::aggregate::{Aggregate, Aggregator, AggregatorOptions, CompressedAggregator, Order};
use forebay::env::Env;
use forebay::{GroupFiles, Result};
use forebay_aggregate::SortAggregator;

/// SplitMix64.
fn mix(number: u64) -> u64 {
    let mut drawn = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    drawn = (drawn ^ drawn >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    drawn = (drawn ^ drawn >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    drawn ^ drawn >> 31
}

fn key_of(group: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mix(group).to_be_bytes());
    key[8..].copy_from_slice(&mix(!group).to_be_bytes());
    key
}

/// Of all threads of the process, and the most memory that it has had.
fn processor_time() -> Duration {
    const TICK: Duration = Duration::from_millis(10);
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks: u32 = [11, 12].iter().filter_map(|&at| fields.get(at)?.parse::<u32>().ok()).sum();
    TICK * ticks
}

fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) >> 10
}

/// What gets have cost.
#[derive(Default)]
struct Gets {
    reads: Vec<u64>,
    times: Vec<Duration>,
}

impl Gets {
    fn tell(mut self) {
        if self.reads.is_empty() {
            return;
        }
        self.reads.sort_unstable();
        self.times.sort_unstable();
        let mean = self.reads.iter().sum::<u64>() as f64 / self.reads.len() as f64;
        let part = |of: usize, part: usize| of * part / 1000;
        let (last, count) = (self.reads.len() - 1, self.reads.len());
        println!(
            "gets: {count}, device reads {mean:.3} on average, {} at p99, {} at most; {:?} at p50, {:?} at p99, {:?} at \
             most",
            self.reads[part(last, 990)],
            self.reads[last],
            self.times[part(last, 500)],
            self.times[part(last, 990)],
            self.times[last]
        );
    }
}

struct Work {
    adds: u64,
    groups: u64,
    memory_bytes: usize,
    gets: u64,
    finalizes: u64,
}

impl Work {
    fn group(&self, add: u64) -> u64 {
        mix(add) % self.groups
    }

    fn run_sort(&self, mut groups: impl Aggregator<Count>) -> Result<()> {
        let (started, before) = (Instant::now(), processor_time());
        for add in 0..self.adds {
            groups.add(&key_of(self.group(add)), ())?;
        }
        groups.finalize()?;
        self.tell("added and finalised", started, before);
        self.show(&groups)
    }

    fn run_tree(&self, groups: &mut CompressedAggregator<Count>) -> Result<()> {
        let (started, before) = (Instant::now(), processor_time());
        let (mut gets, mut finalizing) = (Gets::default(), (Duration::ZERO, Duration::ZERO));
        let (get_every, finalize_every) = (self.adds / self.gets.max(1), self.adds / self.finalizes.max(1));
        for add in 0..self.adds {
            Aggregator::add(groups, &key_of(self.group(add)), ())?;
            if self.gets > 0 && add % get_every == get_every - 1 {
                let key = key_of(self.group(mix(add) % add));
                let (reads, started) = (groups.device_reads(), Instant::now());
                assert!(groups.get(&key)?.is_some(), "what was added is there");
                gets.times.push(started.elapsed());
                gets.reads.push(groups.device_reads() - reads);
            }
            if add % finalize_every == finalize_every - 1 {
                let (started, before) = (Instant::now(), processor_time());
                CompressedAggregator::finalize(groups)?;
                finalizing.0 += started.elapsed();
                finalizing.1 += processor_time() - before;
            }
        }
        self.tell("added and finalised", started, before);
        println!(
            "finalised {} times: {:.2} s, {:.2} s of processor time",
            self.finalizes,
            finalizing.0.as_secs_f64(),
            finalizing.1.as_secs_f64()
        );
        gets.tell();
        self.show(groups)
    }

    fn tell(&self, what: &str, started: Instant, before: Duration) {
        let (time, processor) = (started.elapsed(), processor_time() - before);
        println!(
            "{what}: {:.2} s, {:.2} s of processor time: {:.3} us an add; {:.1} million a second; peak {} MiB",
            time.as_secs_f64(),
            processor.as_secs_f64(),
            processor.as_secs_f64() * 1e6 / self.adds as f64,
            self.adds as f64 / time.as_secs_f64() / 1e6,
            peak_mib()
        );
    }

    fn show(&self, groups: &impl Aggregator<Count>) -> Result<()> {
        let (started, before) = (Instant::now(), processor_time());
        let (mut keys, mut sum) = (0u64, 0);
        groups.for_each(&mut |_, state| {
            (keys, sum) = (keys + 1, sum + Count.finish(state)?);
            Ok(())
        })?;
        assert_eq!(sum, self.adds, "each add is counted once");
        self.tell(&format!("{keys} groups shown"), started, before);
        Ok(())
    }
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let kind = args.next().unwrap_or_else(|| "tree".into());
    let mut number = |usual: u64| args.next().and_then(|number| number.parse().ok()).unwrap_or(usual);
    let work = Work {
        adds: number(30_000_000),
        groups: number(20_000_000),
        memory_bytes: (number(64) as usize) << 20,
        gets: number(0),
        finalizes: number(1).max(1),
    };
    let dir = std::env::temp_dir().join(format!("forebay-groups-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    if kind == "sort" {
        let order = Order::Hashed { seed: 0 };
        work.run_sort(SortAggregator::new(Count, order, Env::real().fs, &dir, work.memory_bytes)?)?;
    } else {
        let options = AggregatorOptions::default().memory_limit(work.memory_bytes);
        let mut groups = CompressedAggregator::new(Count, options.spill_to(GroupFiles::new(&dir)))?;
        work.run_tree(&mut groups)?;
    }
    std::fs::remove_dir_all(&dir).expect("it is there");
    Ok(())
}
