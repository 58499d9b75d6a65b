//! The leaves, and which of them a hash belongs to: a table of the hash's first bits, as many as the narrowest leaf
//! has.

use forebay_env::prefetch;
use forebay_env::sync::Arc;

use super::base::Base;
use super::hashing::Hashing;
use super::parts::Part;
use super::stream::Segment;
use super::tail::Tail;
use crate::aggregator::{grow, growth};

/// Leaves are not made narrower than this many bits: beyond, keys are as good as equal.
const BITS_MAX: u32 = 28;

const _: () = assert!(BITS_MAX < u32::BITS, "the table of the first bits has numbers of 32");

/// Keys whose hashes begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    low: u64,
    pub(super) bits: u32,
}

impl Leaf {
    /// The lowest and the highest hash.
    pub(super) fn hashes(self) -> (u64, u64) {
        (self.low, self.low | u64::MAX.checked_shr(self.bits).unwrap_or(0))
    }

    /// Where it would be split, if it may be.
    pub(super) fn middle(self) -> Option<u64> {
        debug_assert!(self.bits <= BITS_MAX);
        (self.bits < BITS_MAX).then(|| self.low | 1 << (63 - self.bits))
    }
}

/// A leaf and what it holds.
pub(super) struct Holder {
    pub(super) leaf: Leaf,
    pub(super) tail: Tail,
    /// Empty while it is merged.
    pub(super) base: Base,
    /// What is on its way to files.
    pub(super) sealed: Option<Arc<Part>>,
    /// Of the merge that it is in.
    pub(super) ticket: Option<u64>,
    /// How much of the tail readers have looked through since it was merged last.
    pub(super) scanned_bytes: usize,
    /// When the base was changed last.
    pub(super) change: u64,
    /// The tail is merged once it has this many bytes.
    pub(super) tail_bytes_max: usize,
}

impl Holder {
    fn new(leaf: Leaf, base: Base, tail_bytes_max: usize) -> Self {
        let tail = Tail::default();
        Self { leaf, tail, base, sealed: None, ticket: None, scanned_bytes: 0, change: 0, tail_bytes_max }
    }
}

/// All leaves.
pub(super) struct Leaves {
    pub(super) holders: Vec<Holder>,
    /// The number of the leaf for each value of the first bits.
    table: Vec<u32>,
    shift: u32,
    /// All hashes begin with the same bits, so many.
    skipped: u32,
}

impl Leaves {
    /// One for all hashes that begin with so many `bits`, which are these of `low`.
    pub(super) fn new(low: u64, bits: u32, tail_bytes_max: usize) -> Self {
        let whole = Holder::new(Leaf { low, bits }, Base::default(), tail_bytes_max);
        Self { holders: vec![whole], table: vec![0], shift: 64, skipped: bits }
    }

    /// The leaf of a hash.
    #[inline]
    pub(super) fn of(&self, hash: u64) -> usize {
        self.table[self.place(hash)] as usize
    }

    /// Asks for what is looked at to append records of these hashes, all at the same time.
    pub(super) fn prefetch(&self, hashes: &[u64]) {
        let tails = || hashes.iter().map(|hash| &self.holders[self.of(*hash)].tail);
        tails().for_each(prefetch);
        tails().for_each(Tail::prefetch);
    }

    #[inline]
    fn place(&self, hash: u64) -> usize {
        debug_assert_eq!(
            (hash ^ self.holders[0].leaf.low).checked_shr(64 - self.skipped).unwrap_or(0),
            0,
            "all hashes begin alike"
        );
        (hash << self.skipped).checked_shr(self.shift).unwrap_or(0) as usize
    }

    /// Splits a leaf in the middle, where no chunk lies on both sides; `next` gives a segment. Its tail is to be dealt
    /// out by the caller.
    pub(super) fn split(
        &mut self,
        number: usize,
        hashing: Hashing,
        next: impl FnOnce() -> Segment,
    ) -> Option<Tail> {
        let holder = &mut self.holders[number];
        debug_assert!(holder.ticket.is_none(), "what is split is here");
        let middle = holder.leaf.middle()?;
        let bits = holder.leaf.bits + 1;
        let base = holder.base.split_off(middle, hashing, next);
        let mut upper = Holder::new(Leaf { low: middle, bits }, base, holder.tail_bytes_max);
        upper.sealed = holder.sealed.clone();
        holder.leaf.bits = bits;
        let tail = std::mem::take(&mut holder.tail);
        if 64 - self.shift + self.skipped < bits {
            let mut table = Vec::with_capacity(2 * self.table.len());
            table.extend(self.table.iter().flat_map(|&number| [number; 2]));
            self.table = table;
            self.shift -= 1;
        }
        debug_assert!(64 - self.shift + self.skipped >= bits, "the table tells the two halves apart");
        let (low, high) = upper.leaf.hashes();
        let places = self.place(low)..=self.place(high);
        self.table[places].fill(self.holders.len() as u32);
        grow(&mut self.holders, 1);
        self.holders.push(upper);
        debug_assert_eq!(self.in_order().count(), self.holders.len(), "each leaf has its place in the table");
        Some(tail)
    }

    /// The numbers of leaves in the order of their hashes.
    fn in_order(&self) -> impl Iterator<Item = usize> {
        let mut last = None;
        self.table
            .iter()
            .map(|&number| number as usize)
            .filter(move |&number| last.replace(number) != Some(number))
    }

    /// How many bits a leaf has on average, about.
    pub(super) fn bits(&self) -> u32 {
        self.skipped + self.holders.len().max(1).ilog2()
    }

    /// How many bytes splitting a leaf will ask the allocator for.
    pub(super) fn split_bytes(&self, number: usize) -> usize {
        let doubles = 64 - self.shift + self.skipped <= self.holders[number].leaf.bits;
        let table_bytes = if doubles { 2 * self.table.len() * size_of::<u32>() } else { 0 };
        table_bytes + growth(&self.holders, 1)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<u32>() * self.table.capacity() + size_of::<Holder>() * self.holders.capacity()
    }
}
