//! A new version in the making: how changes in key order become appended nodes.
//!
//! 1. Go to the leaf that a record belongs to. On the way there, what comes before it in the old nodes of that path is
//!    copied: records of the leaf as they are, children by their references.
//! 2. Put the record among them, folded with the older record of its key.
//! 3. The entries of each level go through a [`Packer`]; every node that it fills is appended, and its reference is an
//!    entry of the level above.
//! 4. Where an old child is taken over by reference, the levels below it are sealed first. Where none is, packing goes
//!    on across old nodes, so that changes that lie side by side fill their nodes.
//! 5. At the end copy what is left of the open path and seal it upwards, until one node is left.
//!
//! A bulk load is the same over a tree that has nothing.

mod records;

use std::sync::Arc;

use forebay_base::codec::Codec;
use forebay_base::combine::{Depth, Fold};
use forebay_base::wire::{Reader, put_varint};
use forebay_base::{Combine, Error, Kind, Record, Result};

use crate::extent::Extent;
use crate::filter::FilterWriter;
use crate::node::{Child, Key, LEVEL_MAX, Node, Value};
use crate::old_node::OldNode;
use crate::packer::{Packer, Weight};
use crate::root::{Lives, ROOT_BYTES, Root, Top};
use crate::store::TreeStore;
use crate::tail::Tail;
use crate::tree::Tree;
use crate::values::WrittenPointers;
use crate::windows::{Reading, Windows};

/// A leaf that stands for this many times its own bytes, in values elsewhere, is worth a place in the cache as inner
/// nodes are.
const INDEX_RATIO: u64 = 8;

/// The next version of a tree.
pub(crate) struct Growth {
    store: TreeStore,
    tail: Tail,
    /// The tree before, if there is one.
    old: Option<(Tree, Windows)>,
    /// Its topmost node, until the first change opens it.
    top: Option<Top>,
    levels: Vec<Level>,
    /// `None` where the version is to have no filter.
    filter: Option<FilterWriter>,
    lives: Lives,
    pointers: WrittenPointers,
    fold: Fold,
    node: Vec<u8>,
    payload: Vec<u8>,
    /// That of the file, and what it makes of a node or a value.
    codec: Codec,
    packed: Vec<u8>,
}

/// One level of the tree.
struct Level {
    packer: Packer,
    old: Option<OldNode>,
}

/// How entries that are left over are spread over two nodes.
#[derive(Clone, Copy)]
enum Split {
    /// Something follows: new keys fall anywhere, and each half should have room.
    Even,
    /// Nothing follows: where keys are ever higher ones, room would stay empty.
    Full,
}

impl Growth {
    /// Over this tree, if there is one.
    pub(crate) fn new(store: &TreeStore, tail: Tail, old: Option<&Tree>) -> Result<Self> {
        // Old leaves are read in pieces as long in all as the tail is written in.
        let reading = Reading::Job { cause: tail.cause(), memory_bytes: store.metrics.memory.write_bytes() };
        let top = old.map_or(Ok(None), Tree::top)?;
        Ok(Self {
            store: store.clone(),
            filter: FilterWriter::new(store, old)?,
            lives: old.map_or(Ok(Lives::default()), |tree| tree.root().map(|root| root.lives))?,
            codec: old.map_or(Ok(store.options.codec), |tree| tree.root().map(|root| root.codec))?,
            packed: Vec::new(),
            pointers: WrittenPointers::over(store, old),
            tail,
            top,
            old: old.map(|tree| Ok((tree.clone(), Windows::new(tree, reading)?))).transpose()?,
            levels: Vec::new(),
            fold: Fold::default(),
            node: Vec::new(),
            payload: Vec::new(),
        })
    }

    /// What the nodes and values come to that are done.
    pub(crate) fn bytes(&self) -> u64 {
        self.tail.bytes()
    }

