//! What those who add do where a leaf is in the way or memory is short: they merge, and where that does not help, move
//! what is merged to files.

use forebay_env::sync::atomic::Ordering;

use forebay_base::Result;

use super::CompressedAggregator;
use super::room::Need;
use super::tree::Wanting;
use crate::aggregate::Aggregate;
use crate::aggregator::over_limit;

impl<A: Aggregate> CompressedAggregator<A> {
    /// Appends where another segment is needed.
    #[inline(never)]
    pub(super) fn append_slowly(&self, hash: u64, key: &[u8], state: &[u8]) -> Result<()> {
        let shared = &*self.shared;
        self.stripe.lock().count(shared);
        loop {
            let put = self.tree.lock().put(shared, hash, key, state, Need::Adding);
            match put {
                Ok(()) => return shared.relieve(),
                Err(Wanting::Merge(ticket)) => shared.wait_for(ticket)?,
                Err(Wanting::Room(segments)) if self.make_room(segments)? => {}
                Err(Wanting::Room(_)) => return self.sort(key, state),
            }
        }
    }

    /// Moves what is hot to the leaves.
    pub(super) fn cool(&self, usual: Need) -> Result<()> {
        let mut need = usual;
        loop {
            let mut stripe = self.stripe.lock();
            stripe.count(&self.shared);
            let Some(hot) = &mut stripe.hot else { return Ok(()) };
            let mut tree = self.tree.lock();
            let cooled = hot.empty(|hash, key, state| {
                tree.put(&self.shared, hash, key, state, need)?;
                need = usual;
                Ok(())
            });
            drop((stripe, tree));
            match cooled {
                Ok(()) => return self.shared.relieve(),
                Err(Wanting::Merge(ticket)) => self.shared.wait_for(ticket)?,
                Err(Wanting::Room(segments)) if usual == Need::Adding => {
                    if !self.make_room(segments)? {
                        need = Need::Anyway;
                    }
                }
                Err(Wanting::Room(segments)) => {
                    self.merge_all()?;
                    // What was taken is merged, whatever it takes.
                    if !self.shared.has_room(segments, usual) {
                        need = Need::Anyway;
                    }
                }
            }
        }
    }

    /// Merges all leaves for their memory. Where that does not give back enough, moves them to files, or fails, then
    /// and from then on. `false` where this many segments are too many even then.
    fn make_room(&self, segments: usize) -> Result<bool> {
        let shared = &*self.shared;
        self.merge_all()?;
        if !shared.has_slack() {
            shared.room.is_full.store(true, Ordering::Relaxed);
        }
        if shared.has_room(segments, Need::Adding) {
            return Ok(true);
        }
        if self.sorter.is_none() {
            let instead = "raise it, or let it spill to a directory";
            return Err(over_limit(shared.room.memory_max, instead));
        }
        self.spill()?;
        shared.room.is_full.store(false, Ordering::Relaxed);
        Ok(shared.has_room(segments, Need::Adding))
    }

    /// Merges what was added to all leaves before.
    pub(super) fn merge_all(&self) -> Result<()> {
        // The second time it is what was added to leaves that were being merged, and was taken apart with them.
        for _ in 0..2 {
            let mut number = 0;
            loop {
                let next = self.tree.lock().submit_next(number, &self.shared);
                let Some(next) = next else { break };
                number = next;
                self.shared.relieve()?;
            }
            self.shared.wait_for(self.shared.last_ticket())?;
            self.tree.lock().take_back(&self.shared);
        }
        Ok(())
    }
}
