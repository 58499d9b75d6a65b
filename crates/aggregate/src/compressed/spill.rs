//! Where memory does not suffice and there is a place for groups: all leaves leave memory as one list in the order of
//! hashes, and memory is free again.
//!
//! 1. Each leaf is *sealed*: what it has becomes a part, which nobody changes, and it begins anew.
//! 2. The parts are merged one by one, and go to the [place](crate::SpilledGroups) as a list that nobody sees yet.
//! 3. The list is published, and the parts go, at the same moment for all who read.
//!
//! What a failed write leaves sealed goes first the next time.
//!
//! **Invariant:** every state is in the leaves, in a part that is not published, or among what was spilled, and in one of
//! them only, also after an error.

use forebay_base::merge::Cursor;
use forebay_base::{Error, Record, Result};
use forebay_env::sync::atomic::Ordering;
use forebay_env::sync::{Arc, Mutex, RwLock, RwLockReadGuard};
use forebay_env::yield_point;

use super::CompressedAggregator;
use super::columns::Columns;
use super::hashing::Hashing;
use super::parts::{Few, Part, Parts, Told, expected};
use super::worker::recount;
use crate::aggregate::{Aggregate, Merging};
use crate::aggregator::{Visit, check_length};
use crate::broken::Broken;
use crate::spilled::{ExpectedGroups, GroupsView, SpillTarget, SpillTerms, SpilledGroups, Unpublished};

/// Where groups go.
pub(super) struct Target {
    pub(super) place: Arc<dyn SpillTarget>,
    pub(super) threads: usize,
}

/// What is on its way: sealed, and not published.
#[derive(Default)]
pub(super) struct Sealed {
    parts: Vec<Arc<Part>>,
    /// How many spills were begun.
    number: u64,
}

/// What all who read agree on.
#[derive(Default)]
pub(super) struct Published {
    /// How many spills were published.
    number: u64,
    /// Groups that were lost before.
    lost: Broken,
    /// While one is being published, all that was before it.
    before: Option<Arc<dyn GroupsView>>,
}

impl Published {
    /// What is told of a group that is lost.
    pub(super) fn told_of(&self, key: &[u8]) -> Result<()> {
        self.lost.of(key).map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Whether a part's states are not among what was spilled.
    pub(super) fn lacks(&self, part: &Part) -> bool {
        part.number > self.number
    }
}

/// What readers see while a spill is published. It is dropped only where that panics: what was before is all there is
/// then.
struct View<'p>(&'p RwLock<Published>);

impl Drop for View<'_> {
    fn drop(&mut self) {
        self.0.write().before = None;
    }
}

impl<A: Aggregate> CompressedAggregator<A> {
    /// Moves all leaves to files, and what an earlier spill has left before.
    pub(super) fn spill(&self, sealed: &mut Sealed) -> Result<()> {
        // Before anything goes there: who finds it unset under a tree's lock finds all in the tree.
        self.is_spilled.store(true, Ordering::Relaxed);
        if !sealed.parts.is_empty() {
            self.write_out(sealed)?;
        }
        self.seal(sealed)?;
        self.write_out(sealed)
    }

    /// Moves all that was added before to files. What is there needs no memory here.
    pub(super) fn spill_all(&self) -> Result<()> {
        self.spill(&mut self.rooming.lock())?;
        self.shared.release();
        self.stripes().for_each(|stripe| stripe.lock().shrink(&self.shared));
        Ok(())
    }

    /// Seals all leaves, and waits for those that are being merged.
    fn seal(&self, sealed: &mut Sealed) -> Result<()> {
        debug_assert!(sealed.parts.is_empty(), "what was sealed before is written");
        sealed.number += 1;
        let number = sealed.number;
        self.each_leaf(|holder| {
            if holder.tail.bytes() > 0 || holder.base.len() > 0 || !holder.base.broken.is_empty() {
                let (tail, base) = (std::mem::take(&mut holder.tail), std::mem::take(&mut holder.base));
                let pool = Arc::clone(&self.shared.pool);
                let part = Arc::new(Part { leaf: holder.leaf, tail, base, number, pool });
                debug_assert!(holder.sealed.is_none(), "one spill goes after the other");
                holder.sealed = Some(Arc::clone(&part));
                sealed.parts.push(part);
            }
            Ok(())
        })
    }

    /// Writes what is sealed and publishes it.
    fn write_out(&self, sealed: &mut Sealed) -> Result<()> {
        if sealed.parts.is_empty() {
            return Ok(());
        }
        let shared = &self.shared;
        let Some(groups) = self.spilled_groups()? else { return Ok(()) };
        yield_point("sealed leaves are written");
        debug_assert!(
            sealed.parts.iter().all(|part| part.number == sealed.number),
            "what is written was sealed at once"
        );
        let told = Arc::new(Mutex::default());
        let parts = Parts::new(shared, &sealed.parts, Arc::clone(&told))?;
        let written = groups.write(Box::new(parts), expected(shared, &sealed.parts))?;
        let Told { lost, groups: count } = &mut *told.lock();
        self.publish(written, |published| {
            debug_assert!(published.number < sealed.number, "each spill is published once");
            published.number = sealed.number;
            published.lost.append(lost);
        })?;
        // Of few groups that come again and again, most records meet one in memory, where that is merged.
        let added = shared.room.merged.swap(0, Ordering::Relaxed);
        let gathers = (added as f64) < REPEATS_MIN * *count as f64;
        shared.room.gathers.store(gathers, Ordering::Relaxed);
        for tree in &self.trees {
            tree.0.lock().forget_sealed(shared);
        }
        for part in sealed.parts.drain(..) {
            recount(&shared.room.index_bytes, part.base.index_bytes(), 0);
        }
        Ok(())
    }

