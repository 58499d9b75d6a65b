//! A workload as data: how large records are, how many, and what is done with them, phase by phase.

mod catalog;
mod check;
mod names;

use serde::{Deserialize, Serialize};

use crate::data::KeyOrder;
use crate::pick::Distribution;
use crate::{Durability, LeveledOptions, TableOptions};

pub(crate) use catalog::{WorkloadError, embedded, find};

/// The least memory that is shared out: below it no engine works.
const MEMORY_BYTES_MIN: u64 = 1 << 20;

/// A workload file. Fields without a default have to be there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Workload {
    pub(crate) name: String,
    pub(crate) description: String,
    /// Length of every key, at least 8.
    pub(crate) key_bytes: usize,
    /// Length of every value.
    pub(crate) value_bytes: usize,
    /// How many records `load` writes; operations are told as multiples of it.
    pub(crate) records: u64,
    /// Memory for the engine, as a share of the bytes of all records.
    #[serde(default = "quarter")]
    pub(crate) memory_share: f64,
    /// Memory for the engine in bytes, instead of a share.
    #[serde(default)]
    pub(crate) memory_bytes: Option<u64>,
    #[serde(default = "process")]
    pub(crate) durability: Durability,
    /// Records a write call of `load`, `overwrite`, `queue`, `reopen` and `open_loop`.
    #[serde(default = "thousand")]
    pub(crate) batch: u64,
    /// Threads that `load` writes with, where there are no `samples`.
    #[serde(default = "one")]
    pub(crate) writers: u64,
    /// `load` begins no more after so long, and leaves what it has.
    #[serde(default)]
    pub(crate) load_seconds_max: Option<f64>,
    /// Whether the engine has to keep keys in order.
    #[serde(default)]
    pub(crate) ordered: bool,
    /// The order in which keys are loaded.
    #[serde(default)]
    pub(crate) keys: KeyOrder,
    /// How often `load` and each `overwrite` look at the engine meanwhile; where they do, `drain` looks at its end.
    #[serde(default)]
    pub(crate) samples: u64,
    /// The shape of Forebay's table; other engines take no notice.
    #[serde(default)]
    pub(crate) forebay: TableOptions,
    /// The shape of leveled trees, for an engine that can be told one; others take no notice.
    #[serde(default)]
    pub(crate) leveled: LeveledOptions,
    pub(crate) phases: Vec<Phase>,
}

