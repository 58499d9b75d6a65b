//! The filter of a file: which keys its versions have, so that a lookup of any other key reads nothing.
//!
//! In memory all versions share one: what the others have only makes a version's lookups err a little more often. On
//! disk a version has a chain of parts, each behind the one that it refers to: hashes that appends have added, and
//! where the chain ends the whole of the blocks that there were by then.
//!
//! **Invariant:** every key of a version is in its chain, and a version is looked up by the shared filter only once its
//! whole chain is in that.

use std::sync::{Arc, OnceLock};

use forebay_base::wire::Reader as Wire;
use forebay_base::{Error, Result};
use forebay_env::Words;
use forebay_env::sync::Mutex;
use forebay_env::sync::atomic::Ordering;
use forebay_store::list::{Allowance, GrowingFilter, Mark};
use forebay_store::{MemoryClaim, Metrics, Owner};

use crate::extent::Extent;
use crate::file::Reader;
use crate::root::ROOT_BYTES;
use crate::store::TreeStore;
use crate::tail::Tail;
use crate::tree::Tree;

/// What a part is: the first byte of it.
const WHOLE: u8 = 0;
const ADDED: u8 = 1;
/// A chain has no more parts.
pub(crate) const PARTS_MAX: u32 = 64;
/// Of those that are written: this many reads are enough where a file is opened.
const PARTS_WRITTEN_MAX: u32 = 16;
/// There is room for this many hashes at first, and at a time for no more than this many.
const HASHES_MIN: usize = 512;
const HASHES_MAX: usize = 32 << 10;
/// What comes before the first of the added takes no more.
const ADDED_HEAD_BYTES: usize = 24;
/// Shorter ones are written whole each time.
const WHOLE_BYTES_MIN: u64 = 1 << 10;

const _: () = assert!(PARTS_WRITTEN_MAX < PARTS_MAX && HASHES_MIN <= HASHES_MAX, "what is written is read");

/// What a root says of its filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chain {
    /// The newest part.
    pub(crate) newest: Extent,
    /// How many blocks the filter has.
    pub(crate) blocks: u32,
    pub(crate) parts: u32,
    /// Of all parts.
    pub(crate) bytes: u64,
}

impl Chain {
    /// Whether it may be that of a root that is there and counts this many live bytes.
    pub(crate) fn fits(&self, root_at: u64, live_bytes: u64) -> bool {
        let end = self.newest.at.checked_add(self.newest.bytes as u64);
        end.is_some_and(|end| end <= root_at)
            && (1..=PARTS_MAX).contains(&self.parts)
            && self.blocks > 0
            && self.blocks as u64 * GrowingFilter::BLOCK_BYTES as u64 <= self.bytes
            && live_bytes.checked_sub(ROOT_BYTES).is_some_and(|others| self.bytes <= others)
    }
}

/// A filter in memory, which is counted.
pub(crate) struct Filter {
    bits: GrowingFilter,
    /// How many it is made for, whatever one version or the other has.
    keys: u64,
    metrics: Arc<Metrics>,
}

impl Filter {
    /// As thin as filters are to be by now.
    fn new(bits: GrowingFilter, store: &TreeStore) -> Self {
        let whole_bits = bits.count() as u64 * 8 * GrowingFilter::BLOCK_BYTES as u64;
        let keys = whole_bits.div_ceil(store.options.filter_bits_per_key.max(1) as u64);
        let bits = bits.thinned(store.filter_level.allowance(keys as f64, 0), keys);
        store.metrics.filter_memory_bytes.add(bits.memory_bytes() as u64);
        Self { bits, keys, metrics: Arc::clone(&store.metrics) }
    }

    pub(crate) fn keys(&self) -> u64 {
        self.keys
    }

    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        self.bits.may_contain(hash)
    }

    pub(crate) fn thin(&self, allowed: Allowance) {
        self.metrics.filter_memory_bytes.subtract(self.bits.thin(allowed, self.keys) as u64);
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        self.metrics.filter_memory_bytes.subtract(self.bits.memory_bytes() as u64);
    }
}

/// What a file's versions share.
#[derive(Default)]
pub(crate) struct FileFilter {
    /// Once a key was looked up in a version, or one was written whole.
    filter: OnceLock<Arc<Filter>>,
    /// Parts which the filter has, with all that their chains go on to.
    joined: Mutex<Vec<Extent>>,
}

impl FileFilter {
    pub(crate) fn get(&self) -> Option<&Arc<Filter>> {
        self.filter.get()
    }

    /// The filter once it has all that a version's chain has. Device reads: the parts that it does not have yet.
    pub(crate) fn join(&self, tree: &Tree, chain: &Chain) -> Result<Arc<Filter>> {
        let mut joined = self.joined.lock();
        // Opening is not counted, as that of lists is not. What a chain that cannot be read to its end has left in the
        // filter does no harm.
        let Some(filter) = self.filter.get() else {
            let bits = GrowingFilter::new(chain.blocks);
            joined.extend(add_chain(tree, chain, Reader::Check, &bits, |_| false)?);
            let begin = || Arc::new(Filter::new(bits, tree.store()));
            return Ok(Arc::clone(self.filter.get_or_init(begin)));
        };
        let parts = add_chain(tree, chain, Reader::Check, &filter.bits, |part| joined.contains(&part))?;
        joined.extend(parts);
        Ok(Arc::clone(filter))
    }
}

