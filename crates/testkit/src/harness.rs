//! A database beside its model: does each operation on both and compares.
//!
//! **Invariant:** the model holds exactly what the engine has numbered, errors or not: a batch whose write failed
//! counts if it has got a sequence number, because then it is visible and may survive. Of what has an effect whole or
//! not at all, and failed, `other` has the model with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use forebay::{Database, Durability, Error, Result, Snapshot};
use forebay_env::Env;

use crate::beside::Reader;
use crate::check::View;
use crate::following::Following;
use crate::groups::{Groups, OWN_RECORDS_MAX};
use crate::seen::{Kept, Shown, Time};
use crate::{ASIDE, Config, Model, Op, Query, Tables, Wall, name_of};

/// A snapshot, what it must show, and the handles to ask with.
pub(crate) struct Taken {
    pub(crate) snapshot: Snapshot,
    pub(crate) seen: Vec<Kept>,
    pub(crate) groups: Groups,
    pub(crate) tables: Tables,
}

pub(crate) struct Open {
    // Dropped in this order: the database last, so that its lock is free when all of this is gone.
    pub(crate) snapshots: Vec<Taken>,
    pub(crate) tables: Tables,
    pub(crate) db: Database,
    /// The number of the last record that was found.
    pub(crate) recovered: u64,
}

/// A database beside its model.
pub struct Harness {
    /// What it runs in.
    pub env: Env,
    /// Its options.
    pub config: Config,
    /// What it must hold.
    pub model: Model,
    /// What it may hold instead, as something failed that has an effect or none.
    pub other: Option<Model>,
    /// The wall clock, where that can be set.
    pub wall: Option<Arc<Wall>>,
    /// Whether the disk may fail now.
    pub may_fail: bool,
    /// Whether there is a transaction, which holds what it sees.
    pub(crate) is_transacting: bool,
    /// How many transactions have conflicted.
    pub conflicts: u64,
    pub(crate) dir: PathBuf,
    pub(crate) open: Option<Open>,
    /// A reader beside it.
    pub(crate) reader: Option<Reader>,
    /// Checkpoints that are not compared yet.
    pub(crate) copies: Vec<(PathBuf, Model)>,
    /// A copy that follows.
    pub(crate) following: Following,
    /// Handles of before the last times it was opened.
    pub(crate) stale: Vec<Tables>,
    /// Snapshots of then.
    pub(crate) kept: Vec<Taken>,
    /// When savepoints were taken.
    pub(crate) taken_at: BTreeMap<String, Time>,
    /// The highest that the engine's clock ever was, in milliseconds since 1970.
    pub(crate) highest: u64,
    /// What it was when the database was closed last.
    closed_at: u64,
    /// Records that making groups may have written of which the model knows nothing.
    pub(crate) unknown_max: u64,
    /// By how much it went on, at most, while something was brought in that expires.
    pub(crate) slack_milliseconds: u64,
}

impl Harness {
    /// Opens or makes the database; it must hold what the model holds.
    pub fn new(env: Env, config: Config, dir: &Path) -> Result<Self> {
        let mut harness = Self::closed(env, config, dir);
        harness.open()?;
        harness.adopt();
        Ok(harness)
    }

    /// A harness whose database is not open yet.
    pub fn closed(env: Env, config: Config, dir: &Path) -> Self {
        let model = Model::new(config.merging);
        Self {
            env,
            config,
            model,
            other: None,
            wall: None,
            may_fail: false,
            is_transacting: false,
            conflicts: 0,
            dir: dir.to_path_buf(),
            open: None,
            reader: None,
            copies: Vec::new(),
            following: Following::default(),
            stale: Vec::new(),
            kept: Vec::new(),
            taken_at: BTreeMap::new(),
            highest: 0,
            closed_at: 0,
            unknown_max: 0,
            slack_milliseconds: 0,
        }
    }

    /// Goes on in another environment: the machine was started anew. Call `open` then.
    pub fn restart(&mut self, env: Env) {
        self.env = env;
    }

    /// Where it lies.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The open database.
    pub fn db(&self) -> &Database {
        &self.opened().db
    }

    /// Its tables.
    pub fn tables(&self) -> &Tables {
        &self.opened().tables
    }

    pub(crate) fn opened(&self) -> &Open {
        self.open.as_ref().expect("the database is open")
    }

