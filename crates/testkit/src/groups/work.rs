//! What is done to the cube and the windows.

use std::ops::Range;
use std::sync::Arc;

use forebay::{Batch, Durability, Error, Expired, Result};
use forebay_env::sync::Mutex;

use super::check::GroupsView;
use super::{CUBE, Groups, LENGTHS, WINDOWS, Whole, compact, drop_one, split, stored};
use crate::Query;
use crate::harness::Harness;
use crate::model::{Change, TABLES, Write};
use crate::ops::{Beside, Seen};

impl Harness {
    /// Writes a batch that has groups, and perhaps changes of tables. What comes too late is refused first, and then
    /// left out. Returns what it changed, and what became of it.
    pub(crate) fn commit_groups(
        &self,
        mut batch: Batch,
        changes: &[Change],
        durability: Durability,
    ) -> Result<(Vec<Change>, Result<u64>)> {
        let handles = self.tables().groups().expect("only groups that are there are changed");
        let (mut cube, mut windows) = (handles.cube.batch(), handles.windows.batch());
        let mut written = self.stored(changes);
        let mut metadata = None;
        for change in changes.iter().filter(|change| change.table >= TABLES) {
            match (change.table, &change.write) {
                (CUBE, Write::Merge(value)) => cube.add(&change.key, value)?,
                (WINDOWS, Write::Merge(value)) => {
                    let (time, key) = split(&change.key);
                    windows.add(time, key, value)?;
                }
                (table, Write::Metadata(bytes)) => metadata = Some((table, bytes)),
                other => panic!("groups take no {other:?}"),
            }
        }
        if let Some((CUBE, bytes)) = metadata {
            assert!(batch.is_empty() && windows.is_empty(), "metadata of a cube come with nothing else");
            return Ok((written, cube.commit(durability, bytes)));
        }
        cube.append_to(&mut batch)?;
        let Some((_, bytes)) = metadata else {
            return Ok((written, windows.write(batch, durability)));
        };
        let kept_from = handles.windows.kept_from()?;
        let is_late = |change: &Change| {
            let is_value = change.table == WINDOWS && matches!(change.write, Write::Merge(_));
            is_value && split(&stored(change).key).0 < kept_from
        };
        if changes.iter().any(is_late) {
            let refused = windows.commit_with(batch.clone(), durability, bytes);
            assert!(matches!(refused, Err(Error::Invalid(_))), "values from before {kept_from}: {refused:?}");
            assert!(windows.forget_before(kept_from) > 0, "nothing was late");
            written.retain(|change| !is_late(change));
        }
        Ok((written, windows.commit_with(batch, durability, bytes)))
    }

    /// Makes windows expire, perhaps beside something else.
    pub(crate) fn expire(&mut self, now: u64, beside: &Beside) -> Result<()> {
        let Some(handles) = self.tables().groups() else { return Ok(()) };
        let windows = handles.windows.clone();
        let told: Arc<Mutex<Option<Result<Expired>>>> = Arc::default();
        let (outcome, other) = match beside {
            Beside::Nothing => (windows.expire(now), Ok(())),
            Beside::Expire(_) | Beside::Savepoint(_) => {
                let (teller, forked) = (Arc::clone(&told), windows.clone());
                let run = move || *teller.lock() = Some(forked.expire(now));
                let forked = self.env.jobs.fork("expire", run);
                self.env.jobs.step_some(self.model.last_sequence() as usize % 20);
                let other = match beside {
                    Beside::Savepoint(name) => self.keep_beside(name, now),
                    Beside::Expire(then) => windows.expire(*then).map(drop),
                    Beside::Nothing => Ok(()),
                };
                forked.join();
                (told.lock().take().unwrap_or_else(|| Err(Error::bug("nothing was told"))), other)
            }
        };
        let whole = |is_ok: bool| if is_ok { Whole::Yes } else { Whole::Perhaps };
        let expired =
            |now, is_ok| Change { table: WINDOWS, key: Vec::new(), write: Write::Expire(now, whole(is_ok)) };
        let mut changes = vec![expired(now, outcome.is_ok())];
        if let Beside::Expire(then) = beside {
            changes.push(expired(*then, other.is_ok()));
        }
        self.model.adopt(self.db().last_sequence(), changes);
        if let (Ok(expired), Beside::Nothing) = (&outcome, beside)
            && *expired != Expired::default()
        {
            let again = windows.expire(now)?;
            assert_eq!(again, Expired::default(), "expired once more");
        }
        other.and(outcome.map(drop))
    }