    /// Adds the next record, the only one of its key.
    pub(crate) fn put(
        &mut self,
        prefix: u64,
        record: &Record<'_>,
        rule: &impl Combine,
        depth: Depth,
    ) -> Result<()> {
        self.go_to(prefix, record.key)?;
        let older = self.copy_records_before((prefix, record.key))?;
        let is_open = rule.is_open(record.kind);
        // What a tree is built of was asked about by the merge that yields it.
        let asks = depth == Depth::Bottom && self.old.is_some() && rule.is_choosy();
        let is_kept = |record: &Record<'_>| match record.kind {
            _ if !asks => true,
            Kind::Pointer => rule.keeps_pointed(record.key, record.value),
            _ => rule.keeps(record.key, record.value),
        };
        let is_gone = match record.kind {
            Kind::Delete => depth == Depth::Bottom,
            // What is folded into something older is no value yet, and not shown to a filter.
            _ => !(is_open && older.is_some() || is_kept(record)),
        };
        if let Some(filter) = self.filter.as_mut().filter(|_| older.is_none() && !is_gone) {
            filter.add(prefix, record.key);
        }
        if let Some((node, index)) = &older
            && let Some(pointer) = node.pointer(*index)
        {
            self.pointers.give_up(pointer)?;
        }
        match (older, is_open) {
            (Some((node, index)), true) => {
                let mut fold = std::mem::take(&mut self.fold);
                fold.clear();
                fold.add(rule, record);
                let mut apart = Vec::new();
                let value = match node.value(index) {
                    Value::Inline(value) => value,
                    Value::Apart(extent) => {
                        self.read_old(extent, &mut apart)?;
                        &apart
                    }
                };
                fold.add(rule, &Record { kind: node.kind(index), key: record.key, value });
                let (value_bytes, value_bytes_max) = (fold.value().len(), rule.value_bytes_max());
                if value_bytes > value_bytes_max {
                    return Err(Error::too_long(record.key, value_bytes, value_bytes_max));
                }
                let folded = fold.finish(record.key, depth).filter(is_kept);
                let done = folded.map_or(Ok(()), |folded| self.write(&folded));
                self.fold = fold;
                done
            }
            _ => match (record.kind, depth) {
                _ if is_gone => Ok(()),
                (Kind::Merge, Depth::Bottom) => self.write(&Record { kind: Kind::Put, ..*record }),
                _ => self.write(record),
            },
        }
    }

    /// Opens the path to the leaf that a record belongs to, unless it is open.
    fn go_to(&mut self, prefix: u64, key: &[u8]) -> Result<()> {
        if let Some(top) = self.top.take() {
            (0..=top.level).for_each(|level| self.add_level(level));
            let node = self.read_node(top.node, top.level)?;
            self.levels[top.level as usize].old =
                Some(OldNode { node, next: 0, low: Key::new(), high: None });
            for level in (1..=top.level as usize).rev() {
                self.descend(level, prefix, key)?;
            }
            return Ok(());
        }
        let order = self.store.options.order;
        let covers = |old: &OldNode| {
            old.high.as_ref().is_none_or(|high| (prefix, key) < (order.prefix(high), &high[..]))
        };
        let Some(turn) = self.levels.iter().position(|level| level.old.as_ref().is_some_and(covers)) else {
            return Ok(());
        };
        for level in 0..turn {
            self.copy_rest(level)?;
        }
        (1..=turn).rev().try_for_each(|level| self.descend(level, prefix, key))
    }

    /// Goes from an old inner node to the child that a record belongs to; copies the children before it.
    fn descend(&mut self, level: usize, prefix: u64, key: &[u8]) -> Result<()> {
        let Some(mut old) = self.levels[level].old.take() else { return Ok(()) };
        let target = old.node.child_at(self.store.options.order, (prefix, key));
        self.copy(level, &old, old.next..target)?;
        old.next = target + 1;
        let node = self.read_node(old.node.child(target).node, old.node.level() - 1)?;
        let child = OldNode { node, next: 0, low: old.low_of(target), high: old.high_of(target) };
        self.levels[level - 1].packer.begin(&child.low);
        self.levels[level - 1].old = Some(child);
        self.levels[level].old = Some(old);
        Ok(())
    }

    /// Copies what is left of an old node, and is done with it.
    fn copy_rest(&mut self, level: usize) -> Result<()> {
        match self.levels[level].old.take() {
            Some(old) => self.copy(level, &old, old.next..old.node.len()),
            None => Ok(()),
        }
    }

    fn copy(&mut self, level: usize, old: &OldNode, entries: std::ops::Range<usize>) -> Result<()> {
        let mut key = Key::new();
        for index in entries {
            if level > 0 {
                self.copy_child(level, old, index)?;
                continue;
            }
            old.node.key_into(index, &mut key);
            self.copy_record(&old.node, index, &key)?;
        }
        Ok(())
    }

    /// Takes over a child by reference; or by its entries, where what comes before it is too little for a node.
    fn copy_child(&mut self, level: usize, old: &OldNode, index: usize) -> Result<()> {
        (0..level - 1).try_for_each(|lower| self.seal(lower, Split::Even))?;
        let child = old.node.child(index);
        if self.levels[level - 1].packer.is_scant() {
            let node = self.read_node(child.node, old.node.level() - 1)?;
            let entries = 0..node.len();
            let child = OldNode { node, next: 0, low: old.low_of(index), high: None };
            return self.copy(level - 1, &child, entries);
        }
        self.seal(level - 1, Split::Even)?;
        let weight = Weight { records: child.records, live_bytes: child.live_bytes, ..Weight::default() };
        self.push(level, &old.low_of(index), 0, old.node.payload(index), weight)
    }

    /// Copies the open leaf's records before a place. Returns the one at it, which is not copied.
    fn copy_records_before(&mut self, place: (u64, &[u8])) -> Result<Option<(Arc<Node>, usize)>> {
        let Some(level) = self.levels.first_mut() else { return Ok(None) };
        let Some(mut old) = level.old.take() else { return Ok(None) };
        let index = old.node.lower_bound(self.store.options.order, place).max(old.next);
        self.copy(0, &old, old.next..index)?;
        let is_same = index < old.node.len() && old.node.key(index)[..] == *place.1;
        old.next = index + usize::from(is_same);
        let same = is_same.then(|| (Arc::clone(&old.node), index));
        self.levels[0].old = Some(old);
        Ok(same)
    }

    fn add_level(&mut self, level: u8) {
        debug_assert!(usize::from(level) == self.levels.len() && level <= LEVEL_MAX);
        let options = &self.store.options;
        let packer = Packer::new(options.order, level, options.node_bytes_max);
        self.levels.push(Level { packer, old: None });
    }

    fn push(&mut self, level: usize, key: &[u8], flags: u8, payload: &[u8], weight: Weight) -> Result<()> {
        if self.levels[level].packer.push(key, flags, payload, weight) { self.emit(level) } else { Ok(()) }
    }

    /// Appends the node that comes first on a level.
    fn emit(&mut self, level: usize) -> Result<()> {
        let mut bytes = std::mem::take(&mut self.node);
        let (low, mut weight) = self.levels[level].packer.take(&mut bytes);
        let node = self.append(&bytes)?;
        weight.live_bytes += node.bytes as u64;
        let mut payload = Vec::with_capacity(32);
        node.encode(&mut payload);
        put_varint(&mut payload, weight.records);
        put_varint(&mut payload, weight.live_bytes);
        if level > 0 || weight.live_bytes + weight.pointed_bytes >= INDEX_RATIO * bytes.len() as u64 {
            // Every lookup will want it, and the next append.
            let file_id = self.tail.claim().file().id();
            if let Ok(node) = Node::decode(bytes.clone(), node, level as u8) {
                self.store.cache.insert(file_id, node);
            }
        }
        self.node = bytes;
        if self.levels.len() == level + 1 {
            self.add_level(level as u8 + 1);
        }
        self.push(level + 1, &low, 0, &payload, weight)
    }

    /// Appends all that waits on a level.
    fn seal(&mut self, level: usize, split: Split) -> Result<()> {
        if let Split::Even = split {
            self.levels[level].packer.balance();
        }
        while !self.levels[level].packer.is_empty() {
            self.emit(level)?;
        }
        Ok(())
    }

    /// Appends the rest and the root; the next version is durable.
    pub(crate) fn finish(mut self) -> Result<Tree> {
        (0..self.levels.len()).try_for_each(|level| self.copy_rest(level))?;
        let mut top = None;
        let mut level = 0;
        while level < self.levels.len() {
            let is_highest = self.levels[level + 1..].iter().all(|level| level.packer.is_empty());
            match self.levels[level].packer.only() {
                // The one node of the level below; what is above it would have no other child.
                Some((payload, weight)) if is_highest && level > 0 => {
                    let child = Child::decode(&mut Reader::new(payload), self.tail.end());
                    top = child.map(|child| (Top { node: child.node, level: level as u8 - 1 }, weight));
                    break;
                }
                _ => self.seal(level, Split::Full)?,
            }
            level += 1;
        }
        let weight = top.map_or(Weight::default(), |(_, weight)| weight);
        let filter = self.filter.as_mut().map(|filter| filter.write(&mut self.tail)).transpose()?;
        // Before the root, which nothing follows that may fail.
        let values = self.pointers.finish()?;
        let root = Root {
            order_is_lexical: self.store.options.order.is_lexical(),
            has_pointers: !values.shares.is_empty(),
            codec: self.codec,
            append_at: 0,
            append_sum: 0,
            records: weight.records,
            live_bytes: weight.live_bytes + filter.map_or(0, |chain| chain.bytes) + ROOT_BYTES,
            top: top.map(|(top, _)| top),
            filter,
            lives: self.lives,
        };
        let (version, root) = self.tail.finish(root)?;
        let tree = Tree::written(&self.store, version, root, values);
        self.filter.into_iter().for_each(|filter| filter.publish(&tree));
        Ok(tree)
    }

    /// An old node: inner ones are worth a place in the cache, leaves are read once.
    fn read_node(&mut self, extent: Extent, level: u8) -> Result<Arc<Node>> {
        let Some((tree, windows)) = &mut self.old else { return Err(Error::bug("no tree to read")) };
        if level > 0 {
            return tree.node(extent, level, windows.reader());
        }
        if let Some(leaf) = tree.cached(extent, windows.reader()) {
            return tree.of_level(leaf, level);
        }
        let mut bytes = Vec::new();
        windows.read(extent, &mut bytes)?;
        Ok(Arc::new(tree.take_apart(bytes, extent, level)?))
    }

    fn read_old(&mut self, extent: Extent, bytes: &mut Vec<u8>) -> Result<()> {
        let Some((_, windows)) = &mut self.old else { return Err(Error::bug("no tree to read")) };
        windows.read(extent, bytes).map(drop)
    }
}