    /// Opens the database.
    pub fn open(&mut self) -> Result<()> {
        self.look_at_the_clock();
        let db = self.config.open(&self.env, &self.dir)?;
        // Background work may meet tables whose rules are not known yet.
        let steps = self.model.last_sequence() as usize % 40;
        let recovered = db.last_sequence();
        self.unknown_max += self.config.groupings.as_ref().map_or(0, |_| OWN_RECORDS_MAX);
        let tables = Tables::open_after(&db, &self.config, || self.env.jobs.step_some(steps))?;
        self.open = Some(Open { snapshots: Vec::new(), tables, db, recovered });
        Ok(())
    }

    /// Takes what opening has written for known.
    pub(crate) fn adopt(&mut self) {
        self.model.adopt(self.db().last_sequence(), Vec::new());
        self.unknown_max = 0;
    }

    /// Drops the handles and the database. The error is that of closing in order.
    pub fn close(&mut self) -> Result<()> {
        self.note_close();
        let Some(Open { snapshots, tables, db, .. }) = self.open.take() else { return Ok(()) };
        drop((snapshots, tables));
        db.close()
    }

    /// Notes how late it is when the database is closed.
    pub(crate) fn note_close(&mut self) {
        self.closed_at = self.engine_time();
    }

    /// Drops everything as it is, as when the process dies.
    pub fn abandon(&mut self) {
        self.env.jobs.abandon();
        self.stale.clear();
        self.kept.clear();
        self.reader = None;
        self.open = None;
    }

    /// Compares everything.
    pub fn check_all(&self) -> Result<()> {
        let view = View { tables: self.tables(), config: &self.config, snapshot: None };
        (0..self.config.tables()).try_for_each(|table| view.check_all(table, &self.shown(table)))?;
        self.check_groups(self.model.now().groups())
    }

