//! Reading: a key's state is merged of all that was added to it, wherever that is by now.

use std::ops::Deref;

use forebay_base::{Error, Result};
use forebay_env::sync::{Mutex, MutexGuard};
use forebay_env::yield_point;

use super::CompressedAggregator;
use super::chunk::Packer;
use super::columns::Columns;
use super::leaves::Holder;
use super::spill::SpilledWalk;
use super::stripe::Stripe;
use super::tail::restore;
use super::tree::Tree;
use super::worker::Merge;
use crate::aggregate::Aggregate;
use crate::aggregator::{Visit, check_length};

/// Who reads tries so often for a tree that nobody holds, before those who add wait with it.
const ATTEMPTS_MAX: usize = 8;

impl<A: Aggregate> CompressedAggregator<A> {
    /// The state of a key, or the ticket of its leaf while that is being merged.
    pub(super) fn try_get(&self, key: &[u8]) -> Result<Result<Option<Vec<u8>>, u64>> {
        let shared = &*self.shared;
        let hash = shared.hashing.of(key);
        let (at, state_bytes) = (shared.tree_of(hash), shared.function.state_bytes());
        let mut states: Vec<Vec<u8>> = Vec::new();
        let (stripes, mut tree) = self.lock_for(at);
        for stripe in &stripes {
            stripe.collect(at, hash, key, |found| {
                let mut state = vec![0; state_bytes.unwrap_or(found.len())];
                restore(found, &mut state);
                states.push(state);
            });
        }
        drop(stripes);
        tree.take_back(shared);
        let number = tree.leaves.of(hash);
        let holder = &tree.leaves.holders[number];
        let scanned_bytes = holder.tail.bytes();
        let outcome = shared.lend(|merger| {
            if let Some(ticket) = holder.ticket {
                let collect =
                    |merge: &Merge| merger.collect(&merge.tail, &merge.base, hash, key, &mut states);
                let Some(collected) = shared.read_queued(ticket, collect) else { return Ok(Err(ticket)) };
                collected?;
            }
            merger.collect(&holder.tail, &holder.base, hash, key, &mut states)?;
            Ok(Ok(()))
        })?;
        if let Err(ticket) = outcome {
            return Ok(Err(ticket));
        }
        if self.is_spilled() {
            // What is on its way to files is seen in one of the two places, whichever it is published from here on.
            let published = self.published();
            let sealed = tree.leaves.holders[number].sealed.clone();
            tree.scanned(number, scanned_bytes, shared);
            drop(tree);
            published.told_of(key)?;
            let sealed = sealed.filter(|part| published.lacks(part));
            let spilled = self.view_spilled(&published)?;
            drop(published);
            if let Some(part) = sealed {
                shared.lend(|merger| merger.collect(&part.tail, &part.base, hash, key, &mut states))?;
            }
            if let Some(spilled) = spilled {
                states.extend(spilled.get(key)?);
            }
        } else {
            tree.scanned(number, scanned_bytes, shared);
            drop(tree);
        }
        if self.workers.is_empty() {
            shared.relieve()?;
        }
        self.merged(key, states).map(Ok)
    }

    /// All stripes and one tree: at once, or what one hands over meanwhile would be met twice or never. While another
    /// reads in the tree, nobody's stripe is kept for that.
    fn lock_for(&self, tree: usize) -> (Vec<MutexGuard<'_, Stripe>>, MutexGuard<'_, Tree>) {
        let tree = &self.trees[tree].0;
        for _ in 0..ATTEMPTS_MAX {
            let stripes = self.stripes().map(Mutex::lock).collect();
            if let Some(tree) = tree.try_lock() {
                return (stripes, tree);
            }
            drop(stripes);
            drop(tree.lock());
        }
        (self.stripes().map(Mutex::lock).collect(), tree.lock())
    }

    fn merged(&self, key: &[u8], mut states: Vec<Vec<u8>>) -> Result<Option<Vec<u8>>> {
        if states.len() < 2 {
            let state = states.pop();
            state.as_ref().map_or(Ok(()), |state| check_length(key, state, self.shared.state_bytes_max))?;
            return Ok(state);
        }
        let parts: Vec<&[u8]> = states.iter().map(Vec::as_slice).collect();
        let mut merged = Vec::new();
        self.shared.function.merge(&parts, &mut merged);
        check_length(key, &merged, self.shared.state_bytes_max)?;
        Ok(Some(merged))
    }

