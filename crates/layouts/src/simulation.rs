//! Layouts over counts: the same plans, rebased and applied by the same code, with jobs that move no records. And what
//! lookups would meet in them.

use forebay_base::Result;

use crate::inventory::{Filters, Inventory, Keys};
use crate::seam::LevelDescription;

/// A table's lists under its layout, of which only counts are known.
pub trait Simulated {
    /// Takes in a write buffer of this many records, and does all that it calls for. Returns the bytes that this
    /// wrote, the buffer's own list not counted.
    fn flush(&mut self, records: u64) -> Result<u64>;
    /// From now on merges lag behind writers that wait for no more than the engine has them wait, where so much debt
    /// costs nothing. A tree's are done all the same.
    fn lag(&mut self, free_debt_bytes: u64);
    /// What it wrote, read and keeps.
    fn inventory(&self) -> &Inventory;
    /// Bytes of its files, and of those that merges under way have yet to free.
    fn file_bytes(&self) -> u64;
    /// The most that there were at any time.
    fn file_bytes_max(&self) -> u64;
    /// Edits that moved no data.
    fn free_edits(&self) -> u64;
    /// Its levels, top first.
    fn levels(&self) -> Vec<LevelDescription>;
    /// Says what is wrong with its structure, if anything is.
    fn check(&self) -> Result<(), String>;
    /// Memory of the table version and the handles of its files, in bytes.
    fn tree_memory_bytes(&self) -> u64;
    /// What its filters come to.
    fn filters(&self) -> Filters;
    /// What lookups meet.
    fn paths(&self) -> Paths;
}

/// What a lookup meets on its way, on average over all places.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Paths {
    /// Lists on the path of a place.
    pub lists_mean: f64,
    /// The most lists on any path.
    pub lists_max: u64,
    /// Device reads of a lookup of a key that lists hold.
    pub reads_present: f64,
    /// Device reads of a lookup of a key that was never written.
    pub reads_absent: f64,
    /// Distinct keys that the lists hold.
    pub keys: f64,
}

/// What a lookup has met so far on its way down, newest lists first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    lists: u64,
    /// Device reads of a key that none of them holds.
    wasted: f64,
    /// The share of keys that none of them holds.
    absence: f64,
    /// The records that lookups of present keys end at, for each unit of all places, and the device reads up
    /// to each.
    found: f64,
    reads: f64,
}

impl Path {
    pub(crate) fn new() -> Self {
        Self { lists: 0, wasted: 0.0, absence: 1.0, found: 0.0, reads: 0.0 }
    }

    /// Passes a list that has this many records for each unit of all places, and this share of the keys. It costs a
    /// lookup of a key that it does not hold so many device reads.
    pub(crate) fn pass(&mut self, records: f64, coverage: f64, wasted: f64) {
        debug_assert!(records >= 0.0 && (0.0..=1.0).contains(&coverage), "a list has a share of the keys");
        let found = records * self.absence;
        self.found += found;
        self.reads += found * (self.wasted + 1.0);
        self.lists += 1;
        self.wasted += wasted;
        self.absence *= 1.0 - coverage;
    }
}

/// Paths, each weighed by its share of all places.
#[derive(Default)]
pub(crate) struct Sums {
    lists: f64,
    lists_max: u64,
    wasted: f64,
    reads: f64,
    found: f64,
    keys: f64,
}

impl Sums {
    /// Adds a path that this much of all places has.
    pub(crate) fn add(&mut self, path: &Path, share: f64, keys: Keys) {
        self.lists += path.lists as f64 * share;
        self.lists_max = self.lists_max.max(path.lists);
        self.wasted += path.wasted * share;
        self.reads += path.reads * share;
        self.found += path.found * share;
        self.keys += share * keys.distinct().map_or(path.found, |keys| keys as f64 * (1.0 - path.absence));
    }

    pub(crate) fn finish(self) -> Paths {
        let Sums { lists, lists_max, wasted, reads, found, keys } = self;
        Paths {
            lists_mean: lists,
            lists_max,
            reads_present: if found > 0.0 { reads / found } else { 0.0 },
            reads_absent: wasted,
            keys,
        }
    }
}
