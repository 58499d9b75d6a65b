//! The leaves as those who add see them: they have full ones merged, take them back, and split those that have grown
//! too large. Nothing here waits.

use forebay_base::hash::mix;
use forebay_env::sync::atomic::Ordering;

use super::base::Base;
use super::leaves::{Holder, Leaves};
use super::options::{LEAF_BITS_MORE, LEAF_RECORDS_MIN, TAIL_RATIO};
use super::room::Need;
use super::stream::Segment;
use super::tail::{Tail, shorten};
use super::worker::{Merge, Shared, recount};
use crate::aggregate::Aggregate;

/// Leaves, and what is added to them.
pub(super) struct Tree {
    /// Which of all trees it is: hashes begin with it.
    number: usize,
    pub(super) leaves: Leaves,
    state_bytes: Option<usize>,
    /// A state as it stands in a tail.
    short: Vec<u8>,
    /// How often a leaf was taken back or split.
    changes: u64,
    segments: Vec<Segment>,
}

/// What has to be done before a record can be taken.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanting {
    /// The leaf of this ticket is to be merged.
    Merge(u64),
    /// There is to be room for this many segments.
    Room(usize),
}

impl Tree {
    pub(super) fn new<A: Aggregate>(number: usize, shared: &Shared<A>) -> Self {
        let leaves = Self::new_leaves(number, shared);
        recount(&shared.room.index_bytes, 0, leaves.memory_bytes());
        Self {
            number,
            leaves,
            state_bytes: shared.function.state_bytes(),
            short: Vec::new(),
            changes: 0,
            segments: Vec::new(),
        }
    }

    fn new_leaves<A: Aggregate>(number: usize, shared: &Shared<A>) -> Leaves {
        let bits = shared.sizes.shard_bits;
        let low = (number as u64).checked_shl(64 - bits).unwrap_or(0);
        Leaves::new(low, bits, shared.sizes.tail_bytes_min)
    }

    /// Forgets what was sealed: it is published. Where records gather, leaves that took many become two each: a reader
    /// looks through one.
    pub(super) fn forget_sealed<A: Aggregate>(&mut self, shared: &Shared<A>) {
        let gathers = shared.room.gathers.load(Ordering::Relaxed);
        for number in 0..self.leaves.holders.len() {
            let Some(part) = self.leaves.holders[number].sealed.take() else { continue };
            let is_large = gathers && part.tail.bytes() > GATHERED_BYTES;
            if is_large && self.leaves.holders[number].ticket.is_none() && self.may_split(number, shared) {
                self.split(number, shared);
                self.changed(self.leaves.holders.len() - 1, shared);
            }
            self.changed(number, shared);
        }
    }

    /// Appends a record where the segment that is begun has room. `false` where it has not.
    #[inline]
    pub(super) fn append(&mut self, hash: u64, key: &[u8], state: &[u8]) -> bool {
        let state = shorten(state, self.state_bytes, &mut self.short);
        let number = self.leaves.of(hash);
        self.leaves.holders[number].tail.append(key, state)
    }

    /// Appends a record; sees to its leaf first if the buffer is full.
    #[inline]
    pub(super) fn put<A: Aggregate>(
        &mut self,
        shared: &Shared<A>,
        hash: u64,
        key: &[u8],
        state: &[u8],
        need: Need,
    ) -> Result<(), Wanting> {
        if self.append(hash, key, state) { Ok(()) } else { self.put_slowly(shared, hash, key, state, need) }
    }

