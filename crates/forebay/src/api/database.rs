//! The database: a directory of tables under one log and one memory limit.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use forebay_aggregate::Aggregate;
use forebay_base::{Error, Result, planted};
use forebay_env::sync::Mutex;
use forebay_env::{Access, Env, FileLock, Handle, yield_point};
use forebay_layouts::Layout;
use forebay_store::leases::Lease;
use forebay_store::log::Durability;
use forebay_store::log::recover::Extent;
use forebay_store::manifest::{AppendError, Edit};
use forebay_store::names;

use crate::api::builder::Aggregating;
use crate::context::{Context, refuse_guests, stop_guests};
use crate::engine::Engine;
use crate::open::{Made, Opened, Refresher, destroy, dump, verify};
use crate::versions::{TableState, VersionSetGuard};
use crate::{
    Batch, Changes, Checkpoint, Damage, Description, Dumped, Options, SavepointStats, Snapshot, Stats,
    TableBuilder, VerifyReport, open,
};

/// An open database. Dropping it closes it.
#[derive(Debug)]
pub struct Database {
    pub(super) engine: Arc<Engine>,
    pub(super) machines: Mutex<Vec<Handle>>,
    /// Held until it is closed.
    pub(super) lock: Mutex<Option<FileLock>>,
    pub(super) made: Made,
    /// What it knows of whoever else may write, where it is open for reading only.
    pub(super) refresher: Mutex<Option<Refresher>>,
}

