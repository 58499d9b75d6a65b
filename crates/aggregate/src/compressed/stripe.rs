//! What a thread that adds has for itself: keys that come again and again, and records for each tree, which are handed
//! over many at a time.

use super::hot::Hot;
use super::room::Need;
use super::stream::SEGMENT_BYTES;
use super::tail::{MAX_HEADER_BYTES, put_record, record_at, trimmed};
use super::tree::{Tree, Wanting};
use super::worker::{Shared, recount};
use crate::aggregate::Aggregate;
use crate::stages::{Stage, timed};

/// See the module.
pub(super) struct Stripe {
    /// Where states are of a fixed length.
    pub(super) hot: Option<Hot>,
    /// The state of the last value.
    pub(super) lifted: Vec<u8>,
    /// Records for each tree.
    staged: Box<[Vec<u8>]>,
    counted_bytes: usize,
}

impl Stripe {
    /// One of so many.
    pub(super) fn new<A: Aggregate>(stripes: usize, shared: &Shared<A>) -> Self {
        let hot_bytes = shared.sizes.hot_bytes / stripes;
        let hot = shared.function.state_bytes().map(|bytes| Hot::new(bytes, hot_bytes));
        let staged = (0..1 << shared.sizes.shard_bits).map(|_| Vec::new()).collect();
        Self { hot, lifted: Vec::new(), staged, counted_bytes: 0 }
    }

    /// Takes a record whose key is not hot. `false` where something has to be emptied before.
    #[inline]
    pub(super) fn take(&mut self, tree: usize, hash: u64, key: &[u8], state: &[u8]) -> bool {
        if let Some(hot) = &mut self.hot {
            if hot.insert(hash, key, state) {
                return true;
            }
            if hot.is_full() {
                return false;
            }
        }
        stage(&mut self.staged[tree], key, trimmed(state, self.hot.is_some()))
    }

    /// Asks for what is looked at to find these keys, all at the same time.
    #[inline]
    pub(super) fn prefetch(&self, hashes: &[u64]) {
        self.hot.iter().for_each(|hot| hot.prefetch(hashes));
    }

    /// Empties what is hot, if that is full or `all` is to be, or else what is staged for a tree.
    pub(super) fn empty<A: Aggregate>(
        &mut self,
        shared: &Shared<A>,
        mut hand_over: impl FnMut(usize, &mut Vec<u8>) -> Result<(), Wanting>,
        tree: Option<usize>,
    ) -> Result<(), Wanting> {
        let Self { hot, staged, .. } = self;
        if let Some(hot) = hot.as_mut().filter(|hot| hot.is_full() || tree.is_none()) {
            hot.empty(|hash, key, state| {
                let (number, state) = (shared.tree_of(hash), trimmed(state, true));
                if stage(&mut staged[number], key, state) {
                    return Ok(());
                }
                hand_over(number, &mut staged[number])?;
                // Keys that are longer than what is staged are not hot.
                let is_staged = stage(&mut staged[number], key, state);
                debug_assert!(is_staged, "what is hot is short");
                Ok(())
            })?;
        }
        let numbers = tree.map_or(0..staged.len(), |tree| tree..tree + 1);
        let emptied = numbers.into_iter().try_for_each(|number| hand_over(number, &mut staged[number]));
        self.count(shared);
        emptied
    }

    /// The states of a key that are here.
    pub(super) fn collect(&self, tree: usize, hash: u64, key: &[u8], mut take: impl FnMut(&[u8])) {
        if let Some(state) = self.hot.as_ref().and_then(|hot| hot.peek(hash, key)) {
            take(state);
        }
        let mut place = 0;
        while let Some((other, state, end)) = record_at(&self.staged[tree], place) {
            if other == key {
                take(state);
            }
            place = end;
        }
    }

    /// Counts the memory that it takes now.
    pub(super) fn count<A: Aggregate>(&mut self, shared: &Shared<A>) {
        let staged_bytes = self.staged.iter().map(Vec::capacity).sum::<usize>();
        let bytes = staged_bytes + self.lifted.capacity() + self.hot.as_ref().map_or(0, Hot::memory_bytes);
        let before = std::mem::replace(&mut self.counted_bytes, bytes);
        if before != bytes {
            recount(&shared.room.stripe_bytes, before, bytes);
        }
    }

    /// Takes no more memory than it needs.
    pub(super) fn shrink<A: Aggregate>(&mut self, shared: &Shared<A>) {
        if let Some(hot) = self.hot.as_mut().filter(|hot| hot.is_empty()) {
            hot.shrink();
        }
        self.staged.iter_mut().filter(|staged| staged.is_empty()).for_each(|staged| *staged = Vec::new());
        self.count(shared);
    }
}

/// Whether a record can be staged at all.
pub(super) fn is_short(key: &[u8], state: &[u8]) -> bool {
    MAX_HEADER_BYTES + key.len() + state.len() <= SEGMENT_BYTES
}

/// Appends a record. `false`, and nothing is done, where there is no room.
#[inline]
fn stage(staged: &mut Vec<u8>, key: &[u8], state: &[u8]) -> bool {
    if staged.len() + MAX_HEADER_BYTES + key.len() + state.len() > SEGMENT_BYTES {
        return false;
    }
    if staged.capacity() == 0 {
        staged.reserve_exact(SEGMENT_BYTES);
    }
    put_record(staged, key, state);
    debug_assert!(staged.len() <= SEGMENT_BYTES, "no more is staged than a segment holds");
    true
}

/// So many records are added, or handed over, together: what they look at is asked for before the first of them is.
pub(super) const TOGETHER: usize = 32;

/// Moves what is staged to a tree, as far as the tree takes it.
pub(super) fn hand_over<A: Aggregate>(
    staged: &mut Vec<u8>,
    tree: &mut Tree,
    shared: &Shared<A>,
    need: &mut Need,
    usual: Need,
) -> Result<(), Wanting> {
    let mut place = 0;
    let outcome = timed(shared.stages.as_deref(), Stage::HandOver, || {
        let (mut some, mut hashes) = ([(&[][..], &[][..], 0); TOGETHER], [0; TOGETHER]);
        loop {
            let (mut count, mut next) = (0, place);
            while let Some((key, state, end)) = record_at(staged, next).filter(|_| count < TOGETHER) {
                (some[count], hashes[count]) = ((key, state, end), shared.hashing.of(key));
                (count, next) = (count + 1, end);
            }
            if count == 0 {
                return Ok(());
            }
            tree.leaves.prefetch(&hashes[..count]);
            for (&(key, state, end), &hash) in some.iter().zip(&hashes[..count]) {
                tree.put(shared, hash, key, state, *need)?;
                *need = usual;
                place = end;
            }
        }
    });
    debug_assert!(outcome.is_err() || place == staged.len(), "all is handed over, or it is told why not");
    staged.drain(..place);
    outcome
}
