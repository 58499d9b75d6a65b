//! Another order for a table that is in use. Its records must be sorted anew for that, beside reads and writes:
//!
//! 1. The lists' records are copied into a *target*: a table version in the new order that nobody else sees yet.
//! 2. What is flushed meanwhile follows: the lists that are made of buffers are kept in mind, and sorted anew, oldest
//!    first, once the copy is there.
//! 3. When little is left, writers to this table wait; what is buffered of it is flushed and follows, too. Then one
//!    edit gives the table the target's lists, in the form of the new layout, and writers go on.
//!
//! The manifest learns of the target by that edit alone. So a crash before it leaves the old layout whole, and files
//! that nobody refers to, which the next open removes.
//!
//! **Invariant:** after each list that has followed, the target holds what the table's own lists held when that was
//! added to them. So a list that follows has no more than the buffer that it was made of: while a table is reordered,
//! no flush is merged with older runs, no range is deleted and nothing is ingested.

use std::sync::Arc;
use std::time::Duration;

use forebay_base::merge::Direction;
use forebay_base::{Combine, Error, Range, Record, Result};
use forebay_env::yield_point;
use forebay_layouts::{Layout, ReorderTarget, TableOptions};
use forebay_store::buffer::SortedTable;
use forebay_store::manifest::Edit;

use crate::read::Cursor;
use crate::relayout::Relayout;
use crate::versions::{State, TableState, View, has_other_files, store_for};

/// What came meanwhile follows so often before writers wait: each time it is what came during the time before.
const ROUNDS: usize = 3;
/// How often progress is told, in records.
const TOLD_EVERY: u64 = 1 << 10;

/// Is told how many records are copied, and how many there are, every version counted.
pub(crate) type Tell<'a> = &'a mut dyn FnMut(u64, u64);

/// A rewrite that is under way, until this is dropped, also by a panic of whoever is told of progress.
struct Reordering<'a> {
    relayout: &'a Relayout,
    table: u32,
}

impl Drop for Reordering<'_> {
    fn drop(&mut self) {
        // The swap has let writers go on already, unless it failed. As long as it is followed nobody else makes them wait.
        let _ = self.relayout.freeze(self.table, false);
        self.relayout.versions.end_following(self.table);
        self.relayout.context.env.jobs.wake();
    }
}

impl Relayout {
    /// Gives a table a layout of another order.
    pub(crate) fn reorder(&self, id: u32, layout: Layout, tell: Tell<'_>) -> Result<()> {
        {
            // Not held for as long as it takes: its files could not go.
            let view = self.versions.view();
            let table = view.table(id)?;
            table.rule()?;
            TableOptions { layout, ..table.options }.validate()?;
            self.begin_reorder(table)?;
        }
        let _ends = Reordering { relayout: self, table: id };
        self.reorder_begun(id, layout, tell)
    }

    fn begin_reorder(&self, table: &TableState) -> Result<()> {
        let log = self.context.log()?;
        yield_point("rewrite is to begin");
        // Nobody is about to bring in what was ingested, and makes writers of the table go on.
        let _one_at_a_time = self.versions.bringing_in.lock();
        if !self.versions.begin_following(table.id) {
            return Err(Error::invalid(format!(
                "table `{}` is already being sorted into another order",
                table.name
            )));
        }
        // Whoever was about to delete a range looks again.
        log.change_epoch(|| ());
        Ok(())
    }

    /// Makes writers of a table wait, or go on.
    pub(super) fn freeze(&self, id: u32, frozen: bool) -> Result<()> {
        self.context.log()?.change_epoch(|| {
            self.versions.update_state(|state| match frozen {
                true => drop(state.frozen.insert(id)),
                false => drop(state.frozen.remove(&id)),
            });
        });
        Ok(())
    }

    fn reorder_begun(&self, id: u32, layout: Layout, tell: Tell<'_>) -> Result<()> {
        // Ranges that were deleted before are gone from the lists that are copied.
        self.writer.flush()?;
        // Nor need a flush take along what an earlier layout has left in memory.
        self.background.wait_for_files(|table| table.id == id && !table.options.layout.keeps_in_memory())?;
        let start = self.follow(id)?;
        let table = Arc::clone(start.table(id)?);
        // Nobody alters them from here on: they are those of the version that is followed.
        let options = &TableOptions { layout, ..table.options };
        options.validate()?;
        let store = store_for(
            &self.versions.lists,
            &self.versions.trees,
            options,
            self.context.superblock.hash_seed,
            &table.space,
        );
        let mut target = ReorderTarget::new(options, store, &table.rule, self.context.division().job_bytes());
        let generation = table.generation;
        self.copy(&table, start, &mut target, tell)?;
        drop(table);
        for _ in 0..ROUNDS {
            self.writer.flush()?;
            self.catch_up(id, &mut target)?;
            tell(target.records(), target.records());
        }
        self.freeze(id, true)?;
        self.writer.flush()?;
        self.catch_up(id, &mut target)?;
        self.succeed((id, generation), options, target)
    }

