//! Nodes in memory, of all trees that share the cache.

use std::sync::Arc;

use forebay_store::BlockCache;

use crate::extent::Extent;
use crate::node::Node;

/// A bounded cache of checked nodes.
pub struct NodeCache(BlockCache<Node>);

impl NodeCache {
    /// A cache of this many bytes.
    pub fn new(bytes: u64) -> Self {
        Self(BlockCache::new(bytes))
    }

    /// Grows or shrinks it to about this many bytes.
    pub fn resize(&self, bytes: u64) {
        self.0.resize(bytes);
    }

    /// Bytes held now.
    pub fn memory_bytes(&self) -> u64 {
        self.0.memory_bytes()
    }

    /// Where a tail was cut off and written anew, an offset may have had another node before: it is not shown.
    pub(crate) fn get(&self, file_id: u64, extent: Extent) -> Option<Arc<Node>> {
        self.0.get((file_id, extent.at)).filter(|node| node.extent() == extent)
    }

    pub(crate) fn insert(&self, file_id: u64, node: Node) -> Arc<Node> {
        self.0.insert((file_id, node.extent().at), node)
    }
}