/// Adds the parts of a chain to a filter, newest first, up to one that is there.
fn add_chain(
    tree: &Tree,
    chain: &Chain,
    reader: Reader,
    filter: &GrowingFilter,
    is_there: impl Fn(Extent) -> bool,
) -> Result<Vec<Extent>> {
    let (mut parts, mut bytes) = (Vec::new(), Vec::new());
    let mut next = Some(chain.newest);
    while let Some(part) = next.filter(|&part| !is_there(part)) {
        let damaged = |reason| Error::corruption(tree.path(), part.at, reason);
        tree.read(part, &mut bytes, reader)?;
        if filter.count() != chain.blocks || parts.len() as u32 == chain.parts {
            return Err(damaged("the filter's chain is not as its root says"));
        }
        next =
            add_part(&bytes, part.at, filter).ok_or_else(|| damaged("the part of a filter is malformed"))?;
        parts.push(part);
    }
    Ok(parts)
}

/// Adds the bytes of a part, which stand there, to a filter. Returns the part before, if it is not a whole one. `None`
/// where it is malformed.
fn add_part(bytes: &[u8], at: u64, filter: &GrowingFilter) -> Option<Option<Extent>> {
    let mut from = Wire::new(bytes);
    let (kind, before) = match from.u8()? {
        WHOLE => (WHOLE, None),
        ADDED => (ADDED, Some(Extent::decode(&mut from, at)?)),
        _ => return None,
    };
    let rest = from.take(from.remaining())?;
    if kind == WHOLE {
        return filter.unite(rest).then_some(before);
    }
    let block_bytes = block_bytes(filter.count());
    let marks = rest.chunks(block_bytes + 4).map(|entry| {
        let mut entry = Wire::new(entry);
        let mut block = [0; 4];
        block[..block_bytes].copy_from_slice(entry.take(block_bytes)?);
        let mark = Mark { block: u32::from_le_bytes(block), half: entry.u32()? };
        (mark.block < filter.count()).then_some(mark)
    });
    let fits = marks.clone().all(|mark| mark.is_some());
    filter.add(marks.flatten().take_while(|_| fits));
    fits.then_some(before)
}

/// How many bytes tell a block of this many from the others.
fn block_bytes(blocks: u32) -> usize {
    (u32::BITS - blocks.saturating_sub(1).leading_zeros()).div_ceil(8) as usize
}

/// A version's own filter, as its chain has it, all of which is read and held against the root.
pub(crate) fn load(tree: &Tree, chain: &Chain, reader: Reader) -> Result<GrowingFilter> {
    let filter = GrowingFilter::new(chain.blocks);
    let parts = add_chain(tree, chain, reader, &filter, |_| false)?;
    let bytes = parts.iter().map(|part| part.bytes as u64).sum::<u64>();
    if (parts.len() as u32, bytes) != (chain.parts, chain.bytes) {
        let reason = "the root's counters are not those of its filter";
        return Err(Error::corruption(tree.path(), tree.version().root_at, reason));
    }
    Ok(filter)
}

/// Hashes of what may be millions of keys. None moves as more come, and what they took goes back to the system: an
/// allocator keeps it.
#[derive(Default)]
struct Hashes {
    pieces: Vec<Words>,
    count: usize,
    /// For this many there is room.
    room: usize,
}

impl Hashes {
    /// Says whether that took more memory.
    fn push(&mut self, hash: u64) -> bool {
        let grows = self.count == self.room;
        if grows {
            let piece = self.room.clamp(HASHES_MIN, HASHES_MAX);
            self.pieces.push(Words::zeroed(piece));
            self.room += piece;
        }
        if let Some(last) = self.pieces.last() {
            let len = last.as_slice().len();
            debug_assert!(self.room - self.count <= len, "there is room in the last piece");
            last.set(self.count + len - self.room, hash);
        }
        self.count += 1;
        grows
    }

    fn memory_bytes(&self) -> u64 {
        (self.room * size_of::<u64>()) as u64
    }

    fn marks(&self, blocks: u32) -> impl Iterator<Item = Mark> {
        let words = self.pieces.iter().flat_map(Words::as_slice).take(self.count);
        words.map(move |word| Mark::of(word.load(Ordering::Relaxed), blocks))
    }
}

/// The keys that an append or a build adds.
pub(crate) struct FilterWriter {
    store: TreeStore,
    before: Option<(Tree, Chain)>,
    hashes: Hashes,
    /// Of the hashes, and while a part is written of what that takes.
    claim: MemoryClaim,
    /// What was written whole.
    whole: Option<GrowingFilter>,
    written: Option<Chain>,
}