    /// Shows all that was added before, and in part what is added meanwhile. Tells of groups that are lost at the end.
    pub(super) fn show(&self, visit: &mut Visit<'_>) -> Result<()> {
        let mut walk = GroupWalk::new(self)?;
        while walk.advance(visit)? {}
        Ok(())
    }

    /// Merges what was added before, unless that goes to files to be shown.
    fn merge_in_memory(&self) -> Result<()> {
        self.collect()?;
        if self.is_spilled() { Ok(()) } else { self.merge_all() }
    }

    /// Puts the next chunk in place of what `records` have.
    fn next_chunk(&self, place: &mut Place, packer: &mut Packer, records: &mut Columns) -> Result<Next> {
        loop {
            let Some(low) = place.leaf else { return Ok(Next::End) };
            let mut tree = self.trees[self.shared.tree_of(low)].0.lock();
            if self.is_spilled() {
                return Ok(Next::Spilled);
            }
            tree.take_back(&self.shared);
            let holder = &tree.leaves.holders[tree.leaves.of(low)];
            if let Some(ticket) = holder.ticket {
                return Ok(Next::Wait(ticket));
            }
            if place.change != Some(holder.change) {
                place.change = Some(holder.change);
                place.chunk = place.last.as_ref().map_or(0, |(hash, _)| holder.base.first_with(*hash));
            }
            while place.chunk < holder.base.len() {
                holder.base.unpack(place.chunk, packer, records)?;
                place.chunk += 1;
                let first = place.first_of(records);
                if first < records.len() {
                    return Ok(Next::Chunk(first));
                }
            }
            place.broken = place.broken.take().or_else(|| holder.base.broken.first().cloned());
            place.leaf = holder.leaf.hashes().1.checked_add(1);
            place.change = None;
        }
    }

    /// How many keys there are. Merges what was added since they were last counted; walks all groups once they are in
    /// files.
    pub fn keys(&self) -> Result<u64> {
        self.merge_in_memory()?;
        let (mut keys, mut is_spilled) = (0, self.is_spilled());
        if !is_spilled {
            self.each_leaf(|holder| {
                is_spilled |= self.is_spilled();
                keys += holder.base.records();
                Ok(())
            })?;
        }
        if is_spilled { self.keys_spilled() } else { Ok(keys) }
    }

    /// Does something with each leaf, in the order of hashes, once it is not being merged.
    pub(super) fn each_leaf(&self, mut with: impl FnMut(&mut Holder) -> Result<()>) -> Result<()> {
        let mut next = Some(0);
        while let Some(low) = next {
            let mut tree = self.trees[self.shared.tree_of(low)].0.lock();
            tree.take_back(&self.shared);
            let number = tree.leaves.of(low);
            let holder = &mut tree.leaves.holders[number];
            let ticket = holder.ticket;
            if ticket.is_none() {
                next = holder.leaf.hashes().1.checked_add(1);
                debug_assert!(next.is_none_or(|next| next > low), "leaves ascend");
                with(holder)?;
            }
            drop(tree);
            ticket.map_or(Ok(()), |ticket| self.shared.wait_for(ticket))?;
        }
        Ok(())
    }

    /// What chunks are unpacked with.
    pub(super) fn unpacking(&self) -> (Packer, Columns) {
        let state_bytes = self.shared.function.state_bytes();
        (Packer::new(state_bytes, self.shared.hashing), Columns::new(state_bytes))
    }
}

/// What [`CompressedAggregator::show`] shows, some hundred groups at a time. It has a share of the aggregator, or borrows it.
pub(crate) struct GroupWalk<G> {
    groups: G,
    place: Place,
    packer: Packer,
    records: Columns,
    /// The rest, once that is in files.
    files: Option<SpilledWalk>,
    is_over: bool,
}

impl<A: Aggregate, G: Deref<Target = CompressedAggregator<A>>> GroupWalk<G> {
    /// Before the first group.
    pub(crate) fn new(groups: G) -> Result<Self> {
        groups.merge_in_memory()?;
        yield_point("groups are to be shown");
        let (packer, records) = groups.unpacking();
        Ok(Self { groups, place: Place::default(), packer, records, files: None, is_over: false })
    }

