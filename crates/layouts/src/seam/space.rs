//! What a table's lists take on disk, and about how much of that is of use: from metadata in memory, whatever the
//! layout.

use std::collections::{BTreeMap, BTreeSet};

use forebay_base::digest::{self, Part};
use forebay_base::{Bound, Range};
use forebay_buffer_tree::Portion;

use super::TableVersion;
use crate::files::DataFile;

/// What a table version has of a file.
pub struct FilePart<'a> {
    /// The file.
    pub file: DataFile,
    /// Where the list's records lie.
    pub range: &'a Range,
    /// How much of the file that is.
    pub portion: Portion,
    /// It was merged with everything older.
    pub is_bottom: bool,
}

/// What the files of a version's lists take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// All of them.
    pub file_bytes: u64,
    /// Those parts of them that no list stands for any more, or whose entries have expired.
    pub dead_bytes: u64,
    /// Those parts that were not merged with everything older yet.
    pub unmerged_bytes: u64,
    /// About what they would take if each key that is there were in them once, and no tombstone.
    pub live_bytes: u64,
}

/// What lists have of one file.
pub(crate) struct FileUse {
    pub(crate) file: DataFile,
    pub(crate) records: u64,
    pub(crate) lists: u64,
    unmerged_records: u64,
    /// Prefixes, both ends included.
    spans: Vec<(u64, u64)>,
}

impl FileUse {
    /// The share of it that no list stands for.
    pub(crate) fn dead_share(&self) -> f64 {
        1.0 - self.share(self.records)
    }

    pub(crate) fn dead_bytes(&self) -> u64 {
        (self.dead_share() * self.file.bytes() as f64) as u64
    }

    /// What this many of its records are of it; all, where it cannot be opened.
    fn share(&self, records: u64) -> f64 {
        let replaced = self.file.replaced_bytes() as f64 / self.file.bytes().max(1) as f64;
        let share = match self.file.records() {
            0 => 1.0,
            all => (records as f64 / all as f64).min(1.0),
        };
        debug_assert!((0.0..=1.0).contains(&replaced), "no more of a file is replaced than there is");
        share * (1.0 - replaced)
    }

    /// Makes one span of those that meet, so that no sample is counted twice.
    fn join_spans(&mut self) {
        self.spans.sort_unstable();
        self.spans.dedup_by(|next, before| {
            let meets = next.0 <= before.1;
            before.1 = if meets { before.1.max(next.1) } else { before.1 };
            meets
        });
        debug_assert!(self.spans.is_sorted_by(|one, next| one.1 < next.0), "no prefix is in two spans");
    }
}

/// What lists have of each file on disk, by the file's id.
pub(crate) fn by_file(version: &dyn TableVersion) -> BTreeMap<u64, FileUse> {
    let mut files: BTreeMap<u64, FileUse> = BTreeMap::new();
    version.each_list(&mut |held| {
        // What is in memory alone takes nothing of the disk.
        if held.file.is_resident() {
            return;
        }
        let entry = files.entry(held.file.id()).or_insert_with(|| FileUse {
            file: held.file,
            records: 0,
            lists: 0,
            unmerged_records: 0,
            spans: Vec::new(),
        });
        entry.records += held.portion.records;
        entry.lists += 1;
        entry.unmerged_records += if held.is_bottom { 0 } else { held.portion.records };
        let high = held.range.high.as_ref().map_or(u64::MAX, |high| high.prefix);
        entry.spans.push((held.range.low.prefix, high));
    });
    files.values_mut().for_each(FileUse::join_spans);
    files
}

impl Usage {
    /// Of these files. What lives is estimated: keys that come several times by the lists' samples, and one key less
    /// for each tombstone. The keys of trees have no samples: they are taken to come once, and lists in front of them
    /// to have none but theirs.
    pub fn of(version: &dyn TableVersion) -> Self {
        let files = by_file(version);
        let mut usage = Self::default();
        let (mut used_bytes, mut records, mut in_trees, mut tombstones) = (0.0, 0.0, 0.0, 0.0);
        for held in files.values() {
            let (bytes, share) = (held.file.bytes() as f64, held.share(held.records));
            usage.file_bytes += held.file.bytes();
            let list = held.file.list();
            let expired = held.file.expired_share();
            usage.dead_bytes += held.dead_bytes() + (bytes * share * expired) as u64;
            usage.unmerged_bytes += (bytes * held.share(held.unmerged_records)) as u64;
            used_bytes += bytes * share * (1.0 - expired);
            records += held.records as f64;
            in_trees += if list.is_some() { 0.0 } else { held.records as f64 };
            tombstones += list.map_or(0, |list| list.tombstones()) as f64 * share;
        }
        let lists = files.values().filter_map(|held| Some((held.file.list()?.digest(), &held.spans)));
        let lists: Vec<_> = lists.collect();
        let parts = lists.iter().flat_map(|(digest, spans)| {
            spans.iter().map(|&(low, high)| Part { digest, low, high, records: 0 })
        });
        let keys = f64::max(in_trees, (records - in_trees) / digest::repeats(parts));
        let live = (keys - tombstones).max(0.0) / f64::max(records, 1.0);
        usage.live_bytes = (used_bytes * live) as u64;
        debug_assert!(
            usage.live_bytes.max(usage.dead_bytes).max(usage.unmerged_bytes) <= usage.file_bytes,
            "all of this is part of the files: {usage:?}"
        );
        usage
    }
}