    /// What a table must show now.
    pub(crate) fn shown(&self, table: usize) -> Shown<'_> {
        Shown::of(&self.config, self.model.now(), table, self.time())
    }

    /// What time it is by which entries expire, in milliseconds since 1970.
    pub(crate) fn engine_time(&self) -> u64 {
        match &self.open {
            Some(open) => open.db.unix_milliseconds(),
            None => self.env.clock.unix_milliseconds(),
        }
    }

    pub(crate) fn time(&self) -> Time {
        let now = self.engine_time();
        Time { now: now - self.slack_milliseconds, highest: self.highest.max(now) }
    }

    /// Notes how late it is: background work may do what is due by now.
    pub fn look_at_the_clock(&mut self) -> u64 {
        let now = self.engine_time();
        self.highest = self.highest.max(now);
        now
    }

    /// Does an operation on both and compares.
    pub fn apply(&mut self, op: &Op) -> Result<()> {
        self.look_at_the_clock();
        let outcome = self.act(op);
        self.look_at_the_clock();
        if let Some(open) = &self.open {
            // Where it failed midway, some of its own records may be there that nobody has taken note of.
            let noted = if outcome.is_ok() { u64::MAX } else { self.model.last_sequence() };
            self.model.acknowledge(open.db.durable_sequence().min(noted), Durability::Disk);
        }
        outcome
    }

    pub(crate) fn act(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::Commit(changes, durability) => self.commit(changes, *durability),
            Op::Read(table, query) => self.read(*table, query),
            Op::Snapshot => self.take_snapshot(),
            Op::ReadSnapshot(table, query) => self.read_snapshots(*table, query),
            Op::DropSnapshot => {
                let open = self.open.as_mut().expect("the database is open");
                let oldest = if self.kept.is_empty() { &mut open.snapshots } else { &mut self.kept };
                if !oldest.is_empty() {
                    drop(oldest.remove(0));
                }
                Ok(())
            }
            Op::Sync => {
                self.db().sync()?;
                self.model.acknowledge(self.model.last_sequence(), Durability::Disk);
                Ok(())
            }
            Op::Flush => self.unless_held(self.db().flush()),
            Op::WaitUntilIdle => self.unless_held(self.db().wait_until_idle()),
            Op::Compact(table) => self.unless_held(self.tables().compact(*table)),
            Op::Turn(table, layout, meanwhile) => self.turn(*table, *layout, meanwhile),
            Op::Checkpoint | Op::Fork => {
                let copy = self.checkpoint()?;
                self.copies.push(copy);
                Ok(())
            }
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
            Op::Wait(milliseconds) => self.wait(*milliseconds),
            Op::Transact(acts, durability) => {
                self.is_transacting = true;
                let outcome = self.transact(acts, *durability);
                self.is_transacting = false;
                outcome
            }
            Op::Swap(table, key, expected, new) => self.swap(*table, key, *expected, new.as_deref()),
            Op::Update(table, key, more) => self.update(*table, key, more),
            Op::Life(table, key, life) => self.change_life(*table, key, life),
            other => self.act_wide(other),
        }
    }

    /// Lets time pass. What was written before the last sync in the background was due is durable then.
    fn wait(&mut self, milliseconds: u64) -> Result<()> {
        self.env.jobs.advance(Duration::from_millis(milliseconds));
        if self.config.log && self.config.aside.is_some() && milliseconds >= 200 {
            self.env.jobs.step_some(3000);
            if self.may_fail && self.db().durable_sequence() < self.model.last_sequence() {
                // A write that fails is tried again a little later.
                self.env.jobs.advance(Duration::from_secs(1));
                self.env.jobs.step_some(3000);
            }
            let (durable, last) = (self.db().durable_sequence(), self.model.last_sequence());
            if durable < last {
                self.db().sync()?;
                panic!("{milliseconds} ms later only {durable} of {last} is durable, and nothing has failed");
            }
            self.check_log()?;
        }
        Ok(())
    }

    /// What is merged, or in memory, may have no room beside what snapshots hold.
    pub(crate) fn unless_held(&self, outcome: Result<()>) -> Result<()> {
        match outcome {
            Err(Error::NoSpace { .. }) if self.holds_files() => Ok(()),
            outcome => outcome,
        }
    }

    /// Whether files are held that a merge would free: then there may be no room within a table's bound.
    pub(crate) fn holds_files(&self) -> bool {
        let others = self.is_transacting || self.reader.is_some();
        others || !self.opened().snapshots.is_empty() || !self.kept.is_empty()
    }

    fn read(&self, table: usize, query: &Query) -> Result<()> {
        let view = View { tables: self.tables(), config: &self.config, snapshot: None };
        view.check(table, &self.shown(table), query)
    }

    fn take_snapshot(&mut self) -> Result<()> {
        let seen = (0..self.config.tables()).map(|table| self.shown(table).kept()).collect();
        let open = self.open.as_mut().expect("the database is open");
        let (snapshot, tables) = (open.db.snapshot(), open.tables.clone());
        let groups = self.model.now().groups().clone();
        open.snapshots.push(Taken { snapshot, seen, groups, tables });
        Ok(())
    }

    fn read_snapshots(&self, table: usize, query: &Query) -> Result<()> {
        for Taken { snapshot, seen, tables, .. } in &self.opened().snapshots {
            let view = View { tables, config: &self.config, snapshot: Some(snapshot) };
            view.check(table, &seen[table].shown(), query)?;
        }
        for Taken { snapshot, seen, tables, .. } in &self.kept {
            // Of the tables of today it knows nothing.
            if let Some(plain) = self.tables().plain(table) {
                assert!(
                    snapshot.get(plain, b"k").is_err(),
                    "a snapshot of before answers for a table of now"
                );
            }
            let view = View { tables, config: &self.config, snapshot: Some(snapshot) };
            match view.check(table, &seen[table].shown(), query) {
                // What it may not keep open beyond the close may be removed since.
                Err(error) if self.config.open_files_max.is_some() && error.is_not_found() => {}
                outcome => outcome?,
            }
        }
        Ok(())
    }

    pub(crate) fn open_again(&mut self) -> Result<()> {
        let last = self.model.last_sequence();
        self.model.acknowledge(last, Durability::Disk);
        self.open()?;
        assert_eq!(self.opened().recovered, last, "the last sequence number after closing in order");
        let is_there = self.db().tables().iter().any(|(name, _)| *name == name_of(ASIDE));
        let expires = is_there && self.config.time_to_live(ASIDE).is_some();
        assert!(
            !expires || self.may_fail || self.engine_time() >= self.closed_at,
            "it was later when the database was closed in order"
        );
        self.adopt();
        Ok(())
    }
}

/// When something expires that lives so long from now, in milliseconds since 1970.
pub(crate) fn after(now: u64, ttl: Duration) -> u64 {
    now.saturating_add(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX))
}

/// What is stored of a value that expires then.
pub(crate) fn until(value: &[u8], expiry: u64) -> Vec<u8> {
    [value, &expiry.to_le_bytes()].concat()
}

impl Drop for Harness {
    fn drop(&mut self) {
        // While a check's panic unwinds, closing in order could wait for work that never gets done.
        if std::thread::panicking() {
            self.env.jobs.abandon();
        }
    }
}
