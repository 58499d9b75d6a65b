//! Reading all that a version reaches, and holding every promise of the format against what is there.

use std::collections::BTreeMap;

use forebay_base::{Error, Result, ValuePointer};
use forebay_store::list::GrowingFilter;

use crate::extent::Extent;
use crate::file::Reader;
use crate::filter;
use crate::node::{Key, Node, Value};
use crate::packer::Weight;
use crate::root::ROOT_BYTES;
use crate::tree::Tree;
use crate::windows::{Reading, Windows};

/// This many values that cannot be read are told.
const FAULTS_MAX: usize = 100;

/// What was found in an intact tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Records, tombstones and operands counted.
    pub records: u64,
    /// Bytes of nodes, of values kept apart, of the filter, and of the root.
    pub live_bytes: u64,
    /// Leaves.
    pub leaves: u64,
    /// Nodes above them.
    pub inner_nodes: u64,
    /// Values kept apart, those in value files not counted.
    pub values: u64,
    /// Parts of the filter.
    pub filter_parts: u64,
    /// Their bytes.
    pub filter_bytes: u64,
}

/// What an inner node says about where a child's keys lie.
struct Bounds {
    low: Option<Key>,
    high: Option<Key>,
}

struct Walk<'a> {
    tree: &'a Tree,
    windows: Windows,
    /// What this version's own parts come to.
    filter: Option<GrowingFilter>,
    census: Census,
    value: Vec<u8>,
    /// Bytes of values in each value file.
    pointed: BTreeMap<u64, u64>,
    /// Values in value files that cannot be read.
    faults: &'a mut Vec<Error>,
}

impl Tree {
    /// Reads and checks all that this version reaches: checksums, the order of keys, their places, that the filter
    /// denies none, and every counter. The first fault is the error. What older versions alone reach is not looked at.
    pub fn verify(&self) -> Result<Census> {
        let mut faults = Vec::new();
        let census = self.check(&mut faults)?;
        faults.into_iter().next().map_or(Ok(census), Err)
    }

    /// The same, but values in value files that cannot be read go to `faults`, as many as are told of a file.
    pub fn check(&self, faults: &mut Vec<Error>) -> Result<Census> {
        let root = *self.root()?;
        let filter = root.filter.map(|chain| filter::load(self, &chain, Reader::Check)).transpose()?;
        let (filter_parts, filter_bytes) =
            root.filter.map_or((0, 0), |chain| (chain.parts as u64, chain.bytes));
        let live_bytes = ROOT_BYTES + filter_bytes;
        let census = Census { live_bytes, filter_parts, filter_bytes, ..Census::default() };
        let windows = Windows::new(self, Reading::Check)?;
        let (value, pointed) = (Vec::new(), BTreeMap::new());
        let mut walk = Walk { tree: self, windows, filter, census, value, pointed, faults };
        if let Some(top) = root.top {
            walk.check_node(top.node, top.level, &Bounds { low: None, high: None })?;
        }
        let (census, pointed) = (walk.census, walk.pointed);
        let named = self.value_shares().iter().filter(|share| share.bytes > 0);
        if self.salvage().is_none() && !named.map(|share| (share.file, share.bytes)).eq(pointed) {
            let reason = "the manifest does not have as much in value files as the tree";
            return Err(Error::corruption(self.path(), self.version().root_at, reason));
        }
        if (census.records, census.live_bytes) != (root.records, root.live_bytes) {
            let reason = "the root's counters are not those of its nodes";
            return Err(Error::corruption(self.path(), self.version().root_at, reason));
        }
        Ok(census)
    }
}

impl Walk<'_> {
    /// No deeper than the tree is high.
    fn check_node(&mut self, extent: Extent, level: u8, bounds: &Bounds) -> Result<Weight> {
        let mut bytes = Vec::new();
        self.windows.read(extent, &mut bytes)?;
        let node = self.tree.take_apart(bytes, extent, level)?;
        let damaged = |reason: &str| Error::corruption(self.tree.path(), extent.at, reason);
        self.check_keys(&node, bounds).map_err(damaged)?;
        let mut weight = Weight { live_bytes: extent.bytes as u64, ..Weight::default() };
        for index in 0..node.len() {
            let entry = if level == 0 {
                self.check_record(&node, index)?
            } else {
                self.check_child(&node, index, bounds)?
            };
            weight.records += entry.records;
            weight.live_bytes += entry.live_bytes;
        }
        self.census.live_bytes += extent.bytes as u64;
        match level {
            0 => self.census.leaves += 1,
            _ => self.census.inner_nodes += 1,
        }
        Ok(weight)
    }

    fn check_keys(&self, node: &Node, bounds: &Bounds) -> Result<(), &'static str> {
        let order = self.tree.order();
        let is_before = |one: &Key, other: &Key| (order.prefix(one), one) < (order.prefix(other), other);
        let mut last = bounds.low.clone();
        for index in usize::from(node.level() > 0)..node.len() {
            let key = node.key(index);
            // Its low bound may be a leaf's first record, but not a child's: that has one of its own.
            let follows = |last: &Key| is_before(last, &key) || index == 0 && *last == key;
            if last.as_ref().is_some_and(|last| !follows(last)) {
                return Err("a key is out of order");
            }
            if bounds.high.as_ref().is_some_and(|high| !is_before(&key, high)) {
                return Err("a key is out of its node's range");
            }
            let is_denied =
                |filter: &GrowingFilter| !filter.may_contain(order.key_hash(order.prefix(&key), &key));
            if node.level() == 0 && self.filter.as_ref().is_some_and(is_denied) {
                return Err("the filter denies a key");
            }
            last = Some(key);
        }
        Ok(())
    }

    fn check_child(&mut self, node: &Node, index: usize, bounds: &Bounds) -> Result<Weight> {
        let child = node.child(index);
        let low = if index == 0 { bounds.low.clone() } else { Some(node.key(index)) };
        let next = index + 1;
        let high = if next < node.len() { Some(node.key(next)) } else { bounds.high.clone() };
        let found = self.check_node(child.node, node.level() - 1, &Bounds { low, high })?;
        if (found.records, found.live_bytes) != (child.records, child.live_bytes) {
            let reason = "a node's counters are not those of its child";
            return Err(Error::corruption(self.tree.path(), node.extent().at, reason));
        }
        Ok(found)
    }

    fn check_record(&mut self, node: &Node, index: usize) -> Result<Weight> {
        let mut weight = Weight { records: 1, ..Weight::default() };
        if let Value::Apart(extent) = node.value(index) {
            self.windows.read(extent, &mut self.value)?;
            weight.live_bytes = extent.bytes as u64;
            self.census.values += 1;
            self.census.live_bytes += weight.live_bytes;
        }
        if let Some(value) = node.pointer(index) {
            self.check_pointer(&node.key(index), value);
        }
        self.census.records += 1;
        Ok(weight)
    }

    fn check_pointer(&mut self, key: &[u8], value: &[u8]) {
        if let Some(pointer) = ValuePointer::decode(value) {
            *self.pointed.entry(pointer.file).or_default() += pointer.bytes;
        }
        let read = self.tree.store().values.load(key, value);
        self.faults.extend(read.err().filter(|_| self.faults.len() < FAULTS_MAX));
    }
}