/// One thing after the other. Numbers of operations are multiples of the number of records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// Puts every record once.
    Load,
    /// The same a step at a time, each drained, and then read from an empty cache.
    Grow(Grow),
    /// Removes the records in the midst, one by one.
    Delete(Delete),
    /// Everything there is, in order.
    Scan,
    /// Puts new versions of loaded records.
    Overwrite(Overwrite),
    /// Single operations of several kinds, as YCSB mixes them.
    Mixed(Mixed),
    /// Lookups.
    Get(Get),
    /// Entries one behind the other, from the keys of records on.
    Range(Range),
    /// Puts at the head, gets and deletes at the tail.
    Queue(Queue),
    /// A process that loads is killed; how long does opening take, and is everything there?
    Reopen(Reopen),
    /// Adds to counts, and meanwhile lookups of some.
    Count(Count),
    /// The same with few keys that all adds go to.
    Hot(Hot),
    /// Every key and count once, each held against what was added.
    Finalize,
    /// Overwrites that arrive when they arrive, whether or not the engine has finished those before.
    OpenLoop(OpenLoop),
    /// Transactions of several threads.
    Transact(Transact),
    /// Background work to its end.
    Drain,
    /// Nothing, for a while: what is due by time becomes due.
    Wait(Wait),
    /// Closes, empties the page cache, and opens.
    Cold,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grow {
    pub(crate) steps: u64,
    /// Ranges behind each step.
    pub(crate) ranges: u64,
    /// Entries of each.
    pub(crate) length: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Delete {
    /// Of all records. Those that are left lie half before it and half behind it.
    pub(crate) share: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Overwrite {
    #[serde(default)]
    pub(crate) distribution: Distribution,
    pub(crate) operations_per_record: f64,
    /// No more is begun after so long.
    #[serde(default)]
    pub(crate) seconds_max: Option<f64>,
}

/// Shares of operations; together they are 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mixed {
    #[serde(default)]
    pub(crate) read: f64,
    #[serde(default)]
    pub(crate) update: f64,
    #[serde(default)]
    pub(crate) insert: f64,
    #[serde(default)]
    pub(crate) scan: f64,
    #[serde(default)]
    pub(crate) read_modify_write: f64,
    /// Scans take 1 to this many records.
    #[serde(default = "hundred")]
    pub(crate) scan_limit: u64,
    #[serde(default)]
    pub(crate) distribution: Distribution,
    pub(crate) operations_per_record: f64,
    /// No more is begun after so long.
    #[serde(default)]
    pub(crate) seconds_max: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Get {
    /// The share of keys that are there.
    pub(crate) present: f64,
    /// Keys a call: one by one, or by `multi_get`.
    #[serde(default = "one")]
    pub(crate) batch: u64,
    #[serde(default)]
    pub(crate) distribution: Distribution,
    pub(crate) operations_per_record: f64,
    /// No more is begun after so long.
    #[serde(default)]
    pub(crate) seconds_max: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Range {
    /// Entries of each, fewer only at the end of the table.
    pub(crate) length: u64,
    #[serde(default)]
    pub(crate) distribution: Distribution,
    pub(crate) operations_per_record: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Queue {
    /// Records put in all.
    pub(crate) operations_per_record: f64,
    /// The most records in the queue.
    pub(crate) backlog_per_record: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reopen {
    /// How often the loading process is killed: each time when another part of the records is acknowledged,
    /// so that buffers are found at different fillings.
    pub(crate) kills: u64,
    /// Records looked up after each opening: half of them the last that were acknowledged.
    pub(crate) checked: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Count {
    #[serde(default)]
    pub(crate) distribution: Distribution,
    pub(crate) operations_per_record: f64,
    /// A lookup for this many adds; 0 for none.
    #[serde(default)]
    pub(crate) adds_per_get: u64,
    /// No more is begun after so long.
    #[serde(default)]
    pub(crate) seconds_max: Option<f64>,
}

/// Each reads some keys and writes them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Transact {
    pub(crate) threads: u64,
    /// Of each transaction.
    pub(crate) keys: u64,
    /// Out of so many, evenly: the fewer, the more of them conflict.
    pub(crate) among: u64,
    pub(crate) operations_per_record: f64,
    /// No more is begun after so long.
    #[serde(default)]
    pub(crate) seconds_max: Option<f64>,
}

/// Each key is added to `records` times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hot {
    pub(crate) keys: u64,
    /// A lookup for this many adds; 0 for none.
    #[serde(default)]
    pub(crate) adds_per_get: u64,
    /// No more is begun after so long.
    #[serde(default)]
    pub(crate) seconds_max: Option<f64>,
}

/// The rate is `records_per_second`, or a share of what the last load or overwrite reached: `rate_share` in all, with
/// the drain behind it, if there was one, `steady_share` over the last half of its records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenLoop {
    #[serde(default)]
    pub(crate) records_per_second: Option<f64>,
    #[serde(default)]
    pub(crate) rate_share: Option<f64>,
    #[serde(default)]
    pub(crate) steady_share: Option<f64>,
    pub(crate) arrivals: Arrivals,
    pub(crate) operations_per_record: f64,
    /// New records, rather than new versions of old ones.
    #[serde(default)]
    pub(crate) inserts: bool,
    /// No more is begun after so long.
    #[serde(default)]
    pub(crate) seconds_max: Option<f64>,
    /// Lookups behind each batch: this many, but one only where the next batch is late already.
    #[serde(default)]
    pub(crate) gets_per_batch: u64,
    /// What becomes the table's organisation when it begins.
    #[serde(default)]
    pub(crate) layout: Option<String>,
    /// How often the engine is looked at meanwhile.
    #[serde(default)]
    pub(crate) sample_seconds: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wait {
    pub(crate) seconds: f64,
}

/// When batches arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Arrivals {
    /// Evenly.
    Fixed,
    /// At random, as independent users do.
    Poisson,
}

impl Workload {
    /// Bytes of keys and values of all records.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.records * (self.key_bytes + self.value_bytes) as u64
    }

    /// The engine's memory.
    pub(crate) fn memory(&self) -> u64 {
        let shared = (self.data_bytes() as f64 * self.memory_share) as u64;
        self.memory_bytes.unwrap_or(shared.max(MEMORY_BYTES_MIN))
    }

    /// Whether values are counts that are added to.
    pub(crate) fn adds(&self) -> bool {
        let adds = |phase: &Phase| matches!(phase, Phase::Count(_) | Phase::Hot(_) | Phase::Finalize);
        self.phases.iter().any(adds)
    }

    /// Whether it takes transactions that read and write.
    pub(crate) fn transacts(&self) -> bool {
        self.phases.iter().any(|phase| matches!(phase, Phase::Transact(_)))
    }

    /// With every bound in seconds this many times as long, up to an hour.
    pub(crate) fn stretch(&mut self, times: f64) {
        let bounds = self.phases.iter_mut().filter_map(|phase| match phase {
            Phase::Overwrite(overwrite) => Some(&mut overwrite.seconds_max),
            Phase::Mixed(mixed) => Some(&mut mixed.seconds_max),
            Phase::Get(get) => Some(&mut get.seconds_max),
            Phase::Count(count) => Some(&mut count.seconds_max),
            Phase::Hot(hot) => Some(&mut hot.seconds_max),
            Phase::OpenLoop(open_loop) => Some(&mut open_loop.seconds_max),
            Phase::Transact(transact) => Some(&mut transact.seconds_max),
            _ => None,
        });
        for bound in bounds.chain([&mut self.load_seconds_max]) {
            *bound = bound.map(|seconds| (seconds * times).min(check::HOUR));
        }
    }

    /// How many operations that multiple of the records is.
    pub(crate) fn operations(&self, per_record: f64) -> u64 {
        ((self.records as f64 * per_record).ceil() as u64).max(1)
    }

    /// About how many distinct keys there will be.
    pub(crate) fn records_expected(&self) -> u64 {
        let beyond_load = |phase: &Phase| match phase {
            Phase::Mixed(mixed) => self.operations(mixed.operations_per_record * mixed.insert),
            Phase::Hot(hot) => hot.keys.saturating_sub(self.records),
            Phase::Transact(transact) => transact.among,
            Phase::Queue(queue) => self.operations(queue.operations_per_record).saturating_sub(self.records),
            _ => 0,
        };
        self.records + self.phases.iter().map(beyond_load).sum::<u64>()
    }
}

fn quarter() -> f64 {
    0.25
}

fn process() -> Durability {
    Durability::Os
}

fn thousand() -> u64 {
    1000
}

fn hundred() -> u64 {
    100
}

fn one() -> u64 {
    1
}
