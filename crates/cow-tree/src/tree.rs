//! A version: opening it, what its root says, and lookups.

use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};

use forebay_base::{Error, Order, Record, Result};
use forebay_env::File;
use forebay_store::list::{Allowance, Lookup};
use forebay_store::salvage::Gaps;
use forebay_store::values::{Tallied, ValueShare};
use forebay_store::{Caching, ValueFile};

use crate::extent::Extent;
use crate::file::{Reader, TreeFile};
use crate::filter::Filter;
use crate::node::{Node, Value};
use crate::recover::last_root;
use crate::root::{Lives, ROOT_BYTES, Root, Top, Version};
use crate::store::TreeStore;
use crate::values::Values;

/// A version of a tree. Cheap to clone; it never changes, whatever is appended to its file. It may not be open yet
/// (while the manifest is replayed, files are named that are gone by the end), and opening it may fail: then the error
/// is what every lookup in it answers.
#[derive(Clone)]
pub struct Tree(Arc<Inner>);

/// A tree's file, which this does not keep.
#[derive(Clone)]
pub struct WeakTree(Weak<TreeFile>);

struct Inner {
    store: TreeStore,
    file: Arc<TreeFile>,
    version: Version,
    values: Values,
    root: OnceLock<Result<Root>>,
    /// Once all keys of this version are in it; `None` without one.
    filter: OnceLock<Result<Option<Arc<Filter>>>>,
}

/// A version of a tree, which this does not keep.
#[derive(Clone)]
pub struct WeakVersion(Weak<Inner>);

impl WeakVersion {
    /// Whether anybody keeps it.
    pub fn is_kept(&self) -> bool {
        self.0.strong_count() > 0
    }
}

impl WeakTree {
    /// Whether anybody keeps a version of it.
    pub fn is_kept(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// As [`Tree::thin_filter`].
    pub fn thin_filter(&self, allowed: Allowance) {
        self.0.upgrade().inspect(|file| file.thin_filter(allowed));
    }
}

impl Tree {
    /// A version that is only named so far, and what it has in value files.
    pub fn named(store: &TreeStore, version: Version, shares: &Arc<[ValueShare]>) -> Self {
        Self::new(store, version, Values::named(store, Arc::clone(shares)))
    }

    fn new(store: &TreeStore, version: Version, values: Values) -> Self {
        let file = store.files.named(store, version.file_id);
        // An append to an older one must not take it for what is left over.
        file.cover(version.bytes());
        let (root, filter) = (OnceLock::new(), OnceLock::new());
        Self(Arc::new(Inner { store: store.clone(), file, version, values, root, filter }))
    }

    /// A version without values in value files, opened now. Device reads: its root.
    pub fn open(store: &TreeStore, version: Version) -> Result<Self> {
        let tree = Self::named(store, version, &Arc::default());
        tree.root()?;
        Ok(tree)
    }

    /// The version with this root, which was just written.
    pub(crate) fn written(store: &TreeStore, version: Version, root: Root, values: Tallied) -> Self {
        let tree = Self::new(store, version, Values::written(store, values));
        tree.file().values().begin(tree.value_files(), version.root_at);
        let _ = tree.0.root.set(Ok(root));
        tree
    }

    pub(crate) fn values(&self) -> &Values {
        &self.0.values
    }

    /// What it has in value files, and that versions before it in its file have had some in others.
    pub fn value_shares(&self) -> &Arc<[ValueShare]> {
        &self.values().shares
    }

    /// How long its values are that stand in value files.
    pub fn pointed_bytes(&self) -> u64 {
        self.values().bytes
    }

    /// Those files.
    pub fn value_files(&self) -> &[Arc<ValueFile>] {
        &self.values().files
    }

    /// What its root says; read at the first call. Damage is remembered. Any other failure may pass, and the next call
    /// tries again.
    pub(crate) fn root(&self) -> Result<&Root> {
        let root = match self.0.root.get() {
            Some(root) => root,
            None => match self.read_root() {
                Err(error) if !error.is_corruption() => return Err(error),
                read => self.0.root.get_or_init(|| read),
            },
        };
        root.as_ref().map_err(Clone::clone)
    }

    fn read_root(&self) -> Result<Root> {
        let version = self.version();
        match (self.root_of(version), self.salvage()) {
            // What an earlier append left is older, and most of what there is.
            (Err(error), Some(gaps)) if gaps.pass_over(self.path(), &error, None) => {
                let older = last_root(self.store(), version.file_id, version.root_at)?;
                older.map_or(Err(error), |older| self.root_of(older))
            }
            (root, _) => root,
        }
    }

    fn root_of(&self, version: Version) -> Result<Root> {
        let file = self.file();
        let mut block = [0; ROOT_BYTES as usize];
        file.read_at(&**file.handle()?, version.root_at, &mut block)?;
        if Root::digest_of(&block, version.file_id, version.root_at) != Some(version.digest) {
            let reason = "no root has the version's checksum";
            return Err(Error::corruption(file.path(), version.root_at, reason));
        }
        Root::decode(&block, file.path(), version.root_at, self.order())
    }

