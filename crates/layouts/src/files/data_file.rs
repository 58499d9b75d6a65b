//! A file of a table's records: a list, or a version of a tree. Whoever counts references, pins, verifies or copies
//! files need not know which.

use std::path::PathBuf;
use std::sync::Arc;

use forebay_base::limits::BLOCK_BYTES;
use forebay_base::record::Shape;
use forebay_base::{Bound, Error, Order, Range, Result};
use forebay_buffer_tree::{self as tree, Portion};
use forebay_cow_tree::{NodeCache, OpenFiles, Tree, TreeOptions, TreeStore, Version};
use forebay_store::list::{Allowance, FileKind, FileMeta, FilterKind};
use forebay_store::values::ValueShare;
use forebay_store::{ListFile, ListStore, ValueFile};

use super::WeakFile;

/// A file that a version's parts refer to. Cheap to clone.
#[derive(Clone, Debug)]
pub enum DataFile {
    /// A sorted list.
    List(Arc<ListFile>),
    /// A version of a copy-on-write tree.
    Tree(Tree),
}

/// What reading all of a file has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileReport {
    /// Intact pages or nodes.
    pub pages: u64,
    /// Records.
    pub records: u64,
}

/// What the trees of all tables share. Cheap to clone.
#[derive(Clone)]
pub struct Trees {
    /// Nodes in memory.
    pub cache: Arc<NodeCache>,
    /// The files that are open.
    pub files: Arc<OpenFiles>,
}

impl Default for Trees {
    fn default() -> Self {
        Self { cache: Arc::new(NodeCache::new(0)), files: Arc::default() }
    }
}

/// Where a table's files are made and found. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    pub(crate) lists: Arc<ListStore>,
    pub(crate) trees: TreeStore,
}

impl Store {
    /// Sorts records, in lists and in trees.
    pub(crate) fn order(&self) -> Order {
        self.lists.options.order
    }

    /// Of these lists, and of trees beside them, whose leaves have values up to this length.
    pub fn new(lists: ListStore, trees: &Trees, inline_bytes: u32) -> Self {
        let trees = TreeStore {
            fs: Arc::clone(&lists.fs),
            dir: lists.dir.clone(),
            next_id: Arc::clone(&lists.next_id),
            cache: Arc::clone(&trees.cache),
            values: Arc::clone(&lists.values),
            metrics: Arc::clone(&lists.metrics),
            trash: Arc::clone(&lists.trash),
            files: Arc::clone(&trees.files),
            disk: Arc::clone(&lists.disk),
            options: TreeOptions {
                filter_bits_per_key: lists.options.filter_bits_per_key,
                codec: lists.options.codec,
                inline_value_bytes_max: inline_bytes as usize,
                ..TreeOptions::new(lists.options.order)
            },
            expiry: lists.expiry.clone(),
            salvage: lists.salvage.clone(),
            filter_level: Arc::clone(&lists.filter_level),
        };
        Self { lists: Arc::new(lists), trees }
    }

    /// A file that is only named so far.
    pub fn named(&self, meta: FileMeta) -> DataFile {
        match meta.kind {
            FileKind::List => DataFile::List(ListFile::named(&self.lists, meta)),
            FileKind::Tree => {
                let version = Version::ending_at(meta.id, meta.bytes, meta.digest);
                DataFile::Tree(Tree::named(&self.trees, version, &meta.values))
            }
        }
    }
}

impl DataFile {
    /// What the manifest keeps of it.
    pub fn meta(&self) -> FileMeta {
        match self {
            Self::List(list) => list.meta(),
            Self::Tree(tree) => {
                let version = tree.version();
                let (id, bytes) = (version.file_id, version.bytes());
                let values = Arc::clone(tree.value_shares());
                FileMeta { id, bytes, digest: version.digest, kind: FileKind::Tree, values }
            }
        }
    }

    /// The id that names it.
    pub fn id(&self) -> u64 {
        match self {
            Self::List(list) => list.id(),
            Self::Tree(tree) => tree.version().file_id,
        }
    }

