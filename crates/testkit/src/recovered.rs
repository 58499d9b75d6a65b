//! What is there after a crash, and in copies.

use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay::{Backups, Database, Durability, Result};
use forebay_env::{Env, FileSystem};

use crate::check::{View, holds};
use crate::groups::{GroupsView, OWN_RECORDS_MAX};
use crate::seen::{Shown, Time};
use crate::{Harness, Model, Tables};

/// Seconds until what is over that must have gone to files.
const ROUNDS_TO_IDLE: usize = 30;

impl Harness {
    /// One that is not open yet, of a copy that holds this; it knows of the clock what this one knows.
    pub fn twin(&self, env: Env, dir: &Path, model: Model) -> Self {
        let mut twin = Self::closed(env, self.config.clone(), dir);
        (twin.model, twin.wall) = (model, self.wall.clone());
        twin.unknown_max = self.unknown_max;
        (twin.highest, twin.slack_milliseconds) = (self.highest, self.slack_milliseconds);
        twin
    }

    /// Holds what was recovered against what was promised: after a loss of the process (`Os`) or of power (`Disk`).
    /// Returns the number of the last record.
    pub fn recovered(&mut self, loss: Durability) -> Result<u64> {
        let sequence = self.opened().recovered;
        self.adopt_unknown(sequence);
        if let Some(other) = &self.other
            && !self.fits(&self.model, sequence, loss)?
            && self.fits(other, sequence, loss)?
        {
            self.model = other.clone();
        }
        let kept = self.model.kept_by(loss);
        assert!(sequence >= kept, "recovered only to {sequence}; {kept} was acknowledged");
        let last = self.model.last_sequence();
        assert!(sequence <= last, "recovered to {sequence}; only {last} was written");
        self.model.roll_back(sequence, loss);
        self.model.acknowledge(self.db().durable_sequence().min(sequence), Durability::Disk);
        self.other = None;
        self.adopt();
        self.assert_savepoints();
        Ok(sequence)
    }

    /// Where recovery ended among records that openings before this one wrote of their own, they are known from here on.
    pub(crate) fn adopt_unknown(&mut self, sequence: u64) {
        // Those of this opening came behind.
        let unknown_max = self.unknown_max.saturating_sub(OWN_RECORDS_MAX);
        for model in [Some(&mut self.model), self.other.as_mut()].into_iter().flatten() {
            let last = model.last_sequence();
            if (last + 1..=last + unknown_max).contains(&sequence) {
                model.adopt(sequence, Vec::new());
            }
        }
    }

    pub(crate) fn assert_savepoints(&self) {
        let there = self.model.savepoints().keys().cloned().collect::<Vec<_>>();
        assert_eq!(self.names_kept(), there, "savepoints");
    }

    fn fits(&self, model: &Model, sequence: u64, loss: Durability) -> Result<bool> {
        if !model.may_end_at(sequence) || sequence < model.kept_by(loss) {
            return Ok(false);
        }
        let mut model = model.clone();
        model.roll_back(sequence, loss);
        for table in 0..self.config.tables() {
            let shown = Shown::of(&self.config, model.now(), table, self.time());
            if !holds(self.tables(), table, &shown)? {
                return Ok(false);
            }
        }
        if let Some(handles) = self.tables().groups()
            && !(GroupsView { handles, snapshot: None }).holds(model.now().groups())?
        {
            return Ok(false);
        }
        // Tables that hold the same may be different ones: only the feed tells of which of them it speaks.
        Ok(self.names_kept().iter().eq(model.savepoints().keys()) && self.misfed(&model)?.is_none())
    }

    fn names_kept(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.db().savepoints().into_iter().map(|savepoint| savepoint.name).collect();
        names.sort();
        names
    }

    /// A directory for a copy, which is not there yet.
    pub(crate) fn new_copy(&self) -> Result<PathBuf> {
        let mut number = 0;
        loop {
            let dir = self.dir.with_file_name(format!("copy-{number}"));
            if !self.env.fs.exists(&dir)? {
                return Ok(dir);
            }
            number += 1;
        }
    }

    /// Copies the database, now and then by a backup, or by a copy that has followed. Returns where to, and what the copy
    /// must hold.
    pub(crate) fn checkpoint(&mut self) -> Result<(PathBuf, Model)> {
        if let Some(copy) = self.follow()? {
            return Ok(copy);
        }
        let dir = self.new_copy()?;
        if !self.following.turns.is_multiple_of(3) {
            self.db().checkpoint(&dir)?;
            return Ok((dir, self.model.copied()));
        }
        let backups = Backups::open_in(&self.env, self.dir.with_file_name("backups"))?;
        let taken = backups.take(self.db())?;
        let model = self.model.copied();
        backups.restore(taken.number, &dir)?;
        backups.keep(2)?;
        Ok((dir, model))
    }

    /// The log goes back no further than tables may keep of it in memory, however idle they are.
    pub(crate) fn check_log(&self) -> Result<()> {
        let is_bounded = self.config.max_space_amplification.iter().any(Option::is_some);
        if self.may_fail || is_bounded || self.config.keep_changes_bytes > 0 || self.reader.is_some() {
            return Ok(());
        }
        // One is retired and waits to be used again.
        let most = self.config.held_segments_max() + self.config.write_buffers_max() + 2;
        let mut segments = 0;
        for _ in 0..ROUNDS_TO_IDLE {
            let names = self.env.fs.list(&self.dir)?;
            segments = names.iter().filter(|name| name.ends_with(".log")).count();
            if segments <= most {
                return Ok(());
            }
            self.env.jobs.advance(Duration::from_secs(1));
            self.env.jobs.step_some(3000);
        }
        self.db().sync()?;
        panic!("{segments} log segments stay, of {most} at most");
    }

    /// Compares all checkpoints with what the database held when they were made, and removes them.
    pub fn check_copies(&mut self) -> Result<()> {
        while let Some((dir, model)) = self.copies.pop() {
            let db = Database::open(&dir, self.config.options(&self.env).read_only(true))?;
            let tables = Tables::open(&db, &self.config)?;
            let view = View { tables: &tables, config: &self.config, snapshot: None };
            // It has a clock of its own, which knows nothing of what was later than the copy.
            let time = Time { now: db.unix_milliseconds(), ..self.time() };
            for table in 0..self.config.tables() {
                view.check_all(table, &Shown::of(&self.config, model.now(), table, time))?;
            }
            if let Some(handles) = tables.groups() {
                GroupsView { handles, snapshot: None }.check_all(model.now().groups())?;
            }
            let problems = db.verify(&mut |_, _| ())?.problems;
            // Where the power has gone meanwhile nothing can be read.
            self.env.fs.exists(&dir)?;
            assert_eq!(problems, Vec::<String>::new(), "a checkpoint does not verify");
            drop((tables, db));
            remove_all(&*self.env.fs, &dir)?;
        }
        Ok(())
    }
}

pub(crate) fn remove_all(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    fs.list(dir)?.iter().try_for_each(|name| fs.remove(&dir.join(name)))?;
    fs.remove_dir(dir)
}
