//! Another order for a table that is in use. Its records must be sorted anew for that, beside reads and writes:
//!
//! 1. What lists have is copied into a *successor*, a catalog in the new order that nobody else knows of.
//! 2. What is absorbed meanwhile follows: the lists that are made of buffers are kept in mind, and sorted anew, oldest
//!    first, once the copy is there.
//! 3. When little is left, writers to this table wait; what is buffered of it is absorbed and follows, too. Then one edit
//!    gives the table the successor's lists, in the form of the new layout, and writers go on.
//!
//! The manifest learns of the successor by that edit alone. So a crash before it leaves the old layout whole, and files
//! that nobody refers to, which the next open removes.
//!
//! **Invariant:** after each list that has followed, the successor holds what the table's own lists held when that was
//! added to them. So a list that follows has no more than the buffer that it was made of: while a table is rewritten, no
//! flush is merged with older runs, no range is deleted and nothing is ingested.

use std::sync::Arc;

use forebay_base::merge::Direction;
use forebay_base::{Combine, Error, Range, Record, Result};
use forebay_env::yield_point;
use forebay_layouts::{DataFile, Layout, Successor, TableOptions};
use forebay_store::manifest::Edit;

use crate::Cursor;
use crate::engine::{Engine, State, TableState, closed};
use crate::read::View;
use crate::replay::store_for;

/// What came meanwhile follows so often before writers wait: each time it is what came during the time before.
const ROUNDS: usize = 3;
/// How often progress is told, in records.
const TOLD_EVERY: u64 = 1 << 10;

/// Is told how many records are copied, and how many there are, every version counted.
pub(crate) type Tell<'a> = &'a mut dyn FnMut(u64, u64);

/// What a rewrite of a table has to keep in mind.
#[derive(Default)]
pub(crate) struct Following {
    /// Files that were added to the table's, oldest first.
    pub(crate) files: Vec<DataFile>,
    /// Records copied, and records to be copied.
    pub(crate) progress: (u64, u64),
}

/// A rewrite that is under way, until this is dropped, also by a panic of whoever is told of progress.
struct Rewriting<'a> {
    engine: &'a Engine,
    table: u32,
}

impl Drop for Rewriting<'_> {
    fn drop(&mut self) {
        self.engine.rewriting.lock().remove(&self.table);
        // The swap has let writers go on already, unless it failed.
        let _ = self.engine.freeze(self.table, false);
        self.engine.env.jobs.wake();
    }
}

impl Engine {
    /// Gives a table a layout of another order.
    pub(crate) fn rewrite(self: &Arc<Self>, id: u32, layout: Layout, tell: Tell<'_>) -> Result<()> {
        let table = Arc::clone(self.view().table(id)?);
        table.rule()?;
        let options = TableOptions { layout, ..table.options };
        options.validate()?;
        self.begin_rewrite(&table)?;
        let _ends = Rewriting { engine: self, table: id };
        self.rewrite_begun(id, &options, tell)
    }

    fn begin_rewrite(&self, table: &TableState) -> Result<()> {
        let log = self.log()?;
        // Held by whoever is about to bring in what was ingested.
        let _sealing = self.rotating.lock();
        let was_begun = {
            let mut rewriting = self.rewriting.lock();
            let was_begun = rewriting.contains_key(&table.id);
            rewriting.entry(table.id).or_default();
            was_begun
        };
        if was_begun {
            return Err(Error::invalid(format!("table `{}` is being rewritten already", table.name)));
        }
        // Whoever was about to delete a range looks again.
        log.switch(|| ());
        Ok(())
    }

    /// Makes writers of a table wait, or go on.
    fn freeze(&self, id: u32, frozen: bool) -> Result<()> {
        self.log()?.switch(|| {
            self.update_state(|state| match frozen {
                true => drop(state.frozen.insert(id)),
                false => drop(state.frozen.remove(&id)),
            });
        });
        Ok(())
    }

    /// The reason why nothing can be written any more, if there is one.
    pub(crate) fn check_open(&self) -> Result<()> {
        match self.fatal() {
            Some(fatal) => Err(fatal),
            None if self.is_closing() => Err(closed()),
            None => Ok(()),
        }
    }

    fn rewrite_begun(self: &Arc<Self>, id: u32, options: &TableOptions, tell: Tell<'_>) -> Result<()> {
        // Ranges that were deleted before are gone from the lists that are copied.
        self.flush()?;
        // Nor need a flush take along what an earlier layout has left in memory.
        self.wait_for_files(|table| table.id == id && table.options.layout != Layout::range_merge())?;
        let start = self.follow(id)?;
        let table = Arc::clone(start.table(id)?);
        let store = store_for(&self.lists, &self.trees, options, self.superblock.hash_seed, &table.space);
        let mut successor = Successor::new(options, store, &table.rule, self.options.merge_bytes());
        self.copy(&table, start, &mut successor, tell)?;
        drop(table);
        for _ in 0..ROUNDS {
            self.flush()?;
            self.catch_up(id, &mut successor)?;
            tell(successor.records(), successor.records());
        }
        self.freeze(id, true)?;
        self.flush()?;
        self.catch_up(id, &mut successor)?;
        self.succeed(id, options, successor)
    }