    #[inline(never)]
    fn put_slowly<A: Aggregate>(
        &mut self,
        shared: &Shared<A>,
        hash: u64,
        key: &[u8],
        state: &[u8],
        need: Need,
    ) -> Result<(), Wanting> {
        self.take_back(shared);
        let number = self.leaves.of(hash);
        let holder = &self.leaves.holders[number];
        if holder.tail.bytes() >= holder.tail_bytes_max {
            let (ticket, is_loose) = (holder.ticket, holder.base.len() == 0 && shared.is_loose());
            match ticket {
                Some(ticket) => return Err(Wanting::Merge(ticket)),
                None if is_loose && self.stays_loose(number, shared) => {}
                None => self.submit(number, shared),
            }
        }
        let number = self.leaves.of(hash);
        let Self { leaves, segments, state_bytes, short, .. } = self;
        let state = shorten(state, *state_bytes, short);
        let tail = &mut leaves.holders[number].tail;
        let missing = tail.missing(key, state);
        if !shared.take(missing, need, segments) {
            return Err(Wanting::Room(missing));
        }
        tail.append_over(key, state, || segments.pop().unwrap_or_else(|| shared.pool.take()));
        if !segments.is_empty() {
            shared.pool.give(segments);
        }
        Ok(())
    }

    /// Leaves a leaf that has nothing packed so, with a longer buffer, unless its records would come to few groups: then
    /// merging them pays, and packed they take the least to be merged with what comes. It is split where it is large.
    fn stays_loose<A: Aggregate>(&mut self, number: usize, shared: &Shared<A>) -> bool {
        let Holder { tail, base, ticket, .. } = &self.leaves.holders[number];
        debug_assert!(ticket.is_none() && base.len() == 0, "all of it is in the buffer");
        // What fails is told where it is merged.
        if shared.lend(|merger| merger.has_repeats(tail)).unwrap_or(true) {
            return false;
        }
        let is_large =
            2 * tail.bytes() > shared.sizes.leaf_bytes && tail.lengths().records >= LEAF_RECORDS_MIN;
        if is_large && self.may_split(number, shared) {
            self.split_in_four(number, shared);
        }
        self.changed(number, shared);
        true
    }

    /// Has a leaf merged that is here and to which something was added.
    fn submit<A: Aggregate>(&mut self, number: usize, shared: &Shared<A>) {
        let holder = &mut self.leaves.holders[number];
        debug_assert!(holder.ticket.is_none() && holder.tail.bytes() > 0, "a leaf is merged once at a time");
        let (tail, base) = (std::mem::take(&mut holder.tail), std::mem::take(&mut holder.base));
        holder.scanned_bytes = 0;
        holder.ticket =
            Some(shared.submit(Merge { tree: self.number, number, leaf: holder.leaf, tail, base }));
    }

    /// Has the first leaf from this number on merged to which something was added. Returns the number behind it.
    pub(super) fn submit_next<A: Aggregate>(&mut self, from: usize, shared: &Shared<A>) -> Option<usize> {
        let is_due = |&number: &usize| {
            let holder = &self.leaves.holders[number];
            holder.ticket.is_none() && holder.tail.bytes() > 0
        };
        let number = (from..self.leaves.holders.len()).find(is_due)?;
        self.submit(number, shared);
        Some(number + 1)
    }

    /// Notes that so many bytes were looked through for what one merge would have brought together. Has the leaf merged
    /// once that is more than a merge takes.
    pub(super) fn scanned<A: Aggregate>(&mut self, number: usize, bytes: usize, shared: &Shared<A>) {
        let holder = &mut self.leaves.holders[number];
        holder.scanned_bytes += bytes;
        let merge_bytes = holder.tail.bytes() + holder.base.bytes();
        if holder.ticket.is_none() && bytes > 0 && holder.scanned_bytes > SCANNED_PER_MERGED * merge_bytes {
            self.submit(number, shared);
        }
    }

    /// Takes back leaves that were merged, and splits those that are too large.
    pub(super) fn take_back<A: Aggregate>(&mut self, shared: &Shared<A>) {
        for (number, base) in shared.take_done(self.number) {
            let is_large = self.is_large(number, &base, shared);
            let holder = &mut self.leaves.holders[number];
            debug_assert!(holder.ticket.is_some() && holder.base.len() == 0, "what comes back was away");
            (holder.base, holder.ticket) = (base, None);
            self.changed(number, shared);
            if is_large {
                self.split(number, shared);
                self.changed(number, shared);
                self.changed(self.leaves.holders.len() - 1, shared);
            }
        }
    }

