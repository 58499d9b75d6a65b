//! Adding rows that come by columns: most stay in a table in front of the leaves, which keeps more of a group than its
//! state and looks at columns instead of keys. Each thread that adds has one of its own.

use forebay_base::Result;
use forebay_env::sync::atomic::Ordering;

use super::CompressedAggregator;
use super::room::Need;
use super::worker::recount;
use crate::aggregate::Aggregate;
use crate::aggregator::check;
use crate::columns::{Front, OnRefused, OverRows, Rows, SOME_SHARE};

impl<A: OverRows> CompressedAggregator<A> {
    /// Adds rows, from any thread: as adding each by itself does, under the key that [`Rows::write_key`] gives. Those
    /// that are refused, because their key is too long or a function does not take its value, are not added; their
    /// numbers are put in place of what `refused` holds, in order.
    ///
    /// An error is one of the work: there is no knowing then how many of the rows were added.
    pub fn add_rows(&self, rows: &Rows<'_>, refused: &mut Vec<u32>) -> Result<()> {
        let shared = &*self.shared;
        let (_, mut own) = self.front_deal.take(|number| &self.fronts[number].0);
        let (memory_max, least_bytes) = (shared.room.memory_max, shared.sizes.least_bytes());
        let front = own.get_or_insert_with(|| {
            // What all else may take is kept; leaves have a half of the rest at least, or nothing fits them.
            let left_bytes = memory_max.saturating_sub(least_bytes) / (2 * self.fronts.len());
            let groups_bytes = left_bytes / (SOME_SHARE + 1) * SOME_SHARE;
            let front = Box::new(Front::new(memory_max / self.fronts.len(), groups_bytes));
            recount(&shared.room.front_bytes_max, 0, front.bytes_max + front.bytes_max / SOME_SHARE);
            shared.room.is_loose.store(true, Ordering::Relaxed);
            front
        });
        let before = front.memory_bytes();
        let mut sink = |hash, key: &[u8], state: &[u8]| {
            check(&*shared.function, key, state)?;
            let hash = shared.hashing.cut(hash);
            let appended = self.trees[shared.tree_of(hash)].0.lock().append(hash, key, state);
            if appended { Ok(()) } else { self.append_slowly(hash, key, state) }
        };
        let functions = shared.function.functions();
        let added = front.add(&functions, rows, OnRefused::PassBy, refused, &mut sink);
        recount(&shared.room.front_bytes, before, front.memory_bytes());
        debug_assert!(refused.is_sorted(), "rows that are refused come in order");
        added.map(drop)
    }
}

impl<A: Aggregate> CompressedAggregator<A> {
    /// Moves what the calling thread has added by columns to the leaves. Whoever reads does that for all threads; those
    /// that add no more do it beside others.
    pub fn hand_over_rows(&self) -> Result<()> {
        self.empty_front(&mut self.front_deal.take(|number| &self.fronts[number].0).1)?;
        self.shared.relieve()
    }

    /// Moves what came by columns to the leaves.
    pub(super) fn empty_fronts(&self) -> Result<()> {
        let mut any = false;
        for front in &self.fronts {
            any |= self.empty_front(&mut front.0.lock())?;
        }
        if any { self.shared.relieve() } else { Ok(()) }
    }

    /// The same of one thread, whatever leaves take then: a front gives back as much. `false` where it had nothing.
    fn empty_front(&self, own: &mut Option<Box<Front>>) -> Result<bool> {
        let shared = &*self.shared;
        let Some(front) = own.as_mut() else { return Ok(false) };
        let (before, any, mut need) = (front.memory_bytes(), !front.is_empty(), Need::Merging);
        let emptied = front.empty(&mut |hash, key, state| {
            let hash = shared.hashing.cut(hash);
            loop {
                let put = self.trees[shared.tree_of(hash)].0.lock().put(shared, hash, key, state, need);
                match put {
                    Ok(()) => return Ok(()),
                    Err(wanting) => self.see_to_anyway(wanting, &mut need)?,
                }
            }
        });
        recount(&shared.room.front_bytes, before, front.memory_bytes());
        debug_assert!(emptied.is_err() || front.is_empty(), "all of it has left");
        emptied.map(|()| any)
    }
}

#[cfg(test)]
mod tests {
    use super::super::stream::SEGMENT_BYTES;
    use super::*;
    use crate::columns::{Items, Lane};
    use crate::{AggregatorOptions, Composite};

    /// Leaves took what a front grew by later.
    #[test]
    fn a_front_has_room_of_its_own_from_the_start() -> Result<()> {
        let options = AggregatorOptions::default().memory_limit(16 << 20).threads(1);
        let counts = CompressedAggregator::new(Composite::parse("count", &["key"])?, options)?;
        let has_room = |bytes: usize| counts.shared.has_room(bytes / SEGMENT_BYTES, Need::Adding);
        let left = |from: usize| (from..16 << 20).step_by(SEGMENT_BYTES).find(|bytes| !has_room(*bytes));
        let before = left(0).expect("there is a limit");
        let keys: Vec<i64> = (0..10).collect();
        let lane = Lane::new(Items::I64(&keys), None)?;
        counts.add_rows(&Rows::new(vec![lane], 1)?, &mut Vec::new())?;
        let taken = before - left(0).expect("there is a limit");
        assert!((1 << 20..2 << 20).contains(&taken), "a sixteenth is kept, and not {taken} bytes");
        Ok(())
    }

    /// Rows of which each is a group by itself were packed again and again.
    #[test]
    fn nothing_is_packed_while_there_is_ample_room() -> Result<()> {
        for (limit, is_packed) in [(64 << 20, false), (4 << 20, true)] {
            let options = AggregatorOptions::default().memory_limit(limit).threads(1);
            let counts = CompressedAggregator::new(Composite::parse("count", &["key"])?, options)?;
            for batch in 0..40 {
                let keys: Vec<i64> = (0..4000).map(|row| 4000 * batch + row).collect();
                let lane = Lane::new(Items::I64(&keys), None)?;
                counts.add_rows(&Rows::new(vec![lane], 1)?, &mut Vec::new())?;
            }
            counts.hand_over_rows()?;
            let (mut leaves, mut chunks) = (0, 0);
            counts.each_leaf(|holder| {
                (leaves, chunks) = (leaves + 1, chunks + holder.base.len());
                Ok(())
            })?;
            assert!(leaves > 8, "they are divided");
            assert_eq!(chunks > 0, is_packed, "{limit} bytes");
        }
        Ok(())
    }
}
