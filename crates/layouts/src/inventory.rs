//! List files without bytes: what a simulated layout has written, read and keeps, for layouts that plan over
//! counts. Sizes are asked of the store.

use forebay_store::Cause;
use forebay_store::list::{FilterDemand, FilterLevel, ListOptions, ListSize};

/// Which keys the records of a load have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keys {
    /// None comes twice.
    Unique,
    /// Each is drawn evenly from this many.
    DrawnFrom(u64),
    /// Each is drawn from this many by Zipf, the lower the more often: the one of rank r is r^-E times as likely as the
    /// first.
    Zipf {
        /// How many.
        keys: u64,
        /// E, in hundredths.
        exponent_percent: u32,
    },
}

/// Keys side by side that are drawn about equally often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Zone {
    /// The keys in front of it, and those up to its end.
    pub(crate) keys: (f64, f64),
    /// How many of all draws fall into it.
    pub(crate) share: f64,
}

impl Zone {
    /// How many of its keys this many draws come upon.
    pub(crate) fn met(&self, draws: f64) -> f64 {
        let keys = self.keys.1 - self.keys.0;
        // 1 of 1, in the end.
        let missed = (draws * self.share * (-1.0 / keys.max(1.0 + 1e-9)).ln_1p()).exp();
        keys * (1.0 - missed)
    }
}

/// The next zone is this much longer than all before it.
const ZONE_GROWTH: f64 = 1.25;

impl Keys {
    /// How many of this many records are left when each key's newest is, and their share of all keys: 0.0 where
    /// there is no end of keys. Of skewed keys it is the share that as many draws would have come upon had they been
    /// even: what draws add up to follows from that, wherever they lie.
    pub fn collapse(self, records: u64) -> (u64, f64) {
        match self {
            Self::Unique => (records, 0.0),
            Self::DrawnFrom(keys) => {
                let share = -(records as f64 * (-1.0 / keys as f64).ln_1p()).exp_m1();
                let left = (share * keys as f64).round() as u64;
                debug_assert!(left <= records.min(keys), "no key is made");
                (left, share)
            }
            Self::Zipf { keys, .. } => {
                let left: f64 = self.zones().iter().map(|zone| zone.met(records as f64)).sum();
                (left.round() as u64, Self::DrawnFrom(keys).collapse(records).1)
            }
        }
    }

    /// How many there are; `None` where there is no end of them.
    pub fn distinct(self) -> Option<u64> {
        match self {
            Self::Unique => None,
            Self::DrawnFrom(keys) | Self::Zipf { keys, .. } => Some(keys),
        }
    }

    /// Whether low keys come more often than others.
    pub fn are_skewed(self) -> bool {
        matches!(self, Self::Zipf { .. })
    }

    /// All keys of a skewed load, in order.
    pub(crate) fn zones(self) -> Vec<Zone> {
        let Self::Zipf { keys, exponent_percent } = self else { return Vec::new() };
        let (keys, exponent) = (keys as f64, f64::from(exponent_percent) / 100.0);
        // The sum over ranks by the area below their curve.
        let area = |rank: f64| match (1.0 - exponent).abs() < 1e-9 {
            true => (rank + 0.5).ln() - 0.5_f64.ln(),
            false => ((rank + 0.5).powf(1.0 - exponent) - 0.5_f64.powf(1.0 - exponent)) / (1.0 - exponent),
        };
        let (mut zones, mut low, all) = (Vec::new(), 0.0, area(keys));
        while low < keys {
            let high = (low * ZONE_GROWTH).max(low + 1.0).min(keys);
            zones.push(Zone { keys: (low, high), share: (area(high) - area(low)) / all });
            low = high;
        }
        zones
    }
}

/// What the lists are like, and what they may take.
#[derive(Clone, Copy, Debug)]
pub struct ListModel {
    /// How lists are made.
    pub options: ListOptions,
    /// Bytes of key and value of every record, as lists have it.
    pub record_bytes: u64,
    /// Bytes of the key of every record.
    pub key_bytes: u64,
    /// Bytes of the value that each record points to, where values stand apart; else 0.
    pub pointed_bytes: u64,
    /// Filters are made thinner so that they take no more than this.
    pub filter_memory_bytes_max: u64,
}

