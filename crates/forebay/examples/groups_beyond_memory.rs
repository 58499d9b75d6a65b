//! Counting more groups than memory holds, in a tree of its own and by an external sort:
//! `groups_beyond_memory [KIND [ADDS [GROUPS [MEMORY_MIB [GETS [FINALIZES [SHOWS]]]]]]]`. `KIND` is `tree` or `sort`;
//! groups have keys of 16 bytes and come evenly. Spread over the adds there are so many gets, of the tree alone; it is
//! finalised so often, and finalised and all of it shown so often; in the end it is shown once more. It tells what each
//! tenth of the adds costs, with all that is done among them, of time and of processor time, what all of it costs, what
//! gets read and how long they took, and checks the sum.

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

/// What gets have cost: how long each took, and how often it read.
#[derive(Default)]
struct Gets(Vec<(Duration, u64)>);

impl Gets {
    /// Reads of those behind the first so many, on average.
    fn reads_behind(&self, first: usize) -> f64 {
        let behind = &self.0[first..];
        behind.iter().map(|(_, reads)| *reads).sum::<u64>() as f64 / behind.len().max(1) as f64
    }

    fn tell(mut self) {
        let part = |part: usize| self.0.len() * part / 1000;
        let (middle, high) = (part(500), part(990));
        let mut reads: Vec<u64> = self.0.iter().map(|(_, reads)| *reads).collect();
        reads.sort_unstable();
        self.0.sort_unstable();
        let Some((longest, longest_reads)) = self.0.last() else { return };
        println!(
            "gets: {}, device reads {:.3} on average, {} at p99, {} at most; {:?} at p50, {:?} at p99, {longest:?} at \
             most, with {longest_reads} reads",
            reads.len(),
            reads.iter().sum::<u64>() as f64 / reads.len() as f64,
            reads[high],
            reads[reads.len() - 1],
            self.0[middle].0,
            self.0[high].0,
        );
    }
}

/// How long something took, of time and of processor time.
#[derive(Default)]
struct Cost {
    times: u64,
    time: Duration,
    processor: Duration,
}

impl Cost {
    fn add<T>(&mut self, act: impl FnOnce() -> T) -> T {
        let (started, before) = (Instant::now(), processor_time());
        let outcome = act();
        self.times += 1;
        self.time += started.elapsed();
        self.processor += processor_time() - before;
        outcome
    }

    fn tell(&self, what: &str) {
        let (time, processor) = (self.time.as_secs_f64(), self.processor.as_secs_f64());
        if self.times > 0 {
            println!("{what} {} times: {time:.2} s, {processor:.2} s of processor time", self.times);
        }
    }
}

/// Tells what each tenth of the adds takes.
struct Curve {
    started: Instant,
    processor: Duration,
    gets: usize,
}

impl Curve {
    fn begin(gets: usize) -> Self {
        Self { started: Instant::now(), processor: processor_time(), gets }
    }

    /// Behind so many adds, of which `of_tenth` are of this tenth.
    fn tell(&mut self, adds: u64, of_tenth: u64, gets: &Gets) {
        let processor = (processor_time() - self.processor).as_secs_f64();
        println!(
            "to {adds} adds: {:.2} million a second, {:.3} us of processor time an add, {:.2} reads a get",
            of_tenth as f64 / self.started.elapsed().as_secs_f64() / 1e6,
            processor * 1e6 / of_tenth as f64,
            gets.reads_behind(self.gets),
        );
        *self = Self::begin(gets.0.len());
    }
}

struct Work {
    adds: u64,
    groups: u64,
    memory_bytes: usize,
    gets: u64,
    finalizes: u64,
    shows: u64,
}

impl Work {
    fn group(&self, add: u64) -> u64 {
        mix(add) % self.groups
    }

    /// Whether what is done so often is due behind this add.
    fn is_due(&self, add: u64, times: u64) -> bool {
        let every = self.adds / times.max(1);
        times > 0 && add % every == every - 1
    }

    fn run<G: Aggregator<Count>>(&self, groups: &mut G, device_reads: impl Fn(&G) -> u64) -> Result<()> {
        let (mut all, mut finalizing, mut showing) = (Cost::default(), Cost::default(), Cost::default());
        let (mut gets, mut curve) = (Gets::default(), Curve::begin(0));
        all.add(|| -> Result<()> {
            for add in 0..self.adds {
                groups.add(&key_of(self.group(add)), ())?;
                if self.is_due(add, 10) {
                    curve.tell(add + 1, self.adds / 10, &gets);
                }
                if self.is_due(add, self.gets) {
                    let key = key_of(self.group(mix(add) % add));
                    let (reads, started) = (device_reads(groups), Instant::now());
                    assert!(groups.get(&key)?.is_some(), "what was added is there");
                    gets.0.push((started.elapsed(), device_reads(groups) - reads));
                }
                if self.is_due(add, self.finalizes) {
                    finalizing.add(|| groups.finalize())?;
                }
                if self.is_due(add, self.shows) {
                    showing.add(|| {
                        groups.finalize()?;
                        self.show(groups, add + 1)
                    })?;
                }
            }
            Ok(())
        })?;
        let (time, processor) = (all.time.as_secs_f64(), all.processor.as_secs_f64());
        println!(
            "all of it: {time:.2} s, {processor:.2} s of processor time: {:.3} us an add; {:.1} million a second; peak {} \
             MiB",
            processor * 1e6 / self.adds as f64,
            self.adds as f64 / time / 1e6,
            peak_mib()
        );
        finalizing.tell("finalised");
        showing.tell("finalised and shown");
        gets.tell();
        let mut last = Cost::default();
        let keys = last.add(|| self.show(groups, self.adds))?;
        last.tell(&format!("{keys} groups shown"));
        Ok(())
    }

    /// Shows all groups after so many adds. Returns how many there are.
    fn show(&self, groups: &impl Aggregator<Count>, adds: u64) -> Result<u64> {
        let (mut keys, mut sum) = (0u64, 0);
        groups.for_each(&mut |_, state| {
            (keys, sum) = (keys + 1, sum + Count.finish(state)?);
            Ok(())
        })?;
        assert_eq!(sum, adds, "each add is counted once");
        Ok(keys)
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
        shows: number(0),
    };
    let dir = std::env::temp_dir().join(format!("forebay-groups-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    if kind == "sort" {
        let order = Order::Hashed { seed: 0 };
        let mut groups = SortAggregator::new(Count, order, Env::real().fs, &dir, work.memory_bytes)?;
        work.run(&mut groups, |_| 0)?;
    } else {
        let options = AggregatorOptions::default().memory_limit(work.memory_bytes);
        let mut groups = CompressedAggregator::new(Count, options.spill_to(GroupFiles::new(&dir)))?;
        work.run(&mut groups, CompressedAggregator::device_reads)?;
    }
    std::fs::remove_dir_all(&dir).expect("it is there");
    Ok(())
}