    /// Lets all who read see what was written, at the same moment as what is noted. Until then they see what was before.
    fn publish(&self, written: Box<dyn Unpublished + '_>, note: impl FnOnce(&mut Published)) -> Result<()> {
        let mut published = self.published.write();
        debug_assert!(published.before.is_none(), "one at a time publishes");
        published.before = written.before();
        if published.before.is_some() {
            drop(published);
            let view = View(&self.published);
            let outcome = written.publish();
            std::mem::forget(view);
            yield_point("a spill is published");
            published = self.published.write();
            published.before = None;
            outcome?;
        } else {
            written.publish()?;
        }
        note(&mut published);
        Ok(())
    }

    /// Where groups are in files; nowhere where there is no place for such.
    fn spilled_groups(&self) -> Result<Option<&dyn SpilledGroups>> {
        let Some(target) = self.target.as_ref().filter(|_| self.groups.get().is_none()) else {
            return Ok(self.groups.get().map(|groups| &**groups));
        };
        let shared = &self.shared;
        let terms = SpillTerms {
            rule: Arc::new(Merging(Arc::clone(&shared.function))),
            state_type: shared.function.state_type().as_str().to_string(),
            memory_bytes: shared.sizes.spilled_bytes,
            spill_bytes: shared.room.memory_max - shared.sizes.spilled_bytes,
            jobs: shared.jobs.clone(),
            threads: target.threads,
        };
        // One at a time comes here: who makes room.
        let opened = target.place.open(terms)?;
        debug_assert!(self.groups.get().is_none(), "one at a time makes room");
        Ok(Some(&**self.groups.get_or_init(|| opened)))
    }

    /// Gives a record to files that there is no room for elsewhere.
    pub(super) fn spill_one(&self, hash: u64, key: &[u8], state: &[u8]) -> Result<()> {
        let _one = self.rooming.lock();
        self.is_spilled.store(true, Ordering::Relaxed);
        let Some(groups) = self.spilled_groups()? else { return Ok(()) };
        let mut records = Columns::new(self.shared.function.state_bytes());
        records.push(hash, key, state);
        let expected = ExpectedGroups { groups: 1, bytes: (key.len() + state.len()) as u64, lengths: None };
        let written = groups.write(Box::new(Few::new(records)), expected)?;
        self.publish(written, |_| {})
    }

    /// What is in files; holds it so until what it gives is dropped.
    pub(super) fn published(&self) -> RwLockReadGuard<'_, Published> {
        self.published.read()
    }

    /// The groups in files, as `published` tells, if there are any.
    pub(super) fn view_spilled(&self, published: &Published) -> Result<Option<Arc<dyn GroupsView>>> {
        match &published.before {
            Some(before) => Ok(Some(Arc::clone(before))),
            None => self.groups.get().map(|groups| groups.view()).transpose(),
        }
    }

    /// How many groups there are, once all is in files.
    pub(super) fn keys_spilled(&self) -> Result<u64> {
        let Some(mut walk) = self.walk_spilled(None)? else { return Ok(0) };
        let mut keys = 0;
        let mut count = |_: &[u8], _: &[u8]| {
            keys += 1;
            Ok(())
        };
        while walk.show_some(&mut count)? {}
        Ok(keys)
    }

    /// Moves all that was added before to files, and walks the groups behind a key there. No lock is held meanwhile.
    pub(super) fn walk_spilled(&self, behind: Option<&[u8]>) -> Result<Option<SpilledWalk>> {
        self.spill_all()?;
        let published = self.published();
        let (view, lost) = (self.view_spilled(&published)?, published.lost.clone());
        drop(published);
        let Some(view) = view else { return Ok(None) };
        let cursor = view.cursor(behind)?;
        Ok(Some(SpilledWalk {
            told: lost.first().cloned(),
            cursor,
            lost,
            hashing: self.shared.hashing,
            state_bytes_max: self.shared.state_bytes_max,
        }))
    }
}

/// Some groups are shown at a time.
const SHOWN_TOGETHER: usize = 512;

/// A walk over groups in files.
pub(super) struct SpilledWalk {
    cursor: Box<dyn Cursor + Send>,
    lost: Broken,
    /// What is told of the first group that is lost.
    told: Option<Error>,
    hashing: Hashing,
    state_bytes_max: usize,
}

impl SpilledWalk {
    /// Shows the next groups; `false` where there are no more. Tells of those that are lost at the end.
    pub(super) fn advance(&mut self, visit: &mut Visit<'_>) -> Result<bool> {
        let is_more = self.show_some(visit)?;
        if is_more { Ok(true) } else { self.told.take().map_or(Ok(false), Err) }
    }

    fn show_some(&mut self, visit: &mut Visit<'_>) -> Result<bool> {
        let Self { cursor, lost, told, hashing, state_bytes_max } = self;
        for _ in 0..SHOWN_TOGETHER {
            let Some(prefix) = cursor.prefix() else { return Ok(false) };
            let Record { key, value: state, .. } = cursor.record();
            debug_assert_eq!(prefix, hashing.of(key), "the orders agree");
            match check_length(key, state, *state_bytes_max) {
                _ if !lost.is_empty() && lost.of(key).is_some() => {}
                Ok(()) => visit(key, state)?,
                Err(error) => *told = told.take().or(Some(error)),
            }
            cursor.advance()?;
        }
        Ok(true)
    }
}

/// Where fewer records than this come for each group that leaves memory, none are merged before they do.
pub(super) const REPEATS_MIN: f64 = 1.33;