impl Database {
    /// Opens the database at `path`, or makes one there. After a crash it comes back with every batch that reached the
    /// log: no flag is needed. Opening reads the manifest and the log (a few write buffers); lists and their filters
    /// are read when they are first needed.
    ///
    /// Errors name the file: the directory is no database, is open elsewhere, has a newer format, or its log or
    /// manifest is damaged below what was durable.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let Opened { engine, pending, lock, made, refresher } = open::open(path.as_ref(), options)?;
        let (lock, refresher) = (Mutex::new(lock), Mutex::new(refresher));
        let db = Self { engine, machines: Mutex::default(), lock, made, refresher };
        if let Err(error) = db.start(pending) {
            let _ = db.take_back();
            return Err(error);
        }
        Ok(db)
    }

    fn start(&self, pending: VecDeque<Extent>) -> Result<()> {
        self.engine.versions.trim_log()?;
        if !self.engine.context.options.read_only {
            self.engine.versions.give_back_kept();
            *self.machines.lock() = open::start(&self.engine, pending)?;
            self.answer_readers();
        }
        Ok(())
    }

    /// Names a table, to be opened or made.
    pub fn table(&self, name: &str) -> TableBuilder {
        TableBuilder::new(&self.engine, name)
    }

    /// Names a table that keeps the state of an aggregation function for each key, to be opened or made:
    /// see [`Aggregator`](crate::Aggregator).
    ///
    /// Functions of [`aggregate`](crate::aggregate), also several in one, are known by the type of their states, so
    /// what the log has of their tables is merged whether or not they are opened again. Functions of your own are not:
    /// they need types of their own, and their tables must be opened before the write buffers are full. See
    /// [`BuiltIn`](crate::aggregate::BuiltIn).
    pub fn aggregator<A: Aggregate>(&self, name: &str, function: A) -> TableBuilder<Aggregating<A>> {
        TableBuilder::new(&self.engine, name).aggregating(function)
    }

    /// The tables and their layouts, by name.
    pub fn tables(&self) -> Vec<(String, Layout)> {
        self.engine.versions.state().layouts()
    }

    /// Drops a table with all its records. Snapshots and savepoints keep what they have of it.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        drop_table(&self.engine, name)
    }

    /// Writes a batch: all of it or, on an error or in a crash, nothing. Returns the number of its last record. If a
    /// write has reached the log and then returns an error, it may still turn out to have been kept.
    pub fn commit(&self, batch: Batch, durability: Durability) -> Result<u64> {
        self.engine.writer.write(batch.payload(self.id())?, durability)
    }

    /// Like [`commit`](Self::commit), but clears the batch on success, so that its memory can be used again.
    pub fn write(&self, batch: &mut Batch, durability: Durability) -> Result<u64> {
        let sequence = self.engine.writer.write(batch.payload(self.id())?, durability)?;
        batch.clear();
        Ok(sequence)
    }

    /// Changes [`Options::background_rate`] in use: how many bytes a second background work goes through, 0 for no
    /// limit. It lasts until the database is closed. In a pool: [`Pool::set_background_rate`](crate::Pool::set_background_rate).
    pub fn set_background_rate(&self, bytes_a_second: u64) -> Result<()> {
        self.engine.context.limit.set_rate(bytes_a_second)?;
        // Who waits looks anew.
        self.engine.context.env.jobs.wake();
        Ok(())
    }

    /// What its opening made.
    pub(crate) fn made(&self) -> Made {
        self.made
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    fn id(&self) -> u64 {
        self.engine.context.serial
    }

    /// The database as it is now, over all tables.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(&self.engine)
    }

    /// All changes after the one of this number, as [`commit`](Self::commit) returns it, up to now, in the order in
    /// which they were committed: batch by batch, whatever the layouts of their tables. 0 is for all that the log
    /// still has.
    ///
    /// The log has what is not in lists yet, and beyond that as much as [`keep_changes`](Self::keep_changes) says.
    /// Where it does not go back far enough, or a [rollback](Self::rollback) took back what may have been told, the error is
    /// [`Error::ChangesGone`]; the changes that are there when this is called stay for as long as the iterator lives.
    ///
    /// Entries of [`OrderedTable::ingest`](crate::OrderedTable::ingest) are not in the log, and so not among the
    /// changes. Neither are entries that expire or that a compaction filter drops, nor tables that are made, altered
    /// or dropped. Changes of tables that were dropped since are left out.
    ///
    /// A power loss takes changes that are not durable yet, and their numbers are given again. A follower that must
    /// never see such a change reads up to [`durable_sequence`](Self::durable_sequence) only.
    ///
    /// ```
    /// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
    /// # use forebay::{Database, Operation, Options};
    /// let db = Database::open("/db", Options::default().keep_changes(64 << 20).env(env))?;
    /// let users = db.table("users").open()?;
    /// users.put(b"ada", b"1815")?;
    /// let mut seen = 0;
    /// for batch in db.changes(seen)? {
    ///     let batch = batch?;
    ///     for change in &batch.changes {
    ///         assert_eq!(&*change.table, "users");
    ///         assert!(matches!(&change.operation, Operation::Put { key, .. } if key == b"ada"));
    ///     }
    ///     seen = batch.last_sequence;
    /// }
    /// assert_eq!(db.changes(seen)?.count(), 0);
    /// # Ok::<(), forebay::Error>(())
    /// ```
    pub fn changes(&self, since: u64) -> Result<Changes> {
        Changes::new(&self.engine.versions, since)
    }

    /// The number of the last accepted record; of the last one that is seen, where the database is open for reading only.
    pub fn last_sequence(&self) -> u64 {
        stop_guests();
        self.engine.context.log.as_ref().map_or_else(|| self.seen_sequence(), |log| log.last_sequence())
    }

    /// The number up to which records survive a power loss. Where the database is open for reading only: up to which they
    /// are known to, by what the files tell of that, which is often a little behind.
    pub fn durable_sequence(&self) -> u64 {
        stop_guests();
        self.engine.context.log.as_ref().map_or_else(|| self.seen_durable(), |log| log.durable_sequence())
    }

    /// Returns once all records up to this number survive a power loss. A number that no record was given yet is an
    /// error: for everything accepted so far there is [`sync`](Self::sync).
    pub fn wait_durable(&self, sequence: u64) -> Result<()> {
        let log = self.engine.context.log()?;
        let last = log.last_sequence();
        if sequence > last {
            return Err(Error::invalid(format!(
                "record {sequence} was never written, so it cannot be waited for: the last one has number {last}; call \
                 sync for everything accepted so far"
            )));
        }
        log.sync_to(sequence)
    }

    /// Makes everything accepted so far survive a power loss.
    pub fn sync(&self) -> Result<()> {
        self.engine.context.log()?.sync_to(u64::MAX)
    }

    /// Writes all buffered records to files, including those that tables of layout `range-merge` keep in memory, so
    /// that the next opening reads no log.
    pub fn flush(&self) -> Result<()> {
        self.engine.background.flush_to_files().map(drop)
    }

    /// Writes all buffered records to lists, and returns once background work has nothing left to do: nodes are within
    /// their limits, and lists that were never merged are merged. This happens by itself once no write has come for a
    /// second. Call it to know when it is done, for instance between a load and many lookups.
    pub fn wait_until_idle(&self) -> Result<()> {
        self.engine.background.wait_until_idle()
    }

    /// A copy of the database as it is now, in a new directory on the same file system: lists are linked, not copied.
    /// Tree files of layout `jungle` are copied up to the newest version, dead bytes included (up to C times the live
    /// ones), because both databases append to them from then on. Writes go on. The copy has no savepoints. Returns the
    /// files that it has, so that who copies it elsewhere can leave out what an earlier one had;
    /// [`Backups`](crate::Backups) does that.
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<Checkpoint> {
        self.engine.history.checkpoint(path.as_ref())
    }

    /// Keeps all tables as they are now, inside the database, until [`drop_savepoint`](Self::drop_savepoint), across
    /// merges, dropped tables and restarts. Returns the number of the last record in it: everything accepted before the
    /// call is in it, and nothing later than that number. (Ingested entries have no number.) Writes go on. It takes a
    /// flush and one edit of the manifest; from then on it holds the files that it needs.
    pub fn savepoint(&self, name: &str) -> Result<u64> {
        refuse_guests()?;
        // Not amid the drop of windows or of a cube: it would lack some of their tables, and not know why.
        let _shared = self.engine.declared.read();
        self.engine.history.savepoint(name)
    }

    /// The savepoints, oldest first.
    pub fn savepoints(&self) -> Vec<SavepointStats> {
        stop_guests();
        self.engine.history.savepoints()
    }

    /// The database as it was at a savepoint, also when it is opened for reading only. [`Snapshot::table`] gives tables
    /// that were dropped since. Entries that have expired since are seen. The savepoint may be dropped, or rolled back
    /// to, meanwhile.
    pub fn open_savepoint(&self, name: &str) -> Result<Snapshot> {
        let (view, taken_at_milliseconds) = self.engine.history.view_savepoint(name)?;
        Ok(Snapshot::of(&self.engine, view, taken_at_milliseconds))
    }

    /// Makes all tables what they were at a savepoint, in records, layouts and options: at once and durably or, on an
    /// error or in a crash, not at all. Tables made since then go, tables dropped since then come back. This and the
    /// other savepoints stay, and snapshots keep what they see.
    ///
    /// Writers wait, and then write to the tables as they are after the rollback: handles stay valid. It takes a flush
    /// and one edit of the manifest, and a number, as a record would. A follower of the [feed of
    /// changes](Self::changes) gets [`Error::ChangesGone`] and needs a new copy. Refused while a table is being sorted
    /// into another order.
    pub fn rollback(&self, name: &str) -> Result<()> {
        refuse_guests()?;
        self.engine.context.refuse_followers()?;
        let _alone = self.engine.declared.write();
        self.engine.history.rollback(name)
    }

    /// Gives up a savepoint, and the files that only it needs. Snapshots that were opened of it can still be read.
    pub fn drop_savepoint(&self, name: &str) -> Result<()> {
        self.engine.history.drop_savepoint(name)
    }

    /// Reads every byte that is kept and checks it. `progress` gets the bytes that are done and the number of all. The
    /// report lists every fault with its file and offset.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<VerifyReport> {
        verify(&self.engine, progress)
    }

    /// What could not be read and was passed over so far, file by file, if the database was opened with
    /// [`Options::salvage`](crate::Options::salvage). Otherwise it is empty, because damage is an error then. Damage
    /// that no read has met yet is not known.
    pub fn damage(&self) -> Vec<Damage> {
        Damage::all(&self.engine.versions)
    }

    /// Reads from the device that lookups and scans have cost: [`Stats::device_reads`] alone, for callers that ask
    /// around every lookup.
    pub fn device_reads(&self) -> u64 {
        self.engine.context.metrics.page_reads.get()
    }

    /// Counters and gauges.
    pub fn stats(&self) -> Stats {
        stop_guests();
        Stats::of(&self.engine)
    }

    /// The tables' trees.
    pub fn describe(&self) -> Description {
        Description::of(&self.engine)
    }

    /// Makes everything durable and marks the database as closed in order, so that any later damage shows.
    ///
    /// Tables, snapshots, cursors and scans that are still held can be read: they show what they held when this was
    /// called. All their other calls are refused with an error and change no file, even if they were under way: writes,
    /// ingests, compactions, changes of layout, tables to be made.
    pub fn close(self) -> Result<()> {
        self.flush_for_want_of_log();
        self.shut()
    }

    /// Removes the database at `path`: its files, and the directory if it holds nothing else. Refuses a directory that
    /// is not a database, and one that is open.
    pub fn destroy(path: impl AsRef<Path>) -> Result<()> {
        destroy(&Env::real(), path.as_ref())
    }

    /// Shows what stands in the files of the database at `path`, entry by entry: its roots, the edits of its manifests,
    /// the commits in its log and their records, up to the first error of `see`. Nothing is opened, locked or changed, so
    /// it goes for a database that cannot be opened, and for one that is open; of the latter the last entries may be
    /// torn. What cannot be read is [shown as that](DumpedEntry::Unreadable), and so is what a
    /// [newer](DumpedEntry::Newer) build has made.
    ///
    /// ```no_run
    /// # use forebay::Database;
    /// Database::dump("/var/lib/app", &mut |entry| {
    ///     println!("{entry}");
    ///     Ok(())
    /// })?;
    /// # Ok::<(), forebay::Error>(())
    /// ```
    pub fn dump(path: impl AsRef<Path>, see: &mut dyn FnMut(Dumped) -> Result<()>) -> Result<()> {
        Self::dump_with(&Options::default(), path, see)
    }

    /// As [`dump`](Self::dump), in another environment.
    pub fn dump_in(env: &Env, path: &Path, see: &mut dyn FnMut(Dumped) -> Result<()>) -> Result<()> {
        Self::dump_with(&Options::default().env(env.clone()), path, see)
    }

    /// As [`dump`](Self::dump), in the environment of these options, and by the keys that they give. Of an encrypted
    /// database only its roots can be shown without.
    pub fn dump_with(
        options: &Options,
        path: impl AsRef<Path>,
        see: &mut dyn FnMut(Dumped) -> Result<()>,
    ) -> Result<()> {
        dump(options, path.as_ref(), see)
    }

    /// Closes the database and, if this [opening](Self::open) made it, removes it before another process can open it:
    /// for a caller whose work has failed. A database that was there before stays, with everything written to it.
    pub fn take_back(self) -> Result<()> {
        let engine = self.engine();
        let _lock = self.lock.lock().take();
        let closed = self.shut();
        match self.made {
            Made::Nothing => closed,
            // Whatever closing says, nothing is kept.
            made => made.take_back(engine.context.gate.behind(), &engine.context.dir),
        }
    }

    /// Leaves nothing to a log that is not to be written. Where it cannot, the log gets it.
    fn flush_for_want_of_log(&self) {
        let Context { options, .. } = &*self.engine.context;
        if !options.log && !options.read_only && !self.engine.context.is_closing() {
            let _ = self.flush();
        }
    }

    pub(super) fn shut(&self) -> Result<()> {
        #[cfg(feature = "async")]
        self.engine.deferred.close();
        let machines = std::mem::take(&mut *self.machines.lock());
        if self.engine.context.closing.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.engine.context.env.jobs.wake();
        machines.into_iter().for_each(Handle::join);
        self.engine.context.limit.leave();
        self.engine.memory.follow_share();
        let outcome = self.seal();
        if self.engine.has_readers() && !planted::is("files-cut-under-readers") {
            self.engine.versions.hold_files();
        }
        self.engine.context.lease.iter().for_each(Lease::give_back);
        // Tables and snapshots that are still held can read on; nothing writes any more, whatever they are asked for.
        if !planted::is("gate-left-open") {
            self.engine.versions.lock().manifest = None;
            self.engine.context.shut_gate();
        }
        self.lock.lock().take();
        outcome
    }

    /// Makes the log durable and notes the orderly close.
    fn seal(&self) -> Result<()> {
        let Some(log) = &self.engine.context.log else { return Ok(()) };
        if let Some(fatal) = self.engine.context.fatal() {
            return Err(fatal);
        }
        // Whoever makes a segment has one by now, or is refused.
        let _nobody_rotates = self.engine.writer.stop_rotating();
        let last_sequence = log.close()?;
        self.trim_segments()?;
        self.engine.versions.lists.trash.empty(&*self.engine.context.env.fs);
        let mut version_set = self.engine.versions.lock();
        let (owed, told) = (version_set.tell_feed(), version_set.keep_time(Duration::ZERO));
        // It may stand in the manifest all the same, behind what `CURRENT` would say of it.
        if let Some(fatal) = self.engine.context.fatal() {
            return Err(fatal);
        }
        // The next opening says it, to which this one was not closed in order.
        match owed {
            Err(error) if error.is_no_space() => return Ok(()),
            owed => owed?,
        }
        // Not for want of room: what was written is kept all the same.
        told.or_else(|error| if error.is_no_space() { Ok(()) } else { Err(error) })?;
        let Some(manifest) = &mut version_set.manifest else { return Ok(()) };
        manifest.finish()?;
        let closed = manifest.current(Some(manifest.closed(last_sequence)));
        if !planted::is("gate-left-open") {
            // So that what `CURRENT` says of it stays true.
            version_set.manifest = None;
        }
        closed.write(&*self.engine.context.env.fs, &self.engine.context.dir).map_err(AppendError::into_cause)
    }

    /// Leaves no byte in the log that nothing checks: what sealed segments reserved and did not use, the
    /// segment that was ready, and the one kept for recycling.
    fn trim_segments(&self) -> Result<()> {
        self.engine.versions.give_back_kept();
        let Context { env, dir, .. } = &*self.engine.context;
        let mut segments: Vec<(u64, u64)> = {
            let version_set = self.engine.versions.lock();
            let needed = version_set.retained.range(version_set.log.low.0..);
            needed.map(|(segment, held)| (*segment, held.bytes)).collect()
        };
        let state = self.engine.versions.state();
        segments.extend(state.sealed.iter().map(|buffer| (buffer.segment(), buffer.len() as u64)));
        for (segment, bytes) in segments {
            let file = env.fs.open(&names::log(dir, segment), Access::Buffered)?;
            if file.len()? > bytes {
                file.set_len(bytes)?;
                file.sync()?;
            }
        }
        let next = self.engine.writer.take_next_segment().map(|next| next.id());
        for unused in next.into_iter().chain(self.engine.versions.take_spare_segment()) {
            // What cannot be removed now is removed at the next open.
            let _ = env.fs.remove(&names::log(dir, unused));
        }
        Ok(())
    }
}

