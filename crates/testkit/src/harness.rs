//! A database beside its model: does each operation on both and compares.
//!
//! **Invariant:** the model holds exactly what the engine has numbered, errors or not: a batch whose write
//! failed counts if it has got a sequence number, because then it is visible and may survive.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use forebay::env::{Env, FileSystem};
use forebay::{Batch, Database, Durability, Error, Layout, Result, Snapshot};

use crate::check::{Seen, View, assert_checkpoint, assert_same};
use crate::{Change, Config, Model, Op, Query, Tables, Write};

struct Open {
    // Dropped in this order: the database last, so that its lock is free when all of this is gone.
    snapshots: Vec<(Snapshot, Seen)>,
    tables: Tables,
    db: Database,
}

/// A database beside its model.
pub struct Harness {
    /// What it runs in.
    pub env: Env,
    /// Its options.
    pub config: Config,
    /// What it must hold.
    pub model: Model,
    dir: PathBuf,
    open: Option<Open>,
    /// Checkpoints that are not compared yet.
    copies: Vec<(PathBuf, Seen)>,
}

impl Harness {
    /// Opens or makes the database; it must hold what the model holds.
    pub fn new(env: Env, config: Config, dir: &Path) -> Result<Self> {
        let mut harness = Self::closed(env, config, dir);
        harness.open()?;
        Ok(harness)
    }

    /// A harness whose database is not open yet.
    pub fn closed(env: Env, config: Config, dir: &Path) -> Self {
        let model = Model::new(config.merging);
        Self { env, config, model, dir: dir.to_path_buf(), open: None, copies: Vec::new() }
    }

    /// Goes on in another environment: the machine was started anew. Call `open` then.
    pub fn restart(&mut self, env: Env) {
        self.env = env;
    }

    /// The open database.
    pub fn db(&self) -> &Database {
        &self.open.as_ref().expect("the database is open").db
    }

    /// Its tables.
    pub fn tables(&self) -> &Tables {
        &self.open.as_ref().expect("the database is open").tables
    }

    /// Opens the database.
    pub fn open(&mut self) -> Result<()> {
        let db = self.config.open(&self.env, &self.dir)?;
        // Background work may meet tables whose rules are not known yet.
        self.env.jobs.step_some(self.model.last_sequence() as usize % 40);
        let tables = Tables::open(&db, &self.config)?;
        self.open = Some(Open { snapshots: Vec::new(), tables, db });
        Ok(())
    }

    /// Drops the handles and the database. The error is that of closing in order.
    pub fn close(&mut self) -> Result<()> {
        let Some(Open { snapshots, tables, db }) = self.open.take() else { return Ok(()) };
        drop(snapshots);
        drop(tables);
        db.close()
    }

    /// Drops everything as it is, as when the process dies.
    pub fn abandon(&mut self) {
        self.env.jobs.abandon();
        self.open = None;
    }

    /// Compares everything.
    pub fn check_all(&self) -> Result<()> {
        assert_same(self.tables(), &self.config, &self.seen())
    }

    /// Does an operation on both and compares.
    pub fn apply(&mut self, op: &Op) -> Result<()> {
        let outcome = self.act(op);
        if let Some(open) = &self.open {
            self.model.acknowledge(open.db.durable_sequence(), Durability::Disk);
        }
        outcome
    }

