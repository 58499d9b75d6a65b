//! What those who add do where a leaf is in the way or memory is short: they merge, and where that does not help, move
//! what is merged to files.

use forebay_env::sync::atomic::Ordering;

use forebay_base::Result;
use forebay_env::sync::{Mutex, MutexGuard};
use forebay_env::yield_point;

use super::CompressedAggregator;
use super::room::Need;
use super::stripe::{Stripe, hand_over, is_short};
use super::tree::Wanting;
use crate::aggregate::Aggregate;
use crate::aggregator::over_limit;

impl<A: Aggregate> CompressedAggregator<A> {
    /// Appends where another segment is needed.
    #[inline(never)]
    pub(super) fn append_slowly(&self, hash: u64, key: &[u8], state: &[u8]) -> Result<()> {
        let shared = &*self.shared;
        let tree = &self.trees[shared.tree_of(hash)].0;
        loop {
            let put = tree.lock().put(shared, hash, key, state, Need::Adding);
            match put {
                Ok(()) => return shared.relieve(),
                Err(wanting) if self.see_to(wanting)? => {}
                Err(_) => return self.spill_one(hash, key, state),
            }
        }
    }

    /// Takes a record where the stripe has no room for it. Nothing is held while leaves are merged for that.
    #[inline(never)]
    pub(super) fn stage_slowly<'a>(
        &'a self,
        own: &'a Mutex<Stripe>,
        mut stripe: MutexGuard<'a, Stripe>,
        hash: u64,
        key: &[u8],
        state: &[u8],
    ) -> Result<()> {
        let tree = self.shared.tree_of(hash);
        stripe.count(&self.shared);
        if !is_short(key, state) {
            drop(stripe);
            return self.append_slowly(hash, key, state);
        }
        loop {
            let emptied = self.empty(&mut stripe, Some(tree), &mut Need::Adding, Need::Adding);
            if let Err(wanting) = emptied {
                drop(stripe);
                yield_point("a record waits");
                if !self.see_to(wanting)? {
                    return self.spill_one(hash, key, state);
                }
                stripe = own.lock();
            }
            // Another thread with this stripe may have made the key a hot one meanwhile.
            if let Some(hot) = stripe.hot.as_mut().and_then(|hot| hot.find(hash, key)) {
                self.shared.function.merge_in_place(hot, state);
                return Ok(());
            }
            if stripe.take(tree, hash, key, state) {
                drop(stripe);
                return self.shared.relieve();
            }
        }
    }

    /// Empties what is hot, if that is full or no tree is told, and what is staged for that tree or all.
    fn empty(
        &self,
        stripe: &mut Stripe,
        tree: Option<usize>,
        need: &mut Need,
        usual: Need,
    ) -> Result<(), Wanting> {
        let shared = &*self.shared;
        let hand_over = |number: usize, staged: &mut Vec<u8>| {
            yield_point("records are handed over");
            hand_over(staged, &mut self.trees[number].0.lock(), shared, need, usual)
        };
        stripe.empty(shared, hand_over, tree)
    }

    /// The same, whatever is in the way.
    pub(super) fn cool(&self, stripe: &Mutex<Stripe>, tree: Option<usize>, usual: Need) -> Result<()> {
        let mut need = usual;
        loop {
            let emptied = self.empty(&mut stripe.lock(), tree, &mut need, usual);
            match emptied {
                Ok(()) => return self.shared.relieve(),
                Err(wanting) if usual == Need::Merging => self.see_to_anyway(wanting, &mut need)?,
                Err(wanting) if self.see_to(wanting)? => {}
                Err(_) => need = Need::Anyway,
            }
        }
    }

    /// Moves what is hot or staged by any thread, or came by columns, to the leaves.
    pub(super) fn collect(&self) -> Result<()> {
        self.empty_fronts()?;
        self.stripes().try_for_each(|stripe| self.cool(stripe, None, Need::Merging))
    }

    /// Does what a record waits for. `false` where there is no room for it whatever is done. Whoever calls it holds no
    /// lock.
    fn see_to(&self, wanting: Wanting) -> Result<bool> {
        match wanting {
            Wanting::Merge(ticket) => self.shared.wait_for(ticket).map(|()| true),
            Wanting::Room(segments) => self.make_room(segments),
        }
    }

    /// The same for what is merged in any case: with what it needs there is room, whatever that takes.
    pub(super) fn see_to_anyway(&self, wanting: Wanting, need: &mut Need) -> Result<()> {
        match wanting {
            Wanting::Merge(ticket) => self.shared.wait_for(ticket),
            Wanting::Room(segments) => {
                debug_assert!(*need == Need::Merging, "there is always room for what is taken in any case");
                self.merge_all()?;
                if !self.shared.has_room(segments, Need::Merging) {
                    *need = Need::Anyway;
                }
                Ok(())
            }
        }
    }

    /// Merges all leaves for their memory. Where that does not give back enough, moves them to files, or fails, then
    /// and from then on. `false` where this many segments are too many even then.
    fn make_room(&self, segments: usize) -> Result<bool> {
        let shared = &*self.shared;
        let mut sealed = self.rooming.lock();
        yield_point("room is made");
        if shared.has_room(segments, Need::Adding) {
            return Ok(true);
        }
        shared.room.is_scarce.store(true, Ordering::Relaxed);
        if !shared.room.gathers.load(Ordering::Relaxed) {
            // Nobody takes meanwhile what that gives back: what is left tells whether there is too much.
            shared.room.is_made.store(true, Ordering::Relaxed);
            let merged = self.merge_all();
            shared.room.is_made.store(false, Ordering::Relaxed);
            merged?;
            shared.release();
            if !shared.has_slack() {
                shared.room.is_full.store(true, Ordering::Relaxed);
            }
            if shared.has_room(segments, Need::Adding) {
                return Ok(true);
            }
        }
        if self.target.is_none() {
            let instead = "raise it, or let it spill to a directory";
            return Err(over_limit(shared.room.memory_max, instead));
        }
        self.spill(&mut sealed)?;
        // One long state may have left much of what it was merged with.
        shared.release();
        shared.room.is_full.store(false, Ordering::Relaxed);
        Ok(shared.has_room(segments, Need::Adding))
    }

    /// Merges what was added to all leaves before.
    pub(super) fn merge_all(&self) -> Result<()> {
        // The second time it is what was added to leaves that were being merged, and was taken apart with them.
        for _ in 0..2 {
            for tree in &*self.trees {
                let mut number = 0;
                loop {
                    let next = tree.0.lock().submit_next(number, &self.shared);
                    let Some(next) = next else { break };
                    number = next;
                    self.shared.relieve()?;
                }
            }
            self.shared.wait_for(self.shared.last_ticket())?;
            self.trees.iter().for_each(|tree| tree.0.lock().take_back(&self.shared));
        }
        Ok(())
    }
}