    /// Takes a savepoint while windows expire.
    fn keep_beside(&mut self, name: &str, now: u64) -> Result<()> {
        if self.model.savepoints().contains_key(name) {
            return Ok(());
        }
        let outcome = self.take_savepoint(name);
        // What it has of the other is open.
        let expired = Change { table: WINDOWS, key: Vec::new(), write: Write::Expire(now, Whole::Perhaps) };
        match outcome {
            Ok(None) => Ok(()),
            Ok(Some(sequence)) => {
                self.model.adopt(sequence, vec![expired]);
                self.model.keep(name);
                Ok(())
            }
            Err(error) => {
                let mut after = self.model.clone();
                after.adopt(self.db().last_sequence(), vec![expired]);
                after.keep_perhaps(name);
                self.other = Some(after);
                Err(error)
            }
        }
    }

    /// Drops one of both, and makes it again.
    pub(crate) fn renew_groups(&mut self, table: usize) -> Result<()> {
        if self.config.groupings.is_none() {
            return Ok(());
        }
        let outcome = drop_one(self.db(), table);
        self.model.adopt(self.db().last_sequence(), Vec::new());
        self.whole(outcome, |model| model.renew_groups(table))?;
        self.open_tables()
    }

    /// Asks for groups, as they are now or were.
    pub(crate) fn read_groups(&self, seen: &Seen, times: Option<&Range<u64>>, query: &Query) -> Result<()> {
        let Some(handles) = self.tables().groups() else { return Ok(()) };
        match seen {
            Seen::Now => {
                GroupsView { handles, snapshot: None }.check(self.model.now().groups(), times, query)
            }
            Seen::Snapshots => self.opened().snapshots.iter().try_for_each(|taken| {
                let handles = taken.tables.groups().unwrap_or(handles);
                let view = GroupsView { handles, snapshot: Some(&taken.snapshot) };
                view.check(&taken.groups, times, query)
            }),
            Seen::Savepoint(name) => {
                let Some(moment) = self.model.savepoints().get(name) else { return Ok(()) };
                let snapshot = self.db().open_savepoint(name)?;
                let (then, now): (&Groups, &Groups) = (moment.groups(), self.model.now().groups());
                let view = GroupsView { handles, snapshot: Some(&snapshot) };
                let table = if times.is_none() { CUBE } else { WINDOWS };
                match then.is_same(now, table) {
                    true => view.check(then, times, query),
                    // Handles are of those that were made since.
                    false => {
                        let refused = match times {
                            None => handles.cube.at(&snapshot).metadata().err(),
                            Some(_) => handles.windows.at(&snapshot).metadata().err(),
                        };
                        assert!(refused.is_some(), "handles of now answer for what was dropped");
                        Ok(())
                    }
                }
            }
        }
    }

    /// Merges all that groups have.
    pub fn compact_groups(&mut self) -> Result<()> {
        if self.config.groupings.is_some() { compact(self.db()) } else { Ok(()) }
    }

    /// Asks groups for everything.
    pub(crate) fn check_groups(&self, groups: &Groups) -> Result<()> {
        let Some(handles) = self.tables().groups() else { return Ok(()) };
        GroupsView { handles, snapshot: None }.check_all(groups)
    }
}

/// A range of time that windows may have, or most of it.
pub(crate) fn aligned(time: u64, tier: usize, windows: u64) -> Range<u64> {
    let length = LENGTHS[tier];
    let start = time / length * length;
    start..start + windows * length
}