/// See [`Database::drop_table`].
pub(crate) fn drop_table(engine: &Engine, name: &str) -> Result<()> {
    refuse_guests()?;
    engine.context.refuse_followers()?;
    // A savepoint that is being taken would lack the table, and what was written before it went.
    let _one_at_a_time = engine.versions.bringing_in.lock();
    let version_set = engine.versions.lock();
    let state = engine.versions.state();
    let found = state.table_named(name).filter(|table| !table.is_hidden());
    let table = found.ok_or_else(|| engine.context.no_table(name))?;
    drop_found(engine, version_set, table)
}

/// Drops the table of this number, if it is there. Returns whether it was.
pub(crate) fn drop_numbered(engine: &Engine, id: u32) -> Result<bool> {
    engine.context.refuse_followers()?;
    drop_followed(engine, id)
}

/// The same, as the database does that this one follows.
pub(crate) fn drop_followed(engine: &Engine, id: u32) -> Result<bool> {
    let _one_at_a_time = engine.versions.bringing_in.lock();
    let version_set = engine.versions.lock();
    let state = engine.versions.state();
    let found = state.tables.get(&id).map(|table| drop_found(engine, version_set, table));
    found.transpose().map(|dropped| dropped.is_some())
}

fn drop_found(engine: &Engine, mut version_set: VersionSetGuard<'_>, table: &TableState) -> Result<()> {
    version_set.append(&Edit::DropTable(table.id))?;
    yield_point("drop is durable");
    engine.versions.update_beside_log(|state| state.tables.remove(table.id));
    version_set.refer(table.version.files().into_iter().map(|file| (file, -1)).collect());
    version_set.forget_nodes(table.id);
    engine.versions.weigh();
    version_set.weigh_savepoints();
    engine.background.flush_again();
    Ok(())
}