    /// The filter, if there is one; read at the first call. What fails is dealt with as the root's failures are.
    fn filter(&self) -> Result<Option<&Filter>> {
        let filter = match self.0.filter.get() {
            Some(filter) => filter,
            None => match self.join_filter() {
                Err(error) if !error.is_corruption() => return Err(error),
                joined => self.0.filter.get_or_init(|| joined),
            },
        };
        filter.as_ref().map(Option::as_deref).map_err(Clone::clone)
    }

    fn join_filter(&self) -> Result<Option<Arc<Filter>>> {
        let chain = self.root()?.filter.filter(|_| self.store().options.filter_bits_per_key > 0);
        chain.map(|chain| self.file().filter().join(self, &chain)).transpose()
    }

    /// Opens the file, where it is closed by now.
    pub fn reopen(&self) -> Result<()> {
        self.handle()?.len().map(drop)
    }

    /// How many keys the file's filter in memory is made for.
    pub fn filter_keys(&self) -> u64 {
        self.file().filter().get().map_or(0, |filter| filter.keys())
    }

    /// How many bits a key its filter is made with.
    pub fn filter_bits_per_key(&self) -> u32 {
        self.store().options.filter_bits_per_key
    }

    /// Gives up precision of the filter until a key takes no more than it is allowed, as far as that goes.
    pub fn thin_filter(&self, allowed: Allowance) {
        self.file().thin_filter(allowed);
    }

    /// Its file, for as long as others keep any version of it.
    pub fn downgrade(&self) -> WeakTree {
        WeakTree(Arc::downgrade(&self.0.file))
    }

    /// This version, for as long as others keep it.
    pub fn downgrade_version(&self) -> WeakVersion {
        WeakVersion(Arc::downgrade(&self.0))
    }

    /// What it takes to open it again.
    pub fn version(&self) -> Version {
        self.0.version
    }

    /// Where damage is noted that is passed over, if it is.
    pub(crate) fn salvage(&self) -> Option<&Gaps> {
        self.store().salvage.as_deref()
    }

    /// Where its file is.
    pub fn path(&self) -> &Path {
        self.0.file.path()
    }

    /// How many records it has, tombstones and operands counted; 0 when it cannot be opened.
    pub fn records(&self) -> u64 {
        self.root().map_or(0, |root| root.records)
    }

    /// The same, if somebody has opened it.
    pub fn known_records(&self) -> Option<u64> {
        self.0.root.get()?.as_ref().ok().map(|root| root.records)
    }

    /// How many bytes of the file it reaches: nodes, values apart, and its root; all of them when it cannot be opened.
    pub fn live_bytes(&self) -> u64 {
        self.root().map_or(self.total_bytes(), |root| root.live_bytes)
    }

    /// How long the file is up to this version's end.
    pub fn total_bytes(&self) -> u64 {
        self.0.version.bytes()
    }

    /// When about this share of its entries is over, whatever was replaced counted; for all of them no sooner than
    /// they are. In milliseconds since 1970; `None` for never, and where nothing expires.
    pub fn over_at(&self, share: f64) -> Option<u64> {
        let Lives { entries, expiries } = self.root().ok()?.lives;
        let wanted = (share * entries as f64).ceil() as u64;
        expiries.until(wanted).filter(|_| expiries.records > 0)
    }

    /// About which share of its entries has expired by now.
    pub fn expired_share(&self) -> f64 {
        let (Some(clock), Ok(root)) = (&self.store().expiry, self.root()) else { return 0.0 };
        let Lives { entries, expiries } = root.lives;
        expiries.by(clock.unix_milliseconds()) as f64 / entries.max(1) as f64
    }

    /// Whether its file has no later version that anybody has named, or may read who opened the database earlier.
    pub fn is_newest(&self) -> bool {
        self.0.file.covered_bytes() == self.total_bytes() && !self.0.file.may_be_read_behind()
    }

    /// Levels of nodes: how many nodes a lookup passes; 0 when it cannot be opened.
    pub fn height(&self) -> u32 {
        self.top().ok().flatten().map_or(0, |top| top.level as u32 + 1)
    }

    /// Marks the file as unneeded: it goes to the trash once nobody has a version of it any more. Call only after
    /// the edit that drops it is durable.
    pub fn retire(&self) {
        self.0.file.retire();
    }

    /// Whether nothing refers to the file any more.
    pub fn is_retired(&self) -> bool {
        self.0.file.is_retired()
    }

    /// Counts the file as one of the table's: for those that were there when the database was opened. Once is enough
    /// for all versions of it, with the newest, and more does no harm.
    pub fn found(&self) {
        self.0.file.found();
        self.0.file.values().begin(self.value_files(), self.version().root_at);
    }