    /// Its length in bytes. Of a tree: as far as the version reaches.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::List(list) => list.bytes(),
            Self::Tree(tree) => tree.version().bytes(),
        }
    }

    /// Whether it has values in a value file that is to be emptied.
    pub fn is_collected(&self) -> bool {
        self.value_files().iter().any(|values| values.is_collected())
    }

    /// Where it has values.
    pub fn value_files(&self) -> &[Arc<ValueFile>] {
        match self {
            Self::List(list) => list.value_files(),
            Self::Tree(tree) => tree.value_files(),
        }
    }

    /// What it has in value files.
    pub fn value_shares(&self) -> &[ValueShare] {
        match self {
            Self::List(list) => list.value_shares(),
            Self::Tree(tree) => tree.value_shares(),
        }
    }

    /// Its id, and how far it reaches: of one file, no two versions reach equally far.
    pub fn version(&self) -> (u64, u64) {
        (self.id(), self.bytes())
    }

    /// It, where it is a list.
    pub fn list(&self) -> Option<&Arc<ListFile>> {
        match self {
            Self::List(list) => Some(list),
            Self::Tree(_) => None,
        }
    }

    /// It, where it is a tree.
    pub fn tree(&self) -> Option<&Tree> {
        match self {
            Self::List(_) => None,
            Self::Tree(tree) => Some(tree),
        }
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        match self {
            Self::List(list) => list.path(),
            Self::Tree(tree) => tree.path().to_path_buf(),
        }
    }

    /// Whether it is in memory alone.
    pub fn is_resident(&self) -> bool {
        self.list().is_some_and(|list| list.is_resident())
    }

    /// The same, which this does not keep.
    pub fn downgrade(&self) -> WeakFile {
        match self {
            Self::List(list) => WeakFile::List(Arc::downgrade(list)),
            Self::Tree(tree) => WeakFile::Tree(tree.downgrade()),
        }
    }

    /// Whether nothing refers to it any more.
    pub fn is_retired(&self) -> bool {
        match self {
            Self::List(list) => list.is_retired(),
            Self::Tree(tree) => tree.is_retired(),
        }
    }

    /// Marks it as unneeded: it is removed once nobody reads it any more. Call only after the edit that drops it is
    /// durable.
    pub fn retire(&self) {
        match self {
            Self::List(list) => list.retire(),
            Self::Tree(tree) => tree.retire(),
        }
    }

    /// As [`retire`](Self::retire), for what no edit names: what was appended to a tree is dead, and the tree stays.
    pub fn discard(&self) {
        match self {
            Self::List(list) => list.retire(),
            Self::Tree(tree) => tree.discard(),
        }
    }

    /// Counts it as one of the table's files: for those that were there when the database was opened.
    pub fn found(&self) {
        match self {
            Self::List(list) => list.found(),
            Self::Tree(tree) => tree.found(),
        }
    }

    /// Opens the file, where it is closed by now.
    pub fn reopen(&self) -> Result<()> {
        match self {
            Self::List(list) => list.reopen(),
            Self::Tree(tree) => tree.reopen(),
        }
    }

    /// How many records it has; 0 when it cannot be opened.
    pub fn records(&self) -> u64 {
        match self {
            Self::List(list) => list.records(),
            Self::Tree(tree) => tree.records(),
        }
    }

    /// How many records it has, if somebody has opened it.
    pub fn known_records(&self) -> Option<u64> {
        match self {
            Self::List(list) => list.known_records(),
            Self::Tree(tree) => tree.known_records(),
        }
    }

    /// Bytes of it that no lookup would ever come to: what later appends to a tree have replaced.
    pub fn replaced_bytes(&self) -> u64 {
        match self {
            Self::List(_) => 0,
            // What is less than a block fills up the last one.
            Self::Tree(tree) => {
                let rest = tree.total_bytes().saturating_sub(tree.live_bytes());
                rest - rest % BLOCK_BYTES as u64
            }
        }
    }

    /// When about this share of it is over, for all of it no sooner than it is; `None` for never.
    pub fn over_at(&self, share: f64) -> Option<u64> {
        match self {
            Self::List(list) => list.over_at(share),
            Self::Tree(tree) => tree.over_at(share),
        }
    }

    /// About which share of it has expired by now.
    pub fn expired_share(&self) -> f64 {
        match self {
            Self::List(list) => list.expired_share(),
            Self::Tree(tree) => tree.expired_share(),
        }
    }

    /// How many keys its filter in memory has.
    pub fn filter_keys(&self) -> u64 {
        match self {
            Self::List(list) => list.filter_keys(),
            Self::Tree(tree) => tree.filter_keys(),
        }
    }

    /// How many keys there would be in all if it had as many at all places as it has where it stands for something: the
    /// more, the less of a filter pays.
    pub fn density(&self) -> f64 {
        match self {
            Self::List(list) => list.density(),
            Self::Tree(tree) => tree.filter_keys() as f64,
        }
    }

    /// What its filter is like.
    pub fn filter_kind(&self) -> FilterKind {
        match self {
            Self::List(list) => list.filter_kind(),
            Self::Tree(tree) => FilterKind { is_ranked: false, bits_per_key: tree.filter_bits_per_key() },
        }
    }

    /// Notes what lists stand for: records of so many bytes each, at this share of all places.
    pub fn note_part(&self, record_bytes: f64, share: f64) {
        if let Self::List(list) = self {
            list.note_part(record_bytes, share);
        }
    }

    /// Gives up precision of the filter until a key takes no more than it is allowed.
    pub fn thin_filter(&self, allowed: Allowance) {
        match self {
            Self::List(list) => list.thin_filter(allowed),
            Self::Tree(tree) => tree.thin_filter(allowed),
        }
    }

    /// Reads all of it, and checks it. What is wrong with a list's pages goes to `faults`; else the first fault is the
    /// error.
    pub fn verify(&self, faults: &mut Vec<Error>) -> Result<FileReport> {
        Ok(match self {
            Self::List(list) => {
                let report = list.verify(faults)?;
                FileReport { pages: report.pages, records: report.records }
            }
            Self::Tree(tree) => {
                let census = tree.check(faults)?;
                FileReport { pages: census.leaves + census.inner_nodes, records: census.records }
            }
        })
    }
}