    /// The table's lists as they are now. From here on those that are added are kept in mind.
    fn follow(&self, id: u32) -> Result<View> {
        let mut ledger = self.ledger.lock();
        let table = Arc::clone(self.view().table(id)?);
        // A flush on its way may be merged with older runs, and begins anew.
        self.update_state(|state| {
            let anew = table.altered(table.options, Arc::clone(&table.catalog));
            state.tables.insert(anew);
        });
        self.forget_nodes(&mut ledger, id);
        self.rewriting.lock().insert(id, Following::default());
        let state = State { sealed: Vec::new(), ..State::clone(&self.state()) };
        Ok(View { state: Arc::new(state), active_bytes: 0, pin: None, moment: None })
    }

    /// Notes files that were made of a buffer, for a rewrite of their table, and for whoever compacts it.
    pub(crate) fn added(&self, table: u32, files: Vec<DataFile>) {
        self.grew(table);
        if let Some(following) = self.rewriting.lock().get_mut(&table) {
            following.files.extend(files);
        }
    }

    /// Whether a table is being rewritten: its range cannot be deleted, nothing can be ingested.
    pub(crate) fn is_rewriting(&self, table: u32) -> bool {
        self.rewriting.lock().contains_key(&table)
    }

    /// Copies what lists had.
    fn copy(
        self: &Arc<Self>,
        table: &TableState,
        view: View,
        successor: &mut Successor,
        tell: Tell<'_>,
    ) -> Result<()> {
        let (all, value_bytes_max) = (table.catalog.records(), table.rule()?.value_bytes_max());
        let check = || self.check_open();
        let mut done = 0;
        let mut cursor = Cursor::new(self, view, table.id, Range::all(), Direction::Forward)?;
        cursor.next()?;
        while let Some((key, value)) = cursor.stored() {
            // As merges of lists do, which leave such a key's records as they are.
            if cursor.is_merged() && value.len() > value_bytes_max {
                return Err(Error::too_long(key, value.len(), value_bytes_max));
            }
            successor.push(&Record::put(key, value), &check)?;
            done += 1;
            if done % TOLD_EVERY == 0 {
                self.tell(table.id, (done, all), tell);
            }
            cursor.next()?;
        }
        successor.close(&check)?;
        self.tell(table.id, (done, done), tell);
        Ok(())
    }

    fn tell(&self, table: u32, (done, all): (u64, u64), tell: Tell<'_>) {
        if let Some(following) = self.rewriting.lock().get_mut(&table) {
            following.progress = (done, all);
        }
        tell(done, all);
    }

    /// Brings to the successor what was absorbed since.
    fn catch_up(&self, id: u32, successor: &mut Successor) -> Result<()> {
        yield_point("rewrite catches up");
        let files = self.rewriting.lock().get_mut(&id).map(|following| std::mem::take(&mut following.files));
        let check = || self.check_open();
        files.unwrap_or_default().iter().try_for_each(|file| successor.push_file(file, &check))
    }

    /// Gives the table its successor's lists. No buffer has a record of it, and nobody writes to it.
    fn succeed(&self, id: u32, options: &TableOptions, successor: Successor) -> Result<()> {
        let log = self.log()?;
        let mut ledger = self.ledger.lock();
        let state = self.state();
        let table = state.tables.get(&id).ok_or_else(|| Error::NotFound("the table was dropped".into()))?;
        let order = options.layout.order(self.superblock.hash_seed);
        // A successor has lists, of which every layout can make something.
        let catalog =
            successor.catalog(options, ledger.log.absorbed.0).ok_or_else(|| self.has_other_files())?;
        let turned = table.turned(*options, order, catalog);
        self.sync_dir()?;
        // The log may still have ranges that were deleted, and must not be read from there again.
        self.tell_mark(&mut ledger)?;
        if let Err(error) = self.append(&mut ledger, &Edit::AlterTable(turned.entry())) {
            if log.poisoned().is_some() {
                // It may be durable all the same: then its files will be asked for.
                successor.finish();
            }
            return Err(error);
        }
        successor.finish();
        log.switch(|| {
            self.update_state(|state| {
                state.tables.insert(Arc::clone(&turned));
                state.frozen.remove(&id);
            });
        });
        self.altered(&mut ledger, table, &turned);
        drop(ledger);
        self.share_memory();
        self.tend_filters();
        Ok(())
    }
}