    fn act(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::Commit(changes, durability) => self.commit(changes, *durability),
            Op::Read(table, query) => self.read(*table, query),
            Op::Snapshot => {
                let contents = self.seen();
                let open = self.open.as_mut().expect("the database is open");
                open.snapshots.push((open.db.snapshot(), contents));
                Ok(())
            }
            Op::ReadSnapshot(table, query) => self.read_snapshots(*table, query),
            Op::DropSnapshot => {
                let open = self.open.as_mut().expect("the database is open");
                if !open.snapshots.is_empty() {
                    drop(open.snapshots.remove(0));
                }
                Ok(())
            }
            Op::Sync => {
                self.db().sync()?;
                self.model.acknowledge(self.model.last_sequence(), Durability::Disk);
                Ok(())
            }
            Op::Flush => self.db().flush(),
            Op::Compact(table) => self.tables().compact(*table),
            Op::SetLayout(layout) => self.tables().set_layout(*layout),
            Op::Turn(table, layout) => self.turn(*table, *layout),
            Op::Checkpoint => self.checkpoint(),
            Op::Reopen => self.reopen(),
            Op::Verify => {
                let report = self.db().verify(&mut |_, _| ())?;
                match report.problems.first() {
                    Some(problem) => Err(Error::Invalid(format!("verify found: {problem}"))),
                    None => self.check_changes(),
                }
            }
            Op::Step(steps) => {
                self.env.jobs.step_some(*steps);
                Ok(())
            }
            Op::Wait(milliseconds) => {
                self.env.jobs.advance(Duration::from_millis(*milliseconds));
                Ok(())
            }
        }
    }

    /// Gives a table the other order, and then its own again.
    fn turn(&self, table: usize, ordered: Layout) -> Result<()> {
        let Some(plain) = self.tables().plain(table) else { return Ok(()) };
        let before = plain.layout()?;
        plain.set_layout(if before.is_ordered() { Layout::write_buffer() } else { ordered })?;
        let view = View { tables: self.tables(), config: &self.config, snapshot: None };
        view.check_turned(table, self.model.table(table))?;
        plain.set_layout(before)
    }

    /// Writes a batch, and tells the model what became of it.
    pub fn commit(&mut self, changes: &[Change], durability: Durability) -> Result<()> {
        let mut batch = Batch::new();
        changes.iter().for_each(|change| self.tables().push(&mut batch, change));
        let mut records = batch.len() as u64;
        let outcome = match changes.last() {
            Some(Change { table, write: Write::Metadata(bytes), .. }) => {
                records += 1;
                self.tables().aggregator(*table).commit(batch, durability, bytes)
            }
            _ => self.db().write(&mut batch, durability),
        };
        let numbered = self.db().last_sequence();
        if numbered > self.model.last_sequence() {
            self.model.accept(numbered, records, changes.to_vec());
        }
        let sequence = outcome?;
        assert_eq!(sequence, self.model.last_sequence(), "the number of an acknowledged batch");
        self.model.acknowledge(sequence, durability);
        Ok(())
    }

    /// The feed of changes goes to the end without a gap; from the very beginning, where all of it is kept.
    fn check_changes(&self) -> Result<()> {
        let last = self.model.last_sequence();
        let since = if self.config.keep_changes_bytes == u64::MAX { last.min(1) } else { 0 };
        let mut seen = None;
        for batch in self.db().changes(since)? {
            seen = Some(batch?.last_sequence);
        }
        assert!(seen.is_none_or(|seen| seen == last), "changes up to {seen:?} of {last}");
        Ok(())
    }

    fn read(&self, table: usize, query: &Query) -> Result<()> {
        let view = View { tables: self.tables(), config: &self.config, snapshot: None };
        view.check(table, self.model.table(table), self.model.metadata()[table].as_deref(), query)
    }

    /// What there is now.
    fn seen(&self) -> Seen {
        Seen { tables: self.model.tables().clone(), metadata: self.model.metadata().clone() }
    }

    fn read_snapshots(&self, table: usize, query: &Query) -> Result<()> {
        let open = self.open.as_ref().expect("the database is open");
        for (snapshot, seen) in &open.snapshots {
            let view = View { tables: &open.tables, config: &self.config, snapshot: Some(snapshot) };
            view.check(table, &seen.tables[table], seen.metadata[table].as_deref(), query)?;
        }
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<()> {
        let fs = Arc::clone(&self.env.fs);
        let mut number = 0;
        let dir = loop {
            let dir = self.dir.with_file_name(format!("copy-{number}"));
            if !fs.exists(&dir)? {
                break dir;
            }
            number += 1;
        };
        self.db().checkpoint(&dir)?;
        let seen = self.seen();
        self.copies.push((dir, seen));
        Ok(())
    }

    /// Compares all checkpoints with what the database held when they were made, and removes them.
    pub fn check_copies(&mut self) -> Result<()> {
        while let Some((dir, contents)) = self.copies.pop() {
            assert_checkpoint(&self.env, &self.config, &dir, &contents)?;
            remove_all(&*self.env.fs, &dir)?;
        }
        Ok(())
    }

    fn reopen(&mut self) -> Result<()> {
        self.close()?;
        let last = self.model.last_sequence();
        self.model.acknowledge(last, Durability::Disk);
        self.open()?;
        assert_eq!(self.db().last_sequence(), last, "the last sequence number after closing in order");
        Ok(())
    }
}

fn remove_all(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    fs.list(dir)?.iter().try_for_each(|name| fs.remove(&dir.join(name)))?;
    fs.remove_dir(dir)
}

impl Drop for Harness {
    fn drop(&mut self) {
        // While a check's panic unwinds, closing in order could wait for work that never gets done.
        if std::thread::panicking() {
            self.env.jobs.abandon();
        }
    }
}