/// The files below an id of which some records are of no use any more, and may lie in a range. Of a tree nobody knows where
/// those lie: where its parts reach, or end.
pub fn stale_files(version: &dyn TableVersion, range: &Range, below: u64) -> BTreeSet<u64> {
    let high = range.high.as_ref().map_or(u64::MAX, |high| high.prefix);
    let mut parts: BTreeMap<u64, Vec<Range>> = BTreeMap::new();
    version.each_list(&mut |held| {
        if !held.file.is_resident() && held.file.id() < below {
            parts.entry(held.file.id()).or_default().push(held.range.clone());
        }
    });
    let mut is_stale = |id: u64, held: &FileUse| {
        let (Some(first), Some(last)) = (held.spans.first(), held.spans.last()) else { return true };
        let list = held.file.list();
        let reach = match list {
            Some(list) => list.prefixes(),
            None => Some((first.0, last.1)),
        };
        let (Some(reach), Some(parts)) = (reach, parts.get_mut(&id)) else { return true };
        // How many records a part has is an estimate: a small file may seem whole where little of it is gone.
        let has_all = list.is_some() && held.lists == 1 && held.records >= SURE_RECORDS;
        let is_whole = has_all || cover(parts, list.map(|_| reach));
        reach.0 <= high && range.low.prefix <= reach.1 && (held.dead_share() > 0.0 || !is_whole)
    };
    let stale = |(id, held): (u64, FileUse)| (id < below && is_stale(id, &held)).then_some(id);
    by_file(version).into_iter().filter_map(stale).collect()
}

/// Of a file with this many records no part but the whole has as many by estimate, which leaves out a thousandth at
/// least.
const SURE_RECORDS: u64 = 1000;

/// Whether parts of a file are certain to leave out none of its records; the first and the last have these prefixes,
/// where those are known.
fn cover(parts: &mut [Range], reach: Option<(u64, u64)>) -> bool {
    parts.sort_unstable_by(|one, other| one.low.cmp(&other.low));
    let meet = |pair: &[Range]| pair[0].high.as_ref().is_none_or(|high| *high >= pair[1].low);
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return false };
    let reaches_over = |(lowest, highest): (u64, u64)| {
        let ends = last.high.as_ref().is_none_or(|high| highest < high.prefix);
        ends && (first.low.prefix < lowest || first.low.prefix == lowest && is_first_of_prefix(&first.low))
    };
    parts.windows(2).all(meet) && reach.is_none_or(reaches_over)
}

/// Whether no key of a bound's prefix, which are its first 8 bytes, comes before it.
fn is_first_of_prefix(bound: &Bound) -> bool {
    bound.key.len() <= size_of::<u64>() && bound.key.last() != Some(&0)
}

/// Tells `see` about how many bytes of which value file lists stand for: of each list its share of what it was written
/// with, and all of that where nobody has opened the list yet. Reads nothing.
pub fn value_use(version: &dyn TableVersion, see: &mut dyn FnMut(u64, f64)) {
    // Of a tree parts may have several versions.
    let mut files: BTreeMap<(u64, u64), (DataFile, u64)> = BTreeMap::new();
    version.each_list(&mut |held| {
        if !held.file.value_shares().is_empty() {
            files.entry(held.file.version()).or_insert((held.file, 0)).1 += held.portion.records;
        }
    });
    for (file, records) in files.values() {
        let share = file.known_records().map_or(1.0, |all| (*records as f64 / all.max(1) as f64).min(1.0));
        file.value_shares().iter().for_each(|values| see(values.file, share * values.bytes as f64));
    }
}

/// Where about this much has expired, it is worth writing the rest anew.
pub(crate) const EXPIRED_SHARE: f64 = 0.5;
/// The same where somebody wants all to be compact. A whole entry would be too little: there, something expires all the
/// time, and a compaction would never end.
pub(crate) const EXPIRED_SHARE_COMPACTING: f64 = 0.125;

/// A file with less dead than this share of a whole one is left alone.
const DEAD_NODE_SHARE: u64 = 8;

/// Whether most of a file is dead, and that is worth a job: a flushed one may be much shorter than a node.
pub(crate) fn is_wasteful(file: &FileUse, node_bytes: u64) -> bool {
    let whole_bytes = node_bytes.min(file.file.bytes());
    file.dead_share() > 0.5 && file.dead_bytes() >= whole_bytes / DEAD_NODE_SHARE
}