impl ListModel {
    /// Bytes of key and value of every record, as a write buffer has it.
    pub fn put_bytes(&self) -> u64 {
        if self.pointed_bytes > 0 { self.key_bytes + self.pointed_bytes } else { self.record_bytes }
    }
}

/// Everything that was written and read so far, by cause, in the order of [`forebay_store::metrics::CAUSES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes written to list files.
    pub bytes_written: [u64; 4],
    /// Bytes read from list files.
    pub bytes_read: [u64; 4],
    /// Records that jobs took in.
    pub records_read: [u64; 4],
    /// Jobs.
    pub jobs: [u64; 4],
}

/// What is kept now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// List files.
    pub files: u64,
    /// Their bytes.
    pub file_bytes: u64,
    /// Keys of their filters.
    pub filter_keys: u64,
    /// Memory that their filters would take if none was made thinner.
    pub filter_bytes: u64,
    /// Memory of page search and digests.
    pub search_bytes: u64,
}

/// A file that lists refer to.
#[derive(Clone, Copy, Debug)]
struct Entry {
    size: ListSize,
    keys: u64,
    references: u32,
}

/// The list files of one simulated table.
#[derive(Clone, Debug)]
pub struct Inventory {
    model: ListModel,
    files: Vec<Entry>,
    traffic: Traffic,
    holdings: Holdings,
    file_bytes_max: u64,
}

impl Inventory {
    /// No files yet.
    pub fn new(model: ListModel) -> Self {
        let (traffic, holdings) = (Traffic::default(), Holdings::default());
        Self { model, files: Vec::new(), traffic, holdings, file_bytes_max: 0 }
    }

    /// What the lists are like.
    pub fn model(&self) -> &ListModel {
        &self.model
    }

    /// What was written and read.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// What is kept now.
    pub fn holdings(&self) -> &Holdings {
        &self.holdings
    }

    /// The most bytes that all files together had at any time, what jobs read and wrote both counted.
    pub fn file_bytes_max(&self) -> u64 {
        self.file_bytes_max
    }

    /// What this many records take in memory, in lists of this many bytes at least, with filters and page search.
    pub(crate) fn memory_bytes_of(&self, records: u64, list_bytes_min: u64) -> u64 {
        let (record_bytes, options) = (self.model.record_bytes.max(1), &self.model.options);
        let all = records.max(list_bytes_min.div_ceil(record_bytes));
        let whole = ListSize::of(options, record_bytes, all, all).memory_bytes();
        (u128::from(whole) * u128::from(records) / u128::from(all.max(1))) as u64
    }

    /// The id that the next file will have.
    pub fn next_id(&self) -> u32 {
        self.files.len() as u32
    }

    /// A job reads this many records that lie side by side in one file.
    pub fn read(&mut self, cause: Cause, records: u64) {
        self.traffic.bytes_read[cause as usize] += ListSize::walk_bytes(self.model.record_bytes, records);
    }

    /// A job reads this many bytes of a tree.
    pub fn read_tree(&mut self, cause: Cause, bytes: u64) {
        self.traffic.bytes_read[cause as usize] += bytes;
    }

    /// A job of `records_read` writes a file of `records`.
    pub fn write(&mut self, cause: Cause, records_read: u64, records: u64) {
        self.job(cause, records_read);
        self.file(cause, records_read, records);
    }

    /// A job reads this many records.
    pub fn job(&mut self, cause: Cause, records_read: u64) {
        self.traffic.records_read[cause as usize] += records_read;
        self.traffic.jobs[cause as usize] += 1;
    }

    /// A file of `records` is written, made for up to `records_max`.
    pub fn file(&mut self, cause: Cause, records_max: u64, records: u64) {
        let size = ListSize::of(&self.model.options, self.model.record_bytes, records_max, records);
        self.traffic.bytes_written[cause as usize] += size.file_bytes;
        self.files.push(Entry { size, keys: records, references: 0 });
        self.hold(size, records);
    }

    /// A tree of `records` is written, in a file of this many bytes.
    pub fn tree(&mut self, cause: Cause, records: u64, bytes: u64) {
        self.files.push(Entry { size: ListSize::default(), keys: 0, references: 0 });
        self.hold(ListSize::default(), 0);
        self.grow(self.next_id() - 1, cause, records, bytes);
    }