    /// Shows the next groups; `false` where there are no more. After an error there are none.
    pub(crate) fn advance(&mut self, visit: &mut Visit<'_>) -> Result<bool> {
        if self.is_over {
            return Ok(false);
        }
        self.is_over = true;
        self.is_over = !self.show_next(visit)?;
        Ok(!self.is_over)
    }

    fn show_next(&mut self, visit: &mut Visit<'_>) -> Result<bool> {
        let Self { groups, place, packer, records, files, .. } = self;
        if let Some(files) = files {
            return if files.advance(visit)? { Ok(true) } else { place.end() };
        }
        match groups.next_chunk(place, packer, records)? {
            Next::Chunk(first) => {
                (first..records.len())
                    .try_for_each(|at| visit(records.keys.get(at), records.states.get(at)))?;
                place.pass(records);
            }
            Next::Wait(ticket) => groups.shared.wait_for(ticket)?,
            Next::Spilled => {
                debug_assert!(groups.is_spilled(), "the rest is where the place for groups is");
                *files = groups.walk_spilled(place.last.as_ref().map(|(_, key)| &key[..]))?;
                return if files.is_some() { Ok(true) } else { place.end() };
            }
            Next::End => return place.end(),
        }
        Ok(true)
    }
}

enum Next {
    /// From this record on.
    Chunk(usize),
    /// The leaf of this ticket is being merged.
    Wait(u64),
    /// The rest is in files.
    Spilled,
    End,
}

/// How far all was shown: leaves may be merged and split meanwhile.
struct Place {
    /// The lowest hash of the leaf that is next.
    leaf: Option<u64>,
    /// What of that leaf was last known, and which of its chunks is next.
    change: Option<u64>,
    chunk: usize,
    /// The last record that was shown.
    last: Option<(u64, Vec<u8>)>,
    /// What is told of the first group that is lost.
    broken: Option<Error>,
}

impl Default for Place {
    fn default() -> Self {
        Self { leaf: Some(0), change: None, chunk: 0, last: None, broken: None }
    }
}

impl Place {
    /// No more groups, or the error of the first that is lost.
    fn end(&mut self) -> Result<bool> {
        self.broken.take().map_or(Ok(false), Err)
    }

    fn has_passed(&self, hash: u64, key: &[u8]) -> bool {
        self.last.as_ref().is_some_and(|(last, last_key)| (hash, key) <= (*last, last_key))
    }

    /// The first of the records that was not shown.
    fn first_of(&self, records: &Columns) -> usize {
        let (mut first, count) = (0, records.len());
        while first < count && self.has_passed(records.hashes[first], records.keys.get(first)) {
            first += 1;
        }
        first
    }

    /// All of these are shown.
    fn pass(&mut self, records: &Columns) {
        let Some(last) = records.len().checked_sub(1) else { return };
        debug_assert!(
            !self.has_passed(records.hashes[last], records.keys.get(last)),
            "each is shown once, in order"
        );
        let (hash, key) = self.last.get_or_insert_default();
        *hash = records.hashes[last];
        key.clear();
        key.extend_from_slice(records.keys.get(last));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::SCANNED_PER_MERGED;
    use super::*;
    use crate::functions::Distinct;
    use crate::{Aggregator, AggregatorOptions};

    #[test]
    fn reads_pay_for_merges() -> Result<()> {
        let options = AggregatorOptions::default().memory_limit(4 << 20).threads(1);
        let mut texts = CompressedAggregator::new(Distinct, options)?;
        for number in 0..500u64 {
            Aggregator::add(&mut texts, &(number % 50).to_le_bytes(), b"text")?;
        }
        let unmerged_bytes =
            |texts: &CompressedAggregator<Distinct>| texts.trees[0].0.lock().leaves.holders[0].tail.bytes();
        assert!(unmerged_bytes(&texts) > 0);
        for _ in 0..2 * SCANNED_PER_MERGED {
            assert!(texts.get(&7u64.to_le_bytes())?.is_some());
        }
        assert_eq!(unmerged_bytes(&texts), 0, "it was looked through often enough");
        Ok(())
    }
}