impl tree::Fragment for DataFile {
    fn id(&self) -> u64 {
        Self::id(self)
    }

    fn middle(&self, range: &Range) -> Option<Bound> {
        match self {
            Self::List(list) => list.middle(range),
            Self::Tree(tree) => tree.middle(range),
        }
    }

    fn share_below(&self, range: &Range, at: &Bound) -> f64 {
        let share = match self {
            Self::List(list) => list.share_below(range, at),
            Self::Tree(tree) => tree.share_below(range, at),
        };
        debug_assert!((0.0..=1.0).contains(&share), "a share is of one");
        share
    }

    fn shape(&self) -> Shape {
        match self {
            Self::List(list) => list.shape(),
            Self::Tree(_) => Shape::Variable,
        }
    }

    fn grown_bytes(&self) -> Option<u64> {
        match self {
            Self::List(_) => None,
            Self::Tree(tree) => Some(tree.total_bytes()),
        }
    }

    fn pointed_bytes(&self, portion: Portion) -> u64 {
        let pointed = match self {
            Self::List(list) => list.pointed_bytes(),
            Self::Tree(tree) => tree.pointed_bytes(),
        };
        if pointed == 0 {
            return 0;
        }
        // About half of a file that is appended to was replaced since.
        let bytes = if self.list().is_some() { self.bytes() } else { self.bytes() / 2 };
        let all = Portion { records: self.known_records().unwrap_or_default(), bytes };
        share_of(pointed, portion, all)
    }

    fn held_bytes(&self) -> Option<u64> {
        self.list().filter(|list| list.is_resident()).map(|list| list.memory_bytes())
    }
}

/// What falls to a part: by records, where it is known how many there are in all, else by bytes.
fn share_of(whole: u64, part: Portion, all: Portion) -> u64 {
    let (part, all) = if all.records > 0 { (part.records, all.records) } else { (part.bytes, all.bytes) };
    if part >= all { whole } else { (u128::from(whole) * u128::from(part) / u128::from(all)) as u64 }
}

#[cfg(test)]
mod tests {
    use super::{Portion, share_of};

    /// Each part of a list that nobody had opened counted as all of it.
    #[test]
    fn parts_of_a_file_have_their_share_also_before_it_is_opened() {
        let unopened = Portion { bytes: 4000, records: 0 };
        let opened = Portion { bytes: 0, records: 90 };
        let part = |bytes, records| Portion { bytes, records };
        for (bytes, records, share) in [(1000, 30, [250, 333]), (4100, 90, [1000; 2]), (0, 0, [0; 2])] {
            let of = |all| share_of(1000, part(bytes, records), all);
            assert_eq!([of(unopened), of(opened)], share, "{bytes} bytes, {records} records");
        }
        assert_eq!(share_of(u64::MAX, part(u64::MAX - 1, 0), part(u64::MAX, 0)), u64::MAX - 1);
        assert_eq!(share_of(7, part(0, 0), part(0, 0)), 7);
    }
}