    /// This many bytes are appended to a tree, with this many keys that it did not have. It takes the memory of a list.
    pub fn grow(&mut self, id: u32, cause: Cause, records: u64, bytes: u64) {
        let Some(file) = self.files.get_mut(id as usize) else { return };
        self.traffic.bytes_written[cause as usize] += bytes;
        debug_assert!(file.references > 0 || file.keys == 0, "nothing is appended to what was removed");
        let (before, keys) = (file.size, file.keys);
        let list = ListSize::of(&self.model.options, self.model.record_bytes, keys + records, keys + records);
        file.size = ListSize { file_bytes: before.file_bytes + bytes, ..list };
        file.keys += records;
        let (size, all) = (file.size, file.keys);
        self.let_go(before, keys);
        self.hold(size, all);
    }

    fn hold(&mut self, size: ListSize, keys: u64) {
        let holdings = &mut self.holdings;
        holdings.files += 1;
        holdings.file_bytes += size.file_bytes;
        holdings.filter_bytes += size.filter_bytes;
        holdings.filter_keys += keys;
        holdings.search_bytes += size.search_bytes;
        self.file_bytes_max = self.file_bytes_max.max(holdings.file_bytes);
    }

    fn let_go(&mut self, size: ListSize, keys: u64) {
        let holdings = &mut self.holdings;
        holdings.files -= 1;
        holdings.file_bytes -= size.file_bytes;
        holdings.filter_bytes -= size.filter_bytes;
        holdings.filter_keys -= keys;
        holdings.search_bytes -= size.search_bytes;
    }

    /// This many lists more or fewer refer to a file. One without any is removed.
    pub fn refer(&mut self, id: u32, by: i32) {
        let Some(file) = self.files.get_mut(id as usize) else { return };
        debug_assert!(file.references.checked_add_signed(by).is_some(), "no list is given up twice");
        file.references = file.references.saturating_add_signed(by);
        if file.references == 0 {
            let (size, keys) = (std::mem::take(&mut file.size), file.keys);
            self.let_go(size, keys);
        }
    }

    /// What filters come to, where lists stand for these shares of all places of these files, so that all of them take
    /// no more than they may.
    pub fn filters(&self, parts: impl Iterator<Item = (u32, f64)>) -> Filters {
        let mut shares = vec![0.0; self.files.len()];
        parts.for_each(|(id, share)| shares.get_mut(id as usize).into_iter().for_each(|sum| *sum += share));
        let options = &self.model.options;
        let density = |file: &Entry, share: f64| match options.order.is_uniform() {
            true => file.keys as f64 / share.max(1e-12),
            false => file.keys as f64,
        };
        let held = || self.files.iter().zip(&shares).map(|(file, &share)| (file, density(file, share)));
        let mut demand = FilterDemand::default();
        let there = held().filter(|(file, _)| file.references > 0);
        there.for_each(|(file, density)| demand.add(options.filter_kind(), density, file.keys));
        let level = FilterLevel::new(
            demand.level(self.model.filter_memory_bytes_max as f64 * FilterDemand::SHARE_PLANNED),
        );
        let mut filters = Filters::default();
        for (file, density) in held() {
            let (left, wasted) = ListSize::thinned(options, level.bits(density).unwrap_or(f64::INFINITY));
            debug_assert!(
                (0.0..=1.0).contains(&left) && (0.0..=1.0).contains(&wasted),
                "shares of what there is"
            );
            filters.resident_bytes += file.size.filter_bytes as f64 * left;
            filters.wasted.push(wasted);
        }
        filters
    }
}

/// What filters come to.
#[derive(Clone, Debug, Default)]
pub struct Filters {
    resident_bytes: f64,
    /// By the file's id.
    wasted: Vec<f64>,
}

impl Filters {
    /// Memory that they take.
    pub fn resident_bytes(&self) -> u64 {
        self.resident_bytes as u64
    }

    /// The device reads that a list of this file costs a lookup of a key that it does not hold.
    pub fn wasted_reads(&self, id: u32) -> f64 {
        self.wasted.get(id as usize).copied().unwrap_or(1.0)
    }
}