impl FilterWriter {
    /// `None` where there is to be no filter: also where the version before has none, whose keys nobody knows.
    pub(crate) fn new(store: &TreeStore, old: Option<&Tree>) -> Result<Option<Self>> {
        let before = match old {
            None => None,
            Some(tree) => match tree.root()?.filter {
                Some(chain) => Some((tree.clone(), chain)),
                None => return Ok(None),
            },
        };
        let claim = store.metrics.memory.claim(Owner::Writing, 0);
        let has_filter = store.options.filter_bits_per_key > 0;
        let (store, hashes) = (store.clone(), Hashes::default());
        let writer = Self { store, before, hashes, claim, whole: None, written: None };
        Ok(has_filter.then_some(writer))
    }

    /// Adds a key that the version before does not have.
    pub(crate) fn add(&mut self, prefix: u64, key: &[u8]) {
        if self.hashes.push(self.store.options.order.key_hash(prefix, key)) {
            self.claim_beside(0);
        }
    }

    /// Claims this much beside the hashes.
    fn claim_beside(&mut self, bytes: u64) {
        self.claim.resize(self.hashes.memory_bytes() + bytes);
    }

    /// Appends what was added, or the filter whole where that is not much more.
    pub(crate) fn write(&mut self, tail: &mut Tail) -> Result<Chain> {
        let chain = self.write_part(tail)?;
        debug_assert!(chain.fits(tail.end(), ROOT_BYTES + chain.bytes), "a root that says so is believed");
        self.written = Some(chain);
        Ok(chain)
    }

    fn write_part(&mut self, tail: &mut Tail) -> Result<Chain> {
        let Some((tree, before)) = &self.before else {
            // It is made for half as many again: a tree that has grown so far is divided.
            let keys = self.hashes.count as u64 * 3 / 2;
            let blocks = GrowingFilter::blocks_for(keys, self.store.options.filter_bits_per_key);
            self.claim_beside(2 * whole_bytes(blocks));
            return self.write_whole(tail, GrowingFilter::new(blocks));
        };
        if self.hashes.count == 0 {
            return Ok(*before);
        }
        let (tree, before) = (tree.clone(), *before);
        let whole_bytes = whole_bytes(before.blocks);
        let added = self.added(&before);
        self.claim_beside(added.capacity() as u64);
        let chained_bytes = before.bytes.saturating_sub(whole_bytes) + added.len() as u64;
        let is_whole = whole_bytes < WHOLE_BYTES_MIN
            || before.parts >= PARTS_WRITTEN_MAX
            || chained_bytes > whole_bytes
            || added.len() as u64 > u32::MAX as u64;
        if is_whole {
            drop(added);
            // The parts that are read, too, are no longer than all of it.
            self.claim_beside(2 * whole_bytes);
            let filter = load(&tree, &before, Reader::Job(tail.cause()))?;
            return self.write_whole(tail, filter);
        }
        let newest = tail.append(&added)?;
        let (parts, bytes) = (before.parts + 1, before.bytes + added.len() as u64);
        Ok(Chain { newest, parts, bytes, ..before })
    }

    /// The bytes of a part of the hashes.
    fn added(&self, before: &Chain) -> Vec<u8> {
        let block_bytes = block_bytes(before.blocks);
        let mut bytes = Vec::with_capacity(ADDED_HEAD_BYTES + self.hashes.count * (block_bytes + 4));
        debug_assert!(self.hashes.count > 0, "a part has something");
        bytes.push(ADDED);
        before.newest.encode(&mut bytes);
        for mark in self.hashes.marks(before.blocks) {
            bytes.extend_from_slice(&mark.block.to_le_bytes()[..block_bytes]);
            bytes.extend_from_slice(&mark.half.to_le_bytes());
        }
        bytes
    }

    fn write_whole(&mut self, tail: &mut Tail, filter: GrowingFilter) -> Result<Chain> {
        filter.add(self.hashes.marks(filter.count()));
        let mut bytes = vec![WHOLE];
        filter.encode(&mut bytes);
        let chain = Chain {
            newest: tail.append(&bytes)?,
            blocks: filter.count(),
            parts: 1,
            bytes: bytes.len() as u64,
        };
        self.claim_beside(whole_bytes(filter.count()));
        self.whole = Some(filter);
        Ok(chain)
    }

    /// Adds the keys to the filter in memory, now that they are durable in a version that nobody has yet. Where it
    /// lacks what the version before has, the first lookup will read that.
    pub(crate) fn publish(self, version: &Tree) {
        let (file, Some(chain)) = (version.file().filter(), self.written) else { return };
        let mut joined = file.joined.lock();
        let has_before = self.before.as_ref().is_some_and(|(_, before)| joined.contains(&before.newest));
        match (file.filter.get(), self.whole) {
            (Some(filter), _) if has_before => filter.bits.add(self.hashes.marks(filter.bits.count())),
            (None, Some(whole)) => {
                let begin = || Arc::new(Filter::new(whole, &self.store));
                file.filter.get_or_init(begin);
            }
            _ => return,
        }
        if !joined.contains(&chain.newest) {
            joined.push(chain.newest);
        }
    }
}

/// What this many blocks take.
fn whole_bytes(blocks: u32) -> u64 {
    blocks as u64 * GrowingFilter::BLOCK_BYTES as u64
}

#[cfg(test)]
mod tests;
