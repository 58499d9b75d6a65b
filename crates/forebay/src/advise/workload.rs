//! What a user knows of a table, and what it may cost.

use forebay_base::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use forebay_base::{Error, Result};
use serde::Serialize;

use super::{Advice, Prices};

/// What is counted on to add up.
const WRITES_MAX: f64 = 1e15;

/// What is asked of a table. Rates need not be a real second's: where only their proportions are known, give those.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    /// Bytes of a key.
    pub key_bytes: u64,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// How many distinct keys there will be.
    pub keys: u64,
    /// How often each is written again, on average; 0 where every key is written once.
    pub rewrites: f64,
    /// Writes a second.
    pub writes_per_second: f64,
    /// What is written.
    pub writes: Writes,
    /// Of the writes, those that delete.
    pub deletes_share: f64,
    /// Lookups of single keys a second.
    pub gets_per_second: f64,
    /// Of the lookups, those of keys that are not there.
    pub absent_share: f64,
    /// Scans of ranges a second.
    pub ranges_per_second: f64,
    /// Entries of a range.
    pub range_entries: f64,
    /// Whether keys have to be in order even if nothing is said of ranges.
    pub ordered: bool,
    /// Which keys are rewritten and read.
    pub popularity: Popularity,
}

/// What is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writes {
    /// Whole values.
    #[default]
    Puts,
    /// Operands and states, which add up: counters, and other tables that merge.
    Operands,
}

/// Which keys are rewritten and read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Popularity {
    /// Each as often as any other.
    #[default]
    Even,
    /// Few of them most of the time: by Zipf's law with 0.99, as YCSB draws.
    Zipf,
}

/// What it may cost, and on which machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The database's memory limit.
    pub memory_bytes: u64,
    /// The most that the table may take on disk at any time.
    pub disk_bytes: Option<u64>,
    /// The same, by the bytes of keys and values that are there.
    pub space_amplification_max: Option<f64>,
    /// The longest that a write may wait for merges.
    pub wait_seconds_max: Option<f64>,
    /// Where it runs.
    pub machine: Machine,
}

/// What a machine does in a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// Cores.
    pub cores: f64,
    /// Bytes that the device writes or reads in a second.
    pub device_bytes_per_second: f64,
    /// Single pages that the device reads in a second.
    pub device_reads_per_second: f64,
}

impl Default for Workload {
    /// A million keys of 16 bytes with values of 100, each written once.
    fn default() -> Self {
        Self {
            key_bytes: 16,
            value_bytes: 100,
            keys: 1_000_000,
            rewrites: 0.0,
            writes_per_second: 0.0,
            writes: Writes::Puts,
            deletes_share: 0.0,
            gets_per_second: 0.0,
            absent_share: 0.0,
            ranges_per_second: 0.0,
            range_entries: 10.0,
            ordered: false,
            popularity: Popularity::Even,
        }
    }
}

impl Default for Machine {
    /// Two cores, and a device of 1 GB and 100,000 pages a second.
    fn default() -> Self {
        Self { cores: 2.0, device_bytes_per_second: 1e9, device_reads_per_second: 1e5 }
    }
}

impl Default for Limits {
    /// The memory that a database has where nothing is said, and no limits else.
    fn default() -> Self {
        Self {
            memory_bytes: crate::Options::default().memory_limit_bytes(),
            disk_bytes: None,
            space_amplification_max: None,
            wait_seconds_max: None,
            machine: Machine::default(),
        }
    }
}

impl Workload {
    /// Whether only layouts in key order will do.
    pub fn wants_order(&self) -> bool {
        self.ordered || self.ranges_per_second > 0.0
    }

    /// Bytes of keys and values that are there.
    pub(super) fn live_bytes(&self) -> f64 {
        self.keys as f64 * (self.key_bytes + self.value_bytes) as f64
    }

