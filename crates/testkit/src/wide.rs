//! What only a wide draw does: savepoints, entries from the side, other orders, handles of before, tables made again.

use std::cell::RefCell;
use std::time::Duration;

use forebay::{Batch, Durability, Error, Layout, Result};

use crate::check::View;
use crate::config::ASIDE;
use crate::groups::OWN_RECORDS_MAX;
use crate::harness::{Harness, Open, until};
use crate::seen::{Shown, Time};
use crate::{Change, Merging, Model, Op, Query, Stale, Tables, Write, name_of};

/// Generations of handles that are kept, and snapshots of theirs.
const KEPT_MAX: usize = 3;

impl Harness {
    pub(crate) fn act_wide(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::Rewrite(table, what) => self.unless_held(self.tables().rewrite(*table, *what)),
            Op::CompactRange(table, bounds) => self.unless_held(self.tables().compact_range(*table, bounds)),
            Op::Rate(bytes) => match &self.config.pool {
                Some(pool) => pool.set_background_rate(*bytes),
                None => self.db().set_background_rate(*bytes),
            },
            Op::Clock(by) => {
                if let Some(wall) = &self.wall {
                    wall.jump(*by);
                }
                Ok(())
            }
            Op::SetLayout(layout) => unless_refused(self.tables().set_layout(*layout)),
            Op::SetLayoutAside(layout) => unless_refused(self.tables().set_layout_aside(*layout)),
            Op::Alter(table, altered) => self.alter(*table, altered),
            Op::Keys(renews) if self.config.is_encrypted => match renews {
                true => self.db().renew_data_key(),
                false => self.db().wrap_data_keys(),
            },
            Op::Savepoint(name) => self.keep(name),
            Op::ReadSavepoint(name, table, query) => self.read_savepoint(name, *table, query),
            Op::Rollback(name) => self.restore(name),
            Op::DropSavepoint(name) if self.model.savepoints().contains_key(name) => {
                let outcome = self.db().drop_savepoint(name);
                self.whole(outcome, |model| model.forget(name))
            }
            Op::Ingest(table, entries) => self.ingest(*table, entries),
            Op::ReopenKeeping => self.reopen_keeping(),
            Op::ReadBeside(act) => self.read_beside(*act),
            Op::ReadGroups(seen, times, query) => self.read_groups(seen, times.as_ref(), query),
            Op::Expire(now, beside) => self.expire(*now, beside),
            Op::RenewGroups(table) => self.renew_groups(*table),
            Op::Stale(stale) => {
                self.use_stale(stale);
                Ok(())
            }
            Op::Renew if self.config.aside.is_some() => {
                let outcome = self.db().drop_table(&name_of(ASIDE));
                self.whole(outcome, |model| model.renew(ASIDE))?;
                self.open_tables()
            }
            _ => Ok(()),
        }
    }

    /// What has an effect whole or not at all was done. Where it failed, recovery tells which.
    pub(crate) fn whole(&mut self, outcome: Result<()>, effect: impl FnOnce(&mut Model)) -> Result<()> {
        let mut after = self.model.clone();
        effect(&mut after);
        match &outcome {
            Ok(()) => self.model = after,
            // Refused.
            Err(Error::Invalid(_)) => {}
            Err(_) => self.other = Some(after),
        }
        outcome
    }

    pub(crate) fn open_tables(&mut self) -> Result<()> {
        let open = self.open.as_mut().expect("the database is open");
        self.unknown_max += self.config.groupings.as_ref().map_or(0, |_| OWN_RECORDS_MAX);
        open.tables = Tables::open(&open.db, &self.config)?;
        self.adopt();
        Ok(())
    }

    fn keep(&mut self, name: &str) -> Result<()> {
        if self.model.savepoints().contains_key(name) {
            assert!(
                matches!(self.db().savepoint(name), Err(Error::Invalid(_))),
                "a savepoint `{name}` again"
            );
            return Ok(());
        }
        match self.take_savepoint(name) {
            Ok(None) => Ok(()),
            outcome => {
                if let Ok(Some(sequence)) = &outcome {
                    assert_eq!(*sequence, self.model.last_sequence(), "the last record of a savepoint");
                }
                self.whole(outcome.map(drop), |model| model.keep(name))
            }
        }
    }

    /// Takes a savepoint, unless that is refused. Returns the number of its last record.
    pub(crate) fn take_savepoint(&mut self, name: &str) -> Result<Option<u64>> {
        let before = self.time();
        let outcome = self.db().savepoint(name);
        let highest = self.look_at_the_clock().max(self.highest);
        self.taken_at.insert(name.to_owned(), Time { now: before.now, highest });
        match outcome {
            Err(Error::Invalid(reason)) if reason.contains("keeps records in memory") => Ok(None),
            Err(Error::NoSpace { .. }) if self.holds_files() => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    fn read_savepoint(&self, name: &str, table: usize, query: &Query) -> Result<()> {
        let Some(moment) = self.model.savepoints().get(name) else {
            assert!(self.db().open_savepoint(name).is_err(), "there is a savepoint `{name}`");
            return Ok(());
        };
        let snapshot = self.db().open_savepoint(name)?;
        let tables = self.tables().at(&snapshot, &self.config)?;
        let view = View { tables: &tables, config: &self.config, snapshot: Some(&snapshot) };
        view.check(table, &Shown::of(&self.config, moment, table, self.taken_at[name]), query)
    }

    fn restore(&mut self, name: &str) -> Result<()> {
        if !self.model.savepoints().contains_key(name) {
            assert!(self.db().rollback(name).is_err(), "a rollback to nothing");
            return Ok(());
        }
        let outcome = self.db().rollback(name);
        self.whole(outcome, |model| model.restore(name))?;
        // A table that was dropped since and made again is the old one now.
        self.open_tables()
    }

    fn ingest(&mut self, table: usize, entries: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        let Some(ordered) = self.tables().ordered(table) else { return Ok(()) };
        let is_timed = self.config.time_to_live(table).is_some_and(|ttl| ttl != Duration::MAX);
        if is_timed && self.config.merging[table] == Merging::Lives {
            // Time may pass meanwhile, and with it a window.
            return Ok(());
        }
        let before = self.engine_time();
        let owned = entries.to_vec();
        let outcome = ordered.ingest(owned.into_iter().map(Ok));
        let after = self.look_at_the_clock();
        let stored: Vec<_> = match self.config.usual_expiry(table, before) {
            Some(expiry) => {
                self.slack_milliseconds = self.slack_milliseconds.max(after.saturating_sub(before));
                entries.iter().map(|(key, value)| (key.clone(), until(value, expiry))).collect()
            }
            None => entries.to_vec(),
        };
        match outcome {
            Err(Error::Invalid(reason)) if reason.contains("takes in nothing but batches") => Ok(()),
            Err(Error::NoSpace { .. }) if self.holds_files() => Ok(()),
            outcome => {
                if let Ok(count) = &outcome {
                    assert_eq!(*count, entries.len() as u64, "how many entries came in");
                }
                self.whole(outcome.map(drop), |model| model.ingest(table, &stored))
            }
        }
    }

    /// Gives a table the other order, and then its own again; meanwhile batches are written.
    pub(crate) fn turn(&mut self, table: usize, ordered: Layout, meanwhile: &[Vec<Change>]) -> Result<()> {
        let Some(plain) = self.tables().plain(table).cloned() else { return Ok(()) };
        let before = plain.layout()?;
        let fits = |change: &&Change| {
            change.table <= ASIDE
                && !change.write.is_of_range()
                && !matches!(change.write, Write::Metadata(_))
        };
        let mut batches = meanwhile.iter().map(|changes| changes.iter().filter(fits).cloned().collect());
        let written = RefCell::new(Vec::new());
        let mut write = |_, _| {
            let Some(changes): Option<Vec<Change>> = batches.next() else { return };
            let mut batch = Batch::new();
            let stored = self.stored(&changes);
            let pushed = self.push_all(self.tables(), &mut batch, &changes);
            let records = batch.len() as u64;
            let mut outcome = pushed.and_then(|()| self.db().write(&mut batch, Durability::Os));
            let numbered = self.db().last_sequence();
            // What follows must hear of what goes, also where the buffer is merged with what there is.
            if changes.len() % 2 == 1 && outcome.is_ok() {
                outcome = match self.db().flush() {
                    // What holds a bounded table's files may be the rewrite that is told of here: waiting for that
                    // would not end.
                    Err(Error::NoSpace { .. }) => outcome,
                    flushed => flushed.and(outcome),
                };
            }
            written.borrow_mut().push((stored, records, numbered, outcome));
        };
        let turned = plain
            .set_layout_telling(if before.is_ordered() { Layout::wb_tree() } else { ordered }, &mut write);
        let mut refused = Ok(());
        for (stored, records, numbered, outcome) in written.into_inner() {
            if numbered > self.model.last_sequence() {
                self.model.accept(numbered, records, stored);
            }
            match outcome {
                Ok(sequence) => self.model.acknowledge(sequence, Durability::Os),
                Err(Error::NoSpace { .. }) if self.holds_files() => {}
                Err(error) => refused = Err(error),
            }
        }
        // What snapshots hold of a bounded table may leave no room for what it has buffered. Then it stays as it was.
        let has_no_room = matches!(turned, Err(Error::NoSpace { .. })) && self.holds_files();
        if is_refused(&turned) || has_no_room {
            assert_eq!(plain.layout()?, before, "the layout after an error");
            return refused;
        }
        turned.and(refused)?;
        let view = View { tables: self.tables(), config: &self.config, snapshot: None };
        view.check_turned(table, &self.shown(table))?;
        match plain.set_layout(before) {
            Err(Error::NoSpace { .. }) if self.holds_files() => {
                self.let_go();
                plain.set_layout(before)
            }
            outcome => outcome,
        }
    }

    /// Drops all snapshots.
    fn let_go(&mut self) {
        self.kept.clear();
        self.open.iter_mut().for_each(|open| open.snapshots.clear());
    }

    /// Copies the database. The copy is opened and goes on by itself.
    pub fn fork(&mut self) -> Result<Self> {
        let (dir, model) = self.checkpoint()?;
        Ok(self.twin(self.env.clone(), &dir, model))
    }

    fn reopen_keeping(&mut self) -> Result<()> {
        self.note_close();
        let Some(Open { snapshots, tables, db, .. }) = self.open.take() else { return Ok(()) };
        self.kept.extend(snapshots);
        self.stale.push(tables);
        self.kept.drain(..self.kept.len().saturating_sub(KEPT_MAX));
        self.stale.drain(..self.stale.len().saturating_sub(KEPT_MAX));
        db.close()?;
        self.open_again()
    }

    /// A database that has stopped writing changes nothing else, either: nobody knows which of its manifests counts.
    pub fn assert_stopped(&self) {
        let Some(Open { db, .. }) = &self.open else { return };
        assert!(db.savepoint("late").is_err(), "a savepoint after writing had stopped");
        assert!(db.drop_table(&name_of(0)).is_err(), "a table dropped after writing had stopped");
    }

    /// Whether it is open, and nothing has stopped its writing.
    pub fn writes_on(&self) -> bool {
        self.open.as_ref().is_some_and(|open| !matches!(open.db.sync(), Err(Error::Poisoned(_))))
    }

    /// Handles of a database that was closed change nothing, and say so.
    fn use_stale(&self, stale: &Stale) {
        let Some(tables) = self.stale.first() else { return };
        let refused = |what: &str, outcome: Result<()>| {
            assert!(outcome.is_err(), "{what} by a handle of a database that was closed");
        };
        match stale {
            Stale::Commit(changes) => changes.iter().for_each(|change| {
                if let Some(outcome) = tables.write(change) {
                    refused("a write", outcome);
                }
            }),
            Stale::Ingest(entries) => {
                let Some(ordered) = tables.ordered(ASIDE) else { return };
                refused("an ingest", ordered.ingest(entries.clone().into_iter().map(Ok)).map(drop));
            }
            Stale::SetLayout(layout) => {
                let Some(ordered) = tables.ordered(ASIDE) else { return };
                if ordered.layout().is_ok_and(|now| now != *layout) {
                    refused("another layout", ordered.set_layout(*layout));
                }
            }
            // Nothing may be left to do.
            Stale::Compact(table) => drop(tables.compact(*table)),
        }
    }
}

/// Range-merge refuses tables that promise when what is deleted is gone, and hash order those with a prefix filter.
fn is_refused(outcome: &Result<()>) -> bool {
    let names = ["reclaim_interval", "prefix_filter"];
    matches!(outcome, Err(Error::Invalid(reason)) if names.iter().any(|name| reason.contains(name)))
}

fn unless_refused(outcome: Result<()>) -> Result<()> {
    if is_refused(&outcome) { Ok(()) } else { outcome }
}