    /// The table's lists as they are now. From here on those that are added are kept in mind.
    fn follow(&self, id: u32) -> Result<View> {
        let mut version_set = self.versions.lock();
        let table = Arc::clone(self.versions.view().table(id)?);
        // A flush on its way may be merged with older runs, and begins anew.
        self.versions.update_state(|state| {
            let anew = table.with_options(table.options, Arc::clone(&table.version));
            state.tables.insert(anew);
        });
        version_set.forget_nodes(id);
        self.versions.follow_anew(id);
        let state = State { sealed: Vec::new(), ..State::clone(&self.versions.state()) };
        Ok(View::new(Arc::new(state), 0))
    }

    /// Copies what lists had.
    fn copy(&self, table: &TableState, view: View, target: &mut ReorderTarget, tell: Tell<'_>) -> Result<()> {
        debug_assert!(view.buffers().next().is_none(), "what buffers have follows");
        let (all, value_bytes_max) = (table.version.records(), table.rule()?.value_bytes_max());
        let check = || self.context.check_open();
        let mut done = 0;
        let mut cursor = Cursor::new(&self.versions, view, table.id, Range::all(), Direction::Forward)?;
        cursor.next()?;
        while let Some((key, value)) = cursor.stored() {
            // As merges of lists do, which leave such a key's records as they are.
            if cursor.is_merged() && value.len() > value_bytes_max {
                return Err(Error::too_long(key, value.len(), value_bytes_max));
            }
            target.push(&Record::put(key, value), &check)?;
            done += 1;
            if done % TOLD_EVERY == 0 {
                self.tell(table.id, (done, all), tell);
            }
            cursor.next()?;
        }
        target.close(&check)?;
        self.tell(table.id, (done, done), tell);
        Ok(())
    }

    fn tell(&self, table: u32, (done, all): (u64, u64), tell: Tell<'_>) {
        self.versions.note_reordered(table, (done, all));
        tell(done, all);
    }

    /// Brings to the target what was flushed since.
    fn catch_up(&self, id: u32, target: &mut ReorderTarget) -> Result<()> {
        yield_point("rewrite catches up");
        let files = self.versions.take_followers(id);
        let check = || self.context.check_open();
        files.iter().try_for_each(|file| target.push_file(file, &check))
    }

    /// Gives the table its target's lists. No buffer has a record of it, and nobody writes to it.
    fn succeed(&self, of: (u32, u64), options: &TableOptions, target: ReorderTarget) -> Result<()> {
        let (id, generation) = of;
        let log = self.context.log()?;
        let mut version_set = self.versions.lock();
        let state = self.versions.state();
        let gone = || Error::NotFound(format!("{} was dropped", state.tables.named_dropped(id)));
        let table = state.tables.get(&id).ok_or_else(gone)?;
        if table.generation != generation {
            let name = &table.name;
            return Err(Error::NotFound(format!("table `{name}` was dropped, and came back by a rollback")));
        }
        let order = options.layout.order(self.context.superblock.hash_seed);
        debug_assert!(state.frozen.contains(&id), "nobody writes to it");
        let is_of_others = |sorted: &[SortedTable]| sorted.iter().all(|sorted| sorted.table != id);
        debug_assert!(
            state.sealed.iter().filter_map(|buffer| buffer.sorted()).all(|sorted| is_of_others(&sorted)),
            "no buffer has a record of it"
        );
        // A target has lists, of which every layout can make something.
        let version = target.version(options, version_set.log.flushed.0).ok_or_else(has_other_files)?;
        let reordered = table.with_order(*options, order, version);
        self.context.sync_dir()?;
        // The log may still have ranges that were deleted, and must not be read from there again.
        version_set.tell_mark()?;
        // Merges of the target may have dropped what had expired.
        if table.expires_merged() {
            version_set.keep_time(Duration::ZERO)?;
        }
        if let Err(error) = version_set.append(&Edit::AlterTable(reordered.entry())) {
            if log.poisoned().is_some() {
                // It may be durable all the same: then its files will be asked for.
                target.finish();
            }
            return Err(error);
        }
        target.finish();
        log.change_epoch(|| {
            self.versions.update_state(|state| {
                state.tables.insert(Arc::clone(&reordered));
                state.frozen.remove(&id);
            });
        });
        version_set.note_new_layout(table, &reordered);
        drop(version_set);
        self.memory.share_memory();
        self.memory.tend_filters();
        Ok(())
    }
}