    pub(super) fn validate(&self) -> Result<()> {
        let at_least_zero = [
            ("rewrites", self.rewrites),
            ("writes_per_second", self.writes_per_second),
            ("gets_per_second", self.gets_per_second),
            ("ranges_per_second", self.ranges_per_second),
            ("range_entries", self.range_entries),
            ("deletes_share", self.deletes_share),
            ("absent_share", self.absent_share),
        ];
        if let Some((name, value)) = at_least_zero.iter().find(|(_, value)| !(0.0..1e15).contains(value)) {
            return Err(Error::invalid(format!("{name} is {value}: give a number from 0 on")));
        }
        for (name, share) in [("deletes_share", self.deletes_share), ("absent_share", self.absent_share)] {
            if share > 1.0 {
                return Err(Error::invalid(format!("{name} is {share}: give a share from 0 to 1")));
            }
        }
        if self.key_bytes > KEY_BYTES_MAX as u64 || self.value_bytes > VALUE_BYTES_MAX as u64 {
            return Err(Error::invalid(format!(
                "a key has at most {KEY_BYTES_MAX} bytes and a value {VALUE_BYTES_MAX}"
            )));
        }
        let written = self.keys as f64 * (1.0 + self.rewrites);
        if written > WRITES_MAX {
            return Err(Error::invalid(format!(
                "{} keys, each written {} times, are more than {WRITES_MAX:e} writes",
                self.keys,
                1.0 + self.rewrites
            )));
        }
        if self.writes_per_second + self.gets_per_second + self.ranges_per_second <= 0.0 {
            return Err(Error::invalid("nothing is written or read: say how many writes, gets or ranges"));
        }
        Ok(())
    }
}

impl Limits {
    pub(super) fn validate(&self) -> Result<()> {
        let Machine { cores, device_bytes_per_second, device_reads_per_second } = self.machine;
        let above_zero = [
            ("cores", cores),
            ("device_bytes_per_second", device_bytes_per_second),
            ("device_reads_per_second", device_reads_per_second),
            ("disk_bytes", self.disk_bytes.map_or(1.0, |bytes| bytes as f64)),
            ("space_amplification_max", self.space_amplification_max.unwrap_or(1.0)),
            ("wait_seconds_max", self.wait_seconds_max.unwrap_or(1.0)),
        ];
        match above_zero.iter().find(|(_, value)| *value <= 0.0 || !value.is_finite()) {
            Some((name, value)) => Err(Error::invalid(format!("{name} is {value}: give a number above 0"))),
            None => Ok(()),
        }
    }

    /// Each limit that there is: its name, itself, and what these prices make of it.
    fn all(&self, prices: &Prices) -> [Option<(&'static str, f64, f64)>; 3] {
        let of = |name, limit: Option<f64>, price| limit.map(|limit| (name, limit, price));
        [
            of("disk_bytes", self.disk_bytes.map(|bytes| bytes as f64), prices.disk_bytes_peak as f64),
            of("space_amplification_max", self.space_amplification_max, prices.space_amplification_peak),
            of("wait_seconds_max", self.wait_seconds_max, prices.longest_wait_seconds),
        ]
    }

    /// The limits that are broken, each with its figure.
    pub(super) fn broken(&self, prices: &Prices) -> Vec<String> {
        let over = |(name, limit, price): (&str, f64, f64)| {
            (price > limit).then(|| format!("{name} {}: it takes {}", rounded(limit), rounded(price)))
        };
        self.all(prices).into_iter().flatten().filter_map(over).collect()
    }

    /// Why nothing is within all limits, if so: the limit that the fewest keep, and who comes nearest to it.
    pub(super) fn unreachable(&self, advice: &[Advice]) -> Option<String> {
        if advice.iter().any(|one| one.breaks.is_empty()) {
            return None;
        }
        let excess = |one: &Advice, index: usize| {
            self.all(&one.prices)[index].map_or(0.0, |(_, limit, price)| price / limit)
        };
        let keeps = |index: &usize| advice.iter().filter(|one| excess(one, *index) <= 1.0).count();
        let index = (0..3).min_by_key(keeps)?;
        let nearest = advice.iter().min_by(|a, b| excess(a, index).total_cmp(&excess(b, index)))?;
        let (name, limit, price) = self.all(&nearest.prices)[index]?;
        let (layout, limit, price) = (nearest.layout, rounded(limit), rounded(price));
        Some(match keeps(&index) {
            0 => format!("no layout keeps {name} {limit}: {layout} comes nearest with {price}"),
            _ => format!("no layout keeps all limits; {name} {limit} is the narrowest, which {layout} keeps"),
        })
    }
}

/// Without digits that say nothing.
fn rounded(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}