    /// Gives up a version that was written, and that no manifest will name: a file that began with it goes. What an
    /// append has added stays, and is dead; value files that came with it go. Not for what an append gave back that had
    /// nothing to add.
    pub fn discard(&self) {
        match self.root() {
            Ok(root) if root.append_at == 0 => self.retire(),
            _ => self.file().values().give_up(self.version().root_at),
        }
    }

    /// Shows `show` the record of a key, if there is one. Device reads: the leaf, unless the cache has it, and the
    /// value, if it is kept apart. Where there is none, nothing is read unless the filter errs.
    pub fn find<T>(&self, lookup: &Lookup<'_>, show: impl FnOnce(&Record<'_>) -> T) -> Result<Option<T>> {
        let metrics = &self.store().metrics;
        let filter = self.filter()?;
        if let Some(filter) = filter {
            metrics.filter_probes.add(1);
            if !filter.may_contain(lookup.hash) {
                return Ok(None);
            }
        }
        let found = self.search(lookup, show)?;
        metrics.filter_false.add((filter.is_some() && found.is_none()) as u64);
        Ok(found)
    }

    fn search<T>(&self, lookup: &Lookup<'_>, show: impl FnOnce(&Record<'_>) -> T) -> Result<Option<T>> {
        let Some(top) = self.top()? else { return Ok(None) };
        let key = lookup.key;
        let place = (lookup.prefix, key);
        let caching = lookup.caching;
        let mut node = self.node_caching(top.node, top.level, Reader::Lookup, caching)?;
        while node.level() > 0 {
            let child = node.child(node.child_at(self.order(), place));
            node = self.node_caching(child.node, node.level() - 1, Reader::Lookup, caching)?;
        }
        let index = node.lower_bound(self.order(), place);
        if index == node.len() || node.key(index)[..] != *key {
            return Ok(None);
        }
        let mut apart = Vec::new();
        let value = match node.value(index) {
            Value::Inline(value) => value,
            Value::Apart(extent) => {
                self.read_whole(extent, &mut apart, Reader::Lookup)?;
                &apart
            }
        };
        Ok(Some(show(&Record { kind: node.kind(index), key, value })))
    }

    pub(crate) fn order(&self) -> Order {
        self.0.store.options.order
    }

    pub(crate) fn store(&self) -> &TreeStore {
        &self.0.store
    }

    pub(crate) fn file(&self) -> &Arc<TreeFile> {
        &self.0.file
    }

    pub(crate) fn handle(&self) -> Result<&Arc<dyn File>> {
        self.0.file.handle()
    }

    pub(crate) fn top(&self) -> Result<Option<Top>> {
        Ok(self.root()?.top)
    }

    /// A node, through the cache.
    pub(crate) fn node(&self, extent: Extent, level: u8, reader: Reader) -> Result<Arc<Node>> {
        self.node_caching(extent, level, reader, Caching::Keep)
    }

    /// The same, of which a leaf that is read is kept or not. Inner nodes are: they are few, and on the way of all.
    pub(crate) fn node_caching(
        &self,
        extent: Extent,
        level: u8,
        reader: Reader,
        caching: Caching,
    ) -> Result<Arc<Node>> {
        if let Some(node) = self.cached(extent, reader) {
            // A damaged parent may name a node of any level.
            return self.of_level(node, level);
        }
        let mut bytes = Vec::new();
        self.read_whole(extent, &mut bytes, reader)?;
        let node = self.take_apart(bytes, extent, level)?;
        Ok(match caching {
            Caching::Pass if level == 0 => Arc::new(node),
            Caching::Pass | Caching::Keep => self.keep(node),
        })
    }

    /// A node that should be of a level.
    pub(crate) fn of_level(&self, node: Arc<Node>, level: u8) -> Result<Arc<Node>> {
        if node.level() == level {
            return Ok(node);
        }
        Err(Error::corruption(self.path(), node.extent().at, "the node is of another level"))
    }

    /// A node, if the cache has it.
    pub(crate) fn cached(&self, extent: Extent, reader: Reader) -> Option<Arc<Node>> {
        let node = self.store().cache.get(self.file().id(), extent)?;
        if matches!(reader, Reader::Lookup) {
            self.store().metrics.cache_hits.add(1);
        }
        Some(node)
    }

    pub(crate) fn keep(&self, node: Node) -> Arc<Node> {
        self.store().cache.insert(self.file().id(), node)
    }

    pub(crate) fn take_apart(&self, bytes: Vec<u8>, extent: Extent, level: u8) -> Result<Node> {
        Node::decode(bytes, extent, level).map_err(|reason| Error::corruption(self.path(), extent.at, reason))
    }

    /// Bytes by themselves, around the cache.
    pub(crate) fn read(&self, extent: Extent, bytes: &mut Vec<u8>, reader: Reader) -> Result<()> {
        reader.count(&self.store().metrics, extent.bytes as usize);
        self.file().read(extent, bytes)
    }
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tree({:?})", self.0.version)
    }
}