    /// Whether a leaf is to be split: it has grown, and by many records. A few that are long stay together, also where
    /// their hashes are alike: else a directory of all bits that they share would be made for them.
    fn is_large<A: Aggregate>(&self, number: usize, base: &Base, shared: &Shared<A>) -> bool {
        base.bytes() > shared.sizes.leaf_bytes
            && base.len() > 1
            && base.records() >= LEAF_RECORDS_MIN
            && self.may_split(number, shared)
    }

    /// Whether a leaf is not much narrower than others, and the directory has room for another one.
    fn may_split<A: Aggregate>(&self, number: usize, shared: &Shared<A>) -> bool {
        let more_bytes = self.leaves.split_bytes(number);
        self.leaves.holders[number].leaf.bits <= self.leaves.bits() + LEAF_BITS_MORE
            && (more_bytes == 0 || shared.has_room_for(more_bytes))
    }

    /// Says at how many bytes a leaf's buffer is full: in proportion to what merging it takes, and for some earlier
    /// than for others, or all would be full at the same time. A leaf that is too large gets no larger buffer than
    /// others: it would stay so.
    fn changed<A: Aggregate>(&mut self, number: usize, shared: &Shared<A>) {
        let sizes = &shared.sizes;
        let holder = &mut self.leaves.holders[number];
        let base_bytes = holder.base.bytes().min(sizes.leaf_bytes);
        let spread = mix(number as u64 ^ base_bytes as u64) as f64 / u64::MAX as f64;
        let bytes = TAIL_RATIO * (0.5 + spread) * base_bytes as f64;
        let gathered_bytes = match shared.room.gathers.load(Ordering::Relaxed) {
            true => GATHERED_LEAVES * sizes.leaf_bytes,
            false => 0,
        };
        let is_loose = holder.base.len() == 0 && shared.is_loose();
        let loose_bytes = if is_loose { sizes.leaf_bytes.max(2 * holder.tail.bytes()) } else { 0 };
        let least_bytes = sizes.tail_bytes_min.max(gathered_bytes).max(loose_bytes);
        holder.tail_bytes_max = (bytes as usize).max(least_bytes);
        self.changes += 1;
        holder.change = self.changes;
    }

    /// Splits a leaf, and deals out what was added to it meanwhile.
    fn split<A: Aggregate>(&mut self, number: usize, shared: &Shared<A>) {
        if let Some(tail) = self.divide(number, shared) {
            self.deal_out(tail, shared);
        }
    }

    /// Splits a leaf that has nothing packed, and its halves: so a record is dealt out half as often.
    fn split_in_four<A: Aggregate>(&mut self, number: usize, shared: &Shared<A>) {
        let first = self.leaves.holders.len();
        let Some(tail) = self.divide(number, shared) else { return };
        for half in [number, first] {
            if self.may_split(half, shared) {
                self.divide(half, shared);
            }
        }
        self.deal_out(tail, shared);
        (first..self.leaves.holders.len()).for_each(|number| self.changed(number, shared));
    }

    /// Makes two leaves of one. Returns what was added to that; nothing where it stays one.
    fn divide<A: Aggregate>(&mut self, number: usize, shared: &Shared<A>) -> Option<Tail> {
        let before = self.leaves.memory_bytes();
        let tail = self.leaves.split(number, shared.hashing, || shared.pool.take());
        recount(&shared.room.index_bytes, before, self.leaves.memory_bytes());
        tail
    }

    fn deal_out<A: Aggregate>(&mut self, tail: Tail, shared: &Shared<A>) {
        shared.lend(|merger| {
            merger.take_apart(tail, |key, state| {
                let number = self.leaves.of(shared.hashing.of(key));
                self.leaves.holders[number].tail.append_over(key, state, || shared.pool.take());
            });
        });
    }
}

/// Where records gather, a leaf's buffer may have this many times what its chunks may.
const GATHERED_LEAVES: usize = 2;
/// A leaf that gathers more than this until a spill is split.
const GATHERED_BYTES: usize = 64 << 10;

/// So many bytes are looked through for each that a merge would read.
pub(super) const SCANNED_PER_MERGED: usize = 8;
