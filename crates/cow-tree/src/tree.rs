//! A version that is open: what its root says, and lookups.

use std::path::Path;
use std::sync::Arc;

use forebay_base::{Error, Order, Record, Result};
use forebay_env::File;

use crate::extent::Extent;
use crate::file::{Reader, TreeFile};
use crate::node::{Node, Value};
use crate::root::{ROOT_BYTES, Root, Top, Version};
use crate::store::TreeStore;

/// An open version of a tree. Cheap to clone; it never changes, whatever is appended to its file.
#[derive(Clone)]
pub struct Tree(Arc<Inner>);

struct Inner {
    store: TreeStore,
    file: Arc<TreeFile>,
    version: Version,
    root: Root,
}

impl Tree {
    /// Opens a version. Device reads: its root.
    pub fn open(store: &TreeStore, version: Version) -> Result<Self> {
        let file = store.files.open(store, version.file_id)?;
        let mut block = [0; ROOT_BYTES as usize];
        file.read_at(&**file.handle(), version.root_at, &mut block)?;
        if Root::digest_of(&block, version.file_id, version.root_at) != Some(version.digest) {
            let reason = "there is no root with the version's checksum";
            return Err(Error::corruption(file.path(), version.root_at, reason));
        }
        let root = Root::decode(&block, file.path(), version.root_at, store.options.order)?;
        Ok(Self::of(store, &file, version, root))
    }

    /// The version with this root, which is there.
    pub(crate) fn of(store: &TreeStore, file: &Arc<TreeFile>, version: Version, root: Root) -> Self {
        file.cover(version.bytes());
        Self(Arc::new(Inner { store: store.clone(), file: Arc::clone(file), version, root }))
    }

    /// What it takes to open it again.
    pub fn version(&self) -> Version {
        self.0.version
    }

    /// Where its file is.
    pub fn path(&self) -> &Path {
        self.0.file.path()
    }

    /// How many records it has, tombstones and operands counted.
    pub fn records(&self) -> u64 {
        self.0.root.records
    }

    /// How many bytes of the file it reaches: nodes, values apart, and its root.
    pub fn live_bytes(&self) -> u64 {
        self.0.root.live_bytes
    }

    /// How long the file is up to this version's end.
    pub fn total_bytes(&self) -> u64 {
        self.0.version.bytes()
    }

    /// Levels of nodes: how many nodes a lookup passes.
    pub fn height(&self) -> u32 {
        self.top().map_or(0, |top| top.level as u32 + 1)
    }

    /// Marks the file as unneeded: it goes to the trash once no version of it is open any more. Call only after
    /// the edit that drops it is durable.
    pub fn retire(&self) {
        self.0.file.retire();
    }

    /// Shows `show` the record of a key, if there is one. Device reads: the leaf, unless the cache has it, and the
    /// value, if it is kept apart.
    pub fn find<T>(&self, key: &[u8], show: impl FnOnce(&Record<'_>) -> T) -> Result<Option<T>> {
        let Some(top) = self.top() else { return Ok(None) };
        let place = (self.order().prefix(key), key);
        let mut node = self.node(top.node, top.level, Reader::Lookup)?;
        while node.level() > 0 {
            let child = node.child(node.child_at(self.order(), place));
            node = self.node(child.node, node.level() - 1, Reader::Lookup)?;
        }
        let index = node.lower_bound(self.order(), place);
        if index == node.len() || node.key(index)[..] != *key {
            return Ok(None);
        }
        let mut apart = Vec::new();
        let value = match node.value(index) {
            Value::Inline(value) => value,
            Value::Apart(extent) => {
                self.read(extent, &mut apart, Reader::Lookup)?;
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

    pub(crate) fn handle(&self) -> &Arc<dyn File> {
        self.0.file.handle()
    }

    pub(crate) fn top(&self) -> Option<Top> {
        self.0.root.top
    }

    /// A node, through the cache.
    pub(crate) fn node(&self, extent: Extent, level: u8, reader: Reader) -> Result<Arc<Node>> {
        if let Some(node) = self.cached(extent, reader) {
            // A damaged parent may name a node of any level.
            return self.of_level(node, level);
        }
        let mut bytes = Vec::new();
        self.read(extent, &mut bytes, reader)?;
        let node = Arc::new(self.take_apart(bytes, extent, level)?);
        self.keep(&node);
        Ok(node)
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

    pub(crate) fn keep(&self, node: &Arc<Node>) {
        self.store().cache.insert(self.file().id(), node);
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
